//! `kvssd create`, `info` and `check`: an image as a whole.

use crate::Outcome;
use crate::arguments::image::CreateOptions;
use crate::fail::{Failure, is_url};
use crate::output::print;
use kvssd_device::{Drive, Partitions};
use kvssd_flash::OpenOptions;
use kvssd_ftl::MountReport;
use kvssd_host::{Error, Missing, Options, Store};
use std::path::Path;

/// Makes an image.
pub fn create(options: &CreateOptions) -> Outcome {
    let CreateOptions { image, size, design, set, value_bytes_max, partitions, preallocate } = options;
    refuse_url(image, "made")?;
    let options = Options {
        missing: Missing::CreateNew,
        create_bytes: *size,
        design: design.clone(),
        parameters: set.clone(),
        value_bytes_max: *value_bytes_max,
        partitions: *partitions,
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
    let options = OpenOptions { read_only: true, sync: false, cache_bytes: 0 };
    let mut drives = kvssd_host::open_partitions(image, options).map_err(Failure::of_store(image))?;
    let count = drives.len();
    let mounts: Vec<MountReport> = drives.iter().filter_map(|drive| drive.mounted().copied()).collect();
    let partitions = Partitions::new(&mut drives);
    let (drive, firmware) = (partitions.first(), partitions.firmware_stats());
    let (design, profile, utilization) = (drive.design(), drive.profile(), partitions.utilization());
    let geometry = profile.geometry;
    let life = if mounts.iter().all(|mount| mount.was_closed) {
        "it was closed".to_owned()
    } else {
        let changes: u64 = mounts.iter().map(|mount| mount.changes).sum();
        let pages: u64 = mounts.iter().map(|mount| mount.journal_pages).sum();
        format!("it was not closed: {changes} changes done again, from {pages} pages of journal and what was staged")
    };
    print(&format!(
        "image             {}\n\
         design            {}: index {}, validity {}, victims {}, grains of {} bytes\n\
         flash             {} bytes: {} superblocks of {} bytes, pages of {} + {} bytes\n\
         partitions        {count}\n\
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
        design.victims.policy().name(),
        design.grain_bytes,
        firmware.flash_bytes,
        u64::from(geometry.superblocks()) * count as u64,
        geometry.superblock_bytes(),
        geometry.page_bytes,
        geometry.oob_bytes,
        utilization.capacity_bytes,
        utilization.live_bytes,
        partitions.namespaces().len(),
        drive.namespaces_max(),
        utilization.pairs,
        drive.value_bytes_max(),
        firmware.dram_bytes_max,
        profile.memory.write_buffer_bytes * count as u64
    ))
}

/// Looks at everything and names what is wrong.
pub fn check(image: &Path) -> Outcome {
    refuse_url(image, "checked")?;
    let report = Drive::check(image).map_err(Failure::of_store(image))?;
    print(&format!("{report}\n"))?;
    match report.findings.len() as u64 + report.left_off {
        0 => Ok(()),
        count => Err(Failure::Inconsistent { path: image.to_owned(), count }),
    }
}

/// What can be done with a file only.
pub fn refuse_url(image: &Path, what: &str) -> Outcome {
    if !is_url(image) {
        return Ok(());
    }
    let why = format!(
        "a drive on the wire cannot be {what} from here, but its image can where it is served; see `kvssd stat`"
    );
    Err(Failure::of_store(image)(Error::InvalidOptions { why }))
}
