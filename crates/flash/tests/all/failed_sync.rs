//! A sync fails, the process ends, and the next one finds what was written in the system's memory, and perhaps not on the disk: it may build on
//! it only when it has written it again.

use kvssd_flash::{
    Backing, CreateOptions, DiskCall, Files, Geometry, ImageBacking, OpenOptions, SimulatedDisk, Strike,
};
use kvssd_types::Nanos;
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "drive.kv";
const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 1,
    blocks_per_die: 2,
    pages_per_block: 4,
    pages_per_program: 2,
    page_bytes: 512,
    oob_bytes: 64,
    superblock_dies: 0,
    read_bytes_min: 0,
};

fn open(files: &Arc<dyn Files>) -> ImageBacking {
    ImageBacking::open_in(files, Path::new(PATH), OpenOptions { sync: true, read_only: false, cache_bytes: 0 })
        .unwrap()
        .0
}

#[test]
fn staged_bytes_that_a_failed_sync_left_in_memory_are_written_again_before_older_ones_go() {
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let files = disk.files();
        let options = CreateOptions { staging_bytes: 20_000, sync: true, ..CreateOptions::default() };
        let mut image = ImageBacking::create_in(&files, Path::new(PATH), GEOMETRY, "", options).unwrap();
        image.stage(&[1; 9000], Nanos::ZERO).unwrap();
        image.commit().unwrap();
        drop(image);

        let mut image = open(&files);
        disk.strike_next(disk.calls() + seed % 2, DiskCall::Sync, Strike::Fail);
        let failed = image.restage(&[2; 9000], Nanos::ZERO).is_err();
        drop(image);
        disk.kill();

        let mut image = open(&files);
        disk.strike_next(disk.calls() + seed / 2 % 6, DiskCall::Sync, Strike::PowerBefore);
        let restaged = image.restage(&[3; 9000], Nanos::ZERO);
        drop(image);
        disk.kill();

        let bytes = open(&files).staged().unwrap();
        let least = if restaged.is_ok() { 3 } else { 1 };
        assert!(failed && bytes.len() == 9000, "seed {seed}: {} bytes", bytes.len());
        assert!((least..=3).contains(&bytes[0]) && bytes.iter().all(|byte| *byte == bytes[0]), "seed {seed}");
    }
}
