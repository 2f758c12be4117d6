//! The drives of the world: so small that everything is soon full, evicted and collected.

use super::image::PATH;
use kvssd_designs::{DESIGNS, indexes};
use kvssd_device::{CreateDrive, Drive};
use kvssd_flash::{Profile, SimulatedDisk};
use kvssd_ftl::Design;
use kvssd_host::{Error, NamespaceAttributes, NamespaceId, Store};
use kvssd_types::Random;
use std::path::Path;

/// The largest value where values are large.
pub const LARGE_VALUE_BYTES: u32 = 600_000;

/// How many namespaces there are room for beside the first, where values are small.
pub const SPACES_MAX: usize = 2;

/// What a drive is made of.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// The firmware.
    pub design: Design,
    /// The flash, DRAM and buffers.
    pub profile: Profile,
    /// How its image is made.
    pub create: CreateDrive,
    /// The indexes of the namespaces beside the first.
    pub indexes: [&'static str; SPACES_MAX],
}

impl Hardware {
    /// A drive of 12 to 16 MiB with room for namespaces of every kind; with large values for twice as many, since each has a shadow. It has few
    /// superblocks, or many small ones, so that the table of blocks takes several pages of the disk.
    ///
    /// # Panics
    /// When the design does not fit such a drive.
    #[must_use]
    pub fn tiny(design: &Design, sync: bool, has_large_values: bool, has_small_blocks: bool) -> Hardware {
        let fit = |design: &Design, set: &[(&str, &str)]| {
            design.tiny_profile(set).expect("every design fits the drives of the world")
        };
        let mut design = design.clone();
        let spaces = (1 + SPACES_MAX as u32 + 1) * if has_large_values { 2 } else { 1 };
        design.namespaces_max = spaces;
        let dram_bytes = DESIGNS.iter().map(|design| fit(design, &[]).memory.dram_bytes).max().unwrap_or(0);
        let (pages_per_block, blocks_per_die) = match (has_small_blocks, has_large_values) {
            (true, _) => ("4", "192"),
            (false, false) => ("16", "48"),
            // The journal may become three times as long as DRAM is large.
            (false, true) => ("16", "64"),
        };
        // What is known of many superblocks takes DRAM, too, and the least that a tree needs must be left.
        let shares = u64::from(spaces) + if has_small_blocks { 2 } else { 0 };
        let dram_bytes = (dram_bytes * shares).to_string();
        let set = [
            ("memory.power_loss", "protected"),
            ("geometry.pages_per_block", pages_per_block),
            ("geometry.blocks_per_die", blocks_per_die),
            ("geometry.oob_bytes", "1000"),
            ("memory.dram_bytes", &dram_bytes),
        ];
        let profile = fit(&design, &set);
        let value_bytes_max = has_large_values.then_some(LARGE_VALUE_BYTES);
        let create = CreateDrive { sync, value_bytes_max, ..CreateDrive::default() };
        // A tree's pages are larger than what records may take of a page there.
        let indexes = if design.name == "multilevel" { ["rhik", "hash-compact"] } else { ["lsm", "hash-compact"] };
        Hardware { design, profile, create, indexes }
    }

    /// The same, of which programs keep pages in memory or, as often, none. What a disk does to a page that is kept shows in a later life.
    #[must_use]
    pub fn cached_or_not(mut self, random: &mut Random) -> Hardware {
        self.create.cache_bytes = cache_or_none(random);
        self
    }

    /// The same, whose namespaces have any indexes that there are; and whose first index begins as it is, or, as often, as small as it can.
    #[must_use]
    pub fn with_indexes(mut self, random: &mut Random) -> Hardware {
        let all = indexes();
        self.indexes = self.indexes.map(|_| all[random.below(all.len() as u64) as usize]);
        if random.below(2) == 0 {
            self.design.index.begin_small();
        }
        self
    }

    /// The same, in one partition or, as often, in two or three.
    #[must_use]
    pub fn in_partitions(mut self, random: &mut Random) -> Hardware {
        self.create.partitions = [1, 1, 2, 3][random.below(4) as usize];
        self
    }

    /// Makes such a drive on an empty disk.
    pub(super) fn make_on(&self, disk: &SimulatedDisk) {
        let Hardware { design, profile, create, .. } = self;
        let made = Drive::create_all_in(&disk.files(), Path::new(PATH), profile, design, *create);
        drop(made.expect("an empty disk has room for a drive"));
    }
}

/// Makes a namespace, with the drive's own index where its pages are not those of the index that is named.
pub(super) fn create_namespace(store: &Store, attributes: NamespaceAttributes) -> Result<NamespaceId, Error> {
    let created = match store.create_namespace(attributes.clone()) {
        Err(Error::InvalidOptions { .. }) => store.create_namespace(NamespaceAttributes { index: None, ..attributes }),
        created => created,
    };
    created.map(|namespace| namespace.id())
}

/// Bytes of pages that a program keeps in memory: more than a drive of the world has, or none.
pub(super) fn cache_or_none(random: &mut Random) -> u64 {
    random.below(2) << 24
}
