//! Several parts in one file: each an array by itself, with one lock, one creation and one failure for all.

use super::*;
use kvssd_flash::{BegunCommit, DISK_WAITS_MAX, DiskCall, Files, SimulatedDisk, Strike, SystemFiles};
use std::sync::Arc;

const PART_BYTES: usize = 2 << 20;

fn system() -> Arc<dyn Files> {
    Arc::new(SystemFiles)
}

fn create(files: &Arc<dyn Files>, path: &Path, parts: u32) -> Result<Vec<ImageBacking>, ImageError> {
    ImageBacking::create_parts_in(files, path, GEOMETRY, DESCRIPTION, parts, CREATE)
}

fn open(path: &Path, options: OpenOptions) -> Vec<ImageBacking> {
    let (images, description) = ImageBacking::open_parts_in(&system(), path, options).unwrap();
    assert_eq!(description, DESCRIPTION);
    images
}

/// Something in the image that is told from that of other parts and other rounds.
fn work(image: &mut ImageBacking, fill: u8) {
    image.stage(&[fill; 7], Nanos::ZERO).unwrap();
    image.program(GEOMETRY.unit_at(block(fill.into()), 0), unit(fill), Span::NONE).unwrap();
    image.commit().unwrap();
}

/// An image of four parts, each with what `work` leaves of its number; its file.
fn used(path: &Path) -> Vec<u8> {
    let mut images = create(&system(), path, 4).unwrap();
    images.iter_mut().zip(0..).for_each(|(image, fill)| work(image, fill));
    drop(images);
    fs::read(path).unwrap()
}

fn refused(path: &Path, bytes: &[u8]) -> ImageFault {
    fs::write(path, bytes).unwrap();
    let error = ImageBacking::open_parts_in(&system(), path, WRITE).expect_err("it is no whole image");
    assert!(fs::read(path).unwrap() == bytes, "the file was written to: {error}");
    assert!(error.to_string().lines().count() == 1, "{error}");
    error.fault
}

fn damage(path: &Path, bytes: &[u8]) -> String {
    let ImageFault::Damaged { why } = refused(path, bytes) else { panic!("it is damaged") };
    why
}

#[test]
fn parts_are_arrays_by_themselves_that_threads_work_on_side_by_side() {
    let (_directory, path) = place();
    let mut before = Vec::new();
    let mut images = create(&system(), &path, 4).unwrap();
    for life in 0..3u8 {
        std::thread::scope(|threads| {
            for (image, number) in images.iter_mut().zip(0..) {
                assert_eq!((image.part(), image.path()), ((number, 4), &*path));
                threads.spawn(move || {
                    for round in 0..100 {
                        image.restage(&[life, number as u8, round], Nanos::ZERO).unwrap();
                        image.commit().unwrap();
                    }
                    let address = GEOMETRY.unit_at(block(number), life.into());
                    image.program(address, unit(10 * life + number as u8), Span::NONE).unwrap();
                    image.commit().unwrap();
                });
            }
        });
        before = images.iter_mut().map(|image| everything(image)).collect();
        drop(images);
        images = open(&path, WRITE);
        assert_eq!(images.iter_mut().map(|image| everything(image)).collect::<Vec<_>>(), before);
    }
    for (one, other) in [(0, 1), (1, 2), (2, 3)] {
        assert_ne!(before[one], before[other]);
    }
    let page = PageAddress(GEOMETRY.unit_at(block(2), 1).0 * 2);
    let at = images[2].offset_of(page) as usize;
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes.len(), at / PART_BYTES, bytes[at]), (4 * PART_BYTES, 2, 12));
}

/// The bytes and the calls are those of an image of before there were parts.
#[test]
fn an_image_of_one_part_is_the_image_that_it_was() {
    let path = Path::new("drive.kv");
    let seen = [false, true].map(|in_parts| {
        let disk = SimulatedDisk::new(1);
        disk.begin_trace();
        let mut image = if in_parts {
            create(&disk.files(), path, 1).unwrap().pop().unwrap()
        } else {
            ImageBacking::create_in(&disk.files(), path, GEOMETRY, DESCRIPTION, CREATE).unwrap()
        };
        work(&mut image, 3);
        drop(image);
        let mut image = if in_parts {
            ImageBacking::open_parts_in(&disk.files(), path, WRITE).unwrap().0.pop().unwrap()
        } else {
            ImageBacking::open_in(&disk.files(), path, WRITE).unwrap().0
        };
        work(&mut image, 4);
        drop(image);
        (disk.read(path).unwrap(), disk.trace())
    });
    assert!(seen[0] == seen[1]);
    assert_eq!((seen[0].0[8], seen[0].1[0].0), (3, DiskCall::Create));
}

