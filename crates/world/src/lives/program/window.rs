//! A range that a program keeps open while it works: it shows what was there when it began.

use super::{End, Program};
use crate::lives::act::number_of;
use crate::lives::model::{Content, Pairs};
use kvssd_host::{Error, IteratorOptions, Namespace, NamespaceId, RangeCursor};
use std::collections::VecDeque;

/// A range, and the pairs of the program that it must still show.
#[derive(Debug)]
pub(in crate::lives) struct Window {
    namespace: NamespaceId,
    cursor: RangeCursor,
    coming: VecDeque<(usize, Content)>,
}

impl Window {
    fn open(namespace: Namespace<'_>, pairs: &Pairs) -> Result<Self, Error> {
        let cursor = RangeCursor::new(namespace, &IteratorOptions::default())?;
        let coming = pairs.iter().map(|(&number, &content)| (number, content)).collect();
        Ok(Window { namespace: namespace.id(), cursor, coming })
    }
}

impl Program<'_> {
    /// Goes a page further along the range of a namespace, or begins one. A namespace without an order has none, and a drive may end
    /// the oldest.
    pub(in crate::lives) fn look_through_window(&mut self, space: usize, namespace: Namespace<'_>) -> Result<(), End> {
        let open = self.windows.remove(&space);
        let opened = open.map_or_else(|| Window::open(namespace, &self.model.spaces()[&space]), Ok);
        let mut window = match opened {
            Ok(window) => window,
            Err(Error::Refused { why }) if ["no order", "no memory"].iter().any(|words| why.contains(words)) => {
                return Ok(());
            }
            Err(error) => return Err(self.end("range", &error)),
        };
        let page = match window.cursor.next_page(namespace) {
            Ok(page) => page,
            Err(Error::Refused { why }) if why.contains("expired") => {
                window.cursor.end(namespace);
                return Ok(());
            }
            Err(error) => return Err(self.end("range", &error)),
        };
        let is_at_end = page.is_empty();
        for (key, value) in page {
            let is_foreign = || self.foreign.iter().any(|all| all.contains_key(&(window.namespace, key.clone())));
            match number_of(&key).zip(window.coming.front()) {
                Some((number, &(next, content))) if number == next && content.value() == value => {
                    window.coming.pop_front();
                }
                _ if is_foreign() => {}
                found => {
                    let wanted = found.map(|(_, (next, _))| next);
                    return Err(self.wrong(format!("a range of {space} shows {key:?} where {wanted:?} was next")));
                }
            }
        }
        if !is_at_end {
            self.windows.insert(space, window);
            return Ok(());
        }
        window.cursor.end(namespace);
        match window.coming.front() {
            Some((next, _)) => Err(self.wrong(format!("a range of {space} ends, and {next} was next"))),
            None => Ok(()),
        }
    }
}
