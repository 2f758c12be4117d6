//! Images of every format version are opened by today's program in the middle of a world that kills it, and lose nothing of what they had.

use kvssd_designs::DESIGNS;
use kvssd_flash::SimulatedDisk;
use kvssd_world::lives::{PATH, Report, solo};
use std::fs;
use std::path::Path;

/// The images, as `crates/device/tests/images/golden.rs` packs them.
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

#[test]
fn images_of_every_version_live_on() {
    let mut images = 0;
    for version in fs::read_dir(IMAGES).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for (design, end) in DESIGNS.iter().flat_map(|design| [(design, "closed"), (design, "cut")]) {
            // Those in several parts are of one design.
            let Ok(packed) = fs::read(version.join(format!("{}-{end}.zst", design.name))) else { continue };
            let mut report = Report::default();
            for seed in 0..DRIVES {
                let disk = SimulatedDisk::new(seed);
                unpack(&packed, &disk);
                if let Err(loss) = solo::run_over(design, disk, seed, &mut report) {
                    panic!("{} {end} in {}: {loss:#?}", design.name, version.display());
                }
            }
            assert!(report.kills > 10 && report.acts > 300, "{report:?}");
            images += 1;
        }
    }
    assert!(images >= 2 * DESIGNS.len());
}
