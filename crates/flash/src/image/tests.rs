//! What only somebody who knows the inside of an image can bring about: a system that fails, and chunks that were torn.

use super::*;
use crate::image::system_files::SystemFile;
use crate::{DieId, SuperblockId};
use std::fs::{self, File};

pub(super) const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 1,
    blocks_per_die: 2,
    pages_per_block: 4,
    pages_per_program: 1,
    page_bytes: 512,
    oob_bytes: 64,
    superblock_dies: 0,
    read_bytes_min: 0,
};
pub(super) const WRITABLE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };

pub(super) fn image(sync: bool) -> (tempfile::TempDir, ImageBacking) {
    let directory = tempfile::tempdir().unwrap();
    let options = CreateOptions { staging_bytes: 1000, sync, ..CreateOptions::default() };
    let mut image = ImageBacking::create(directory.path().join("drive.kv"), GEOMETRY, "a drive", options).unwrap();
    image.commit().unwrap();
    (directory, image)
}

fn unit(fill: u8) -> UnitImage {
    UnitImage::of_bytes(&[fill], &[fill; 512])
}

pub(super) fn program(image: &mut ImageBacking, number: u32) -> Result<(), MediaError> {
    image.program(UnitAddress(number), unit(number as u8), Span::NONE)
}

#[test]
fn after_a_write_that_failed_nothing_is_written_and_everything_can_be_read() {
    let (_directory, mut image) = image(false);
    program(&mut image, 0).unwrap();
    image.stage(b"kept", Nanos::ZERO).unwrap();
    image.commit().unwrap();
    let before = fs::read(image.path()).unwrap();
    let read_only = File::open(image.path()).unwrap();
    let working = std::mem::replace(&mut image.disk.file, Box::new(SystemFile::new(read_only)));
    let text = program(&mut image, 1).unwrap_err().to_string();
    assert!(text.starts_with("image ") && text.contains("drive.kv: cannot write pages: "), "{text}");
    image.disk.file = working;
    let block = BlockAddress { superblock: SuperblockId(0), die: DieId(0) };
    for again in [
        program(&mut image, 1),
        image.erase(block, Span::NONE),
        image.stage(b"more", Nanos::ZERO),
        image.restage(b"less", Nanos::ZERO),
        image.commit(),
    ] {
        assert_eq!(again.unwrap_err().to_string(), text);
    }
    assert_eq!(image.page(PageAddress(0)).unwrap().oob, [0]);
    assert_eq!(fs::read(image.path()).unwrap(), before);
}

/// Chunk B is written while the commit of chunk A waits for the disk: what is staged behind it must not say that B is safe.
#[test]
fn what_is_staged_during_a_wait_for_the_disk_is_not_sure_behind_it() {
    let (directory, mut image) = image(true);
    image.stage(b"0000", Nanos::ZERO).unwrap();
    assert!(image.begin_commit().unwrap().is_none(), "the first time");
    image.commit().unwrap();
    image.stage(b"AAAA", Nanos::ZERO).unwrap();
    let begun = image.begin_commit().unwrap().expect("A is to be made durable");
    let chunk_at = image.layout.staging_offset + image.staging.end;
    image.stage(b"BBBB", Nanos::ZERO).unwrap();
    program(&mut image, 0).unwrap();
    begun.wait().unwrap();
    assert!(!image.end_commit(begun).unwrap(), "B is left");
    image.stage(b"CCCC", Nanos::ZERO).unwrap();
    program(&mut image, 1).unwrap();
    drop(image);
    let path = directory.path().join("drive.kv");
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[chunk_at as usize + 24..][..4], *b"BBBB");
    bytes[chunk_at as usize + 24] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(ImageBacking::open(&path, WRITABLE).unwrap().0.staged().unwrap(), b"0000AAAA");
    // A is sure.
    bytes[chunk_at as usize - 8] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(ImageBacking::open(&path, WRITABLE).is_err());
}

/// Chunk A was torn when the machine stopped and chunk B behind it was not; the next life stages A once more.
#[test]
fn what_lies_behind_a_torn_chunk_does_not_come_back() {
    let (directory, mut image) = image(true);
    let path = directory.path().join("drive.kv");
    let chunk_at = image.layout.staging_offset + image.staging.end;
    image.stage(b"AAAA", Nanos::ZERO).unwrap();
    program(&mut image, 0).unwrap();
    image.stage(b"BBBB", Nanos::ZERO).unwrap();
    program(&mut image, 1).unwrap();
    drop(image);
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[chunk_at as usize + 24..][..4], *b"AAAA");
    bytes[chunk_at as usize + 24] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut image = ImageBacking::open(&path, WRITABLE).unwrap().0;
    assert_eq!(image.staged().unwrap(), b"");
    image.stage(b"AAAA", Nanos::ZERO).unwrap();
    image.commit().unwrap();
    drop(image);
    assert_eq!(ImageBacking::open(&path, WRITABLE).unwrap().0.staged().unwrap(), b"AAAA");
}

