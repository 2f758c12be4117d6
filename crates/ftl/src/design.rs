//! Designs: named points in the space of index, validity and packing, and the engine built from one.

mod choice;
mod described;
mod registry;

pub use self::choice::IndexChoice;
pub use self::described::DesignTable;
use crate::index::{DramHashPlan, HashCompact, HashFixed, LsmPlan, MultilevelPlan, PageMapPlan, Parameters, RhikPlan};
use crate::iterators::{IteratorPlan, PrefetchDegree};
use crate::oob::OobFormat;
use crate::packing::{RecordLayout, Slots};
use crate::planted::PlantedBug;
use crate::victims::{EraseCounts, VictimPolicy};
use kvssd_types::KvError;
use thiserror::Error;

/// How garbage collection knows what is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidityKind {
    /// A bit a grain (Plus, section III-A).
    GrainBitmap,
    /// Pages of invalid mappings (Plus, section IV-A).
    InvalidMappings,
    /// It asks the index about each pair (RHIK, section IV-B).
    AskIndex,
}

impl ValidityKind {
    /// The name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ValidityKind::GrainBitmap => "grain-bitmap",
            ValidityKind::InvalidMappings => "invalid-mappings",
            ValidityKind::AskIndex => "ask-index",
        }
    }
}

/// A drive's firmware, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// What it is called in reports.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub description: &'static str,
    /// Where a key lives.
    pub index: IndexChoice,
    /// How garbage collection knows what is dead.
    pub validity: ValidityKind,
    /// The smallest piece of flash that a record is given.
    pub grain_bytes: u32,
    /// How records lie in pages.
    pub layout: RecordLayout,
    /// What iterators read ahead, where keys have an order.
    pub iterators: IteratorPlan,
    /// Garbage collection works while fewer superblocks are free, beside the four that it keeps for itself.
    pub gc_low_superblocks: u32,
    /// Commands wait while fewer superblocks are free, beside those four.
    pub gc_high_superblocks: u32,
    /// Namespaces that a drive can have, up to 255; with more than one, out-of-band areas say whose a record is.
    pub namespaces_max: u32,
    /// How garbage collection chooses what it collects.
    pub victims: VictimPolicy,
    /// What out-of-band areas look like on a drive that is there already; what is chosen for a new one if nothing is
    /// said.
    pub out_of_band: Option<OobFormat>,
    /// A bug that it has on purpose.
    pub planted: Option<PlantedBug>,
}

/// The designs of key-value drives that come with the program.
pub const DESIGNS: [Design; 7] = [
    Design {
        name: "original",
        description: "demand-cached hash table with every slot on flash, grain bitmap in DRAM, 512 B grains (Plus paper, section III)",
        index: IndexChoice::of(&HashFixed),
        validity: ValidityKind::GrainBitmap,
        grain_bytes: 512,
        layout: RecordLayout::Grains,
        iterators: IteratorPlan::NONE,
        gc_low_superblocks: 8,
        gc_high_superblocks: 2,
        namespaces_max: 1,
        victims: VictimPolicy::Greedy,
        out_of_band: None,
        planted: None,
    },
    Design {
        name: "plus",
        description: "sections with living mappings only, invalid mappings on flash, 64 B grains (Plus paper, section IV)",
        index: IndexChoice::of(&HashCompact),
        validity: ValidityKind::InvalidMappings,
        grain_bytes: 64,
        layout: RecordLayout::Grains,
        iterators: IteratorPlan::NONE,
        gc_low_superblocks: 8,
        gc_high_superblocks: 4,
        namespaces_max: 1,
        victims: VictimPolicy::Greedy,
        out_of_band: None,
        planted: None,
    },
    Design {
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
        namespaces_max: 1,
        victims: VictimPolicy::Greedy,
        out_of_band: None,
        planted: None,
    },
    Design {
        name: "multilevel",
        description: "hash of signatures in up to 8 levels, local index, Bloom filter, slots of 1 KiB at least, records split at pages, a limit of pairs (Study paper's PM983)",
        index: IndexChoice::of(&MultilevelPlan { bloom_bits: 4, iterators: true }),
        validity: ValidityKind::AskIndex,
        grain_bytes: 128,
        layout: RecordLayout::Slots(Slots { slot_bytes_min: 1024, page_use_per_mille: 766 }),
        iterators: IteratorPlan::NONE,
        gc_low_superblocks: 8,
        gc_high_superblocks: 4,
        namespaces_max: 1,
        victims: VictimPolicy::Greedy,
        out_of_band: None,
        planted: None,
    },
    Design {
        name: "pink",
        description: "log-structured merge tree with values apart, the tables of its upper levels pinned in DRAM (PinK, as the IterKVSSD paper has it)",
        index: IndexChoice::of(&LsmPlan { table_pages: 3, pinned_levels: 3, bloom_bits: 0 }),
        validity: ValidityKind::AskIndex,
        grain_bytes: 64,
        layout: RecordLayout::Grains,
        iterators: IteratorPlan::NONE,
        gc_low_superblocks: 8,
        gc_high_superblocks: 4,
        namespaces_max: 1,
        victims: VictimPolicy::Greedy,
        out_of_band: None,
        planted: None,
    },
    Design {
        name: "iter",
        description: "log-structured merge tree with iterators that read index and values ahead, as many as pay (IterKVSSD paper)",
        index: IndexChoice::of(&LsmPlan { table_pages: 3, pinned_levels: 0, bloom_bits: 0 }),
        validity: ValidityKind::AskIndex,
        grain_bytes: 64,
        layout: RecordLayout::Grains,
        iterators: IteratorPlan { index_prefetch: true, prefetch_degree: PrefetchDegree::Adaptive },
        gc_low_superblocks: 8,
        gc_high_superblocks: 4,
        namespaces_max: 1,
        victims: VictimPolicy::Greedy,
        out_of_band: None,
        planted: None,
    },
    Design {
        name: "kaml",
        description: "hash table in DRAM with whole keys of 8 bytes, chunks of 128 B with a bitmap out of band (KAML paper, section IV)",
        index: IndexChoice::of(&DramHashPlan { flash_bytes_per_slot: 3072, load_percent_max: 75 }),
        validity: ValidityKind::AskIndex,
        grain_bytes: 128,
        layout: RecordLayout::Chunks,
        iterators: IteratorPlan::NONE,
        gc_low_superblocks: 8,
        gc_high_superblocks: 4,
        namespaces_max: 16,
        // An estimate: the paper gives no bound.
        victims: VictimPolicy::EraseCounts(EraseCounts { erase_spread_max: 16 }),
        out_of_band: None,
        planted: None,
    },
];

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
    namespaces_max: 1,
    victims: VictimPolicy::Greedy,
    out_of_band: None,
    planted: None,
};

