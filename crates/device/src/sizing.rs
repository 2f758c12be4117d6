//! The hardware of a drive in a file: what is chosen when only its size is given.
//!
//! | | | why |
//! |---|---|---|
//! | pages, times | those of `kvvirt` | a host that does not wait for virtual time sees none of the times |
//! | out-of-band areas | 512 B, not 384 B | pages of 64 pairs then have a namespace beside each: 3 % more bytes in the file |
//! | namespaces | up to 16, whatever the design | nobody knows beforehand that there will be more than one; one takes a byte a pair |
//! | dies | 4 channels x 2 | a file is no faster with more, and each stream keeps a unit of 32 KiB, not one a die |
//! | superblock | 1/256 of the flash, 512 KiB to 8 MiB | collection keeps 16 of them; the largest value is one, or 2 MiB |
//! | write buffer | 1 MiB, from 256 MiB on 4 MiB | it is flushed when twice as much is staged, and a flush pads what is open |
//! | DRAM | 2 % of the flash, at least 16 MiB | a store in a program's memory has more of it than a drive, see below |
//! | DRAM of a small drive | at most 1/16 of the flash | the journal's reserve is three times the DRAM |
//! | DRAM of a large drive | at most 512 MiB | each mount reads it back |
//!
//! 2 % hold the whole index of a drive that is full of pairs of 1 KB (8 bytes each in compact sections, with their roots 12) and
//! half of it at 200 bytes; a section that is not there costs a read of the file, which the system mostly has in its memory.

use crate::DriveError;
use kvssd_flash::{PowerLoss, Profile};
use kvssd_ftl::{Design, DesignError};

/// The smallest size that [`image_profile`] takes.
pub const IMAGE_BYTES_MIN: u64 = 64 << 20;
/// The largest size that [`image_profile`] takes.
pub const IMAGE_BYTES_MAX: u64 = 8 << 40;

/// The most partitions of a drive. An estimate: with more of them, threads hardly ever wait for a lock.
pub const PARTITIONS_MAX: u32 = 64;

const MIB: u64 = 1 << 20;
const DIES: u64 = 8;
const PAGE_BYTES: u64 = 4096;
const OOB_BYTES: u64 = 512;
const NAMESPACES_MAX: u32 = 16;

/// The profile of a drive of `flash_bytes` in a file, rounded down to whole superblocks. The drive's capacity is what garbage
/// collection and the journal leave of that.
///
/// # Errors
/// [`DriveError::Size`] when it is smaller than [`IMAGE_BYTES_MIN`] or larger than [`IMAGE_BYTES_MAX`].
pub fn image_profile(flash_bytes: u64) -> Result<Profile, DriveError> {
    if !(IMAGE_BYTES_MIN..=IMAGE_BYTES_MAX).contains(&flash_bytes) {
        return Err(DriveError::Size { flash_bytes });
    }
    let superblock_bytes = (1 << (flash_bytes / 256).ilog2()).clamp(MIB / 2, 8 * MIB);
    let superblocks = flash_bytes / superblock_bytes;
    let write_buffer_bytes = if flash_bytes < 256 * MIB { MIB } else { 4 * MIB };
    let dram_bytes = (flash_bytes / 50).clamp(16 * MIB, 512 * MIB).min(flash_bytes / 16);
    let numbers = [
        ("geometry.channels", 4),
        ("geometry.dies_per_channel", DIES / 4),
        ("geometry.pages_per_block", superblock_bytes / PAGE_BYTES / DIES),
        ("geometry.blocks_per_die", superblocks),
        ("geometry.oob_bytes", OOB_BYTES),
        ("memory.dram_bytes", dram_bytes),
        ("memory.write_buffer_bytes", write_buffer_bytes),
    ];
    let mut profile = Profile::load("kvvirt", &numbers.map(|(key, number)| (key.to_owned(), number.to_string())))?;
    profile.memory.power_loss = PowerLoss::Protected;
    "image".clone_into(&mut profile.name);
    "a drive in a file, with the times of kvvirt".clone_into(&mut profile.description);
    Ok(profile)
}

/// The profile of each of so many partitions (0 is one) of a drive of `flash_bytes` in a file, as [`image_profile`].
///
/// # Errors
/// As [`image_profile`]; [`DriveError::PartitionSize`] when the partitions would be smaller than [`IMAGE_BYTES_MIN`].
pub fn partition_profile(flash_bytes: u64, partitions: u32) -> Result<Profile, DriveError> {
    let partitions = partitions.max(1);
    if partitions > 1 && flash_bytes / u64::from(partitions) < IMAGE_BYTES_MIN {
        return Err(DriveError::PartitionSize { flash_bytes, partitions });
    }
    image_profile(flash_bytes / u64::from(partitions))
}

