//! What the designs that come along keep in DRAM, and that their keys collide: what the suite cannot know of a design.

use kvssd_conformance::{Drive, Medium, Trial, selected, suite};
use kvssd_ftl::Design;

fn worn(design: &Design) -> Drive {
    suite::worn(&Trial::new(design, Medium::Ropes))
}

#[test]
fn every_part_that_a_design_keeps_in_dram_is_charged() {
    for design in selected() {
        let drive = worn(&design);
        let dram = drive.engine.dram();
        let expected: &[&str] = match design.name {
            "original" => &["grain_bitmap", "index_directory", "index_sections", "log", "superblocks", "write_buffer"],
            "plus" => &[
                "index_directory",
                "index_sections",
                "invalid_mapping_buffers",
                "invalid_mapping_lists",
                "log",
                "page_counters",
                "superblocks",
                "victim_tables",
                "write_buffer",
            ],
            "multilevel" => &[
                "index_bloom_filter",
                "index_directory",
                "index_local",
                "index_sections",
                "log",
                "page_counters",
                "superblocks",
                "write_buffer",
            ],
            "rhik" | "kaml" => {
                &["index_directory", "index_sections", "log", "page_counters", "superblocks", "write_buffer"]
            }
            "pink" => &[
                "index_compaction",
                "index_memtable",
                "index_pinned",
                "index_summary",
                "index_tables",
                "log",
                "page_counters",
                "superblocks",
                "write_buffer",
            ],
            "iter" => &[
                "index_compaction",
                "index_memtable",
                "index_pinned",
                "index_summary",
                "index_tables",
                "log",
                "page_counters",
                "prefetch_buffer",
                "superblocks",
                "write_buffer",
            ],
            other => panic!("say what {other} keeps in DRAM"),
        };
        assert!(dram.parts().keys().copied().eq(expected.iter().copied()), "{:?}", dram.parts());
    }
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
