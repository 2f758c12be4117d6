//! A log page of this project's own: how full a drive is and what its firmware did (LID C0h, vendor specific).
//!
//! ```text
//!   0 "kvssd-01" | 8 pairs | 16 pair bytes | 24 live | 32 capacity | 40 flash | 48 DRAM | 56 DRAM at most
//!   64 page bytes | 72 pages read | 80 pages programmed | 88 pairs moved | 96 erases | 104 blocks | 112 erases of the most erased
//!   120 bytes stored | 128 bytes retrieved | 136 stores and deletes | 144 retrieves, exists and lists | 152 design, 32 B | 184 processor ns | zeros
//! to 512
//! ```
//!
//! Capacities are those of the whole drive, whichever namespace is asked; counts begin when the service begins.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

/// The first 8 bytes: they tell this page, and its version, from those of other vendors.
pub const STATISTICS_SIGNATURE: [u8; 8] = *b"kvssd-01";

/// Length of the page.
pub const STATISTICS_BYTES: usize = 512;

/// How full a drive is, and what it did.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct StatisticsPage {
    /// [`STATISTICS_SIGNATURE`].
    pub signature: [u8; 8],
    /// Pairs that are stored.
    pub pairs: U64,
    /// Bytes of their keys and values.
    pub pair_bytes: U64,
    /// Bytes of flash that live records and the index take.
    pub live_bytes: U64,
    /// The most of those.
    pub capacity_bytes: U64,
    /// Bytes of all flash.
    pub flash_bytes: U64,
    /// Bytes of DRAM that the firmware's tables take.
    pub dram_bytes: U64,
    /// The DRAM budget.
    pub dram_bytes_max: U64,
    /// Bytes of a page of flash.
    pub page_bytes: U64,
    /// Pages of flash that were read.
    pub pages_read: U64,
    /// Pages of flash that were programmed.
    pub pages_programmed: U64,
    /// Pairs that garbage collection moved.
    pub pairs_moved: U64,
    /// Erases of all blocks, in the whole life of the drive.
    pub erases: U64,
    /// Number of blocks.
    pub blocks: U64,
    /// Erases of the block that was erased most.
    pub erases_max: U64,
    /// Bytes of values that hosts stored.
    pub stored_bytes: U64,
    /// Bytes of values and lists that hosts got.
    pub retrieved_bytes: U64,
    /// Stores and deletes that hosts made. Here and below those that failed do not count.
    pub changes: U64,
    /// Retrieves, exists and lists that hosts made, and that found something.
    pub lookups: U64,
    /// Name of the firmware, padded with zeros.
    pub design: [u8; 32],
    /// Processor time of the service, in nanoseconds; 0 for unknown.
    pub processor_ns: U64,
    reserved_192: [u8; 320],
}

const _: () = assert!(size_of::<StatisticsPage>() == STATISTICS_BYTES);
const _: () = assert!(core::mem::offset_of!(StatisticsPage, stored_bytes) == 120);
const _: () = assert!(core::mem::offset_of!(StatisticsPage, design) == 152);

impl StatisticsPage {
    /// A page of zeros, with its signature.
    #[must_use]
    pub fn new() -> Self {
        StatisticsPage { signature: STATISTICS_SIGNATURE, ..StatisticsPage::new_zeroed() }
    }

    /// Views the front of `bytes` as this page; `None` if they are too few, or another vendor's.
    #[must_use]
    pub fn from_data(bytes: &[u8]) -> Option<&Self> {
        let (page, _) = TryFromBytes::try_ref_from_prefix(bytes).ok()?;
        Some(page).filter(|page: &&Self| page.signature == STATISTICS_SIGNATURE)
    }
}

impl Default for StatisticsPage {
    fn default() -> Self {
        StatisticsPage::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_another_vendor_is_none() {
        let page = StatisticsPage { pairs: 7.into(), ..StatisticsPage::new() };
        let mut bytes = [0; STATISTICS_BYTES + 4];
        bytes[..STATISTICS_BYTES].copy_from_slice(page.as_bytes());
        assert_eq!(StatisticsPage::from_data(&bytes).unwrap().pairs.get(), 7);
        assert!(StatisticsPage::from_data(&bytes[..511]).is_none());
        bytes[7] = b'2';
        assert!(StatisticsPage::from_data(&bytes).is_none());
    }
}
