//! The designs of the papers: an index, a validity and a packing each, by name.

use super::Known;
use crate::dram_hash::DramHashPlan;
use crate::hash::{HashCompact, HashFixed};
use crate::lsm::LsmPlan;
use crate::multilevel::MultilevelPlan;
use crate::page_map::PageMapPlan;
use crate::rhik::RhikPlan;
use crate::tessera::TesseraPlan;
use kvssd_ftl::{
    Design, EraseCounts, IndexChoice, IteratorPlan, OwnIndex, PrefetchDegree, RecordLayout, Slots, ValidityKind,
    VictimPolicy,
};

/// The designs of key-value drives that come with the program.
pub const DESIGNS: [Design; 8] = [ORIGINAL, PLUS, RHIK, MULTILEVEL, PINK, ITER, KAML, TESSERA];

/// The demand-cached hash firmware that others are compared with (Plus paper).
pub const ORIGINAL: Design = Design {
    name: "original",
    description: "demand-cached hash table with every slot on flash, grain bitmap in DRAM, 512 B grains (Plus paper, section III)",
    index: IndexChoice::of(&HashFixed),
    validity: ValidityKind::GrainBitmap,
    grain_bytes: 512,
    layout: RecordLayout::Grains,
    iterators: IteratorPlan::NONE,
    gc_low_superblocks: 8,
    gc_high_superblocks: 2,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 1,
    indexes: &Known,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// Its successor for small values (Plus paper).
pub const PLUS: Design = Design {
    name: "plus",
    description: "sections with living mappings only, invalid mappings on flash, 64 B grains (Plus paper, section IV)",
    index: IndexChoice::of(&HashCompact),
    validity: ValidityKind::InvalidMappings,
    grain_bytes: 64,
    layout: RecordLayout::Grains,
    iterators: IteratorPlan::NONE,
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 1,
    indexes: &Known,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// A hash index that grows (RHIK paper).
pub const RHIK: Design = Design {
    name: "rhik",
    description: "two-level hash of signatures that grows by splitting tables, at most one flash read a look-up (RHIK paper)",
    index: IndexChoice::of(&RhikPlan {
        signature_bits: 64,
        directory_bits: 4,
        occupancy_percent: 80,
        incremental: true,
    }),
    validity: ValidityKind::AskIndex,
    grain_bytes: 128,
    layout: RecordLayout::Grains,
    iterators: IteratorPlan::NONE,
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 1,
    indexes: &Known,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// A hash in levels, as Samsung's PM983 seems to have (Study paper).
pub const MULTILEVEL: Design = Design {
    name: "multilevel",
    description: "hash of signatures in up to 8 levels, local index, Bloom filter, slots of 1 KiB at least, records split at pages, a limit of pairs (Study paper's PM983)",
    index: IndexChoice::of(&MultilevelPlan { bloom_bits: 4, iterators: true }),
    validity: ValidityKind::AskIndex,
    grain_bytes: 128,
    layout: RecordLayout::Slots(Slots { slot_bytes_min: 1024, page_use_per_mille: 766 }),
    iterators: IteratorPlan::NONE,
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 1,
    indexes: &Known,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// A tree with its upper levels in DRAM (PinK).
pub const PINK: Design = Design {
    name: "pink",
    description: "log-structured merge tree with values apart, the tables of its upper levels pinned in DRAM (PinK, as the IterKVSSD paper has it)",
    index: IndexChoice::of(&LsmPlan { table_pages: 3, pinned_levels: 3, bloom_bits: 0 }),
    validity: ValidityKind::AskIndex,
    grain_bytes: 64,
    layout: RecordLayout::Grains,
    iterators: IteratorPlan::NONE,
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 1,
    indexes: &Known,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// A tree with iterators that read ahead (IterKVSSD paper).
pub const ITER: Design = Design {
    name: "iter",
    description: "log-structured merge tree with iterators that read index and values ahead, as many as pay (IterKVSSD paper)",
    index: IndexChoice::of(&LsmPlan { table_pages: 3, pinned_levels: 0, bloom_bits: 0 }),
    validity: ValidityKind::AskIndex,
    grain_bytes: 64,
    layout: RecordLayout::Grains,
    iterators: IteratorPlan { index_prefetch: true, prefetch_degree: PrefetchDegree::Adaptive },
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 1,
    indexes: &Known,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// A hash table in DRAM (KAML paper).
pub const KAML: Design = Design {
    name: "kaml",
    description: "hash table in DRAM with whole keys of 8 bytes, chunks of 128 B with a bitmap out of band (KAML paper, section IV)",
    index: IndexChoice::of(&DramHashPlan { flash_bytes_per_slot: 3072, load_percent_max: 75 }),
    validity: ValidityKind::AskIndex,
    grain_bytes: 128,
    layout: RecordLayout::Chunks,
    iterators: IteratorPlan::NONE,
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 16,
    indexes: &Known,
    // An estimate: the paper gives no bound.
    victims: VictimPolicy::EraseCounts(EraseCounts { erase_spread_max: 16 }),
    out_of_band: None,
    planted: None,
};

/// What comes behind the papers: DRAM is spent on pairs, and a store reads nothing that its answer waits for.
pub const TESSERA: Design = Design {
    name: "tessera",
    description: "small sections of packed fingerprints that split as they fill, 64 B grains",
    index: IndexChoice::of(&TesseraPlan { fingerprint_bits: 5, section_bytes: 512 }),
    validity: ValidityKind::AskIndex,
    grain_bytes: 64,
    layout: RecordLayout::Tails,
    iterators: IteratorPlan { index_prefetch: true, prefetch_degree: PrefetchDegree::Adaptive },
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 256,
    namespaces_max: 1,
    indexes: &Known,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// The drive to compare with: it takes blocks, and no keys.
pub const BLOCK: Design = Design {
    name: "block",
    description: "a block drive: page-mapped, the map in DRAM, read-modify-write below 4 KiB",
    index: IndexChoice::of(&PageMapPlan),
    validity: ValidityKind::AskIndex,
    grain_bytes: 4096,
    layout: RecordLayout::Blocks,
    iterators: IteratorPlan::NONE,
    gc_low_superblocks: 8,
    gc_high_superblocks: 4,
    placement_handles: 1,
    stores_behind_max: 0,
    namespaces_max: 1,
    indexes: &OwnIndex,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};
