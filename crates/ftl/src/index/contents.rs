//! What an index holds, all of it, for a check of the drive.

use crate::layout::address::Grain;
use kvssd_types::Key;

/// A record of the index's own on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRecord {
    /// Its number, which is its tag.
    pub number: u64,
    /// Where it lies.
    pub place: Grain,
    /// Its bytes.
    pub bytes: u32,
}

/// An entry of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// What it is found by.
    pub tag: u64,
    /// The place of its pair; grain 0 when there is none.
    pub place: Grain,
    /// What else it says, which only the index understands.
    pub note: u32,
}

/// A fault in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFault {
    /// The number of the faulty record.
    pub number: u64,
    /// Where that lies on flash; grain 0 for nowhere.
    pub place: Grain,
    /// What is wrong.
    pub why: String,
    /// Whether pairs cannot be found because of it.
    pub loses_pairs: bool,
}

/// Everything that an index holds ([`Index::contents`](crate::index::Index::contents)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexContents {
    /// Its entries, ascending by tag and place.
    pub entries: Vec<IndexEntry>,
    /// What is wrong with it.
    pub faults: Vec<IndexFault>,
}

impl IndexContents {
    /// Brings entries that were noted in any order into that of tag and place.
    pub fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| (entry.tag, entry.place));
    }
}

/// Checks that look-ups find the pairs that live. It is told of each of them, in any order
/// ([`Index::audit`](crate::index::Index::audit)).
pub trait Audit {
    /// Reports that the pair of `key` lives and has `tag`. Returns why no look-up finds it; `None` if one does.
    fn pair(&mut self, key: Key<'_>, tag: u64) -> Option<String>;

    /// Ends the audit. Returns what is wrong with the entries.
    fn end(self: Box<Self>) -> Vec<IndexFault>;
}

/// The audit of an index whose tags follow from keys.
pub(crate) fn audit_tags<'i>(tag_of: impl Fn(Key<'_>) -> Option<u64> + 'i) -> Box<dyn Audit + 'i> {
    Box::new(AuditTags(tag_of))
}

struct AuditTags<F>(F);

impl<F: Fn(Key<'_>) -> Option<u64>> Audit for AuditTags<F> {
    fn pair(&mut self, key: Key<'_>, tag: u64) -> Option<String> {
        (self.0(key) != Some(tag)).then(|| format!("no search for the key comes to its tag {tag}"))
    }

    fn end(self: Box<Self>) -> Vec<IndexFault> {
        Vec::new()
    }
}
