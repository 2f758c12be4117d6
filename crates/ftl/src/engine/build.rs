//! A drive's firmware, put together from what its design names.

use crate::commands::limits::Limits;
use crate::controller::behind::Behind;
use crate::controller::gathered::{Gathered, PLACES_MAX};
use crate::controller::read_ahead::ReadAhead;
use crate::design::{Design, DesignError, ValidityKind};
use crate::dram::DramUse;
use crate::engine::Engine;
use crate::gc::{Collector, STEP_SUPERBLOCKS};
use crate::index::{Forecast, Outlook, Room};
use crate::io::media::Media;
use crate::journal::batch_sequence::BatchSequence;
use crate::layout::oob::OobFormat;
use crate::layout::packing::{Packing, RecordLayout};
use crate::namespace::{Maker, Namespaces};
use crate::recovery::MountReport;
use crate::space::superblock::Superblocks;
use crate::space::validity::{GrainBitmap, InvalidMappings, PageCounters, Validity};
use kvssd_flash::codec::OOB_HEAD_BYTES;
use kvssd_flash::{Backing, Flash, Geometry, PowerLoss, Profile, ProfileError};
use kvssd_types::VALUE_BYTES_MAX;

/// Superblocks that the three logs of a target are writing to, where users have one placement handle.
const OPEN_SUPERBLOCKS: u32 = 3;

/// Superblocks that the journal may open while a command or a step of garbage collection is handled.
const JOURNAL_STEP_SUPERBLOCKS: usize = 2;

/// The most stores that are answered before their keys are looked up: 18 MB of DRAM.
const STORES_BEHIND_MAX: u32 = 1 << 16;

/// The most superblocks that garbage collection empties at a time.
const VICTIMS_MAX: u32 = 1 << 10;

/// The most placement handles. An estimate: drives have 8 to 16.
pub const PLACEMENT_HANDLES_MAX: u32 = 64;

/// Iterators read ahead into 1 / PREFETCH_SHARE of the DRAM for values. An estimate.
const PREFETCH_SHARE: u64 = 16;

/// Superblocks that a drive keeps free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptFree {
    /// Those that garbage collection keeps for itself. The numbers below do not include them.
    pub collector: u32,
    /// Garbage collection works while fewer are free.
    pub low: u32,
    /// Changes wait while fewer are free, and so does an index's own work.
    pub high: u32,
}

/// Pages of DRAM that optional buffers leave for logs and clients. An estimate.
const KEPT_BACK_PAGES: u64 = 8;

/// DRAM for sections of a tiny drive.
const TINY_SECTION_PAGES: u64 = 6;

impl Design {
    /// Builds the firmware on an erased drive of `profile` whose pages `backing` keeps. Unless `profile.memory.power_loss` is
    /// ignored, the drive is formatted, so that it can be mounted after a power cut.
    ///
    /// # Errors
    /// [`DesignError::DoesNotFit`] when the drive is too small or its pages are of the wrong size, and
    /// [`DesignError::Drive`] when the medium fails.
    pub fn build(&self, profile: &Profile, backing: Box<dyn Backing>) -> Result<Engine, DesignError> {
        let mut engine = self.assemble(profile, backing)?;
        if profile.memory.power_loss != PowerLoss::Ignored {
            engine.format()?;
        }
        Ok(engine)
    }

    /// Mounts a drive of `profile` that this design built and that lost its power.
    ///
    /// # Errors
    /// As [`Design::build`], and [`DesignError::Drive`] when the medium holds no such drive.
    pub fn mount(&self, profile: &Profile, backing: Box<dyn Backing>) -> Result<(Engine, MountReport), DesignError> {
        self.mount_part(profile, backing, BatchSequence::default())
    }

    /// Like [`Design::mount`], for a drive with shares of batches over several drives: those up to `decided` count. That is
    /// [`Engine::decided`] of their coordinator, which is itself mounted with [`Design::mount`].
    ///
    /// # Errors
    /// As [`Design::mount`], and an error if the drive has gone on behind a batch that is later than `decided`.
    pub fn mount_part(
        &self,
        profile: &Profile,
        backing: Box<dyn Backing>,
        decided: BatchSequence,
    ) -> Result<(Engine, MountReport), DesignError> {
        let mut engine = self.assemble(profile, backing)?;
        let report = engine.mount(decided)?;
        Ok((engine, report))
    }

