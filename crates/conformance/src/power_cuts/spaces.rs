//! The namespaces of a drive of a campaign: which key is whose, and how they come and go.

use super::turn::End;
use kvssd_designs::{DESIGNS, indexes};
use kvssd_flash::{Profile, ProfileError};
use kvssd_ftl::{Design, Engine, NamespaceAttributes};
use kvssd_types::{KvError, NamespaceId, Nanos};

/// Namespaces beside the first.
const OTHERS: usize = 2;
/// What a namespace is found by after a mount: a quota that bounds nothing.
const LABEL: u64 = 1 << 50;

/// The namespaces that keys are divided among, by number; one that was deleted has no id.
#[derive(Clone, Debug)]
pub(super) struct Spaces {
    ids: Vec<Option<NamespaceId>>,
    /// Whether each die has logs of its own, and room is so short that a collector that can empties several superblocks at once.
    has_many_logs: bool,
    /// The indexes of the namespaces beside the first.
    indexes: [&'static str; OTHERS],
}

impl Spaces {
    /// A drive with the one namespace that it begins with.
    pub(super) fn one() -> Self {
        Spaces { ids: vec![Some(NamespaceId::FIRST)], has_many_logs: false, indexes: [""; OTHERS] }
    }

    /// A drive with others beside it, which come and go. Turn by turn two other indexes meet in them.
    pub(super) fn many(has_many_logs: bool, turn: u64) -> Self {
        let (all, turn) = (indexes(), turn as usize);
        let indexes = [turn, turn + 1 + turn / all.len()].map(|number| all[number % all.len()]);
        let ids = [Some(NamespaceId::FIRST)].into_iter().chain([None; OTHERS]).collect();
        Spaces { ids, has_many_logs, indexes }
    }

    /// A tiny drive for them.
    pub(super) fn profile(&self, design: &mut Design, semantics: &str) -> Result<Profile, ProfileError> {
        let power_loss = ("memory.power_loss", semantics);
        if self.ids.len() == 1 {
            return design.tiny_profile(&[power_loss]);
        }
        let mut dram_bytes = design.tiny_profile(&[])?.memory.dram_bytes;
        design.namespaces_max = self.ids.len() as u32 + 2;
        for design in &DESIGNS {
            dram_bytes = dram_bytes.max(design.tiny_profile(&[])?.memory.dram_bytes);
        }
        let dram_bytes = (dram_bytes * (self.ids.len() as u64 + 1)).to_string();
        let logs: &[(&str, &str)] = if self.has_many_logs {
            (design.gc_low_superblocks, design.gc_high_superblocks) = (2, 1);
            &[
                ("geometry.channels", "8"),
                ("geometry.superblock_dies", "1"),
                ("geometry.dies_per_channel", "1"),
                ("geometry.blocks_per_die", "20"),
                ("memory.write_buffer_bytes", "1048576"),
            ]
        } else {
            // Two logs a stream.
            &[("geometry.superblock_dies", "2"), ("geometry.blocks_per_die", "48")]
        };
        let same = [
            power_loss,
            ("geometry.pages_per_block", "16"),
            ("geometry.oob_bytes", "1000"),
            ("memory.dram_bytes", &dram_bytes),
        ];
        design.tiny_profile(&[logs, &same].concat())
    }

    /// Whose the key with that number is; none when its namespace was deleted.
    pub(super) fn of(&self, key: usize) -> Option<NamespaceId> {
        self.ids[key % self.ids.len()]
    }

    /// The numbers of the keys of a namespace.
    pub(super) fn keys(&self, space: usize, keys: usize) -> impl Iterator<Item = usize> {
        (space..keys).step_by(self.ids.len())
    }

    /// How many there are, those that were deleted with them.
    pub(super) fn count(&self) -> usize {
        self.ids.len()
    }

    /// The drive was mounted: finds them again. Gives how many pairs they have.
    pub(super) fn find(&mut self, engine: &Engine) -> Result<u64, End> {
        let found = engine.namespaces();
        for (space, id) in self.ids.iter_mut().enumerate().skip(1) {
            let label = Some(LABEL + space as u64);
            let mut named = found.iter().filter(|info| info.attributes.quota_bytes == label);
            *id = named.next().map(|info| info.id);
            if named.next().is_some() {
                return Err(End::Wrong(format!("namespace {space} is there twice")));
            }
        }
        Ok(found.iter().map(|info| info.utilization.pairs).sum())
    }

    /// Makes one that is not there.
    pub(super) fn create(&mut self, engine: &mut Engine, clock: &mut Nanos) -> Result<(), KvError> {
        let Some(space) = self.ids.iter().position(Option::is_none) else { return Ok(()) };
        let quota_bytes = Some(LABEL + space as u64);
        let plain = NamespaceAttributes { quota_bytes, ..NamespaceAttributes::PLAIN };
        let attributes = NamespaceAttributes { index: Some(self.indexes[space - 1].to_owned()), ..plain.clone() };
        engine.advance(*clock)?;
        let (mut done, mut created) = engine.create_namespace(attributes, *clock);
        if matches!(created, Err(KvError::InvalidNamespace(_))) {
            // The design's pages are not those of that index.
            (done, created) = engine.create_namespace(plain, *clock);
        }
        *clock = (*clock).max(done);
        self.ids[space] = match created {
            Ok(id) => Some(id),
            // Those that were deleted have not gone yet.
            Err(KvError::TooManyNamespaces { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Maps one to so many logs, if it is there.
    pub(super) fn set_logs(
        &mut self,
        engine: &mut Engine,
        clock: &mut Nanos,
        space: usize,
        logs: Option<u32>,
    ) -> Result<(), KvError> {
        let Some(id) = self.ids[space] else { return Ok(()) };
        engine.advance(*clock)?;
        let (done, set) = engine.set_logs(id, logs, *clock);
        *clock = (*clock).max(done);
        set
    }

    /// Deletes one, if it is there and not the first.
    pub(super) fn delete(&mut self, engine: &mut Engine, clock: &mut Nanos, space: usize) -> Result<(), KvError> {
        let Some(id) = self.ids[space].take() else { return Ok(()) };
        engine.advance(*clock)?;
        let (done, deleted) = engine.delete_namespace(id, *clock);
        *clock = (*clock).max(done);
        deleted
    }
}
