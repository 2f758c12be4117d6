//! The image of a world's drive.

use kvssd_device::Drive;
use kvssd_flash::SimulatedDisk;
use std::path::Path;

/// Where it lies.
pub const PATH: &str = "drive.kv";

/// Looks at an image that no process has.
///
/// # Errors
/// What is wrong with it.
pub fn check(disk: &SimulatedDisk) -> Result<(), String> {
    let checked = Drive::check_in(&disk.files(), Path::new(PATH));
    let checked = checked.map_err(|error| format!("the check says: {error}"))?;
    if checked.is_clean() { Ok(()) } else { Err(format!("the check says: {checked}")) }
}
