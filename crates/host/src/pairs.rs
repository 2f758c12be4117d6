//! Iterates over all keys, a page at a time, while other threads store and delete.
//!
//! ```text
//!   page 1   a b c d        page 2 begins behind d; if d has gone meanwhile, behind c without what came behind c before; ...
//! ```
//!
//! A key keeps its place in the order while it exists. From a deleted key the walk cannot go on: so each page but the last keeps its last key
//! for the next one, and who deletes all that he meets leaves that.

use crate::{Error, Namespace};
use kvssd_types::Blob;
use std::collections::{HashSet, VecDeque};
use std::iter::FusedIterator;

/// Keys of a page. Other threads wait while one is read.
const PAGE_KEYS: usize = 256;

/// A key and its value. A small value may be a part of a cached page: to keep it for long, copy it (`to_vec`).
pub type Pair = (Box<[u8]>, Blob);

/// Keys, and how many were requested.
type Listed = (Vec<Box<[u8]>>, usize);

/// A position among the keys of a namespace. It borrows nothing, so that it can be kept where a store cannot be
/// borrowed.
#[derive(Clone, Debug, Default)]
pub struct KeyCursor {
    /// Where the first page begins.
    from: Option<Box<[u8]>>,
    /// The keys of the last page.
    met: Vec<Box<[u8]>>,
    /// The key behind them, with which the next page begins: nobody has seen it.
    ahead: Option<Box<[u8]>>,
    is_at_end: bool,
}

/// All keys of a namespace. Ends after an error.
pub struct Keys<'a> {
    namespace: Namespace<'a>,
    cursor: KeyCursor,
    coming: VecDeque<Box<[u8]>>,
}

/// All pairs of a namespace. Ends after an error.
pub struct Pairs<'a> {
    keys: Keys<'a>,
}

impl KeyCursor {
    /// A cursor before the first key from `from` on.
    #[must_use]
    pub fn new(from: Option<&[u8]>) -> Self {
        KeyCursor { from: from.map(Into::into), ..KeyCursor::default() }
    }

    /// The next page of keys, in the order of [`Namespace::keys`]; empty at the end. The namespace must be the same
    /// each time.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`]. The cursor stays where it was.
    pub fn next_page(&mut self, namespace: Namespace<'_>) -> Result<Vec<Box<[u8]>>, Error> {
        if self.is_at_end {
            return Ok(Vec::new());
        }
        let (keys, wanted) = self.keys_behind(namespace)?;
        self.is_at_end = keys.len() < wanted;
        let met: HashSet<&[u8]> = self.met.iter().map(AsRef::as_ref).collect();
        let mut new: Vec<Box<[u8]>> = keys.into_iter().filter(|key| !met.contains(key.as_ref())).collect();
        self.is_at_end |= new.is_empty();
        if new.len() > PAGE_KEYS {
            // Of the keys that were met, some have gone: a page that had as many more would have a larger one behind it.
            new.truncate(PAGE_KEYS + 1);
            self.is_at_end = false;
        }
        self.ahead = if self.is_at_end || new.len() == 1 { None } else { new.pop() };
        self.met.clone_from(&new);
        Ok(new)
    }

    /// Keys from the one ahead on, else from the last key of the page that still exists.
    fn keys_behind(&self, namespace: Namespace<'_>) -> Result<Listed, Error> {
        if let Some(ahead) = &self.ahead {
            let keys = namespace.list(Some(ahead), PAGE_KEYS + 1)?;
            if keys.first() == Some(ahead) {
                return Ok((keys, PAGE_KEYS + 1));
            }
        }
        for (index, anchor) in self.met.iter().enumerate().rev() {
            // If somebody deletes all keys, all have gone, and checking each would read a page for each.
            if index + 1 < self.met.len() && !namespace.exist(anchor)? {
                continue;
            }
            let wanted = PAGE_KEYS + 1 + self.met.len() - index;
            let keys = namespace.list(Some(anchor), wanted)?;
            if keys.first() == Some(anchor) {
                return Ok((keys, wanted));
            }
        }
        // All are deleted: go on where the last one would be.
        let from = self.met.last().or(self.from.as_ref());
        let wanted = PAGE_KEYS + 1 + self.met.len();
        Ok((namespace.list(from.map(AsRef::as_ref), wanted)?, wanted))
    }
}

impl<'a> Keys<'a> {
    pub(crate) fn new(namespace: Namespace<'a>, from: Option<&[u8]>) -> Self {
        Keys { namespace, cursor: KeyCursor::new(from), coming: VecDeque::new() }
    }
}

impl Iterator for Keys<'_> {
    type Item = Result<Box<[u8]>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        // A forked child gets an error, not the parent's keys, nor an end.
        if let Err(error) = self.namespace.check_owner() {
            return Some(Err(error));
        }
        if self.coming.is_empty() {
            match self.cursor.next_page(self.namespace) {
                Ok(page) => self.coming = page.into(),
                Err(error) => {
                    self.cursor.is_at_end = true;
                    return Some(Err(error));
                }
            }
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
        match self.keys.namespace.retrieve_value(&key) {
            Ok(value) => value.map(|value| Ok((key, value.into_bytes()))),
            Err(error) => {
                self.keys.coming.clear();
                self.keys.cursor.is_at_end = true;
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
            // A key that was deleted after it was listed has no pair.
            if pair.is_some() {
                return pair;
            }
        }
    }
}

impl FusedIterator for Pairs<'_> {}
