//! Images: what was written is there after any end of the process, and whatever is not an image stays as it is.

use kvssd_flash::{
    Backing, BlockAddress, ByteBacking, CreateOptions, DieId, Geometry, ImageBacking, ImageError, ImageFault,
    MediaError, OpenOptions, PageAddress, Span, SuperblockId, UnitAddress, UnitBuilder, UnitImage, codec, rope::Rope,
};
use kvssd_types::Nanos;
use proptest::prelude::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    blocks_per_die: 3,
    pages_per_block: 6,
    pages_per_program: 2,
    page_bytes: 512,
    oob_bytes: 64,
};
const CREATE: CreateOptions = CreateOptions { preallocate: false, staging_bytes: 4096, sync: false };
const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false };
const READ: OpenOptions = OpenOptions { sync: false, read_only: true };
const HEADER_BYTES: usize = 4096;
const HOLDER: std::ops::Range<usize> = 20..64;
const DESCRIPTION: &str = "design = \"plus\" # Ü";

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive.kv");
    (directory, path)
}

fn block(number: u32) -> BlockAddress {
    BlockAddress { superblock: SuperblockId(number / 2), die: DieId(number % 2) }
}

fn unit(fill: u8) -> UnitImage {
    let mut unit = UnitBuilder::new(2);
    for page in 0..2 {
        let mut data = Rope::default();
        data.push_literal(&[fill; 500]);
        data.push_zeros(12);
        unit.push(&[fill, page], &mut data);
    }
    unit.finish()
}

/// An image with two units in block 0, one in block 3 that was erased before, and staged bytes; its file.
fn used(path: &Path) -> Vec<u8> {
    let mut image = ImageBacking::create(path, GEOMETRY, DESCRIPTION, CREATE).unwrap();
    for (number, row, fill) in [(0, 0, 10), (3, 0, 11), (0, 1, 12)] {
        image.program(GEOMETRY.unit_at(block(number), row), unit(fill), Span::NONE).unwrap();
    }
    image.erase(block(3), Span::NONE).unwrap();
    image.program(GEOMETRY.unit_at(block(3), 0), unit(13), Span::NONE).unwrap();
    image.stage(b"staged", Nanos::ZERO).unwrap();
    image.commit().unwrap();
    drop(image);
    fs::read(path).unwrap()
}

/// What an open image says of everything: states, pages and staged bytes.
fn everything(image: &mut dyn Backing) -> Vec<String> {
    let mut all = vec![format!("{:?}", image.staged())];
    for number in 0..6 {
        let state = image.block(block(number));
        all.push(format!("{state:?}"));
        for row in 0..state.units_programmed {
            let first = GEOMETRY.unit_at(block(number), row).0 * 2;
            for page in [first, first + 1].map(PageAddress) {
                all.push(format!(
                    "{:?}",
                    image.page(page).map(|view| (view.oob.to_vec(), view.data.blob(0..512).to_vec()))
                ));
            }
        }
    }
    all
}

fn refused(path: &Path, options: OpenOptions) -> ImageError {
    let before = fs::read(path).unwrap();
    let error = ImageBacking::open(path, options).expect_err("it is no whole image");
    assert!(fs::read(path).unwrap() == before, "the file was written to: {error}");
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()) && text.lines().count() == 1, "{text}");
    error
}

#[test]
fn what_is_programmed_is_read_after_reopening() {
    for (preallocate, sync) in [(false, false), (true, true)] {
        let (_directory, path) = place();
        let options = CreateOptions { preallocate, sync, ..CREATE };
        let mut image = ImageBacking::create(&path, GEOMETRY, DESCRIPTION, options).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.blocks() * 512 >= metadata.len(), preallocate, "{} blocks", metadata.blocks());
        for (number, row, fill) in [(5, 0, 1), (2, 0, 2), (5, 1, 3)] {
            image.program(GEOMETRY.unit_at(block(number), row), unit(fill), Span::NONE).unwrap();
        }
        image.commit().unwrap();
        let before = everything(&mut image);
        drop(image);
        let (mut image, description) = ImageBacking::open(&path, OpenOptions { sync, read_only: false }).unwrap();
        assert_eq!((description.as_str(), image.description(), image.path()), (DESCRIPTION, DESCRIPTION, &*path));
        assert_eq!((image.geometry(), image.staging_bytes()), (&GEOMETRY, CREATE.staging_bytes));
        assert_eq!((image.block(block(5)).units_programmed, image.block(block(4)).units_programmed), (2, 0));
        assert_eq!(everything(&mut image), before);
        let page = PageAddress(GEOMETRY.unit_at(block(2), 0).0 * 2 + 1);
        assert_eq!(image.page(page).unwrap().oob, [2, 1]);
    }
}

