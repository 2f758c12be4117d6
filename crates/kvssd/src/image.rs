//! `kvssd create`, `info` and `check`: an image as a whole.

use crate::Outcome;
use crate::arguments::image::CreateOptions;
use crate::fail::{Failure, is_url};
use crate::output::print;
use kvssd_device::Drive;
use kvssd_flash::OpenOptions;
use kvssd_host::{Error, Missing, Options, Store};
use std::path::Path;

/// Makes an image.
pub fn create(options: &CreateOptions) -> Outcome {
    let CreateOptions { image, size, design, value_bytes_max, preallocate } = options;
    refuse_url(image, "made")?;
    let options = Options {
        missing: Missing::CreateNew,
        create_bytes: *size,
        design: design.clone(),
        value_bytes_max: *value_bytes_max,
        preallocate: *preallocate,
        // The file's name is to outlive the machine, which is waited for once.
        sync: true,
        ..Options::default()
    };
    let store = Store::open(image, options).map_err(Failure::of_store(image))?;
    store.close().map_err(Failure::of_store(image))
}

/// Says what drive an image holds.
pub fn info(image: &Path) -> Outcome {
    refuse_url(image, "looked into")?;
    let drive = Drive::open(image, OpenOptions { read_only: true, sync: false, cache_bytes: 0 })
        .map_err(Failure::of_drive(image))?;
    let (design, profile, engine) = (drive.design(), drive.profile(), drive.engine());
    let (geometry, utilization) = (profile.geometry, drive.utilization());
    let mounted = drive.mounted().copied().unwrap_or_default();
    let life = if mounted.was_closed {
        "it was closed".to_owned()
    } else {
        let (changes, pages) = (mounted.changes, mounted.journal_pages);
        format!("it was not closed: {changes} changes done again, from {pages} pages of journal and what was staged")
    };
    print(&format!(
        "image             {}\n\
         design            {}: index {}, validity {}, grains of {} bytes\n\
         flash             {} bytes: {} superblocks of {} bytes, pages of {} + {} bytes\n\
         capacity          {} bytes, {} of them live\n\
         namespaces        {} of {}\n\
         pairs             {}\n\
         largest value     {} bytes\n\
         index and tables  at most {} bytes of memory, write buffer {} bytes\n\
         last life         {life}\n",
        image.display(),
        design.name,
        design.index.plan().name(),
        design.validity.name(),
        design.grain_bytes,
        geometry.raw_bytes(),
        geometry.superblocks(),
        geometry.superblock_bytes(),
        geometry.page_bytes,
        geometry.oob_bytes,
        utilization.capacity_bytes,
        utilization.live_bytes,
        drive.namespaces().len(),
        design.namespaces_max,
        utilization.pairs,
        drive.value_bytes_max(),
        engine.dram_budget_bytes(),
        profile.memory.write_buffer_bytes
    ))
}

/// Looks at everything and names what is wrong.
pub fn check(image: &Path) -> Outcome {
    refuse_url(image, "checked")?;
    let report = Drive::check(image).map_err(Failure::of_drive(image))?;
    print(&format!("{report}\n"))?;
    match report.findings.len() as u64 + report.left_off {
        0 => Ok(()),
        count => Err(Failure::Inconsistent { path: image.to_owned(), count }),
    }
}

/// What can be done with a file only.
fn refuse_url(image: &Path, what: &str) -> Outcome {
    if !is_url(image) {
        return Ok(());
    }
    let why = format!(
        "a drive on the wire cannot be {what} from here, but its image can where it is served; see `kvssd stat`"
    );
    Err(Failure::of_store(image)(Error::InvalidOptions { why }))
}