    pub(crate) fn assemble(&self, profile: &Profile, backing: Box<dyn Backing>) -> Result<Engine, DesignError> {
        let geometry = profile.geometry;
        let fail =
            |why: String| DesignError::DoesNotFit { design: self.name, profile: profile.origin().to_owned(), why };
        self.check_parameters(profile)?;
        let packing = self.packing(&geometry);
        let format = self.oob_format(&geometry);
        format.check(packing.grains_per_page, self.namespaces_max).map_err(fail)?;
        let oob_bytes = OOB_HEAD_BYTES as usize + format.bytes_max(packing.grains_per_page);
        if oob_bytes > geometry.oob_bytes as usize {
            return Err(fail(format!(
                "design.grain_bytes = {} needs {oob_bytes} out-of-band bytes a page, and geometry.oob_bytes is {}",
                self.grain_bytes, geometry.oob_bytes
            )));
        }
        let namespaces = Namespaces::new(self.maker(profile)).map_err(fail)?;
        let validity = self.validity(packing, &geometry);
        let flash = Flash::new(profile, backing);
        let mut media = Media::new(flash, packing, format, validity, profile, self.placement_handles);
        media.durable.planted = self.planted;
        media.space.victims = self.victims.clone();
        media.space.capacity_grains = self.capacity_bytes(profile) / u64::from(packing.grain_bytes);
        media.controller.behind = Behind::new(self.stores_behind_max);
        media.gathered =
            Gathered::new(profile, packing.grain_bytes, self.gathered_blocks_max, self.spare_bytes(profile));
        media.controller.compares_later = self.compares_later;
        let journal_step = if media.durable.is_on() { JOURNAL_STEP_SUPERBLOCKS } else { 0 };
        media.space.superblocks.keep_for_checkpoint(self.checkpoint_superblocks(profile) as usize);
        let kept = self.kept_free(&geometry);
        let (low, high) = (kept.low as usize + journal_step, kept.high as usize + journal_step);
        media.log.placement.scarce_superblocks = high + STEP_SUPERBLOCKS;
        let limits = Limits {
            high,
            high_of_lookups: 1 + journal_step,
            value_bytes_max: self.value_bytes_max(&geometry),
            dram_bytes: profile.memory.dram_bytes + profile.memory.write_buffer_bytes,
            taken_bytes: 0,
        };
        let collector = Collector::new(&media, low, self.gc_victims_max, self.gc_pace);
        let engine = Engine::new(media, namespaces, collector, limits);
        let needed = engine.dram().total_bytes() + 4 * u64::from(geometry.page_bytes);
        if needed > limits.dram_bytes {
            return Err(fail(format!(
                "memory.dram_bytes and memory.write_buffer_bytes, scaled, make {}, and the design needs at least {needed}",
                limits.dram_bytes
            )));
        }
        Ok(engine)
    }

    /// Checks that a drive of `profile` can have the parameters. Sizes computed from unchecked parameters mean nothing.
    ///
    /// # Errors
    /// [`DesignError::DoesNotFit`] with what cannot be.
    pub fn check_parameters(&self, profile: &Profile) -> Result<(), DesignError> {
        let (design, profile_name) = (self.name, profile.origin().to_owned());
        self.check_names()?;
        let fits = self.fits(&profile.geometry);
        fits.map_err(|why| DesignError::DoesNotFit { design, profile: profile_name, why })
    }

    /// The format of the out-of-band areas on a drive of `geometry`: the existing one, or the one chosen for a new drive.
    #[must_use]
    pub fn oob_format(&self, geometry: &Geometry) -> OobFormat {
        self.out_of_band.unwrap_or_else(|| self.format_of(geometry, self.tags(geometry)))
    }

    fn format_of(&self, geometry: &Geometry, tags: u64) -> OobFormat {
        let grains_per_page = self.packing(geometry).grains_per_page;
        let format = OobFormat::new(grains_per_page, self.namespaces_max, tags);
        let fits = OOB_HEAD_BYTES as usize + format.bytes_max(grains_per_page) <= geometry.oob_bytes as usize;
        // Tags that follow from keys need not be stored out of band.
        if !fits && self.index.plan().has_tags_of_keys() { format.with_bitmap(grains_per_page) } else { format }
    }