/// What was committed is not torn, so that a chunk of it that is not whole is damage; and so is a half that is gone.
#[test]
fn damage_to_what_was_staged_is_not_taken_for_a_crash() {
    for sync in [false, true] {
        let (directory, mut image) = image(sync);
        let path = directory.path().join("drive.kv");
        image.restage(b"1111", Nanos::ZERO).unwrap();
        let half_at = (image.layout.staging_offset + image.layout.half_bytes) as usize;
        for bytes in [b"2222", b"3333"] {
            image.stage(bytes, Nanos::ZERO).unwrap();
            image.commit().unwrap();
        }
        drop(image);
        let whole = fs::read(&path).unwrap();
        // 24 bytes of head and 4 of content each, to the next multiple of 8.
        let content_at = [1, 2, 3].map(|fill| half_at + 32 * (fill - 1) + 24);
        for (at, fill) in content_at.into_iter().zip([b'1', b'2', b'3']) {
            assert_eq!(whole[at], fill);
        }
        for (at, is_found) in
            [(content_at[0], true), (half_at + 8, true), (content_at[1], true), (content_at[2], false)]
        {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).unwrap();
            match ImageBacking::open(&path, WRITABLE) {
                Err(error) => assert!(is_found && error.to_string().contains("the staged bytes at byte"), "{error}"),
                // Whether the last was torn or damaged nobody can tell.
                Ok((mut image, _)) => assert!(!is_found && image.staged().unwrap() == b"11112222"),
            }
        }
    }
}

/// A page of the disk has many chunks, and what says how long one is can be damaged as well.
#[test]
fn damage_to_several_chunks_or_to_the_length_of_one_is_not_taken_for_a_crash_either() {
    for sync in [false, true] {
        let (directory, mut image) = image(sync);
        let path = directory.path().join("drive.kv");
        image.restage(b"1111", Nanos::ZERO).unwrap();
        let half_at = (image.layout.staging_offset + image.layout.half_bytes) as usize;
        for bytes in [b"2222", b"3333", b"4444", b"5555"] {
            image.stage(bytes, Nanos::ZERO).unwrap();
            image.commit().unwrap();
        }
        drop(image);
        let whole = fs::read(&path).unwrap();
        let chunk_at = [1, 2, 3, 4, 5].map(|fill| half_at + 32 * (fill - 1));
        assert_eq!(whole[chunk_at[4] + 24..][..4], *b"5555");
        let lengths =
            (0..4).flat_map(|byte| [1, 2, 3].map(|chunk| chunk_at[chunk] + 4 + byte..chunk_at[chunk] + 5 + byte));
        let several = [chunk_at[1]..chunk_at[3], chunk_at[1]..chunk_at[4], chunk_at[2] + 20..chunk_at[3] + 8];
        for lost in lengths.chain(several) {
            let mut bytes = whole.clone();
            bytes[lost].iter_mut().for_each(|byte| *byte ^= 0x5a);
            fs::write(&path, &bytes).unwrap();
            let text = ImageBacking::open(&path, WRITABLE).unwrap_err().to_string();
            assert!(text.contains("the staged bytes at byte"), "{text}");
        }
    }
}

/// What is behind a gap is found among values that look like heads of its epoch.
#[test]
fn a_gap_in_what_was_staged_is_told_whatever_values_are_behind_it() {
    let (directory, mut image) = image(false);
    let path = directory.path().join("drive.kv");
    image.restage(b"1111", Nanos::ZERO).unwrap();
    let half_at = (image.layout.staging_offset + image.layout.half_bytes) as usize;
    let lost = image.staging.end as usize;
    let words = [u64::MAX, image.staging.epoch].map(u64::to_le_bytes).concat();
    let many = words.repeat(25);
    image.stage(&many, Nanos::ZERO).unwrap();
    image.commit().unwrap();
    let behind = image.staging.end as usize;
    image.stage(&many, Nanos::ZERO).unwrap();
    image.commit().unwrap();
    drop(image);
    let whole = fs::read(&path).unwrap();
    // The head of the first, by length and all; the values of both stay.
    let mut bytes = whole.clone();
    bytes[half_at + lost..][..24].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let text = ImageBacking::open(&path, WRITABLE).unwrap_err().to_string();
    assert!(text.contains("the staged bytes at byte"), "{text}");
    // Behind the last there is nothing that needs it, whatever its values look like: it may be a crash.
    let mut bytes = whole;
    bytes[half_at + behind..][..8].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let (mut image, _) = ImageBacking::open(&path, WRITABLE).unwrap();
    assert_eq!(image.staged().unwrap(), [b"1111", &many[..]].concat());
}

