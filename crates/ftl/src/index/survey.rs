//! What an index holds, all of it, for a check of the drive.

use crate::address::Grain;

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

/// A tag that says something: of a pair, or of those that were put behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The tag.
    pub tag: u64,
    /// The place of its pair; grain 0 when there is none.
    pub place: Grain,
    /// How many pairs it says were put behind it.
    pub passes: u32,
}

/// Something of an index's own that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFault {
    /// The record that it is wrong in.
    pub number: u64,
    /// Where that lies on flash; grain 0 for nowhere.
    pub place: Grain,
    /// What is wrong.
    pub why: String,
    /// Whether pairs cannot be found for it.
    pub loses_pairs: bool,
}

/// Everything that an index holds ([`Index::survey`](crate::index::Index::survey)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Its entries, ascending by tag.
    pub seen: Vec<Seen>,
    /// What is wrong with it.
    pub faults: Vec<IndexFault>,
    /// The largest count of passes: one that has lost its number.
    pub passes_max: u32,
}

impl Survey {
    /// Whether a look-up ends at a tag.
    #[must_use]
    pub fn is_end(&self, tag: u64) -> bool {
        let Seen { place, passes, .. } = self.get(tag);
        place == Grain(0) && passes == 0
    }

    /// The entry of a tag; an empty one where there is none.
    #[must_use]
    pub fn get(&self, tag: u64) -> Seen {
        let found = self.seen.binary_search_by_key(&tag, |seen| seen.tag);
        found.map_or(Seen { tag, place: Grain(0), passes: 0 }, |index| self.seen[index])
    }
}
