//! Images of every format version are opened by today's program in the middle of a world that kills it, and lose nothing of what they had.

use crate::of_each_design;
use kvssd_designs::DESIGNS;
use kvssd_flash::SimulatedDisk;
use kvssd_ftl::Design;
use kvssd_world::lives::{PATH, Report, solo};
use std::fs;
use std::path::Path;

/// The images, as `crates/device/tests/all/images/golden.rs` packs them.
const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../device/tests/images");
const PIECE_BYTES: usize = 4096;
/// Drives that begin with each image.
const DRIVES: u64 = 3;

fn unpack(packed: &[u8], disk: &SimulatedDisk) {
    let packed = zstd::decode_all(packed).unwrap();
    let (length, pieces) = packed.split_at(8);
    let pieces = pieces.chunks(PIECE_BYTES + 4).map(|piece| {
        let (number, bytes) = piece.split_at(4);
        (u64::from(u32::from_le_bytes(number.try_into().unwrap())) * PIECE_BYTES as u64, bytes)
    });
    disk.put(Path::new(PATH), u64::from_le_bytes(length.try_into().unwrap()), pieces);
}

/// Lives of the images of a design, and how many images that were.
fn live_on(design: &Design) -> usize {
    let versions = fs::read_dir(IMAGES).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let images =
        versions.flat_map(|version| ["closed", "cut"].map(|end| version.join(format!("{}-{end}.zst", design.name))));
    let mut lived = 0;
    // Those in several parts are of one design.
    for (image, packed) in images.filter_map(|image| Some((image.clone(), fs::read(image).ok()?))) {
        let mut report = Report::default();
        for seed in 0..DRIVES {
            let disk = SimulatedDisk::new(seed);
            unpack(&packed, &disk);
            if let Err(loss) = solo::run_over(design, disk, seed, &mut report) {
                panic!("{}: {loss:#?}", image.display());
            }
        }
        assert!(report.kills > 10 && report.acts > 300, "{report:?}");
        lived += 1;
    }
    lived
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn images_of_every_version_live_on() {
        let lived: usize = of_each_design(live_on).into_iter().sum();
        assert!(lived >= 2 * DESIGNS.len());
    }
}
