//! What can be chosen of `dram-hash`, and how it is built.

use super::DramHash;
use super::entry::{ENTRY_BYTES, PLACES};
use super::page::HashPage;
use crate::bounds;
use kvssd_ftl::DramUse;
use kvssd_ftl::index::{Forecast, Outlook, Parameters, Room, SectionForm, SectionIndex, SectionPlan};

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramHashPlan {
    /// The table has a slot for each so many bytes of flash, whatever the size of the drive. With 3072, that of KAML's
    /// 375 GB is the 2 GB that its board has, in which the paper puts 100 million pairs (section IV-C).
    pub flash_bytes_per_slot: u32,
    /// The share of the slots that pairs may take (KAML, section IV-C reckons with 75): a page has no more slots than
    /// others when keys come together in it.
    pub load_percent_max: u32,
}

impl DramHashPlan {
    /// The pages of the table.
    pub(super) fn form(&self, room: &Room) -> HashPage {
        let slots = room.raw_bytes.div_ceil(self.flash_bytes_per_slot.into()).max(1);
        let pages = slots.div_ceil(u64::from(room.page_bytes) / ENTRY_BYTES as u64);
        HashPage { page_bytes: room.page_bytes, pages }
    }
}

impl SectionPlan for DramHashPlan {
    type Index = DramHash;

    fn name(&self) -> &'static str {
        "dram-hash"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("flash_bytes_per_slot", &mut self.flash_bytes_per_slot), ("load_percent_max", &mut self.load_percent_max)]
    }

    fn check(&self) -> Result<(), String> {
        let DramHashPlan { flash_bytes_per_slot, load_percent_max } = *self;
        if flash_bytes_per_slot < ENTRY_BYTES as u32 {
            return Err(format!(
                "design.flash_bytes_per_slot = {flash_bytes_per_slot}, and it is at least {ENTRY_BYTES}"
            ));
        }
        bounds::check("load_percent_max", load_percent_max, 1..=100)
    }

    fn pairs_max(&self, room: &Room) -> Option<u64> {
        let form = self.form(room);
        Some(form.pages * form.slots() as u64 * u64::from(self.load_percent_max) / 100)
    }

    fn index(&self, room: &Room) -> Result<DramHash, String> {
        if room.grains > PLACES {
            return Err(format!("dram-hash has places of 40 bits, and the drive has {} grains", room.grains));
        }
        Ok(DramHash::new(*self, self.form(room)))
    }

    /// The whole table and its directory.
    fn charge(&self, index: &DramHash, _room: &Room, dram: &mut DramUse) {
        index.dram(dram);
        dram.add("index_sections", index.form().table_bytes());
    }

    /// Keys of 8 bytes are in the table whole.
    fn forecast(&self, index: &DramHash, outlook: &Outlook) -> Option<Forecast> {
        let form = index.form();
        let directory_bytes = form.pages * form.directory_entry_bytes();
        let table = Forecast::of_sections(outlook, form.pages, f64::from(form.page_bytes), directory_bytes);
        Some(Forecast { knows_keys: outlook.key_bytes == 8, ..table })
    }
}
