//! Images: what was written is there after any end of the process, and whatever is not an image stays as it is.

mod damage;
mod parts;
mod power_loss;
mod random;

use kvssd_flash::{
    Backing, BlockAddress, ByteBacking, CreateOptions, DieId, Geometry, ImageBacking, ImageError, ImageFault,
    MediaError, OpenOptions, PageAddress, Span, SuperblockId, UnitAddress, UnitBuilder, UnitImage, codec, rope::Rope,
};
use kvssd_types::Nanos;
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
    superblock_dies: 0,
    read_bytes_min: 0,
};
const CREATE: CreateOptions = CreateOptions { preallocate: false, staging_bytes: 4096, sync: false, cache_bytes: 0 };
const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
const READ: OpenOptions = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };
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
        let (mut image, description) =
            ImageBacking::open(&path, OpenOptions { sync, read_only: false, cache_bytes: 0 }).unwrap();
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

/// Items of the same size lie at the same places in every epoch: none of an older one may show behind a newer one's end.
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
            .args(["--exact", "image::child_that_is_killed", "--ignored", "--nocapture"])
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
