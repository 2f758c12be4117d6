//! The bytes of a file, in pages that copies share until they change.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page of the system's cache.
pub(super) const PAGE_BYTES: u64 = 4096;

type Page = Arc<[u8; PAGE_BYTES as usize]>;

/// Bytes, of which those that were never written are zeros and take no room.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    length_bytes: u64,
    pages: BTreeMap<u64, Page>,
    /// What pages held before the last write to them.
    before: BTreeMap<u64, Page>,
}

impl Pages {
    pub(super) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    pub(super) fn taken_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    /// Makes it so long. What is cut off is forgotten.
    pub(super) fn set_length(&mut self, bytes: u64) {
        self.length_bytes = bytes;
        self.pages.retain(|number, _| number * PAGE_BYTES < bytes);
        if let Some(page) = self.pages.get_mut(&(bytes / PAGE_BYTES)) {
            Arc::make_mut(page)[(bytes % PAGE_BYTES) as usize..].fill(0);
        }
    }

    /// Fills `out` with what lies at `at`.
    pub(super) fn read(&self, at: u64, out: &mut [u8]) {
        for_each_page(at, out.len(), |number, within, range| match self.pages.get(&number) {
            Some(page) => out[range.clone()].copy_from_slice(&page[within..within + range.len()]),
            None => out[range].fill(0),
        });
    }

    /// As [`Pages::read`], of pages as they were before the last write to them.
    pub(super) fn read_before(&self, at: u64, out: &mut [u8]) {
        for_each_page(at, out.len(), |number, within, range| {
            match self.before.get(&number).or_else(|| self.pages.get(&number)) {
                Some(page) => out[range.clone()].copy_from_slice(&page[within..within + range.len()]),
                None => out[range].fill(0),
            }
        });
    }

    /// Writes `bytes` to `at`; the end moves where that is behind it.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.length_bytes = self.length_bytes.max(at + bytes.len() as u64);
        for_each_page(at, bytes.len(), |number, within, range| {
            let page = self.pages.entry(number).or_insert_with(|| Arc::new([0; PAGE_BYTES as usize]));
            self.before.insert(number, Arc::clone(page));
            Arc::make_mut(page)[within..within + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    /// Writes those of `bytes` that lie before the end.
    pub(super) fn write_within(&mut self, at: u64, bytes: &[u8]) {
        let room = self.length_bytes.saturating_sub(at).min(bytes.len() as u64) as usize;
        if room > 0 {
            self.write(at, &bytes[..room]);
        }
    }

    /// Takes over the pages of another that hold the bytes from `at` on.
    pub(super) fn copy_from(&mut self, other: &Pages, at: u64, count: u64) {
        for number in at / PAGE_BYTES..(at + count).div_ceil(PAGE_BYTES) {
            match other.pages.get(&number) {
                Some(page) => drop(self.pages.insert(number, Arc::clone(page))),
                None => drop(self.pages.remove(&number)),
            }
        }
    }
}

/// Shows the pages that so many bytes from `at` on lie in: number, byte within it, and which of the bytes.
fn for_each_page(at: u64, count: usize, mut show: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < count {
        let (number, within) = ((at + done as u64) / PAGE_BYTES, ((at + done as u64) % PAGE_BYTES) as usize);
        let end = count.min(done + PAGE_BYTES as usize - within);
        show(number, within, done..end);
        done = end;
    }
}