#[test]
fn an_image_of_several_parts_is_not_opened_as_one() {
    let (_directory, path) = place();
    used(&path);
    let error = ImageBacking::open(&path, READ).unwrap_err();
    assert_eq!(error.fault, ImageFault::Parts { parts: 4 });
    for parts in [0, 257] {
        let error = create(&system(), &path.with_extension("other"), parts).unwrap_err();
        assert!(error.to_string().contains(&format!("{parts} parts are not 1 to 256")), "{error}");
    }
}

/// Whichever goes first and whichever last.
#[test]
fn the_lock_and_the_name_of_who_has_it_stay_until_the_last_part_is_gone() {
    let (_directory, path) = place();
    used(&path);
    for last in 0..4 {
        let mut images: Vec<Option<ImageBacking>> = open(&path, WRITE).into_iter().map(Some).collect();
        for number in (0..4).filter(|number| *number != last) {
            images[number] = None;
            for options in [WRITE, READ] {
                let error = ImageBacking::open_parts_in(&system(), &path, options).unwrap_err();
                let ImageFault::Locked { holder } = error.fault else { panic!("{error}") };
                assert!(holder.starts_with(&format!("process {} (", std::process::id())), "{holder}");
            }
        }
        images[last] = None;
        assert!(fs::read(&path).unwrap()[HOLDER].iter().all(|byte| *byte == 0));
    }
    let mut readers = [open(&path, READ), open(&path, READ)];
    let before = fs::read(&path).unwrap();
    assert_eq!(readers[0][3].staged().unwrap(), [3; 7]);
    assert!(readers[1][1].stage(b"x", Nanos::ZERO).is_err());
    assert!(ImageBacking::open_parts_in(&system(), &path, WRITE).is_err());
    drop(readers);
    assert!(fs::read(&path).unwrap() == before);
    open(&path, WRITE);
}

#[test]
fn a_part_that_is_not_where_it_should_be_is_named() {
    let (_directory, path) = place();
    let (other_place, other_path) = place();
    let whole = used(&path);
    let other = used(&other_path);
    drop(other_place);
    let part = |number: usize| number * PART_BYTES..(number + 1) * PART_BYTES;
    let with = |number: usize, bytes: &[u8]| {
        let mut all = whole.clone();
        all[part(number)].copy_from_slice(bytes);
        all
    };
    assert_eq!(damage(&path, &with(2, &whole[part(1)])), "where its part 2 should be is its own part 1");
    assert_eq!(damage(&path, &with(2, &other[part(2)])), "where its part 2 should be is another image's part 2");
    assert_eq!(damage(&path, &with(0, &whole[part(3)])), "it begins with its part 3, of 4 from 0 on");
    assert!(damage(&path, &with(0, &other[part(0)])).contains("where its part 1 should be is another image's part 1"));
    assert_eq!(damage(&path, &with(3, &[0; PART_BYTES])), "its part 3 does not begin as parts do");
    for (at, why) in [
        (8, "its part 1 does not begin as parts do"),
        (70, "in its part 1, the checksum of its header does not match"),
        (150, "in its part 1, the checksum of its header does not match"),
        (HEADER_BYTES + 2, "in its part 1, the table's entry of block 0 was not written so"),
    ] {
        let mut bytes = whole.clone();
        bytes[PART_BYTES + at] ^= 0x40;
        assert_eq!(damage(&path, &bytes), why);
    }
    for length in [PART_BYTES, whole.len() - PART_BYTES, whole.len() - 1] {
        let bytes_needed = whole.len() as u64;
        let fault = ImageFault::Truncated { bytes_missing: bytes_needed - length as u64, bytes_needed };
        assert_eq!(refused(&path, &whole[..length]), fault);
    }
    fs::write(&path, &whole).unwrap();
    for (image, fill) in open(&path, WRITE).iter_mut().zip(0..) {
        assert_eq!(image.staged().unwrap(), [fill; 7]);
    }
}

