//! Golden images: drives as a program of this format wrote them, which every later program must read.
//!
//! They are written anew for a new format version, and only then; see `docs/FORMAT.md`:
//!
//! ```sh
//! cargo test -p kvssd-device --test all -- --ignored write_golden_images
//! ```
//!
//! ```text
//!   file    zstd of  [bytes of the image u64]  then for each 4096 bytes that are not all zeros  [number u32] [bytes]
//! ```

use super::script::{self, KEYS, bytes, expected, get, id, model, small_profile, steps, take};
use kvssd_designs::DESIGNS;
use kvssd_device::{Drive, image_design, image_profile};
use kvssd_flash::OpenOptions;
use kvssd_types::{Command, Key, Reply};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The format version that the images are of.
const VERSION: u32 = 3;
/// Steps of an image's script, and lives that they are divided among.
const STEPS: usize = 250;
const LIVES: usize = 4;
const PIECE_BYTES: usize = 4096;
const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };

/// How the life of an image ended. Those that were cut off are of 64 MiB, as programs make them.
const ENDS: [(&str, bool); 2] = [("closed", true), ("cut", false)];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/images/v{VERSION}"))
}

fn seed(name: &str, is_closed: bool) -> u64 {
    name.bytes().fold(u64::from(is_closed), |seed, byte| seed * 31 + u64::from(byte))
}

/// An image as it is kept. Its last piece may be a shorter one.
pub fn pack(image: &Path) -> Vec<u8> {
    let image = fs::read(image).unwrap();
    let mut packed = (image.len() as u64).to_le_bytes().to_vec();
    for (number, piece) in
        (0u32..).zip(image.chunks(PIECE_BYTES)).filter(|(_, piece)| piece.iter().any(|&byte| byte > 0))
    {
        packed.extend(number.to_le_bytes());
        packed.extend(piece);
    }
    zstd::encode_all(&packed[..], 19).unwrap()
}

pub fn unpack(packed: &[u8], path: &Path) {
    let packed = zstd::decode_all(packed).unwrap();
    let (length, pieces) = packed.split_at(8);
    let length = u64::from_le_bytes(length.try_into().unwrap());
    let file = File::create(path).unwrap();
    for piece in pieces.chunks(PIECE_BYTES + 4) {
        let (number, bytes) = piece.split_at(4);
        let number = u32::from_le_bytes(number.try_into().unwrap());
        file.write_all_at(bytes, u64::from(number) * PIECE_BYTES as u64).unwrap();
    }
    file.set_len(length).unwrap();
}

#[test]
#[ignore = "writes images that are missing into the repository; for a new design, or a new format version"]
fn write_golden_images() {
    fs::create_dir_all(folder()).unwrap();
    for name in DESIGNS.map(|design| design.name) {
        for (end, is_closed) in ENDS {
            let golden = folder().join(format!("{name}-{end}.zst"));
            if golden.exists() {
                continue;
            }
            let place = TempDir::new().unwrap();
            let path = place.path().join("drive.kv");
            let design = image_design(name).unwrap();
            let profile = if is_closed { small_profile(&design, 2 << 20) } else { image_profile(64 << 20).unwrap() };
            let mut drive = script::create(&path, &design, &profile);
            for (life, steps) in steps(seed(name, is_closed), STEPS, KEYS).chunks(STEPS / LIVES).enumerate() {
                if life > 0 {
                    drive.close().unwrap();
                    drive = Drive::open(&path, WRITE).unwrap();
                }
                for step in steps {
                    let taken = take(&mut drive, step);
                    assert_eq!(taken, Ok(()), "{name}, {end}: {:?}", drive.utilization());
                }
            }
            if is_closed {
                drive.close().unwrap();
            } else {
                drop(drive);
            }
            fs::write(golden, pack(&path)).unwrap();
        }
    }
}

/// Everything that was put is there, and nothing else.
fn verify(drive: &mut Drive, name: &str, is_closed: bool) {
    let steps = steps(seed(name, is_closed), STEPS, KEYS);
    for (key, value) in expected(&steps) {
        let found = get(drive, &key).unwrap();
        assert!(found == value.map(bytes), "{name}, closed {is_closed}: {key:?}");
    }
    let model = model(&steps);
    let names: BTreeSet<usize> = expected(&steps).iter().map(|((name, _), _)| *name).collect();
    for name in names {
        let wanted: BTreeSet<&[u8]> = model.keys().filter(|(of, _)| *of == name).map(|(_, key)| &key[..]).collect();
        let id = id(drive, name);
        let listed = drive.execute_in(id, Command::List { from: None, keys_max: 10_000 });
        let Ok(Reply::Listed(keys)) = listed else { panic!("{listed:?}") };
        assert_eq!(keys.iter().map(|key| &key[..]).collect::<BTreeSet<_>>(), wanted);
    }
}

#[test]
fn golden_images_are_read_checked_written_and_read_again() {
    let mut bytes_read = 0;
    for name in DESIGNS.map(|design| design.name) {
        for (end, is_closed) in ENDS {
            let place = TempDir::new().unwrap();
            let path = place.path().join("drive.kv");
            let packed = fs::read(folder().join(format!("{name}-{end}.zst"))).unwrap();
            bytes_read += packed.len();
            unpack(&packed, &path);
            let report = Drive::check(&path).unwrap();
            assert!(report.is_clean(), "{name}, {end}:\n{report}");
            let mut drive = Drive::open(&path, WRITE).unwrap();
            verify(&mut drive, name, is_closed);
            for number in 0..400u64 {
                let key = format!("new {}", number % 50).into_bytes();
                let put = script::Step::Put(((0, key), Some((number, 3000))));
                take(&mut drive, &put).unwrap();
            }
            for number in 0..50u64 {
                let key = (0, format!("new {number}").into_bytes());
                assert_eq!(get(&mut drive, &key).unwrap(), Some(bytes((number + 350, 3000))));
                take(&mut drive, &script::Step::Put((key, None))).unwrap();
            }
            drive.close().unwrap();
            let mut drive = Drive::open(&path, WRITE).unwrap();
            verify(&mut drive, name, is_closed);
            drive.execute(Command::Exist { key: Key::new(b"new 1").unwrap() }).unwrap_err();
            drop(drive);
            let report = Drive::check(&path).unwrap();
            assert!(report.is_clean(), "{name}, {end}, used again:\n{report}");
        }
    }
    assert!(bytes_read < 1 << 20, "{bytes_read} bytes are too many for a repository");
}