    /// The exclusive upper bound of all tags of a new drive: those of its own index and, if out-of-band areas have room, those
    /// of the reserved indexes of its catalogue. An existing drive keeps its format.
    fn tags(&self, geometry: &Geometry) -> u64 {
        let room = self.room(geometry);
        let own = self.index.plan().tags(&room);
        if self.namespaces_max == 1 {
            return own;
        }
        let fits = |tags: &u64| {
            let bytes = self.format_of(geometry, *tags).bytes_max(self.packing(geometry).grains_per_page);
            bytes + OOB_HEAD_BYTES as usize <= geometry.oob_bytes as usize
        };
        self.indexes.reserved().iter().map(|index| index.plan().tags(&room)).filter(fits).fold(own, u64::max)
    }

    fn maker(&self, profile: &Profile) -> Maker {
        let prefetch_bytes = profile.memory.dram_bytes / PREFETCH_SHARE / u64::from(self.namespaces_max);
        let geometry = &profile.geometry;
        Maker {
            design: self.clone(),
            room: self.room(geometry),
            format: self.oob_format(geometry),
            prefetch_bytes,
            sector_bytes: geometry.sector_bytes(),
        }
    }

    /// How records lie in the pages of a drive of `geometry`.
    #[must_use]
    pub fn packing(&self, geometry: &Geometry) -> Packing {
        Packing::new(geometry, self.grain_bytes, self.layout)
    }

    /// What an index of the design is built for on a drive of `geometry`.
    #[must_use]
    pub fn room(&self, geometry: &Geometry) -> Room {
        let packing = self.packing(geometry);
        Room {
            raw_bytes: geometry.raw_bytes(),
            page_bytes: packing.page_bytes(),
            grain_bytes: self.grain_bytes,
            grains: packing.grains_per_superblock * u64::from(geometry.superblocks()),
            superblock_pages: geometry.pages_per_superblock(),
            merges_by_ranges: self.merges_by_ranges,
        }
    }

    pub(crate) fn validity(&self, packing: Packing, geometry: &Geometry) -> Box<dyn Validity> {
        match self.validity {
            ValidityKind::GrainBitmap => Box::new(GrainBitmap::new(packing, self.room(geometry).grains)),
            ValidityKind::InvalidMappings => Box::new(InvalidMappings::new(packing, geometry)),
            ValidityKind::AskIndex => Box::new(PageCounters::new(packing, geometry.pages())),
        }
    }

    /// The most DRAM that the design takes on a drive of `geometry`, without cached sections. It assumes that half of the
    /// superblocks have all their pages of invalid mappings (Plus, "Memory Accounting"), and a pair in every grain.
    #[must_use]
    pub fn dram_at_most(&self, geometry: &Geometry) -> DramUse {
        let mut dram = self.dram_beside_index(geometry);
        self.index.plan().charge(&self.room(geometry), &mut dram);
        Gathered::charge(self.grain_bytes, self.gathered_blocks_max, &mut dram);
        if self.index.plan().is_ordered() && !self.iterators.prefetch_degree.is_none() {
            let others = dram.total_bytes();
            dram.add("prefetch_buffer", others / (PREFETCH_SHARE - 1));
        }
        dram
    }

    /// DRAM that the drive leaves for optional buffers.
    fn spare_bytes(&self, profile: &Profile) -> u64 {
        let mut needed = self.dram_beside_index(&profile.geometry);
        self.index.plan().charge(&self.room(&profile.geometry), &mut needed);
        let kept_back = KEPT_BACK_PAGES * u64::from(profile.geometry.page_bytes);
        profile.memory.dram_bytes.saturating_sub(needed.total_bytes() + kept_back)
    }

    /// The part of [`Design::dram_at_most`] that is neither the index's own nor read ahead by iterators.
    fn dram_beside_index(&self, geometry: &Geometry) -> DramUse {
        let (packing, room) = (self.packing(geometry), self.room(geometry));
        let superblocks = u64::from(geometry.superblocks());
        let mut dram = DramUse::default();
        Superblocks::charge(superblocks, &mut dram);
        ReadAhead::charge(&packing, &mut dram);
        Behind::new(self.stores_behind_max).dram(&mut dram);
        match self.validity {
            ValidityKind::GrainBitmap => GrainBitmap::charge(room.grains, &mut dram),
            ValidityKind::AskIndex => PageCounters::charge(&packing, geometry.pages(), &mut dram),
            ValidityKind::InvalidMappings => {
                let page_bytes = packing.page_bytes();
                let spills = superblocks / 2 * InvalidMappings::spills_max(&packing, page_bytes);
                InvalidMappings::charge(&packing, geometry.pages(), superblocks, page_bytes, spills, &mut dram);
            }
        }
        dram
    }

