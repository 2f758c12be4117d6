//! Ranges of an ordered namespace, each as the namespace was when the range began: the drive's own iterators.
//!
//! ```text
//!   range()        Create     the drive keeps what the range shows, whatever others change
//!   next, next     Seek, Next, Next, ...     a page of pairs each
//!   drop           Destroy    what only this range showed is free
//! ```

use crate::{Error, Namespace, Pair};
use kvssd_types::{Blob, Command, IteratedPair, IteratorId, IteratorOptions, Key, Reply, Value};
use std::iter::FusedIterator;
use std::vec;

/// Pairs of the first page, and of any page: each page has twice as many as the one before. What nobody wants is read in vain, but a caller
/// that has read many pairs usually goes on.
const PAGE_PAIRS: u32 = 16;
const PAGE_PAIRS_MAX: u32 = 64;

/// A place in a range. It borrows nothing, so that it can be kept where a store cannot be borrowed. Its owner must end it
/// ([`RangeCursor::end`]); otherwise the drive keeps what it shows until the store is closed.
#[derive(Debug)]
pub struct RangeCursor {
    iterator: IteratorId,
    is_begun: bool,
    /// The most pairs of the next page.
    pairs_max: u32,
}

/// Pairs of a range, as they were when it began. Ends after an error.
pub struct Range<'a> {
    namespace: Namespace<'a>,
    /// `None` at the end.
    cursor: Option<RangeCursor>,
    coming: vec::IntoIter<Pair>,
}

impl RangeCursor {
    /// A cursor before the first pair of a range, which the drive keeps as it is now.
    ///
    /// # Errors
    /// As [`Namespace::range`].
    pub fn new(namespace: Namespace<'_>, options: &IteratorOptions<'_>) -> Result<Self, Error> {
        match namespace.ask(Command::CreateIterator { options: *options })? {
            Some(Reply::IteratorCreated(iterator)) => {
                Ok(RangeCursor { iterator, is_begun: false, pairs_max: PAGE_PAIRS })
            }
            other => unreachable!("{other:?} does not answer the creation of an iterator"),
        }
    }

    /// The next pairs, without values if only keys were asked for; empty at the end. The namespace must be the same each time. The first page has
    /// 16 pairs at the most, and each later page up to twice as many as the one before, 64 at the most. A page also ends after as many bytes as the
    /// largest value may have.
    ///
    /// # Errors
    /// As [`Range`]'s items.
    pub fn next_page(&mut self, namespace: Namespace<'_>) -> Result<Vec<Pair>, Error> {
        let RangeCursor { iterator, pairs_max, .. } = *self;
        let page = match self.is_begun {
            false => page_of(namespace, Command::Seek { iterator, key: None, pairs_max })?,
            true => page_of(namespace, Command::Next { iterator, pairs_max })?,
        };
        self.is_begun = true;
        self.pairs_max = (2 * pairs_max).min(PAGE_PAIRS_MAX);
        Ok(page)
    }

    /// At most `count` pairs from `key` on, in pages as large as the drive makes them. Values count in a page even where keys alone are given, so only
    /// an empty one is the end.
    pub(crate) fn take_from(
        &mut self,
        namespace: Namespace<'_>,
        key: Option<Key<'_>>,
        count: u32,
    ) -> Result<Vec<Pair>, Error> {
        let iterator = self.iterator;
        let mut pairs = page_of(namespace, Command::Seek { iterator, key, pairs_max: count })?;
        self.is_begun = true;
        let mut is_at_end = pairs.is_empty();
        while !is_at_end && pairs.len() < count as usize {
            let pairs_max = count - pairs.len() as u32;
            let page = page_of(namespace, Command::Next { iterator, pairs_max })?;
            is_at_end = page.is_empty();
            pairs.extend(page);
        }
        Ok(pairs)
    }

    /// Ends the range. A drive that has failed or was closed keeps nothing for it anyway.
    pub fn end(self, namespace: Namespace<'_>) {
        let _ = namespace.ask(Command::DestroyIterator { iterator: self.iterator });
    }
}

fn page_of(namespace: Namespace<'_>, command: Command<'_>) -> Result<Vec<Pair>, Error> {
    match namespace.ask(command)? {
        Some(Reply::Pairs(pairs)) => {
            let owned = |(key, value): IteratedPair| (key, value.map_or_else(Blob::default, Value::into_bytes));
            Ok(pairs.into_iter().map(owned).collect())
        }
        other => unreachable!("{other:?} does not answer a range"),
    }
}

impl<'a> Range<'a> {
    pub(crate) fn new(namespace: Namespace<'a>, options: &IteratorOptions<'_>) -> Result<Self, Error> {
        let cursor = RangeCursor::new(namespace, options)?;
        Ok(Range { namespace, cursor: Some(cursor), coming: Vec::new().into_iter() })
    }

    fn end(&mut self) {
        self.coming = Vec::new().into_iter();
        if let Some(cursor) = self.cursor.take() {
            cursor.end(self.namespace);
        }
    }
}

/// A key and its value, which is empty if only keys were asked for.
///
/// # Errors
/// [`Error::Refused`] if the drive has ended the range, because it needed the flash or the memory. A new range can go on from the last key; it
/// sees the namespace as it is then. And as [`Namespace::retrieve`].
impl Iterator for Range<'_> {
    type Item = Result<Pair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        // A forked child gets an error, not the parent's pairs.
        if let Err(error) = self.namespace.check_owner() {
            self.coming = Vec::new().into_iter();
            return self.cursor.take().map(|_| Err(error));
        }
        if self.coming.len() == 0 {
            match self.cursor.as_mut()?.next_page(self.namespace) {
                Ok(page) => self.coming = page.into_iter(),
                Err(error) => {
                    self.end();
                    return Some(Err(error));
                }
            }
        }
        match self.coming.next() {
            Some(pair) => Some(Ok(pair)),
            None => {
                self.end();
                None
            }
        }
    }
}

impl FusedIterator for Range<'_> {}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