/// A process is killed, the machine stops, or a call fails, at each call of a creation: there is a whole image, one that says that it was not
/// finished, or none; and what a committed part holds is there whenever the image is.
#[test]
fn a_creation_that_is_interrupted_anywhere_is_seen() {
    let path = Path::new("drive.kv");
    let (mut seen, mut whole) = ([0; 3], 0);
    for (strike, sync) in [
        (Strike::KillBefore, false),
        (Strike::KillWithin, false),
        (Strike::PowerBefore, true),
        (Strike::Fail, true),
        (Strike::Full, false),
    ] {
        for call in 0.. {
            let disk = SimulatedDisk::new(call);
            disk.strike(call, strike);
            let options = CreateOptions { sync, preallocate: strike == Strike::Full, ..CREATE };
            let made = ImageBacking::create_parts_in(&disk.files(), path, GEOMETRY, DESCRIPTION, 3, options);
            let is_created = made.is_ok();
            if let Ok(mut images) = made {
                let _ = images.iter_mut().try_for_each(|image| {
                    image.stage(b"there", Nanos::ZERO)?;
                    image.commit()
                });
            }
            let is_over = disk.calls() <= call;
            let (is_killed, is_there) = (disk.is_killed(), disk.read(path).is_some());
            disk.kill();
            assert!(is_created || is_killed || !is_there || strike == Strike::Fail, "nothing is left behind");
            match ImageBacking::open_parts_in(&disk.files(), path, WRITE) {
                Ok((mut images, _)) => {
                    seen[0] += 1;
                    assert!(images.iter_mut().all(|image| image.staged().unwrap() == b"there"), "{strike:?} {call}");
                }
                Err(ImageError { fault: ImageFault::Unfinished, .. }) => seen[1] += 1,
                // Before it has said that it is not finished, or before its name is durable.
                Err(ImageError { fault: ImageFault::Missing | ImageFault::Empty | ImageFault::Foreign, .. }) => {
                    seen[2] += 1;
                }
                Err(error) => panic!("{strike:?} at call {call}: {error}"),
            }
            if is_over {
                whole += 1;
                break;
            }
        }
    }
    assert!(whole == 5 && seen.iter().all(|count| *count > 4), "{seen:?}");
}

/// What one part could not write, another must not build on: a batch may be over both.
#[test]
fn after_a_failure_of_one_part_nothing_is_written_to_any() {
    for what in [DiskCall::Sync, DiskCall::Write] {
        let (disk, path) = (SimulatedDisk::new(1), Path::new("drive.kv"));
        let options = CreateOptions { sync: true, ..CREATE };
        let files = disk.files();
        let mut images = ImageBacking::create_parts_in(&files, path, GEOMETRY, "", 3, options).unwrap();
        images.iter_mut().zip(0..).for_each(|(image, fill)| work(image, fill));
        images[0].stage(b"more", Nanos::ZERO).unwrap();
        images[1].stage(b"more", Nanos::ZERO).unwrap();
        disk.strike_next(disk.calls(), what, Strike::Fail);
        let text = images[1].commit().unwrap_err().to_string();
        let before = disk.read(path).unwrap();
        for image in &mut images {
            assert_eq!(image.commit().unwrap_err().to_string(), text);
            assert_eq!(image.erase(block(0), Span::NONE).unwrap_err().to_string(), text);
        }
        assert_eq!(images[2].staged().unwrap(), [2; 7], "it can be read");
        assert!(disk.read(path).unwrap() == before);
        drop(images);
        let mut images = ImageBacking::open_parts_in(&files, path, WRITE).unwrap().0;
        assert_eq!(images[2].staged().unwrap(), [2; 7]);
    }
}

/// An image whose commit waits for a disk that fails its next sync, and what waits; more is staged behind it.
fn waiting(disk: &SimulatedDisk) -> (ImageBacking, BegunCommit) {
    let mut image = committed(disk);
    image.stage(b"one", Nanos::ZERO).unwrap();
    assert!(image.begin_commit().unwrap().is_none(), "the first one waits with the image in hand");
    image.commit().unwrap();
    image.stage(b"more", Nanos::ZERO).unwrap();
    let begun = image.begin_commit().unwrap().expect("something is to be made durable");
    image.stage(b"and more", Nanos::ZERO).unwrap();
    disk.strike_next(disk.calls(), DiskCall::Sync, Strike::Fail);
    (image, begun)
}

/// An image that syncs, and has committed what it is made of.
fn committed(disk: &SimulatedDisk) -> ImageBacking {
    let (path, options) = (Path::new("drive.kv"), CreateOptions { sync: true, ..CREATE });
    let mut image = ImageBacking::create_parts_in(&disk.files(), path, GEOMETRY, "", 1, options).unwrap().remove(0);
    image.commit().unwrap();
    image
}

