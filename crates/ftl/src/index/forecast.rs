//! Forecasts of what an index does, computed without a run: `kvssd estimate` asks the plan of an index.

use crate::index::{Room, cached_bytes};

/// Entries compared per search where an index does not say how many. An estimate.
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
    /// How many changes filled the index; `None` if changes go on, or if garbage collection made more of them.
    pub changes: Option<u64>,
    /// Pages that a log gathers in the write buffer before it programs them: the newest of an index are read there.
    pub unit_pages: u32,
}

/// What the index does for a look-up and for a change, on average, once it holds its pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The pieces that a look-up of an existing key visits, in order.
    pub visits: Vec<Visit>,
    /// Bytes of a piece of the index, as it is written to flash.
    pub piece_bytes: f64,
    /// Records of other keys that a look-up reads.
    pub strangers: f64,
    /// Whether it tells keys apart without their records.
    pub knows_keys: bool,
    /// Entries compared per search.
    pub comparisons: f64,
    /// How changes come to flash.
    pub changes: Changes,
    /// Pieces that a range reads side by side where it begins.
    pub range_pieces: f64,
}

/// A visit of a look-up to one of several pieces of the same kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// How many pieces there are.
    pub pieces: f64,
    /// The share of look-ups that get to this visit.
    pub reached: f64,
    /// The share of the pieces that are in DRAM, also in the write buffer.
    pub in_dram: f64,
    /// For a tree: the share of the pairs whose newest change lies before the pieces visited here. Their look-ups end earlier.
    pub newer: f64,
    /// For pieces that are on flash only at times: how often, and how many of the pages that look-ups want then lie together.
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
    /// Each with the piece that it is made in, when that leaves DRAM.
    InPlace,
    /// Together; they are merged again and again.
    Merged {
        /// Pages that are written for each change, over all merges.
        pages: f64,
    },
}

impl Forecast {
    /// The forecast for one table in `pieces` pieces of `piece_bytes`. DRAM caches as many as fit beside the directory.
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
