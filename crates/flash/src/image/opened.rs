//! Pages that were read and are as they were written, each in the slot that its number gives.
//!
//! A slot keeps its memory: to read a page costs a look at the file, a check and a copy, and no allocation.

use crate::rope::Rope;
use crate::{Geometry, PageAddress, PageView, codec};

/// A page, if there is one.
#[derive(Debug, Default)]
struct Slot {
    page: Option<PageAddress>,
    oob: Vec<u8>,
    data: Rope,
}

/// The pages that were read last.
#[derive(Debug)]
pub(super) struct OpenedPages {
    slots: Vec<Slot>,
}

impl OpenedPages {
    /// Pages that are kept.
    pub(super) const SLOTS: usize = 64;

    /// None yet.
    pub(super) fn new() -> Self {
        OpenedPages { slots: (0..Self::SLOTS).map(|_| Slot::default()).collect() }
    }

    /// Whether a page is here.
    pub(super) fn holds(&self, page: PageAddress) -> bool {
        self.slots[page.0 as usize % Self::SLOTS].page == Some(page)
    }

    /// A page that is here.
    pub(super) fn get(&self, page: PageAddress) -> Option<PageView<'_>> {
        let slot = &self.slots[page.0 as usize % Self::SLOTS];
        (slot.page == Some(page)).then(|| PageView { oob: &slot.oob, data: slot.data.as_ref() })
    }

    /// Takes a page in whose bytes were read, or says why they are none.
    pub(super) fn open(&mut self, geometry: &Geometry, page: PageAddress, bytes: &[u8]) -> Result<(), &'static str> {
        let slot = &mut self.slots[page.0 as usize % Self::SLOTS];
        slot.page = None;
        let (oob, data) = codec::verify(geometry, bytes)?;
        slot.oob.clear();
        slot.oob.extend_from_slice(oob);
        slot.data.clear();
        slot.data.push_literal(data);
        slot.page = Some(page);
        Ok(())
    }

    /// A page is written anew.
    pub(super) fn forget(&mut self, page: PageAddress) {
        self.slots[page.0 as usize % Self::SLOTS].page.take_if(|held| *held == page);
    }
}