#[test]
fn an_erased_block_has_no_pages_though_its_bytes_are_there() {
    let (_directory, path) = place();
    used(&path);
    let mut image = ImageBacking::open(&path, WRITE).unwrap().0;
    let page = |image: &mut ImageBacking, row| {
        let page = PageAddress(GEOMETRY.unit_at(block(0), row).0 * 2);
        image.page(page).map(|view| view.oob.to_vec())
    };
    assert_eq!(page(&mut image, 1), Ok(vec![12, 0]));
    image.erase(block(0), Span::NONE).unwrap();
    image.program(GEOMETRY.unit_at(block(0), 0), unit(20), Span::NONE).unwrap();
    image.commit().unwrap();
    for _ in 0..2 {
        assert_eq!((image.block(block(0)).units_programmed, image.block(block(0)).erases), (1, 1));
        assert_eq!(page(&mut image, 0), Ok(vec![20, 0]));
        assert!(page(&mut image, 1).unwrap_err().to_string().contains("it was never written"));
        drop(image);
        image = ImageBacking::open(&path, WRITE).unwrap().0;
    }
}

#[test]
fn a_page_lies_where_it_is_said_and_its_damage_is_named() {
    let (_directory, path) = place();
    let mut bytes = used(&path);
    let image = ImageBacking::open(&path, READ).unwrap().0;
    let at = image.offset_of(PageAddress(1)) as usize;
    drop(image);
    let page = codec::decode(&GEOMETRY, &bytes[at..at + 512 + 64]).unwrap();
    assert_eq!(page.page(0).oob, [10, 1]);
    bytes[at + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut image = ImageBacking::open(&path, READ).unwrap().0;
    assert!(image.page(PageAddress(0)).is_ok());
    let damage = MediaError::Damaged { page: PageAddress(1), why: "the checksum does not match" };
    assert_eq!(image.page(PageAddress(1)).unwrap_err(), damage);
}

/// Items of the same size lie at the same places in every epoch: none of an older one may show behind the end of a newer.
#[test]
fn a_shorter_epoch_over_a_longer_one_ends_where_it_ends() {
    let (_directory, path) = place();
    let mut image = ImageBacking::create(&path, GEOMETRY, "", CREATE).unwrap();
    for items in [9, 5, 7, 2, 1, 3] {
        image.restage(&[items; 8], Nanos::ZERO).unwrap();
        let mut expected = vec![items; 8];
        for item in 1..items {
            image.stage(&[items, item], Nanos::ZERO).unwrap();
            image.stage(&[item; 6], Nanos::ZERO).unwrap();
            image.commit().unwrap();
            expected.extend([items, item]);
            expected.extend([item; 6]);
        }
        drop(image);
        image = ImageBacking::open(&path, WRITE).unwrap().0;
        assert_eq!(image.staged().unwrap(), expected);
    }
}

#[test]
fn what_is_staged_counts_from_its_commit() {
    let (_directory, path) = place();
    let mut image = ImageBacking::create(&path, GEOMETRY, "", CREATE).unwrap();
    image.stage(b"one", Nanos::ZERO).unwrap();
    image.commit().unwrap();
    image.stage(b"two", Nanos::ZERO).unwrap();
    let as_if_killed = fs::read(&path).unwrap();
    image.program(UnitAddress(0), unit(1), Span::NONE).unwrap();
    let with_a_program = fs::read(&path).unwrap();
    drop(image);
    for (bytes, staged) in [(as_if_killed, "one"), (with_a_program, "onetwo")] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(ImageBacking::open(&path, WRITE).unwrap().0.staged().unwrap(), staged.as_bytes());
    }
}

