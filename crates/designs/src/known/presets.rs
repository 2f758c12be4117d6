//! The designs of the papers: an index, a validity and a packing each, by name.

use super::Known;
use crate::dram_hash::DramHashPlan;
use crate::hash::{HashCompact, HashFixed};
use crate::lsm::LsmPlan;
use crate::multilevel::MultilevelPlan;
use crate::page_map::PageMapPlan;
use crate::rhik::RhikPlan;
use crate::tessera::TesseraPlan;
use kvssd_ftl::index::IndexPlan;
use kvssd_ftl::{
    CollectionPace, Design, EraseCounts, IndexChoice, IteratorPlan, PrefetchDegree, RecordLayout, Slots, ValidityKind,
};

// Statics, so that only this crate compiles them ([`IndexChoice::preset`]).
static ORIGINAL_INDEX: &dyn IndexPlan = &HashFixed;
static PLUS_INDEX: &dyn IndexPlan = &HashCompact;
static RHIK_INDEX: &dyn IndexPlan =
    &RhikPlan { signature_bits: 64, directory_bits: 4, occupancy_percent: 80, incremental: true };
static MULTILEVEL_INDEX: &dyn IndexPlan = &MultilevelPlan { bloom_bits: 4, iterators: true };
static PINK_INDEX: &dyn IndexPlan = &LsmPlan { table_pages: 3, pinned_levels: 3, bloom_bits: 0 };
static ORDERED_INDEX: &dyn IndexPlan = &LsmPlan { table_pages: 3, pinned_levels: 3, bloom_bits: 6 };
static ITER_INDEX: &dyn IndexPlan = &LsmPlan { table_pages: 3, pinned_levels: 0, bloom_bits: 0 };
static KAML_INDEX: &dyn IndexPlan = &DramHashPlan { flash_bytes_per_slot: 3072, load_percent_max: 75 };
static TESSERA_INDEX: &dyn IndexPlan = &TesseraPlan { fingerprint_bits: 5, section_bytes: 512 };
static BLOCK_INDEX: &dyn IndexPlan = &PageMapPlan;

/// The designs of key-value drives that come with the program.
pub const DESIGNS: [Design; 8] = [ORIGINAL, PLUS, RHIK, MULTILEVEL, PINK, ITER, KAML, TESSERA];

/// A design whose namespaces may choose any index of this crate.
const fn with_all_indexes(name: &'static str, description: &'static str, index: IndexChoice) -> Design {
    let mut design = Design::new(name, description, index);
    design.indexes = &Known;
    design
}

/// The demand-cached hash firmware that others are compared with (Plus paper).
pub const ORIGINAL: Design = {
    let mut design = with_all_indexes(
        "original",
        "demand-cached hash table with every slot on flash, grain bitmap in DRAM, 512 B grains (Plus paper, section III)",
        IndexChoice::preset(&ORIGINAL_INDEX),
    );
    design.validity = ValidityKind::GrainBitmap;
    design.grain_bytes = 512;
    design.gc_high_superblocks = 2;
    design
};

/// Its successor for small values (Plus paper).
pub const PLUS: Design = {
    let mut design = with_all_indexes(
        "plus",
        "sections with living mappings only, invalid mappings on flash, 64 B grains (Plus paper, section IV)",
        IndexChoice::preset(&PLUS_INDEX),
    );
    design.validity = ValidityKind::InvalidMappings;
    design
};

/// A hash index that grows (RHIK paper).
pub const RHIK: Design = {
    let mut design = with_all_indexes(
        "rhik",
        "two-level hash of signatures that grows by splitting tables, at most one flash read a look-up (RHIK paper)",
        IndexChoice::preset(&RHIK_INDEX),
    );
    design.grain_bytes = 128;
    design
};

/// A hash in levels, as Samsung's PM983 seems to have (Study paper).
pub const MULTILEVEL: Design = {
    let mut design = with_all_indexes(
        "multilevel",
        "hash of signatures in up to 8 levels, local index, Bloom filter, slots of 1 KiB at least, records split at pages, a limit of pairs (Study paper's PM983)",
        IndexChoice::preset(&MULTILEVEL_INDEX),
    );
    design.grain_bytes = 128;
    design.layout = RecordLayout::Slots(Slots { slot_bytes_min: 1024, page_use_per_mille: 766 });
    design.compares_later = true;
    design
};

/// A tree with its upper levels in DRAM (PinK).
pub const PINK: Design = with_all_indexes(
    "pink",
    "log-structured merge tree with values apart, the tables of its upper levels pinned in DRAM (PinK, as the IterKVSSD paper has it)",
    IndexChoice::preset(&PINK_INDEX),
);

/// For namespaces that want an order and no paper's tree: as PinK's, with filters, so that a key is looked for in one table or two.
pub(super) const ORDERED: IndexChoice = IndexChoice::preset(&ORDERED_INDEX);

/// A tree with iterators that read ahead (IterKVSSD paper).
pub const ITER: Design = {
    let mut design = with_all_indexes(
        "iter",
        "log-structured merge tree with iterators that read index and values ahead, as many as pay (IterKVSSD paper)",
        IndexChoice::preset(&ITER_INDEX),
    );
    design.iterators = IteratorPlan { index_prefetch: true, prefetch_degree: PrefetchDegree::Adaptive };
    design
};

/// A hash table in DRAM (KAML paper).
pub const KAML: Design = {
    let mut design = with_all_indexes(
        "kaml",
        "hash table in DRAM with whole keys of 8 bytes, chunks of 128 B with a bitmap out of band (KAML paper, section IV)",
        IndexChoice::preset(&KAML_INDEX),
    );
    design.grain_bytes = 128;
    design.layout = RecordLayout::Chunks;
    design.namespaces_max = 16;
    // An estimate: the paper gives no bound.
    design.with_victims(&EraseCounts { erase_spread_max: 16 })
};

/// What comes behind the papers: DRAM is spent on pairs, and a store reads nothing that its answer waits for.
pub const TESSERA: Design = {
    let mut design = with_all_indexes(
        "tessera",
        "small sections of packed fingerprints that split as they fill, 64 B grains",
        IndexChoice::preset(&TESSERA_INDEX),
    );
    design.layout = RecordLayout::Halves;
    design.iterators = IteratorPlan { index_prefetch: true, prefetch_degree: PrefetchDegree::Followed };
    design.stores_behind_max = 256;
    // A victim for each die that a drive of this size has: an estimate.
    design.gc_victims_max = 64;
    design.gc_pace = CollectionPace::Demand;
    design
};

/// The drive to compare with: it takes blocks, and no keys.
pub const BLOCK: Design = {
    let mut design = Design::new(
        "block",
        "a block drive: page-mapped, the map in DRAM, writes below 4 KiB gathered",
        IndexChoice::preset(&BLOCK_INDEX),
    );
    design.grain_bytes = 4096;
    design.layout = RecordLayout::Blocks;
    // A place for each die that a drive of this size has: an estimate.
    design.gathered_blocks_max = 64;
    design
};
