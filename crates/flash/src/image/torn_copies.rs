//! A process that is killed while it copies what it stages, at every byte of the copy.

use super::tests::{GEOMETRY, WRITABLE, image, program};
use super::{Backing, CreateOptions, Files, ImageBacking, SystemFiles};
use crate::SimulatedDisk;
use kvssd_types::Nanos;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// What is staged in the image that is `bytes`; it goes on from there.
fn staged(folder: &Path, bytes: &[u8]) -> Vec<u8> {
    let path = folder.join("cut.kv");
    fs::write(&path, bytes).unwrap();
    let mut image = ImageBacking::open(&path, WRITABLE).unwrap().0;
    let staged = image.staged().unwrap();
    image.stage(b"and on", Nanos::ZERO).unwrap();
    image.commit().unwrap();
    drop(image);
    let mut image = ImageBacking::open(&path, WRITABLE).unwrap().0;
    assert_eq!(image.staged().unwrap(), [&staged[..], b"and on"].concat(), "the next life goes on");
    staged
}

/// Each image that a kill may leave while the bytes of `range` become those of `after`, copied from the front or from the back.
fn cuts<'a>(before: &'a [u8], after: &'a [u8], range: Range<usize>) -> impl Iterator<Item = Vec<u8>> + 'a {
    let parts = (0..=range.len()).flat_map(move |cut| [range.start..range.start + cut, range.end - cut..range.end]);
    parts.map(|part| {
        let mut bytes = before.to_vec();
        bytes[part.clone()].copy_from_slice(&after[part]);
        bytes
    })
}

/// An image whose halves have chunks of earlier epochs all over, at the same places as those that come.
fn used() -> (tempfile::TempDir, ImageBacking) {
    let (folder, mut image) = image(false);
    for round in 0..4u8 {
        image.restage(&[round; 4], Nanos::ZERO).unwrap();
        for number in 0..20u8 {
            image.stage(&[round * 20 + number; 37], Nanos::ZERO).unwrap();
            image.commit().unwrap();
        }
    }
    image.restage(b"base", Nanos::ZERO).unwrap();
    for number in 100..103 {
        image.stage(&[number; 37], Nanos::ZERO).unwrap();
        image.commit().unwrap();
    }
    (folder, image)
}

#[test]
fn a_commit_that_was_copied_in_part_reads_as_not_there() {
    let (folder, mut image) = used();
    let before = (fs::read(image.path()).unwrap(), image.staged().unwrap());
    image.stage(&[200; 37], Nanos::ZERO).unwrap();
    image.commit().unwrap();
    let after = (fs::read(image.path()).unwrap(), image.staged().unwrap());
    let differ = |at: &usize| before.0[*at] != after.0[*at];
    let first = (0..after.0.len()).find(differ).unwrap();
    let last = (0..after.0.len()).rfind(differ).unwrap();
    assert!((40..=61).contains(&(last - first)), "it is the chunk: 24 bytes of head and 37");
    let mut whole = 0;
    for bytes in cuts(&before.0, &after.0, first..last + 1) {
        let is_whole = bytes == after.0;
        whole += u32::from(is_whole);
        assert_eq!(staged(folder.path(), &bytes), if is_whole { &after.1 } else { &before.1 }[..]);
    }
    assert_eq!(whole, 2);
}

/// Of a part as of an image: each has its own region, and the others' stay as they are.
#[test]
fn a_commit_of_a_part_that_was_copied_in_part_reads_as_not_there() {
    let (folder, files) = (tempfile::tempdir().unwrap(), Arc::new(SystemFiles) as Arc<dyn Files>);
    let path = folder.path().join("drive.kv");
    let options = CreateOptions { staging_bytes: 1000, ..CreateOptions::default() };
    let mut images = ImageBacking::create_parts_in(&files, &path, GEOMETRY, "", 3, options).unwrap();
    for (image, fill) in images.iter_mut().zip(1..) {
        image.restage(&[fill; 30], Nanos::ZERO).unwrap();
        image.commit().unwrap();
    }
    let before = fs::read(&path).unwrap();
    images[1].stage(&[200; 37], Nanos::ZERO).unwrap();
    images[1].commit().unwrap();
    let after = fs::read(&path).unwrap();
    drop(images);
    let differ = |at: &usize| before[*at] != after[*at];
    let range = (0..after.len()).find(differ).unwrap()..(0..after.len()).rfind(differ).unwrap() + 1;
    let part_bytes = after.len() / 3;
    assert!(range.start >= part_bytes && range.end <= 2 * part_bytes && range.len() <= 61, "{range:?}");
    for cut in (0..=range.len()).step_by(4).chain([range.len()]) {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&before[range.clone()], range.start as u64).unwrap();
        file.write_all_at(&after[range.start..range.start + cut], range.start as u64).unwrap();
        let mut images = ImageBacking::open_parts_in(&files, &path, WRITABLE).unwrap().0;
        let staged: Vec<Vec<u8>> = images.iter_mut().map(|image| image.staged().unwrap()).collect();
        let whole = [&[2; 30][..], &[200; 37]].concat();
        let middle = if cut == range.len() { whole } else { vec![2; 30] };
        assert_eq!(staged, [vec![1; 30], middle, vec![3; 30]]);
    }
}

