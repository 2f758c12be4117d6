//! Grains: the smallest piece of flash that a record can be given.

use serde::{Deserialize, Serialize};

/// The address of a grain: grains are numbered through pages in the pages' order. Grain 0 lies in the system superblock
/// and is never a record's: it stands for "nowhere" in tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Grain(pub u64);