#[test]
fn a_truncated_image_says_how_much_is_missing() {
    let (_directory, path) = place();
    let whole = used(&path);
    let lengths = (0..64).chain((64..whole.len()).step_by(97)).chain(whole.len() - 3..whole.len());
    for length in lengths {
        fs::write(&path, &whole[..length]).unwrap();
        let fault = refused(&path, WRITE).fault;
        if length == 0 {
            assert_eq!(fault, ImageFault::Foreign);
        } else {
            let bytes_needed = if length < HEADER_BYTES { HEADER_BYTES } else { whole.len() } as u64;
            let bytes_missing = bytes_needed - length as u64;
            assert_eq!(fault, ImageFault::Truncated { bytes_missing, bytes_needed }, "{length}");
        }
    }
}

#[test]
fn no_byte_of_the_header_or_the_table_can_change_unseen() {
    let (_directory, path) = place();
    let whole = used(&path);
    let table_bytes = 6 * 16;
    for at in (0..HEADER_BYTES + table_bytes).filter(|at| !HOLDER.contains(at)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        match refused(&path, WRITE).fault {
            ImageFault::Foreign => assert!(at < 8),
            ImageFault::Version { found } => assert!((8..12).contains(&at) && found != 1),
            ImageFault::Damaged { .. } => assert!(at >= 12, "{at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
    let mut bytes = whole.clone();
    bytes[HOLDER].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    assert!(ImageBacking::open(&path, WRITE).is_ok(), "the holder's name is a hint");
}

#[test]
fn another_version_is_named_with_ours() {
    let (_directory, path) = place();
    let mut bytes = used(&path);
    bytes[8] = 7;
    fs::write(&path, &bytes).unwrap();
    let text = refused(&path, READ).to_string();
    assert!(text.contains("version 7") && text.contains("version 1"), "{text}");
}

#[test]
fn what_is_no_image_is_left_alone() {
    let (directory, path) = place();
    for bytes in [&b""[..], b"\0\0\0\0\0\0\0\0", b"key,value\n", &[0; 10_000], &[0xff; 5000], b"KVSSDimF and so on"] {
        fs::write(&path, bytes).unwrap();
        for options in [WRITE, READ] {
            assert_eq!(refused(&path, options).fault, ImageFault::Foreign);
        }
        let error = ImageBacking::create(&path, GEOMETRY, "", CREATE).unwrap_err();
        assert_eq!((error.fault, fs::read(&path).unwrap()), (ImageFault::Exists, bytes.to_vec()));
    }
    let fault = |path: &Path| ImageBacking::open(path, WRITE).unwrap_err().fault;
    assert_eq!(fault(directory.path()), ImageFault::NotAFile);
    assert_eq!(fault(Path::new("/dev/null")), ImageFault::NotAFile);
    assert_eq!(fault(&directory.path().join("nowhere")), ImageFault::Missing);
    assert!(!directory.path().join("nowhere").exists());
}

#[test]
fn an_image_that_was_not_finished_says_so() {
    let (_directory, path) = place();
    let mut bytes = used(&path);
    bytes[..8].copy_from_slice(b"KVSSDnew");
    for length in [8, 100, bytes.len()] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert_eq!(refused(&path, WRITE).fault, ImageFault::Unfinished);
    }
}

#[test]
fn an_image_that_cannot_be_leaves_nothing_behind() {
    let (directory, path) = place();
    let why = |geometry: Geometry, description: &str, options: CreateOptions| {
        let error = ImageBacking::create(&path, geometry, description, options).unwrap_err();
        assert!(!path.exists());
        error.to_string()
    };
    let staging_bytes = u64::MAX;
    assert!(why(GEOMETRY, "", CreateOptions { staging_bytes, ..CREATE }).contains("a staging area of"));
    assert!(why(GEOMETRY, &"x".repeat(2 << 20), CREATE).contains("a description of"));
    assert!(why(Geometry { channels: 0, ..GEOMETRY }, "", CREATE).contains("geometry.channels = 0"));
    assert!(why(Geometry { oob_bytes: 5, ..GEOMETRY }, "", CREATE).contains("geometry.oob_bytes = 5"));
    assert!(why(Geometry { pages_per_block: 5, ..GEOMETRY }, "", CREATE).contains("must be a multiple"));
    assert!(why(Geometry { channels: u32::MAX, ..GEOMETRY }, "", CREATE).contains("2^32"));
    // Longer than any file may be, or than there is room for.
    let most = Geometry { blocks_per_die: 350_000_000, page_bytes: 1 << 20, oob_bytes: 1 << 20, ..GEOMETRY };
    assert!(why(most, "", CREATE).contains("cannot make it"));
    let text = ImageBacking::create(directory.path().join("no/where"), GEOMETRY, "", CREATE).unwrap_err().to_string();
    assert!(text.contains("cannot create it"), "{text}");
}

#[test]
fn one_writes_or_several_read_and_who_comes_late_is_told_who_is_there() {
    let (_directory, path) = place();
    used(&path);
    let writer = ImageBacking::open(&path, WRITE).unwrap().0;
    for options in [WRITE, READ] {
        let ImageFault::Locked { holder } = refused(&path, options).fault else { panic!("it is locked") };
        assert!(holder.starts_with(&format!("process {} (", std::process::id())), "{holder}");
    }
    drop(writer);
    let readers = [ImageBacking::open(&path, READ).unwrap(), ImageBacking::open(&path, READ).unwrap()];
    assert_eq!(refused(&path, WRITE).fault, ImageFault::Locked { holder: "another process".to_owned() });
    drop(readers);
    assert!(ImageBacking::open(&path, WRITE).is_ok());
}

#[test]
fn an_image_that_is_only_read_is_not_written() {
    let (_directory, path) = place();
    let before = used(&path);
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    let mut image = ImageBacking::open(&path, READ).unwrap().0;
    assert_eq!(image.staged().unwrap(), b"staged");
    for result in [
        image.program(GEOMETRY.unit_at(block(1), 0), unit(1), Span::NONE),
        image.erase(block(0), Span::NONE),
        image.stage(b"x", Nanos::ZERO),
        image.restage(b"x", Nanos::ZERO),
    ] {
        assert!(result.unwrap_err().to_string().contains("it was opened to be read only"));
    }
    image.commit().unwrap();
    assert_eq!(image.staged().unwrap(), b"staged");
    drop(image);
    assert!(fs::read(&path).unwrap() == before);
}

/// The other half of [`a_killed_process_leaves_what_it_committed_and_no_lock`], and nothing else.
#[test]
#[ignore = "only as a child process"]
fn child_that_is_killed() {
    let path = PathBuf::from(std::env::var_os("KVSSD_TEST_IMAGE").unwrap());
    let sync = path.ends_with("sync.kv");
    let mut image = ImageBacking::create(&path, GEOMETRY, "", CreateOptions { sync, ..CREATE }).unwrap();
    image.restage(b"first", Nanos::ZERO).unwrap();
    for row in 0..3 {
        image.stage(&[row as u8; 10], Nanos::ZERO).unwrap();
        image.program(GEOMETRY.unit_at(block(4), row), unit(row as u8), Span::NONE).unwrap();
    }
    image.stage(b"last", Nanos::ZERO).unwrap();
    image.commit().unwrap();
    println!("\ncommitted");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_process_leaves_what_it_committed_and_no_lock() {
    for name in ["plain.kv", "sync.kv"] {
        let path = place().0.keep().join(name);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed", "--ignored", "--nocapture"])
            .env("KVSSD_TEST_IMAGE", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "committed"));
        let ImageFault::Locked { holder } = refused(&path, WRITE).fault else { panic!("it is locked") };
        assert!(holder.contains(&child.id().to_string()), "{holder}");
        child.kill().unwrap();
        child.wait().unwrap();
        let mut image = ImageBacking::open(&path, WRITE).unwrap().0;
        let mut staged = b"first".to_vec();
        (0..3).for_each(|row| staged.extend([row; 10]));
        staged.extend(b"last");
        assert_eq!(image.staged().unwrap(), staged);
        assert_eq!(image.block(block(4)).units_programmed, 3);
        assert_eq!(image.page(PageAddress(GEOMETRY.unit_at(block(4), 2).0 * 2 + 1)).unwrap().oob, [2, 1]);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

#[derive(Clone, Debug)]
enum Act {
    Program(u32, u8),
    Erase(u32),
    Stage(Vec<u8>),
    Restage(Vec<u8>),
    Commit,
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        4 => (0u32..6, any::<u8>()).prop_map(|(number, fill)| Act::Program(number, fill)),
        1 => (0u32..6).prop_map(Act::Erase),
        4 => bytes().prop_map(Act::Stage),
        1 => bytes().prop_map(Act::Restage),
        2 => Just(Act::Commit),
        1 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn an_image_is_what_memory_is(acts in prop::collection::vec(act(), 0..60), sync in prop::bool::weighted(0.2)) {
        let (_directory, path) = place();
        let mut memory = ByteBacking::new(GEOMETRY);
        let mut image = ImageBacking::create(&path, GEOMETRY, "", CreateOptions { sync, staging_bytes: 20_000, ..CREATE }).unwrap();
        for act in acts {
            if let Act::Reopen = act {
                image.commit().unwrap();
                drop(image);
                image = ImageBacking::open(&path, OpenOptions { sync, read_only: false }).unwrap().0;
                continue;
            }
            for backing in [&mut memory as &mut dyn Backing, &mut image] {
                match &act {
                    &Act::Program(number, fill) => {
                        let row = backing.block(block(number)).units_programmed;
                        if row < GEOMETRY.units_per_block() {
                            backing.program(GEOMETRY.unit_at(block(number), row), unit(fill), Span::NONE).unwrap();
                        }
                    }
                    &Act::Erase(number) => backing.erase(block(number), Span::NONE).unwrap(),
                    Act::Stage(bytes) => backing.stage(bytes, Nanos::ZERO).unwrap(),
                    Act::Restage(bytes) => backing.restage(bytes, Nanos::ZERO).unwrap(),
                    Act::Commit | Act::Reopen => backing.commit().unwrap(),
                }
            }
            prop_assert_eq!(everything(&mut image), everything(&mut memory));
        }
    }

    #[test]
    fn any_bytes_are_an_image_or_an_error(
        places in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..40)), 0..8),
        near_the_front in any::<bool>(),
        length in any::<prop::sample::Index>(),
        is_short in prop::bool::weighted(0.3),
        is_forged in any::<bool>(),
    ) {
        let (_directory, path) = place();
        let mut bytes = used(&path);
        let reach = if near_the_front { 160 } else { bytes.len() };
        for (at, written) in places {
            let at = at.index(reach);
            let end = bytes.len().min(at + written.len());
            bytes[at..end].copy_from_slice(&written[..end - at]);
        }
        if is_forged {
            bytes[..16].copy_from_slice(b"KVSSDimg\x01\0\0\0\0\x10\0\0");
            let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..16]), &bytes[HOLDER.end..HEADER_BYTES]);
            bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        }
        if is_short {
            bytes.truncate(length.index(bytes.len()));
        }
        fs::write(&path, &bytes).unwrap();
        match ImageBacking::open(&path, WRITE) {
            Ok((mut image, _)) if *image.geometry() == GEOMETRY => {
                let _ = everything(&mut image);
                let _ = image.stage(b"more", Nanos::ZERO);
                let _ = image.restage(b"less", Nanos::ZERO);
                let _ = image.erase(block(2), Span::NONE);
            }
            Ok(_) => {}
            Err(error) => {
                prop_assert!(fs::read(&path).unwrap() == bytes, "the file was written to: {}", error);
            }
        }
    }

    #[test]
    fn bytes_of_nothing_are_no_image(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        let (_directory, path) = place();
        fs::write(&path, &bytes).unwrap();
        refused(&path, WRITE);
    }
}