#[test]
fn a_wait_for_the_disk_that_failed_is_an_error_once_and_for_all() {
    let (mut image, wait) = waiting(&SimulatedDisk::new(1));
    let text = wait.wait().unwrap_err().to_string();
    assert!(text.contains("cannot make what was written durable: "), "{text}");
    for _ in 0..2 {
        assert_eq!(image.stage(b"later", Nanos::ZERO).unwrap_err().to_string(), text, "before anybody syncs again");
        assert_eq!(image.commit().unwrap_err().to_string(), text);
        assert_eq!(image.begin_commit().unwrap_err().to_string(), text);
    }
}

/// As many as may wait, and the failure of one of their syncs is that of all.
#[test]
fn of_commits_that_wait_for_the_disk_at_the_same_time_none_is_safe_if_one_has_failed() {
    let disk = SimulatedDisk::new(1);
    let (mut image, first) = waiting(&disk);
    let mut all = vec![first];
    while let Some(begun) = image.begin_commit().unwrap() {
        image.stage(b"more", Nanos::ZERO).unwrap();
        all.push(begun);
    }
    assert_eq!(all.len(), DISK_WAITS_MAX);
    for begun in all.iter().rev() {
        assert!(begun.wait().is_err());
    }
    for begun in all {
        assert!(image.end_commit(begun).is_err());
    }
}

/// The system tells a failed sync to those who have the file open: who opens it later to wait for the disk is not told.
#[test]
fn a_sync_that_failed_before_the_first_wait_for_the_disk_is_not_forgotten() {
    let disk = SimulatedDisk::new(1);
    let mut image = committed(&disk);
    image.stage(b"more", Nanos::ZERO).unwrap();
    image.program(UnitAddress(0), unit(0), Span::NONE).unwrap();
    let other = disk.files().open(Path::new("drive.kv"), false).unwrap();
    disk.strike_next(disk.calls(), DiskCall::Sync, Strike::Fail);
    assert!(other.syncer().sync().is_err());
    let committed = match image.begin_commit().unwrap() {
        Some(begun) => begun.wait().and_then(|()| image.end_commit(begun)).map(|_| ()),
        None => image.commit(),
    };
    assert!(committed.is_err(), "what is in doubt is not committed");
}

/// Of two syncs at a time the system tells one open file of the failure of both.
#[test]
fn a_sync_that_failed_during_a_wait_for_the_disk_fails_the_wait() {
    let (mut image, wait) = waiting(&SimulatedDisk::new(1));
    let text = image.erase(block(0), Span::NONE).unwrap_err().to_string();
    assert!(text.contains("cannot make what was written durable: "), "{text}");
    assert!(wait.wait().is_err());
}

/// It cannot be opened again to wait for the disk: whoever commits waits with the image in hand.
#[test]
fn an_image_whose_file_has_lost_its_name_is_committed_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (path, options) = (folder.path().join("drive.kv"), CreateOptions { sync: true, ..CREATE });
    let mut image = ImageBacking::create(&path, GEOMETRY, "", options).unwrap();
    image.commit().unwrap();
    let mut commit = || {
        image.stage(b"more", Nanos::ZERO).unwrap();
        assert!(image.begin_commit().unwrap().is_none());
        image.commit().unwrap();
    };
    std::fs::rename(&path, folder.path().join("renamed.kv")).unwrap();
    commit();
    std::fs::write(&path, b"another").unwrap();
    commit();
    commit();
}

/// A sync that fails leaves in doubt what others have written, who have opened the file as well: the next sync of each says so.
#[test]
fn who_else_has_the_file_open_is_told_of_a_sync_that_failed() {
    let (disk, path) = (SimulatedDisk::new(1), Path::new("a"));
    let one = disk.files().create_new(path).unwrap();
    let mut other = disk.files().open(path, false).unwrap();
    other.write_at(0, b"in doubt").unwrap();
    disk.strike(disk.calls(), Strike::Fail);
    assert!(one.syncer().sync().is_err() && other.syncer().sync().is_err(), "each is told");
    assert!(one.syncer().sync().is_ok() && other.syncer().sync().is_ok(), "once");
    assert!(disk.files().open(path, false).unwrap().syncer().sync().is_ok());
}
