//! The drive, in memory and in files. One program: each that is linked costs as much as many tests.

mod at_hand;
mod caches;
mod drive;
mod durability;
mod heads;
mod images;
mod large_records;
mod long_values;
mod partitions;
mod removals;
mod requests;
mod stray_namespaces;
mod validation_pm983;

use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_flash::{OpenOptions, SimulatedDisk};
use kvssd_ftl::Design;
use kvssd_types::{Command, Key, KvError, Reply};
use std::path::Path;

/// Where a drive on a simulated disk is.
const PATH: &str = "drive.kv";

/// The names of the designs that an image can have.
fn designs() -> impl Iterator<Item = &'static str> {
    kvssd_designs::DESIGNS.into_iter().map(|design| design.name)
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key::new(bytes).unwrap()
}

/// A new drive of 64 MiB.
fn create(path: &Path, design: &str, value_bytes_max: Option<u32>) -> Drive {
    let options = CreateDrive { value_bytes_max, ..CreateDrive::default() };
    Drive::create(path, &image_profile(64 << 20).unwrap(), &image_design(design).unwrap(), options).unwrap()
}

/// Ends the drive's life, in order or not, and begins the next.
fn reopened(drive: Drive, path: &Path, in_order: bool) -> Drive {
    if in_order {
        drive.close().unwrap();
    } else {
        drop(drive);
    }
    Drive::open(path, OpenOptions::default()).unwrap()
}

/// A new tiny drive of a design, whose write buffer outlives the process.
fn create_protected(design: &Design) -> SimulatedDisk {
    let profile = design.tiny_profile(&[("memory.power_loss", "protected")]).unwrap();
    let disk = SimulatedDisk::new(1);
    let drive = Drive::create_in(&disk.files(), Path::new(PATH), &profile, design, CreateDrive::default());
    drive.unwrap().close().unwrap();
    disk
}

/// The whole value of a key, where there is one.
fn retrieve(drive: &mut Drive, key: &[u8]) -> Option<Vec<u8>> {
    let key = Key::new(key).unwrap();
    match drive.execute(Command::Retrieve { key, offset_bytes: 0, length_bytes: u32::MAX }) {
        Ok(Reply::Retrieved { value, .. }) => Some(value.to_vec()),
        Err(KvError::KeyNotFound) => None,
        other => panic!("{other:?}"),
    }
}