/// What stands in the stead of all counts from its last byte on; and where its predecessor is marked in part, it counts still.
#[test]
fn of_an_epoch_that_was_begun_in_part_nothing_counts_and_its_mark_takes_nothing_away() {
    let (folder, mut image) = used();
    let before = (fs::read(image.path()).unwrap(), image.staged().unwrap());
    image.restage(b"anew", Nanos::ZERO).unwrap();
    let after = (fs::read(image.path()).unwrap(), image.staged().unwrap());
    let halves = [0, 1].map(|half| (image.layout.staging_offset + half * image.layout.half_bytes) as usize);
    let length = |at: usize| u32::from_le_bytes(after.0[at + 4..at + 8].try_into().unwrap());
    let (new, old) = if length(halves[0]) == 4 { (halves[0], halves[1]) } else { (halves[1], halves[0]) };
    assert_eq!((length(new), length(old)), (4, u32::MAX));
    let mut middle = before.0.clone();
    middle[new..new + 28].copy_from_slice(&after.0[new..new + 28]);
    for bytes in cuts(&before.0, &after.0, new..new + 28) {
        let expected = if bytes == middle { &after.1 } else { &before.1 };
        assert_eq!(&staged(folder.path(), &bytes), expected);
    }
    for bytes in cuts(&middle, &after.0, old..old + 24) {
        assert_eq!(staged(folder.path(), &bytes), after.1);
    }
}

/// The same calls leave the same bytes, mapped or not, and a life of either kind goes on from the other.
#[test]
fn what_is_mapped_is_in_the_file_as_if_the_system_had_written_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("drive.kv"), Path::new("drive.kv"));
    let disk = SimulatedDisk::new(1);
    let options = CreateOptions { staging_bytes: 200_000, ..CreateOptions::default() };
    let images = [
        ImageBacking::create(&path, GEOMETRY, "a drive", options).unwrap(),
        ImageBacking::create_in(&disk.files(), other, GEOMETRY, "a drive", options).unwrap(),
    ];
    assert_eq!(images[1].staging_note(), None);
    let work = |image: &mut ImageBacking, life: u8| {
        image.commit().unwrap();
        for number in 0..1500u32 {
            image.stage(&vec![number as u8 ^ life; 1 + number as usize * 31 % 117], Nanos::ZERO).unwrap();
            image.commit().unwrap();
            if number % 400 == 399 {
                image.restage(&[life; 90_000], Nanos::ZERO).unwrap();
            }
            if number % 400 == 7 {
                program(image, u32::from(life) * 4 + number / 400).unwrap();
            }
        }
        image.staged().unwrap()
    };
    let staged = images.map(|mut image| work(&mut image, 0));
    assert!(staged[0] == staged[1]);
    assert!(fs::read(&path).unwrap() == disk.read(other).unwrap());
    // Each goes on where the other one was.
    let bytes = disk.read(other).unwrap();
    disk.put(other, bytes.len() as u64, [(0, &fs::read(&path).unwrap()[..])]);
    fs::write(&path, bytes).unwrap();
    let files = disk.files();
    let again =
        [ImageBacking::open(&path, WRITABLE).unwrap().0, ImageBacking::open_in(&files, other, WRITABLE).unwrap().0];
    let again = again.map(|mut image| {
        assert!(image.staged().unwrap() == staged[0]);
        image.restage(b"", Nanos::ZERO).unwrap();
        work(&mut image, 1)
    });
    assert!(again[0] == again[1]);
    assert!(fs::read(&path).unwrap() == disk.read(other).unwrap());
}

/// Nothing is mapped that is not written, or that is to outlive the machine.
#[test]
fn what_must_outlive_the_machine_is_written_by_the_system() {
    let maps = |path: &Path| {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.ends_with(path.to_str().unwrap())).count()
    };
    let (_folder, synced) = image(true);
    assert_eq!((maps(synced.path()), synced.staging_note()), (0, None));
    let (folder, working) = image(false);
    assert_eq!(maps(working.path()) > 0, working.staging_note().is_none(), "mapped, or it says why not");
    let path = folder.path().join("drive.kv");
    drop(working);
    assert_eq!(maps(&path), 0);
    let reading = ImageBacking::open(&path, crate::OpenOptions { read_only: true, ..WRITABLE }).unwrap().0;
    assert_eq!((maps(&path), reading.staging_note()), (0, None));
}
