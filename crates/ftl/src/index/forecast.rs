//! What an index will do, on paper: what an estimate of a drive asks its plan.

use crate::index::{Room, cached_bytes};

/// Entries that are compared where an index does not say how many. An estimate.
const COMPARISONS: f64 = 10.0;

/// The drive and the pairs that an index is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// The drive.
    pub room: Room,
    /// Bytes of DRAM for all that the index keeps there.
    pub dram_bytes: u64,
    /// Pairs that it holds.
    pub pairs: u64,
    /// Bytes of each of their keys.
    pub key_bytes: u32,
    /// Changes that brought it there; none where that goes on, or garbage collection made others.
    pub changes: Option<u64>,
    /// Pages that a log gathers in the write buffer before it programs them: the newest of an index are read there.
    pub unit_pages: u32,
}

/// What the index does for a look-up and for a change, on average, once it holds its pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Where the look-up of a key that is there goes, one behind the other.
    pub visits: Vec<Visit>,
    /// Bytes of a piece of the index, as it is written to flash.
    pub piece_bytes: f64,
    /// Records of other keys that a look-up reads.
    pub strangers: f64,
    /// Whether it tells keys apart without their records.
    pub knows_keys: bool,
    /// Entries that are compared where it is looked for one.
    pub comparisons: f64,
    /// How changes come to flash.
    pub changes: Changes,
    /// Pieces side by side that a range reads at once where it begins.
    pub range_pieces: f64,
}

/// A visit to one of alike pieces of the index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// How many pieces there are.
    pub pieces: f64,
    /// The share of look-ups that come so far.
    pub reached: f64,
    /// The share of the pieces that are in DRAM, also in the write buffer.
    pub in_dram: f64,
    /// The share of the pairs whose newest change lies before what is visited here: look-ups of these end before. For a tree.
    pub newer: f64,
    /// Where they are on flash at times only, how often, and how many pages then lie together that look-ups want.
    pub at_times: Option<AtTimes>,
}

/// Pieces that come and go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtTimes {
    /// The share of the time that a piece is on flash.
    pub share: f64,
    /// Pages that then lie on flash, where one of them is read.
    pub together: f64,
}

/// How changes come to flash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Changes {
    /// With the piece that they are made in, when that leaves DRAM.
    InPlace,
    /// Together, and are merged again and again.
    Merged {
        /// Pages that are written for each change, over all merges.
        pages: f64,
    },
}

impl Forecast {
    /// Of one table in `pieces` of `piece_bytes`, of which DRAM caches what it has room for beside the directory.
    #[must_use]
    pub fn of_sections(outlook: &Outlook, pieces: u64, piece_bytes: f64, directory_bytes: u64) -> Self {
        let cache_bytes = outlook.dram_bytes.saturating_sub(directory_bytes) as f64;
        let cached = cache_bytes / (piece_bytes + cached_bytes(0) as f64);
        let in_dram = (cached / pieces as f64).min(1.0);
        Forecast {
            visits: vec![Visit { pieces: pieces as f64, reached: 1.0, in_dram, newer: 0.0, at_times: None }],
            piece_bytes,
            strangers: 0.0,
            knows_keys: false,
            comparisons: COMPARISONS,
            changes: Changes::InPlace,
            range_pieces: 1.0,
        }
    }
}
