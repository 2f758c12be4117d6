//! What the designs that come along keep in DRAM, and that their keys collide: what the suite cannot know of a design.

use kvssd_conformance::{Drive, Medium, Trial, selected, suite};
use kvssd_ftl::Design;

/// What every drive has.
const OF_ALL: [&str; 3] = ["log", "superblocks", "write_buffer"];

fn worn(design: &Design) -> Drive {
    suite::worn(&Trial::new(design, Medium::Ropes))
}

/// Or the suite's deletes on full drives would cut no chain.
#[test]
fn the_chains_of_a_full_open_addressed_table_are_long() {
    for design in selected().iter().filter(|design| design.index.plan().name().starts_with("hash")) {
        let mut drive = Drive::of(design, Medium::Ropes, &[]);
        let mut stored = 0u32;
        while drive.store(&stored.to_be_bytes(), 40).is_ok() {
            stored += 1;
        }
        let collisions = drive.engine.index_counters().collisions;
        assert!(collisions > u64::from(stored) / 50, "{}: {collisions} collisions of {stored} pairs", design.name);
    }
}

#[test]
fn glances_answer_most_look_ups() {
    for design in selected() {
        let mut drive = Trial::new(&design, Medium::Ropes).drive();
        drive.life(&mut kvssd_types::Random::new(1), 1_000);
        drive.glances = 0;
        drive.verify_all();
        // An exist and five retrieves of each key.
        let share = drive.glances as f64 / (6 * drive.keys().len()) as f64;
        assert!(share > 0.5, "{}: {share:.2} of all look-ups", design.name);
    }
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn every_part_that_a_design_keeps_in_dram_is_charged() {
        for design in selected() {
            let drive = worn(&design);
            let dram = drive.engine.dram();
            let own: &[&str] = match design.name {
                "original" => &["grain_bitmap", "index_directory", "index_sections"],
                "plus" => &[
                    "index_directory",
                    "index_sections",
                    "invalid_mapping_buffers",
                    "invalid_mapping_lists",
                    "page_counters",
                    "victim_tables",
                ],
                "multilevel" => {
                    &["index_bloom_filter", "index_directory", "index_local", "index_sections", "page_counters"]
                }
                "tessera" => &["index_directory", "index_sections", "page_counters", "stores_behind"],
                "rhik" | "kaml" => &["index_directory", "index_sections", "page_counters"],
                "pink" | "iter" => &[
                    "index_compaction",
                    "index_memtable",
                    "index_pinned",
                    "index_summary",
                    "index_tables",
                    "page_counters",
                ],
                other => panic!("say what {other} keeps in DRAM"),
            };
            let read_ahead = (design.name == "iter").then_some("prefetch_buffer");
            let mut expected: Vec<&str> = OF_ALL.iter().chain(own).copied().chain(read_ahead).collect();
            expected.sort_unstable();
            assert!(dram.parts().keys().copied().eq(expected), "{}: {:?}", design.name, dram.parts());
        }
    }
}
