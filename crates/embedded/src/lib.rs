//! Measures the store that a program embeds, on wall-clock time and real files, beside other embedded stores.
//!
//! ```text
//!   Plan      records, value sizes, threads, durabilities, seed
//!     |
//!   measure   for each cell (durability, size, threads):        fresh stores, side by side in one folder
//!     |         fill, read, overwrite, mixed, scan, delete:     one workload on each store in turn
//!     |                                                         every value that is read is checked
//!   Report    Measurement, ...                                  in JSON or as tables
//! ```
//!
//! A drive on the wire is measured by queue depth instead ([`measure_wire`]).
//!
//! A store is a file in `stores/` that implements [`EmbeddedStore`]. All but kvssd are behind the feature `rivals`.
//!
//! What it does not do: transactions, stores that are larger than what is made for a run, or cold caches.

mod cell;
mod error;
mod folder;
mod plan;
mod records;
mod report;
mod store;
mod stores;
mod threads;
mod wire;
mod workload;

pub use error::EmbeddedError;
pub use plan::Plan;
pub use report::{Measurement, Report};
pub use store::{Durability, EmbeddedStore, Opening, StoreError};
pub use stores::{HAS_RIVALS, STORES, StoreKind};
pub use wire::{WireMeasurement, WirePlan, WireReport, measure_wire};
pub use workload::Workload;

use folder::Folder;
use kvssd_measure::Observer;
use std::path::Path;

/// Measures what `plan` says, in a folder that is made at `path` and removed at the end unless `keep`.
///
/// # Errors
/// [`EmbeddedError`]: the plan cannot be, there is something at `path`, a store failed or gave a wrong value, or the observer
/// ended it. The folder is removed then.
pub fn measure(plan: &Plan, path: &Path, keep: bool, observer: &mut dyn Observer) -> Result<Report, EmbeddedError> {
    plan.check()?;
    let folder = Folder::create(path)?;
    let mut measurements = Vec::new();
    for cell in plan.cells() {
        let cell_folder = folder.create_within(&cell.name())?;
        measurements.extend(cell::measure(&cell, cell_folder.path(), observer)?);
        if keep {
            cell_folder.keep();
        } else {
            cell_folder.remove()?;
        }
    }
    if keep {
        folder.keep();
    } else {
        folder.remove()?;
    }
    Ok(Report { measurements })
}
