//! Sections: how a run of the table's slots lies in bytes, in DRAM as on flash.

mod compact;
mod fixed;

pub use compact::CompactLayout;
pub use fixed::FixedLayout;

use crate::probe::Entry;
use kvssd_flash::Blob;
use kvssd_ftl::index::SectionForm;

/// The layout of a section of a hash table.
pub trait SectionLayout: SectionForm {
    /// The slots that a section covers.
    fn slots(&self) -> u64;

    /// The largest count of passes that an entry can hold.
    fn passes_max(&self) -> u32;

    /// The entry of `slot`, and the comparisons.
    fn get(&self, section: &[u8], slot: u32) -> (Entry, u32);

    /// Sets the entry of `slot`; returns the comparisons for sorting the section anew, none where that was not needed.
    fn set(&self, section: &mut Blob, slot: u32, entry: Entry) -> u32;

    /// Bytes of a section with so many pairs, on average.
    fn bytes_of(&self, pairs: f64) -> f64;

    /// The lowest slot at or behind `slot` that holds a pair, with the pair's entry.
    fn next(&self, section: &[u8], slot: u32) -> Option<(u32, Entry)>;
}
