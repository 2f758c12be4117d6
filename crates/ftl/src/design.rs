//! Designs: named points in the space of index, validity and packing, and the engine built from one.

use crate::address::Packing;
use crate::dram::DramUse;
use crate::engine::{Engine, Limits};
use crate::gc::STEP_SUPERBLOCKS;
use crate::index::section::{CompactLayout, FixedLayout};
use crate::index::{HashIndex, Index};
use crate::io::Media;
use crate::oob::OobFormat;
use crate::planted::PlantedBug;
use crate::recovery::MountReport;
use crate::superblock::Superblocks;
use crate::validity::{GrainBitmap, InvalidMappings, Validity};
use kvssd_flash::codec::OOB_HEAD_BYTES;
use kvssd_flash::{Backing, Flash, Geometry, PowerLoss, Profile};
use kvssd_types::{KvError, VALUE_BYTES_MAX};
use thiserror::Error;

/// Where a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Sections with all slots (Plus, section III-A).
    HashFixed,
    /// Sections with living mappings only (Plus, section IV-B).
    HashCompact,
}

/// How garbage collection knows what is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidityKind {
    /// A bit a grain (Plus, section III-A).
    GrainBitmap,
    /// Pages of invalid mappings (Plus, section IV-A).
    InvalidMappings,
}

impl IndexKind {
    /// The name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::HashFixed => "hash-fixed",
            IndexKind::HashCompact => "hash-compact",
        }
    }
}

impl ValidityKind {
    /// The name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ValidityKind::GrainBitmap => "grain-bitmap",
            ValidityKind::InvalidMappings => "invalid-mappings",
        }
    }
}

/// Superblocks that the three logs are writing to.
const OPEN_SUPERBLOCKS: u32 = 3;

/// Superblocks that the journal may open while a command or a step of garbage collection is handled.
const JOURNAL_STEP_SUPERBLOCKS: usize = 2;

/// The superblocks that the journal takes at most: two checkpoints and a journal that is as long as one, each no more than DRAM
/// holds beside the write buffer, with an open one and a rest at each end.
fn journal_superblocks(profile: &Profile) -> u32 {
    let image_bytes = profile.memory.dram_bytes + u64::from(profile.geometry.page_bytes) * 32;
    (3 * image_bytes).div_ceil(profile.geometry.superblock_bytes()) as u32 + 3
}

/// A drive's firmware, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// What it is called in reports.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub description: &'static str,
    /// Where a key lives.
    pub index: IndexKind,
    /// How garbage collection knows what is dead.
    pub validity: ValidityKind,
    /// The smallest piece of flash that a record is given.
    pub grain_bytes: u32,
    /// Garbage collection works while fewer superblocks are free, beside the four that it keeps for itself.
    pub gc_low_superblocks: u32,
    /// Commands wait while fewer superblocks are free, beside those four.
    pub gc_high_superblocks: u32,
    /// A bug that it has on purpose.
    pub planted: Option<PlantedBug>,
}