/// Why a design cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DesignError {
    /// There is none of that name.
    #[error("there is no design {name:?} (there are: {known})")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A parameter that it does not have, or a value that it cannot have.
    #[error("design.{key}: {why}")]
    Parameter {
        /// The parameter.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// It does not fit the profile's drive.
    #[error("design {design} does not fit profile {profile}: {why}")]
    DoesNotFit {
        /// The design.
        design: &'static str,
        /// The profile.
        profile: String,
        /// Why not.
        why: String,
    },
    /// The drive itself answered with an error.
    #[error("{0}")]
    Drive(#[from] KvError),
}

impl Design {
    /// The design called `name`.
    ///
    /// # Errors
    /// [`DesignError::Unknown`] when there is none.
    pub fn named(name: &str) -> Result<Design, DesignError> {
        Design::all().find(|design| design.name == name).ok_or_else(|| DesignError::Unknown {
            name: name.to_owned(),
            known: Design::all().map(|design| design.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Whether the drive takes keys; if not, blocks.
    #[must_use]
    pub fn takes_keys(&self) -> bool {
        self.layout != RecordLayout::Blocks
    }

    /// Its parameters and their values, as [`Design::set`] takes them.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        self.clone().each_parameter().into_iter().map(|(key, parameter)| (key, parameter.text())).collect()
    }

    /// Sets the parameter `key`.
    ///
    /// # Errors
    /// [`DesignError::Parameter`] when there is no such parameter or it cannot have that value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), DesignError> {
        let set = match self.each_parameter().into_iter().find(|(name, _)| *name == key) {
            Some((_, parameter)) => parameter.set(value),
            None => {
                let known: Vec<&str> = self.parameters().into_iter().map(|(key, _)| key).collect();
                Err(format!("{} has no such parameter (it has: {})", self.name, known.join(", ")))
            }
        };
        set.map_err(|why| DesignError::Parameter { key: key.to_owned(), why })
    }

    fn each_parameter(&mut self) -> Parameters<'_> {
        let mut parameters: Parameters<'_> = vec![
            ("grain_bytes", &mut self.grain_bytes),
            ("gc_low_superblocks", &mut self.gc_low_superblocks),
            ("gc_high_superblocks", &mut self.gc_high_superblocks),
            ("namespaces_max", &mut self.namespaces_max),
        ];
        if let RecordLayout::Slots(slots) = &mut self.layout {
            parameters.extend(slots.parameters());
        }
        if self.index.plan().is_ordered() {
            parameters.extend(self.iterators.parameters());
        }
        if let VictimPolicy::EraseCounts(policy) = &mut self.victims {
            parameters.push(("erase_spread_max", &mut policy.erase_spread_max));
        }
        parameters.extend(self.index.plan_mut().parameters());
        parameters
    }
}