#[test]
fn many_small_commits_fit_as_well_as_a_large_one() {
    let (directory, mut image) = image(false);
    for number in 0..1000 {
        image.stage(&[number as u8], Nanos::ZERO).unwrap();
        image.commit().unwrap();
    }
    assert!(image.staging.epoch > 3, "the area was written anew {} times", image.staging.epoch - 1);
    let expected: Vec<u8> = (0..1000).map(|number| number as u8).collect();
    assert_eq!(image.staged().unwrap(), expected);
    drop(image);
    let mut image = ImageBacking::open(directory.path().join("drive.kv"), WRITABLE).unwrap().0;
    assert_eq!(image.staged().unwrap(), expected);
    let text = image.stage(&[0], Nanos::ZERO).unwrap_err().to_string();
    assert!(text.contains("1001 bytes would be staged, and it was created with room for 1000"), "{text}");
    assert_eq!(image.commit().unwrap_err().to_string(), text, "bytes must not be staged behind a gap");
}

/// An erase leaves the bytes, which are a whole page still: whether they were read before or are after it, nobody is given them.
#[test]
fn what_was_read_of_a_page_is_not_given_after_an_erase_or_another_program() {
    let (_directory, mut image) = image(false);
    let block = BlockAddress { superblock: SuperblockId(0), die: DieId(0) };
    let write = |image: &mut ImageBacking, number: u32, fill: u8| {
        image.program(UnitAddress(number), unit(fill), Span::NONE).unwrap();
    };
    for page in 0..4 {
        write(&mut image, page, page as u8);
    }
    image.fetch(PageAddress(0), 4);
    assert_eq!(image.page(PageAddress(2)).unwrap().oob, [2]);
    image.erase(block, Span::NONE).unwrap();
    for page in 0..4 {
        assert!(image.page(PageAddress(page)).is_err(), "page {page} is erased");
    }
    write(&mut image, 0, 10);
    // The second and those behind it are bytes of before.
    image.opened = OpenedPages::new(&GEOMETRY, 0);
    image.fetch(PageAddress(0), 4);
    assert_eq!(image.page(PageAddress(0)).unwrap().oob, [10]);
    assert!(image.page(PageAddress(1)).is_err(), "nothing was written there since");
    write(&mut image, 1, 11);
    assert_eq!(image.page(PageAddress(1)).unwrap().oob, [11]);
}

/// What is kept in memory is what was written last, over every life of a block.
#[test]
fn pages_that_are_kept_when_they_are_written_are_those_of_this_life_of_their_block() {
    let folder = tempfile::tempdir().unwrap();
    let options = CreateOptions { staging_bytes: 1000, cache_bytes: 1 << 20, ..CreateOptions::default() };
    let mut image = ImageBacking::create(folder.path().join("a"), GEOMETRY, "", options).unwrap();
    image.commit().unwrap();
    let block = GEOMETRY.block_of(UnitAddress(0)).0;
    for life in 0..3 {
        image.program(UnitAddress(0), unit(life), Span::NONE).unwrap();
        assert!(image.opened.holds(PageAddress(0)), "nothing is read from the disk");
        assert_eq!(image.page(PageAddress(0)).unwrap().oob, [life]);
        image.erase(block, Span::NONE).unwrap();
        assert!(image.page(PageAddress(0)).is_err(), "it is erased");
    }
}

/// A page that the disk did not take is not served out of memory either.
#[test]
fn a_page_whose_write_failed_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let options = CreateOptions { staging_bytes: 1000, cache_bytes: 1 << 20, ..CreateOptions::default() };
    let mut image = ImageBacking::create(folder.path().join("a"), GEOMETRY, "", options).unwrap();
    image.commit().unwrap();
    let read_only = File::open(image.path()).unwrap();
    let working = std::mem::replace(&mut image.disk.file, Box::new(SystemFile::new(read_only)));
    assert!(program(&mut image, 0).is_err());
    image.disk.file = working;
    assert!(!image.opened.holds(PageAddress(0)) && image.page(PageAddress(0)).is_err());
}
