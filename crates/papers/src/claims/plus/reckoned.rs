//! Claims that no run is needed for: they are reckoned with the firmware's own parts.

use crate::claims::{Claim, Verdict};
use kvssd_designs::SlotEntry;
use kvssd_designs::section::{CompactLayout, SectionLayout};
use kvssd_flash::{Geometry, SuperblockId};
use kvssd_ftl::index::SectionForm;
use kvssd_ftl::validity::{InvalidMappings, Validity};
use kvssd_ftl::{DramUse, Grain, Packing, RecordLayout};
use kvssd_measure::size;

/// All of them.
pub(super) fn claims() -> Vec<Claim> {
    vec![dram(), comparisons(), invalid_mapping_traffic()]
}

/// The drive of the paper's "Memory Accounting": 4 TB, superblocks of 256 MB, mappings of 4 KiB pages.
const LARGE_DRIVE: Geometry = Geometry {
    channels: 8,
    dies_per_channel: 8,
    blocks_per_die: 16_384,
    pages_per_block: 1024,
    pages_per_program: 8,
    page_bytes: 4096,
    oob_bytes: 384,
    superblock_dies: 0,
    read_bytes_min: 0,
};

fn dram() -> Claim {
    let charged = |name: &str| {
        let mut design = kvssd_designs::named(name).expect("the design comes with the program");
        design.grain_bytes = 64;
        design.dram_at_most(&LARGE_DRIVE)
    };
    let (original, plus) = (charged("original"), charged("plus"));
    // What the paper's "Memory Accounting" counts: no directory and no table of superblocks.
    let counted = |dram: &DramUse| -> u64 {
        dram.parts()
            .iter()
            .filter(|(part, _)| !["index_directory", "superblocks"].contains(part))
            .map(|part| part.1)
            .sum()
    };
    let (original_counted, plus_counted) = (counted(&original), counted(&plus));
    Claim::new(
        "plus.10",
        format!(
            "{} / {} of what the paper counts; {} / {} with directories and superblock tables",
            size(plus_counted),
            size(original_counted),
            size(plus.total_bytes()),
            size(original.total_bytes())
        ),
        Verdict::of(1320.0 / 8192.0, plus_counted as f64 / original_counted as f64, 1.0).by_construction(),
        "reckoned by the code's own accounting".to_owned(),
    )
}

fn comparisons() -> Claim {
    let layout = CompactLayout::new(4096, 64).expect("the paper's section");
    let mut section = layout.empty();
    // The fullest section that is still in two levels: one leaf more, and it is laid out by offset.
    let slots = layout.slots() as u32 - 8;
    for slot in 0..slots {
        layout.set(&mut section, slot, SlotEntry { place: Grain(1), passes: 0 });
    }
    let compared: u32 = (0..slots).map(|slot| layout.get(&section, slot).1).sum();
    let two_level = f64::from(compared) / f64::from(slots);
    let linear = (f64::from(slots) + 1.0) / 2.0;
    let verdict = match (Verdict::of(256.0, linear, 1.0), Verdict::of(10.0, two_level, 256.0)) {
        (Verdict::Reproduced, verdict) => verdict,
        (verdict, _) => verdict,
    };
    Claim::new(
        "plus.11",
        format!("{linear:.0} / {two_level:.1}"),
        // Slots and levels are the paper's.
        verdict.by_construction(),
        "the two levels counted in the code, the linear search reckoned".to_owned(),
    )
}

/// A superblock of 256 MB with every second grain of 64 B invalid (section IV-A, "What we Get").
fn invalid_mapping_traffic() -> Claim {
    let packing = Packing::new(&LARGE_DRIVE, 64, RecordLayout::Grains);
    let one_superblock = Geometry { blocks_per_die: 2, ..LARGE_DRIVE };
    let mut validity = InvalidMappings::new(packing, &one_superblock);
    let first = packing.grains_per_superblock;
    let spilled: u64 = (0..packing.grains_per_superblock / 2)
        .filter_map(|number| validity.pair_died(number, Grain(first + 2 * number)))
        .map(|spill| spill.bytes.len() as u64)
        .sum();
    assert!(validity.spills(SuperblockId(1)).is_empty(), "nobody reported where the pages lie");
    let copied = LARGE_DRIVE.superblock_bytes() / 2;
    let overhead = spilled as f64 / copied as f64;
    Claim::new(
        "plus.12",
        format!("{:.1} % ({} of {})", overhead * 100.0, size(spilled), size(copied)),
        Verdict::of(0.12, overhead, 0.0).by_construction(),
        "pages spilled by the code, copies reckoned".to_owned(),
    )
}