    /// A computed forecast for the index of a drive of `profile` with `pairs` pairs after these [changes](Outlook::changes). `None` if its plan
    /// has no [`Forecast`].
    #[must_use]
    pub fn forecast(&self, profile: &Profile, pairs: u64, key_bytes: u32, changes: Option<u64>) -> Option<Forecast> {
        let Profile { geometry, memory, .. } = profile;
        let plan = self.index.plan();
        let is_ahead = plan.is_ordered() && !self.iterators.prefetch_degree.is_none();
        let ahead_bytes = if is_ahead { memory.dram_bytes / PREFETCH_SHARE } else { 0 };
        let others_bytes = self.dram_beside_index(geometry).total_bytes() + ahead_bytes;
        let dram_bytes = memory.dram_bytes.saturating_sub(others_bytes);
        let unit_pages = geometry.pages_per_program;
        plan.forecast(&Outlook { room: self.room(geometry), dram_bytes, pairs, key_bytes, changes, unit_pages })
    }

    /// Whether a drive of `profile` answers a partial write of a mapped block before it has read the missing part.
    #[must_use]
    pub fn gathers(&self, profile: &Profile) -> bool {
        let grain_bytes = self.packing(&profile.geometry).grain_bytes;
        Gathered::new(profile, grain_bytes, self.gathered_blocks_max, self.spare_bytes(profile)).is_on()
    }

    /// A drive of 48 superblocks of 128 KiB with room for what the design must keep in DRAM and a few sections: small
    /// enough that everything is soon evicted and collected, for tests and campaigns. `overrides` are put over its
    /// keys.
    ///
    /// # Errors
    /// [`ProfileError`] when an override cannot be.
    pub fn tiny_profile(&self, overrides: &[(&str, &str)]) -> Result<Profile, ProfileError> {
        let keys = [
            ("geometry.channels", "2"),
            ("geometry.dies_per_channel", "2"),
            ("geometry.blocks_per_die", "48"),
            ("geometry.pages_per_block", "8"),
            ("geometry.pages_per_program", "2"),
            ("memory.write_buffer_bytes", "65536"),
        ];
        let load = |keys: &mut dyn Iterator<Item = &(&str, &str)>| {
            let owned: Vec<_> = keys.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Profile::load("kvvirt", &owned)
        };
        let geometry = load(&mut keys.iter().chain(overrides))?.geometry;
        let section_bytes = TINY_SECTION_PAGES * u64::from(self.packing(&geometry).page_bytes());
        let dram_bytes = (self.dram_at_most(&geometry).total_bytes() + section_bytes).to_string();
        load(&mut keys.iter().chain(&[("memory.dram_bytes", dram_bytes.as_str())]).chain(overrides))
    }

    /// The bytes of flash that living records and the index may take on a drive of `profile`.
    #[must_use]
    pub fn capacity_bytes(&self, profile: &Profile) -> u64 {
        let reserve = self.reserve_superblocks(profile).saturating_add(self.journal_superblocks(profile));
        let superblocks = profile.geometry.superblocks().saturating_sub(reserve);
        u64::from(superblocks) * self.packing(&profile.geometry).superblock_bytes()
    }

    /// The most pairs that an index takes on a drive of `profile`; `None` if only flash or DRAM limits that.
    #[must_use]
    pub fn pairs_max(&self, profile: &Profile) -> Option<u64> {
        self.index.plan().pairs_max(&self.room(&profile.geometry))
    }

    /// The superblocks that the journal takes at most: two checkpoints and a journal that is as long as one, each no
    /// more than DRAM holds beside the write buffer, with an open one and a rest at each end.
    fn journal_superblocks(&self, profile: &Profile) -> u32 {
        if profile.memory.power_loss == PowerLoss::Ignored {
            return 0;
        }
        let superblocks =
            (3 * self.checkpoint_bytes(profile)).div_ceil(self.packing(&profile.geometry).superblock_bytes());
        u32::try_from(superblocks).unwrap_or(u32::MAX).saturating_add(3 * profile.geometry.targets())
    }