/// The designs that come with the program.
pub const DESIGNS: [Design; 2] = [
    Design {
        name: "original",
        description: "demand-cached hash table with every slot on flash, grain bitmap in DRAM, 512 B grains (Plus paper, section III)",
        index: IndexKind::HashFixed,
        validity: ValidityKind::GrainBitmap,
        grain_bytes: 512,
        gc_low_superblocks: 8,
        gc_high_superblocks: 2,
        planted: None,
    },
    Design {
        name: "plus",
        description: "sections with living mappings only, invalid mappings on flash, 64 B grains (Plus paper, section IV)",
        index: IndexKind::HashCompact,
        validity: ValidityKind::InvalidMappings,
        grain_bytes: 64,
        gc_low_superblocks: 8,
        gc_high_superblocks: 4,
        planted: None,
    },
];

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
        DESIGNS.iter().find(|design| design.name == name).cloned().ok_or_else(|| DesignError::Unknown {
            name: name.to_owned(),
            known: DESIGNS.map(|design| design.name).join(", "),
        })
    }

    /// Sets the parameter `key`.
    ///
    /// # Errors
    /// [`DesignError::Parameter`] when there is no such parameter or it cannot have that value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), DesignError> {
        let fail = |why: &str| DesignError::Parameter { key: key.to_owned(), why: why.to_owned() };
        let number = value.parse::<u32>().map_err(|_| fail("the value must be a whole number"));
        match key {
            "grain_bytes" => self.grain_bytes = number?,
            "gc_low_superblocks" => self.gc_low_superblocks = number?,
            "gc_high_superblocks" => self.gc_high_superblocks = number?,
            _ => return Err(fail("there is no such parameter (grain_bytes, gc_low_superblocks, gc_high_superblocks)")),
        }
        Ok(())
    }

    /// The firmware, on an erased drive of `profile` whose pages `backing` keeps. It writes nothing for a mount.
    ///
    /// # Errors
    /// [`DesignError::DoesNotFit`] when the drive is too small or its pages are of the wrong size.
    pub fn build(&self, profile: &Profile, backing: Box<dyn Backing>) -> Result<Engine, DesignError> {
        self.assemble(profile, backing, PowerLoss::Ignored)
    }

    /// As [`Design::build`], prepared for the day when the power goes.
    ///
    /// # Errors
    /// As [`Design::build`], and [`DesignError::Drive`] when the medium fails.
    pub fn format(
        &self,
        profile: &Profile,
        backing: Box<dyn Backing>,
        power_loss: PowerLoss,
    ) -> Result<Engine, DesignError> {
        let mut engine = self.assemble(profile, backing, power_loss)?;
        engine.format()?;
        Ok(engine)
    }

    /// The firmware, on a drive of `profile` that was formatted by this design and whose power went.
    ///
    /// # Errors
    /// As [`Design::build`], and [`DesignError::Drive`] when the medium fails or holds no such drive.
    pub fn mount(
        &self,
        profile: &Profile,
        backing: Box<dyn Backing>,
        power_loss: PowerLoss,
    ) -> Result<(Engine, MountReport), DesignError> {
        let mut engine = self.assemble(profile, backing, power_loss)?;
        let report = engine.mount()?;
        Ok((engine, report))
    }

    pub(crate) fn assemble(
        &self,
        profile: &Profile,
        backing: Box<dyn Backing>,
        power_loss: PowerLoss,
    ) -> Result<Engine, DesignError> {
        let geometry = profile.geometry;
        let fail =
            |why: String| DesignError::DoesNotFit { design: self.name, profile: profile.origin().to_owned(), why };
        self.fits(&geometry).map_err(fail)?;
        let packing = Packing::new(&geometry, self.grain_bytes);
        let grains = packing.grains_per_superblock * u64::from(geometry.superblocks());
        let format = OobFormat::new(packing.grains_per_page, grains);
        let oob_bytes = OOB_HEAD_BYTES as usize + format.bytes_max(packing.grains_per_page);
        if oob_bytes > geometry.oob_bytes as usize {
            return Err(fail(format!(
                "design.grain_bytes = {} needs {oob_bytes} out-of-band bytes a page, and geometry.oob_bytes is {}",
                self.grain_bytes, geometry.oob_bytes
            )));
        }
        let index: Box<dyn Index> = match self.index {
            IndexKind::HashFixed => {
                Box::new(HashIndex::new(FixedLayout::new(geometry.page_bytes, grains), grains, geometry.page_bytes))
            }
            IndexKind::HashCompact => {
                let layout = CompactLayout::new(geometry.page_bytes, self.grain_bytes);
                let layout = layout.ok_or_else(|| {
                    fail(format!(
                        "hash-compact has no sections of {} byte pages and {} byte grains",
                        geometry.page_bytes, self.grain_bytes
                    ))
                })?;
                Box::new(HashIndex::new(layout, grains, geometry.page_bytes))
            }
        };
        let validity: Box<dyn Validity> = match self.validity {
            ValidityKind::GrainBitmap => Box::new(GrainBitmap::new(packing, grains)),
            ValidityKind::InvalidMappings => Box::new(InvalidMappings::new(packing, &geometry)),
        };
        let flash = Flash::new(profile, backing);
        let mut media = Media::new(flash, packing, format, validity, profile, power_loss);
        media.planted = self.planted;
        let journal = if power_loss == PowerLoss::Ignored { 0 } else { journal_superblocks(profile) };
        let reserve = self.reserve_superblocks(profile) + journal;
        let low = self.gc_low_superblocks as usize + usize::from(journal > 0) * JOURNAL_STEP_SUPERBLOCKS;
        let limits = Limits {
            high: self.gc_high_superblocks as usize + usize::from(journal > 0) * JOURNAL_STEP_SUPERBLOCKS,
            capacity_grains: u64::from(geometry.superblocks().saturating_sub(reserve)) * packing.grains_per_superblock,
            value_bytes_max: (VALUE_BYTES_MAX as u64).min(geometry.superblock_bytes()),
            dram_bytes: profile.memory.dram_bytes + profile.memory.write_buffer_bytes,
        };
        let engine = Engine::new(media, index, low, limits);
        let needed = engine.dram().total_bytes() + 4 * u64::from(geometry.page_bytes);
        if needed > limits.dram_bytes {
            return Err(fail(format!(
                "memory.dram_bytes and memory.write_buffer_bytes, scaled, make {}, and the design needs at least {needed}",
                limits.dram_bytes
            )));
        }
        Ok(engine)
    }

    /// What the design keeps in DRAM on a drive of `geometry`, cached sections aside, at most: half of the superblocks have as
    /// many pages of invalid mappings as they can (Plus, "Memory Accounting").
    #[must_use]
    pub fn dram_at_most(&self, geometry: &Geometry) -> DramUse {
        let packing = Packing::new(geometry, self.grain_bytes);
        let superblocks = u64::from(geometry.superblocks());
        let grains = packing.grains_per_superblock * superblocks;
        let mut dram = DramUse::default();
        Superblocks::charge(superblocks, &mut dram);
        match self.validity {
            ValidityKind::GrainBitmap => GrainBitmap::charge(grains, &mut dram),
            ValidityKind::InvalidMappings => {
                let spills = superblocks / 2 * InvalidMappings::spills_max(&packing, geometry.page_bytes);
                let page_bytes = geometry.page_bytes;
                InvalidMappings::charge(&packing, geometry.pages(), superblocks, page_bytes, spills, &mut dram);
            }
        }
        match self.index {
            IndexKind::HashFixed => {
                HashIndex::charge_directory(&FixedLayout::new(geometry.page_bytes, grains), grains, &mut dram);
            }
            IndexKind::HashCompact => {
                if let Some(layout) = CompactLayout::new(geometry.page_bytes, self.grain_bytes) {
                    HashIndex::charge_directory(&layout, grains, &mut dram);
                }
            }
        }
        dram
    }

    /// The bytes of flash that living records may take on a drive of `profile` that writes nothing for a mount.
    #[must_use]
    pub fn capacity_bytes(&self, profile: &Profile) -> u64 {
        let superblocks = profile.geometry.superblocks().saturating_sub(self.reserve_superblocks(profile));
        u64::from(superblocks) * profile.geometry.superblock_bytes()
    }

    /// Superblocks that living records never take: the system's, the over-provisioning, and at the least what garbage
    /// collection needs to come through.
    fn reserve_superblocks(&self, profile: &Profile) -> u32 {
        let superblocks = profile.geometry.superblocks();
        let spare = (f64::from(superblocks) * profile.space.over_provisioning_percent / 100.0).ceil() as u32;
        1 + spare.max(self.gc_low_superblocks + OPEN_SUPERBLOCKS + STEP_SUPERBLOCKS as u32)
    }

    fn fits(&self, geometry: &Geometry) -> Result<(), String> {
        let Design { grain_bytes, gc_low_superblocks: low, gc_high_superblocks: high, .. } = *self;
        if grain_bytes < 16 || !geometry.page_bytes.is_multiple_of(grain_bytes) {
            return Err(format!(
                "design.grain_bytes = {grain_bytes} must be at least 16 and divide geometry.page_bytes = {}",
                geometry.page_bytes
            ));
        }
        if high < 1 || low > 1 << 20 || low <= high {
            return Err(format!(
                "design.gc_high_superblocks = {high} must be at least 1 and below design.gc_low_superblocks = {low}"
            ));
        }
        if geometry.page_bytes < 512 {
            return Err("a record's head needs pages of 512 bytes".to_owned());
        }
        let needed = 1 + low + OPEN_SUPERBLOCKS + STEP_SUPERBLOCKS as u32 + 8;
        if geometry.superblocks() < needed {
            return Err(format!(
                "a drive of {} superblocks is too small: the reserve of garbage collection and 8 to write to make {needed}",
                geometry.superblocks()
            ));
        }
        Ok(())
    }
}
