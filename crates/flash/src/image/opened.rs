//! Pages that were read and are as they were written, each in the slot that its number gives.
//!
//! ```text
//!   slot   [head of a literal] [data area] [out-of-band area]         the file is read to here, the checksum looked at, nothing copied
//! ```

use crate::codec::PageIdentity;
use crate::rope::{LiteralHead, RopeRef};
use crate::{Geometry, PageAddress, PageView, codec};

/// The pages that were read last.
#[derive(Debug)]
pub(super) struct OpenedPages {
    slots: Vec<Slot>,
    head: LiteralHead,
    geometry: Geometry,
}

/// A page, if there is one.
#[derive(Debug, Default)]
struct Slot {
    page: Option<PageAddress>,
    /// Empty before its first page.
    bytes: Vec<u8>,
    /// Bytes of the out-of-band area that are the firmware's.
    oob_bytes: usize,
}

impl OpenedPages {
    /// Pages that are kept.
    const SLOTS: usize = 64;

    /// None yet.
    pub(super) fn new(geometry: &Geometry) -> Self {
        let slots = (0..Self::SLOTS).map(|_| Slot::default()).collect();
        OpenedPages { slots, head: LiteralHead::new(geometry.page_bytes as usize), geometry: *geometry }
    }

    /// Whether a page is here.
    pub(super) fn holds(&self, page: PageAddress) -> bool {
        self.slots[page.0 as usize % Self::SLOTS].page == Some(page)
    }

    /// A page that is here.
    pub(super) fn get(&self, page: PageAddress) -> Option<PageView<'_>> {
        let slot = &self.slots[page.0 as usize % Self::SLOTS];
        if slot.page != Some(page) {
            return None;
        }
        let (code, oob) = slot.bytes.split_at(self.head.len() + self.geometry.page_bytes as usize);
        let oob = &oob[codec::OOB_HEAD_BYTES as usize..][..slot.oob_bytes];
        Some(PageView { oob, data: RopeRef::of_literal(code) })
    }

    /// Where pages are to be read to, from `first` on: so many, or as many as have their slots beside each other. What was there is gone.
    pub(super) fn places(&mut self, first: PageAddress, pages: u32) -> impl Iterator<Item = &mut [u8]> {
        let begin = first.0 as usize % Self::SLOTS;
        let end = Self::SLOTS.min(begin + pages as usize);
        let Geometry { page_bytes, oob_bytes, .. } = self.geometry;
        let page_bytes = page_bytes as usize + oob_bytes as usize;
        let head = &self.head;
        self.slots[begin..end].iter_mut().map(move |slot| {
            slot.page = None;
            if slot.bytes.is_empty() {
                slot.bytes.extend_from_slice(head.bytes());
                slot.bytes.resize(head.len() + page_bytes, 0);
            }
            &mut slot.bytes[head.len()..]
        })
    }

    /// A page has been read to its place: takes it in, or says why it is none.
    pub(super) fn open(&mut self, identity: PageIdentity) -> Result<(), &'static str> {
        let page = identity.page;
        let slot = &mut self.slots[page.0 as usize % Self::SLOTS];
        let (oob, _) = codec::verify(&self.geometry, identity, &slot.bytes[self.head.len()..])?;
        slot.oob_bytes = oob.len();
        slot.page = Some(page);
        Ok(())
    }

    /// A page is written anew.
    pub(super) fn forget(&mut self, page: PageAddress) {
        self.slots[page.0 as usize % Self::SLOTS].page.take_if(|held| *held == page);
    }
}
