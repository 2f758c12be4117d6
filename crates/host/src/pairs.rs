//! Going through all keys, a page of them at a time, while others may store and delete.
//!
//! ```text
//!   page 1   a b c d        page 2 begins behind d; if d has gone meanwhile, behind c without what came behind c before; ...
//! ```
//!
//! A key keeps its place in the order for as long as it is there, and one that is not there has none to go on from.

use crate::{Error, Namespace};
use std::collections::VecDeque;
use std::iter::FusedIterator;

/// Keys that are asked for at a time: others wait meanwhile.
const PAGE_KEYS: usize = 256;

/// A key and its value.
pub type Pair = (Box<[u8]>, Vec<u8>);

/// Keys, and how many were asked for.
type Listed = (Vec<Box<[u8]>>, usize);

/// All keys of a namespace. Ends after an error.
pub struct Keys<'a> {
    namespace: Namespace<'a>,
    /// Where the first page begins.
    from: Option<Box<[u8]>>,
    /// The page before.
    met: Vec<Box<[u8]>>,
    coming: VecDeque<Box<[u8]>>,
    is_at_end: bool,
}

/// All pairs of a namespace. Ends after an error.
pub struct Pairs<'a> {
    keys: Keys<'a>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(namespace: Namespace<'a>, from: Option<&[u8]>) -> Self {
        Keys { namespace, from: from.map(Into::into), met: Vec::new(), coming: VecDeque::new(), is_at_end: false }
    }

    fn next_page(&mut self) -> Result<(), Error> {
        let (keys, wanted) = self.keys_behind()?;
        self.is_at_end = keys.len() < wanted;
        let new: Vec<Box<[u8]>> = keys.into_iter().filter(|key| !self.met.contains(key)).collect();
        self.is_at_end |= new.is_empty();
        self.coming = new.iter().cloned().collect();
        self.met = new;
        Ok(())
    }

    /// Keys from the last one on that was met and is still there.
    fn keys_behind(&self) -> Result<Listed, Error> {
        for (index, anchor) in self.met.iter().enumerate().rev() {
            let wanted = PAGE_KEYS + self.met.len() - index;
            let keys = self.namespace.list(Some(anchor), wanted)?;
            if keys.first() == Some(anchor) {
                return Ok((keys, wanted));
            }
        }
        // All have gone: where the last would be is as near as one can get.
        let from = self.met.last().or(self.from.as_ref());
        let wanted = PAGE_KEYS + self.met.len();
        Ok((self.namespace.list(from.map(AsRef::as_ref), wanted)?, wanted))
    }
}

impl Iterator for Keys<'_> {
    type Item = Result<Box<[u8]>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.coming.is_empty()
            && !self.is_at_end
            && let Err(error) = self.next_page()
        {
            self.is_at_end = true;
            return Some(Err(error));
        }
        self.coming.pop_front().map(Ok)
    }
}

impl FusedIterator for Keys<'_> {}

impl<'a> Pairs<'a> {
    pub(crate) fn new(namespace: Namespace<'a>) -> Self {
        Pairs { keys: Keys::new(namespace, None) }
    }

    fn value_of(&mut self, key: Box<[u8]>) -> Option<Result<Pair, Error>> {
        match self.keys.namespace.retrieve(&key) {
            Ok(value) => value.map(|value| Ok((key, value))),
            Err(error) => {
                self.keys.coming.clear();
                self.keys.is_at_end = true;
                Some(Err(error))
            }
        }
    }
}

impl Iterator for Pairs<'_> {
    type Item = Result<Pair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let pair = match self.keys.next()? {
                Ok(key) => self.value_of(key),
                Err(error) => Some(Err(error)),
            };
            // A key that was deleted after it was listed has none.
            if pair.is_some() {
                return pair;
            }
        }
    }
}

impl FusedIterator for Pairs<'_> {}
