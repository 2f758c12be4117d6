//! Read-ahead of a block drive's controller, for a host that reads sequentially.

use crate::dram::DramUse;
use crate::layout::packing::{Packing, RecordLayout};
use kvssd_flash::PageAddress;
use kvssd_types::Nanos;

/// Pages to read ahead of a sequential host. An estimate: one for each die of a channel or two.
pub(crate) const AHEAD_PAGES: u32 = 16;

/// A page that the controller has read ahead, or is reading.
#[derive(Clone, Debug)]
pub(crate) struct AheadPage {
    pub(crate) page: PageAddress,
    pub(crate) ready: Nanos,
    /// The last mapped block that lies in it.
    pub(crate) last_block: u64,
}

/// What the controller has read ahead of a sequential host.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadAhead {
    /// Where the last read ended.
    pub(crate) end_bytes: u64,
    /// The first mapped block that was not looked at.
    pub(crate) next_block: u64,
    pub(crate) pages: Vec<AheadPage>,
}

impl ReadAhead {
    /// Charges the pages.
    pub(crate) fn charge(packing: &Packing, dram: &mut DramUse) {
        if packing.layout == RecordLayout::Blocks {
            dram.add("read_ahead", u64::from(AHEAD_PAGES) * u64::from(packing.page_bytes()));
        }
    }

    /// Drops all pages, since something was written or erased.
    pub(crate) fn forget(&mut self) {
        self.pages.clear();
        self.next_block = 0;
    }

    /// When a page that was read ahead is in the controller; `None` if it was not read ahead.
    pub(crate) fn ready(&self, page: PageAddress) -> Option<Nanos> {
        self.pages.iter().find(|ahead| ahead.page == page).map(|ahead| ahead.ready)
    }
}
