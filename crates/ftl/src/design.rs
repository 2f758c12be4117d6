//! Designs: named points in the space of index, validity and packing, and the engine built from one.

mod catalogue;
mod choice;
mod described;
pub(crate) mod pace;

pub use self::catalogue::{IndexCatalogue, OwnIndex};
pub use self::choice::IndexChoice;
pub use self::described::DesignTable;
use crate::design::pace::CollectionPace;
use crate::iterators::IteratorPlan;
use crate::journal::planted::PlantedBug;
use crate::layout::oob::OobFormat;
use crate::layout::packing::RecordLayout;
use crate::parameters::{Parameters, texts};
use crate::space::victims::{VictimChoice, VictimPolicy};
use kvssd_types::{KvError, named_enum};
use thiserror::Error;

named_enum! {
    /// How garbage collection knows what is dead.
    pub enum ValidityKind: "validity" {
        /// A bit a grain (Plus, section III-A).
        GrainBitmap = "grain-bitmap",
        /// Pages of invalid mappings (Plus, section IV-A).
        InvalidMappings = "invalid-mappings",
        /// It asks the index about each pair (RHIK, section IV-B).
        AskIndex = "ask-index",
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
    /// Superblocks that garbage collection empties at a time, each on a target of its own, where those of a drive lie on several.
    pub gc_victims_max: u32,
    /// What decides how wide the steps of garbage collection are.
    pub gc_pace: CollectionPace,
    /// Into how many kinds hosts may sort what they write ([`PlacementHandle`](kvssd_types::PlacementHandle)), 1 to
    /// [`PLACEMENT_HANDLES_MAX`](crate::PLACEMENT_HANDLES_MAX): a drive of blocks.
    pub placement_handles: u32,
    /// Stores at a time that are answered before their keys are looked up. All others are answered when their keys are bound: with 0
    /// all, else those that find no room among these, those with a condition, and those that have room only if they free some.
    pub stores_behind_max: u32,
    /// Mapped blocks that a drive of blocks gathers before it writes them, in half of its write buffer at the most; with 0 it
    /// reads, modifies and writes each block that a command writes in part.
    pub gathered_blocks_max: u32,
    /// Whether stores without a condition are answered before their key is compared with those that are there, by an index that can
    /// do that later ([`Index::position_uncompared`](crate::index::Index::position_uncompared)). What they replace counts as pairs
    /// until then.
    pub compares_later: bool,
    /// Whether trees that are no paper's, those with filters, gather more and merge level 0 by ranges: in a drive in a file. It is no parameter,
    /// so that what filters do to a simulated tree is their doing alone, and an image says nothing of it: any program goes on with any tree.
    pub merges_by_ranges: bool,
    /// Namespaces that a drive can have, up to 255; with more than one, out-of-band areas say whose a record is.
    pub namespaces_max: u32,
    /// The indexes that namespaces may choose, beside the drive's own.
    pub indexes: &'static dyn IndexCatalogue,
    /// How garbage collection chooses what it collects.
    pub victims: VictimChoice,
    /// What out-of-band areas look like on a drive that is there already; what is chosen for a new one if nothing is
    /// said.
    pub out_of_band: Option<OobFormat>,
    /// A bug that it has on purpose.
    pub planted: Option<PlantedBug>,
}

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
    /// What it is made of and can be set by name ([`Design::set`]), each with parameters of its own.
    pub const PARTS: [&str; 3] = ["index", "layout", "victims"];

    /// A key drive with that index and what most designs have: garbage collection that asks the index, takes the victim with the least that lives
    /// and begins with eight free superblocks; records in grains of 64 B; one namespace; nothing read ahead. What differs is set field by field.
    #[must_use]
    pub const fn new(name: &'static str, description: &'static str, index: IndexChoice) -> Self {
        Design {
            name,
            description,
            index,
            validity: ValidityKind::AskIndex,
            grain_bytes: 64,
            layout: RecordLayout::Grains,
            iterators: IteratorPlan::NONE,
            gc_low_superblocks: 8,
            gc_high_superblocks: 4,
            gc_victims_max: 1,
            gc_pace: CollectionPace::Room,
            placement_handles: 1,
            stores_behind_max: 0,
            gathered_blocks_max: 0,
            compares_later: false,
            merges_by_ranges: false,
            namespaces_max: 1,
            indexes: &OwnIndex,
            victims: VictimChoice::GREEDY,
            out_of_band: None,
            planted: None,
        }
    }

    /// The same with these victims. For constants: a mere assignment would drop what is there, which no constant may.
    #[must_use]
    pub const fn with_victims(mut self, policy: &'static dyn VictimPolicy) -> Self {
        std::mem::forget(std::mem::replace(&mut self.victims, VictimChoice::of(policy)));
        self
    }

    /// Whether the drive takes keys; if not, blocks.
    #[must_use]
    pub fn takes_keys(&self) -> bool {
        self.layout != RecordLayout::Blocks
    }

    /// The indexes that its namespaces may have, its own first.
    pub(crate) fn index_choices(&self) -> impl Iterator<Item = IndexChoice> {
        std::iter::once(self.index.clone()).chain(self.indexes.all())
    }

    /// The same, first of all those that a namespace gets which names none and is to keep keys in order.
    pub(crate) fn ordered_choices(&self) -> impl Iterator<Item = IndexChoice> {
        std::iter::once(self.index.clone()).chain(self.indexes.ordered()).chain(self.indexes.all())
    }

    /// Its parameters and their values, as [`Design::set`] takes them.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        texts(self.clone().each_parameter())
    }

    /// Sets the parameter `key`; or its `index` to another one that its namespaces may have, with what is chosen of that; or its
    /// `victims` to another policy that its catalogue or the firmware has; or its `layout` to one without parameters.
    ///
    /// # Errors
    /// [`DesignError::Parameter`] when there is no such parameter or it cannot have that value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), DesignError> {
        let parameter = self.each_parameter().into_iter().find(|(name, _)| *name == key);
        let set = match (key, parameter.map(|(_, parameter)| parameter.set(value))) {
            (_, Some(set)) => set,
            ("index", None) => IndexChoice::named(value, self.index_choices()).map(|index| self.index = index),
            ("victims", None) => {
                let known = std::iter::once(self.victims.clone()).chain(self.indexes.victims());
                VictimChoice::named(value, known).map(|victims| self.victims = victims)
            }
            ("layout", None) if self.takes_keys() => RecordLayout::of_grains(value).map(|layout| self.layout = layout),
            _ => {
                let parts: &[&str] =
                    if self.takes_keys() { &["index", "victims", "layout"] } else { &["index", "victims"] };
                let parameters = self.parameters().into_iter().map(|(key, _)| key);
                let known: Vec<&str> = parts.iter().copied().chain(parameters).collect();
                Err(format!("{} has no such parameter (it has: {})", self.name, known.join(", ")))
            }
        };
        set.map_err(|why| DesignError::Parameter { key: key.to_owned(), why })
    }

    /// Checks that no two of its parts and parameters have one name: each would be set and kept for the other.
    ///
    /// # Errors
    /// [`DesignError::Parameter`] with the name.
    pub fn check_names(&self) -> Result<(), DesignError> {
        let parts = ["name", "index", "validity", "layout", "victims"];
        let mut names: Vec<&str> = parts.into_iter().chain(self.parameters().into_iter().map(|(key, _)| key)).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_owned());
        let why = || format!("two parts of {} have that name", self.name);
        twice.map_or(Ok(()), |key| Err(DesignError::Parameter { key, why: why() }))
    }

    fn each_parameter(&mut self) -> Parameters<'_> {
        let mut parameters: Parameters<'_> = vec![
            ("grain_bytes", &mut self.grain_bytes),
            ("gc_low_superblocks", &mut self.gc_low_superblocks),
            ("gc_high_superblocks", &mut self.gc_high_superblocks),
            ("gc_victims_max", &mut self.gc_victims_max),
            ("gc_pace", &mut self.gc_pace),
            ("namespaces_max", &mut self.namespaces_max),
            ("stores_behind_max", &mut self.stores_behind_max),
            ("compares_later", &mut self.compares_later),
        ];
        if self.layout == RecordLayout::Blocks {
            parameters.push(("placement_handles", &mut self.placement_handles));
            parameters.push(("gathered_blocks_max", &mut self.gathered_blocks_max));
        }
        if let RecordLayout::Slots(slots) = &mut self.layout {
            parameters.extend(slots.parameters());
        }
        // Those of an index without order are for namespaces with one.
        if self.index.plan().is_ordered() || self.iterators != IteratorPlan::NONE {
            parameters.extend(self.iterators.parameters());
        }
        parameters.extend(self.victims.policy_mut().parameters());
        parameters.extend(self.index.plan_mut().parameters());
        parameters
    }
}
