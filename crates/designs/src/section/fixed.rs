//! Every slot of the section at its own offset (Plus, section III-A: "a simple check of an offset within the page").
//!
//! ```text
//!   slot i at i * 4   [place u28 | passes u4]     on drives of up to 2^28 grains
//!          or i * 8   [place u48 | passes u16]    on larger ones
//! ```

use crate::probe::Entry;
use crate::section::SectionLayout;
use kvssd_flash::Blob;
use kvssd_ftl::Grain;
use kvssd_ftl::index::SectionForm;

/// Sections of one page, all slots in them.
#[derive(Clone, Copy, Debug)]
pub struct FixedLayout {
    page_bytes: u32,
    wide: bool,
}

impl FixedLayout {
    /// For pages of `page_bytes` on a drive of `grains`.
    #[must_use]
    pub fn new(page_bytes: u32, grains: u64) -> Self {
        FixedLayout { page_bytes, wide: grains > 1 << 28 }
    }

    fn entry(&self, bytes: &[u8]) -> Entry {
        if self.wide {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            let word = u64::from_le_bytes(word);
            Entry { place: Grain(word & ((1 << 48) - 1)), passes: (word >> 48) as u32 }
        } else {
            let mut word = [0; 4];
            word.copy_from_slice(bytes);
            let word = u32::from_le_bytes(word);
            Entry { place: Grain((word & ((1 << 28) - 1)).into()), passes: word >> 28 }
        }
    }

    fn entry_bytes(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }
}

impl SectionForm for FixedLayout {
    fn empty(&self) -> Blob {
        vec![0; self.page_bytes as usize].into()
    }

    fn bytes_max(&self) -> u32 {
        self.page_bytes
    }

    fn directory_entry_bytes(&self) -> u64 {
        4
    }

    fn has_form(&self, section: &[u8]) -> bool {
        section.len() == self.page_bytes as usize
    }

    fn fault(&self, section: &[u8]) -> Option<&'static str> {
        (!self.has_form(section)).then_some("it is not a page of slots")
    }
}

impl SectionLayout for FixedLayout {
    fn slots(&self) -> u64 {
        u64::from(self.page_bytes) / self.entry_bytes() as u64
    }

    fn bytes_of(&self, _pairs: f64) -> f64 {
        f64::from(self.page_bytes)
    }

    fn passes_max(&self) -> u32 {
        if self.wide { 0xffff } else { 0xf }
    }

    fn get(&self, section: &[u8], slot: u32) -> (Entry, u32) {
        let at = slot as usize * self.entry_bytes();
        (self.entry(&section[at..at + self.entry_bytes()]), 1)
    }

    fn set(&self, section: &mut Blob, slot: u32, entry: Entry) -> u32 {
        let at = slot as usize * self.entry_bytes();
        let bytes = &mut section.make_mut()[at..at + self.entry_bytes()];
        if self.wide {
            bytes.copy_from_slice(&(entry.place.0 | u64::from(entry.passes) << 48).to_le_bytes());
        } else {
            bytes.copy_from_slice(&(entry.place.0 as u32 | entry.passes << 28).to_le_bytes());
        }
        0
    }

    fn next(&self, section: &[u8], slot: u32) -> Option<(u32, Entry)> {
        let entries = section.chunks_exact(self.entry_bytes()).enumerate().skip(slot as usize);
        entries.map(|(slot, bytes)| (slot as u32, self.entry(bytes))).find(|(_, entry)| entry.place != Grain(0))
    }
}
