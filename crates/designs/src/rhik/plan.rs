//! What can be chosen of `rhik`, and how it is built.

use super::Rhik;
use crate::bounds;
use crate::record_table::RecordTable;
use kvssd_ftl::DramUse;
use kvssd_ftl::index::{Forecast, Outlook, Parameters, Room, SectionForm, SectionPlan, SplitIndex};

/// The deepest directory that an index begins with.
const DIRECTORY_BITS_MAX: u32 = 24;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RhikPlan {
    /// Bits of a signature: 32 to 64, whole bytes (section IV-A: 64).
    pub signature_bits: u32,
    /// The depth of the new directory: log2 of D (equation 2).
    pub directory_bits: u32,
    /// The share of the tables' room that records may take before all are split (section V-B: 80).
    pub occupancy_percent: u32,
    /// Whether commands go on while the index grows.
    pub incremental: bool,
}

impl RhikPlan {
    pub(super) fn form(&self, page_bytes: u32) -> RecordTable {
        RecordTable::new(page_bytes, self.signature_bits)
    }
}

impl SectionPlan for RhikPlan {
    type Index = Rhik;

    fn name(&self) -> &'static str {
        "rhik"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![
            ("signature_bits", &mut self.signature_bits),
            ("directory_bits", &mut self.directory_bits),
            ("occupancy_percent", &mut self.occupancy_percent),
            ("incremental", &mut self.incremental),
        ]
    }

    fn begin_small(&mut self) {
        self.directory_bits = 0;
    }

    fn check(&self) -> Result<(), String> {
        let RhikPlan { signature_bits, directory_bits, occupancy_percent, .. } = *self;
        if !(32..=64).contains(&signature_bits) || !signature_bits.is_multiple_of(8) {
            return Err(format!("design.signature_bits = {signature_bits}, and it is 32, 40, 48, 56 or 64"));
        }
        if directory_bits > DIRECTORY_BITS_MAX {
            return Err(format!("design.directory_bits = {directory_bits}, and it is at most {DIRECTORY_BITS_MAX}"));
        }
        bounds::check("occupancy_percent", occupancy_percent, 1..=100)
    }

    fn index(&self, room: &Room) -> Result<Rhik, String> {
        Ok(Rhik::new(*self, room.page_bytes))
    }

    /// The directory, when all tables are about as full as they become.
    fn charge(&self, index: &Rhik, room: &Room, dram: &mut DramUse) {
        let form = index.form();
        let tables = (room.grains * 100).div_ceil(form.records() as u64 * u64::from(self.occupancy_percent));
        dram.add("index_directory", tables.next_power_of_two() * form.directory_entry_bytes());
    }

    /// All tables have been split as often as the share of their room that is taken says.
    fn forecast(&self, index: &Rhik, outlook: &Outlook) -> Option<Forecast> {
        let form = index.form();
        let tables = (outlook.pairs * 100).div_ceil(form.records() as u64 * u64::from(self.occupancy_percent));
        let tables = tables.next_power_of_two().max(1 << self.directory_bits);
        let directory_bytes = tables * form.directory_entry_bytes();
        // Its own, and others with its home.
        let comparisons = 1.0 + outlook.pairs as f64 / (tables * form.records() as u64) as f64;
        let forecast = Forecast::of_sections(outlook, tables, f64::from(form.bytes_max()), directory_bytes);
        Some(Forecast { comparisons, ..forecast })
    }
}
