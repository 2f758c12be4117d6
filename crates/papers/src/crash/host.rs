//! A host of a campaign: the engine that it has on its drive, and what it keeps of that when the power goes.

use crate::transactions::pages::{LockedUnit, PageEngine, PageOptions, Remains};
use crate::transactions::{CachedDrive, CachedDriveOptions, Table, TransactionEngine};
use kvssd_device::Device;
use kvssd_flash::{PowerLoss, Profile, ProfileError};
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_sim::SimError;
use kvssd_transactions::{Granularity, Isolation, TransactionOptions};
use kvssd_types::{NamespaceId, Nanos, Random};

/// More than any value of a workload.
const VALUE_BYTES_MAX: u32 = 4096;
const LOG_BYTES: u64 = 512 << 10;

/// A host, between two lives of its drive.
pub(super) enum Host {
    /// Of a drive of keys.
    Cached(CachedDriveOptions),
    /// Of a drive of blocks; the remains are there except for the first life.
    Pages(PageOptions, Option<Box<Remains>>),
}

/// A host with its drive.
pub(super) enum Powered {
    Cached(Box<CachedDrive>),
    Pages(Box<PageEngine>),
}

impl Host {
    /// One for drives of that design.
    pub(super) fn draw(design: &Design, random: &mut Random) -> Self {
        if !design.takes_keys() {
            let locked_unit = [LockedUnit::Record, LockedUnit::Page][random.below(2) as usize];
            let pool_pages = [6, 24, 1000][random.below(3) as usize];
            return Host::Pages(PageOptions { pool_pages, log_bytes: LOG_BYTES, locked_unit }, None);
        }
        let isolation = [Isolation::TwoPhaseLocking, Isolation::Optimistic][random.below(2) as usize];
        let granularity = Granularity::records([1, 16][random.below(2) as usize]);
        let cache_bytes = [0, 20_000, 1 << 20][random.below(3) as usize];
        let transactions = TransactionOptions { cache_bytes, granularity, planted: None };
        Host::Cached(CachedDriveOptions { isolation, transactions, value_bytes_max: VALUE_BYTES_MAX })
    }

    /// What it is, in a few words.
    pub(super) fn name(&self) -> String {
        match self {
            Host::Cached(CachedDriveOptions { isolation, transactions, .. }) => format!(
                "{isolation:?}, {} records a lock, a cache of {} bytes",
                transactions.granularity.records_per_lock, transactions.cache_bytes
            ),
            Host::Pages(options, _) => {
                format!("{:?} locks, a pool of {} pages", options.locked_unit, options.pool_pages)
            }
        }
    }

    /// Takes a drive that has nothing, with the namespaces of the tables.
    pub(super) fn begin(&mut self, mut device: Device, tables: &[Table]) -> Result<(Powered, Nanos), SimError> {
        let mut clock = Nanos::ZERO;
        let engine = match self {
            Host::Cached(options) => {
                for table in tables.iter().filter(|table| table.id != NamespaceId::FIRST) {
                    let created = device.create_namespace(NamespaceAttributes::PLAIN, clock);
                    let (done, id) = created.map_err(SimError::of_drive)?;
                    assert_eq!(id, table.id, "namespaces are numbered as tables are");
                    clock = done;
                }
                Powered::Cached(Box::new(CachedDrive::new(device, *options)?))
            }
            Host::Pages(options, _) => Powered::Pages(Box::new(PageEngine::new(device, *options)?)),
        };
        Ok((engine, clock))
    }

    /// Takes a drive that was mounted; gives when transactions may begin, and those that were undone.
    pub(super) fn resume(&mut self, device: Device, at: Nanos) -> Result<(Powered, Nanos, u64), SimError> {
        Ok(match self {
            Host::Cached(options) => (Powered::Cached(Box::new(CachedDrive::new(device, *options)?)), at, 0),
            Host::Pages(options, remains) => {
                let remains = remains.take().expect("it has lived before");
                let (engine, recovery) = PageEngine::recover(device, *remains, *options, at)?;
                (Powered::Pages(Box::new(engine)), recovery.done, recovery.losers)
            }
        })
    }

    /// The power went, or is about to: lets the drive go.
    pub(super) fn end(&mut self, powered: Powered) {
        if let (Host::Pages(_, remains), Powered::Pages(engine)) = (self, powered) {
            *remains = Some(Box::new(engine.into_remains()));
        }
    }
}

impl Powered {
    pub(super) fn engine(&mut self) -> &mut dyn TransactionEngine {
        match self {
            Powered::Cached(engine) => engine.as_mut(),
            Powered::Pages(engine) => engine.as_mut(),
        }
    }
}

/// A tiny drive with a namespace for each table.
pub(super) fn profile(design: &mut Design, power_loss: PowerLoss, tables: usize) -> Result<Profile, ProfileError> {
    let power_loss = ("memory.power_loss", power_loss.name());
    if !design.takes_keys() {
        return design.tiny_profile(&[power_loss, ("geometry.blocks_per_die", "80")]);
    }
    design.namespaces_max = tables as u32;
    let geometry = [
        // A superblock has as many pages as a batch may have changes, and the largest order has 33.
        ("geometry.pages_per_block", "16"),
        ("geometry.blocks_per_die", "56"),
        ("geometry.oob_bytes", "1000"),
    ];
    let dram_bytes = design.tiny_profile(&geometry)?.memory.dram_bytes * (tables as u64 / 2 + 2);
    let dram_bytes = dram_bytes.to_string();
    design.tiny_profile(&[geometry.as_slice(), &[power_loss, ("memory.dram_bytes", &dram_bytes)]].concat())
}