    /// The superblocks that a checkpoint takes at most.
    fn checkpoint_superblocks(&self, profile: &Profile) -> u32 {
        if profile.memory.power_loss == PowerLoss::Ignored {
            return 0;
        }
        let superblocks = self.checkpoint_bytes(profile).div_ceil(self.packing(&profile.geometry).superblock_bytes());
        u32::try_from(superblocks).unwrap_or(u32::MAX)
    }

    fn checkpoint_bytes(&self, profile: &Profile) -> u64 {
        profile.memory.dram_bytes + u64::from(self.packing(&profile.geometry).page_bytes()) * 32
    }

    /// Superblocks that living records never take: the system's, the over-provisioning, and at the least what garbage
    /// collection needs to come through.
    fn reserve_superblocks(&self, profile: &Profile) -> u32 {
        let superblocks = profile.geometry.superblocks();
        let spare = (f64::from(superblocks) * profile.space.over_provisioning_percent / 100.0).ceil() as u32;
        1 + spare.max(self.least_superblocks(&profile.geometry))
    }

    /// The superblocks that garbage collection needs to make progress, and to come to rest, on a full drive.
    fn least_superblocks(&self, geometry: &Geometry) -> u32 {
        let open = (OPEN_SUPERBLOCKS + self.placement_handles - 1) * geometry.targets();
        self.low_superblocks(geometry) + open + STEP_SUPERBLOCKS as u32
    }

    /// Garbage collection works while fewer superblocks are free, beside those that it keeps for itself. With several
    /// targets it keeps one more for each, since the logs of one target cannot use a superblock of another.
    fn low_superblocks(&self, geometry: &Geometry) -> u32 {
        (self.gc_low_superblocks + 1) * geometry.targets() - 1
    }

    /// The largest value of a record.
    #[must_use]
    pub fn value_bytes_max(&self, geometry: &Geometry) -> u64 {
        (VALUE_BYTES_MAX as u64).min(self.packing(geometry).superblock_bytes())
    }

    /// The superblocks that a drive of `geometry` keeps free, without what a journal needs.
    #[must_use]
    pub fn kept_free(&self, geometry: &Geometry) -> KeptFree {
        KeptFree {
            collector: STEP_SUPERBLOCKS as u32,
            low: self.low_superblocks(geometry),
            high: self.gc_high_superblocks * geometry.targets(),
        }
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
        if !(1..=VICTIMS_MAX).contains(&self.gc_victims_max) {
            return Err(format!("design.gc_victims_max = {} must be 1 to {VICTIMS_MAX}", self.gc_victims_max));
        }
        if !(1..=255).contains(&self.namespaces_max) {
            return Err(format!("design.namespaces_max = {} must be 1 to 255", self.namespaces_max));
        }
        if !(1..=PLACEMENT_HANDLES_MAX).contains(&self.placement_handles) {
            let handles = self.placement_handles;
            return Err(format!("design.placement_handles = {handles} must be 1 to {PLACEMENT_HANDLES_MAX}"));
        }
        if self.stores_behind_max > STORES_BEHIND_MAX || self.stores_behind_max > 0 && !self.takes_keys() {
            let most = if self.takes_keys() { STORES_BEHIND_MAX } else { 0 };
            return Err(format!("design.stores_behind_max = {}, and it is at most {most}", self.stores_behind_max));
        }
        if self.gathered_blocks_max > PLACES_MAX || self.gathered_blocks_max > 0 && self.takes_keys() {
            let most = if self.takes_keys() { 0 } else { PLACES_MAX };
            return Err(format!("design.gathered_blocks_max = {}, and it is at most {most}", self.gathered_blocks_max));
        }
        self.index.plan().check()?;
        self.victims.policy().check()?;
        if let RecordLayout::Slots(slots) = self.layout {
            slots.check(geometry.page_bytes, grain_bytes)?;
        }
        if geometry.pages_per_superblock() < 2 * geometry.pages_per_program {
            return Err("a superblock of a single program is too small: geometry.pages_per_block must be larger, or the dies of a superblock more".to_owned());
        }
        if geometry.page_bytes < 512 {
            return Err("a record's head needs pages of 512 bytes".to_owned());
        }
        let needed = 1 + self.least_superblocks(geometry) + 8;
        if geometry.superblocks() < needed {
            return Err(format!(
                "a drive of {} superblocks is too small: the reserve of garbage collection and 8 to write to make {needed}",
                geometry.superblocks()
            ));
        }
        Ok(())
    }
}