/// The design called `name` as a drive in a file has it: with room for namespaces.
///
/// # Errors
/// As [`kvssd_designs::named`]; the error names the designs that a drive in a file can have.
pub fn image_design(name: &str) -> Result<Design, DesignError> {
    let mut design = kvssd_designs::named(name).map_err(|error| match error {
        DesignError::Unknown { name, .. } => {
            let with_keys = kvssd_designs::all()
                .into_iter()
                .filter(Design::takes_keys)
                .map(|design| design.name)
                .collect::<Vec<_>>();
            DesignError::Unknown { name, known: with_keys.join(", ") }
        }
        other => other,
    })?;
    if design.takes_keys() {
        design.namespaces_max = NAMESPACES_MAX;
    }
    Ok(design)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_designs::DESIGNS;
    use kvssd_flash::RopeBacking;
    use kvssd_ftl::NamespaceAttributes;
    use kvssd_types::Nanos;

    #[test]
    fn who_asks_for_a_design_that_is_none_hears_of_those_that_an_image_can_have() {
        let why = image_design("nonsense").unwrap_err().to_string();
        assert!(DESIGNS.iter().all(|design| why.contains(design.name)) && !why.contains("block"), "{why}");
    }

    #[test]
    fn every_design_fits_images_of_every_size() {
        for megabytes in [64, 100, 128, 256, 511, 1024, 4096] {
            let profile = image_profile(megabytes << 20).unwrap();
            let raw_bytes = profile.geometry.raw_bytes();
            assert!(raw_bytes <= megabytes << 20 && raw_bytes > (megabytes - 9) << 20);
            for name in DESIGNS.map(|design| design.name) {
                let design = image_design(name).unwrap();
                let mut engine = design.build(&profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
                let capacity_bytes = engine.utilization().capacity_bytes;
                assert!(capacity_bytes > raw_bytes * 2 / 5, "{} of {megabytes} MiB: {capacity_bytes}", design.name);
                assert!(engine.dram().total_bytes() < engine.dram_budget_bytes() / 2, "{megabytes} MiB");
                for _ in 1..NAMESPACES_MAX {
                    let (_, created) = engine.create_namespace(NamespaceAttributes::PLAIN, Nanos::ZERO);
                    assert!(created.is_ok(), "{name} of {megabytes} MiB: {created:?}");
                }
            }
        }
    }

    /// The table in FORMAT.md.
    #[test]
    fn an_image_has_namespaces_of_many_kinds() {
        let profile = image_profile(64 << 20).unwrap();
        for (name, cannot_be) in [
            ("original", &[][..]),
            ("plus", &["rhik", "multilevel", "dram-hash"]),
            ("rhik", &[]),
            ("multilevel", &["lsm"]),
            ("pink", &["hash-fixed", "hash-compact"]),
            ("iter", &["hash-fixed", "hash-compact"]),
            ("kaml", &[]),
        ] {
            for index in ["hash-fixed", "hash-compact", "rhik", "multilevel", "lsm", "dram-hash"] {
                let design = image_design(name).unwrap();
                let mut engine = design.build(&profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
                let attributes = NamespaceAttributes { index: Some(index.to_owned()), ..NamespaceAttributes::PLAIN };
                let (_, created) = engine.create_namespace(attributes, Nanos::ZERO);
                assert_eq!(created.is_ok(), !cannot_be.contains(&index), "{index} on {name}: {created:?}");
            }
        }
        let mut engine =
            image_design("plus").unwrap().build(&profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
        let narrow = NamespaceAttributes {
            index: Some("rhik".to_owned()),
            parameters: vec![("signature_bits".to_owned(), "32".to_owned())],
            ..NamespaceAttributes::PLAIN
        };
        assert!(engine.create_namespace(narrow, Nanos::ZERO).1.is_ok());
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        assert!(image_profile(IMAGE_BYTES_MIN).is_ok() && image_profile(IMAGE_BYTES_MAX).is_ok());
        assert!(image_profile(IMAGE_BYTES_MIN - 1).is_err() && image_profile(IMAGE_BYTES_MAX + 1).is_err());
        assert!(image_profile(0).is_err() && image_profile(u64::MAX).is_err());
    }
}
