//! Files that are not whole images, or not images at all: each is named and none is written to.

use super::*;
use std::fs::File;
use std::os::unix::fs::FileExt;

#[test]
fn a_page_lies_where_it_is_said_and_its_damage_is_named() {
    let (_directory, path) = place();
    let mut bytes = used(&path);
    let image = ImageBacking::open(&path, READ).unwrap().0;
    let at = image.offset_of(PageAddress(1)) as usize;
    drop(image);
    let identity = codec::PageIdentity { page: PageAddress(1), erases: 0 };
    let page = codec::decode(&GEOMETRY, identity, &bytes[at..at + 512 + 64]).unwrap();
    assert_eq!(page.page(0).oob, [10, 1]);
    bytes[at + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut image = ImageBacking::open(&path, READ).unwrap().0;
    assert!(image.page(PageAddress(0)).is_ok());
    let damage = MediaError::Damaged { page: PageAddress(1), why: "the checksum does not match" };
    assert_eq!(image.page(PageAddress(1)).unwrap_err(), damage);
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
            assert_eq!(fault, ImageFault::Empty);
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
    let file = File::options().write(true).open(&path).unwrap();
    for at in (0..HEADER_BYTES + table_bytes).filter(|at| !HOLDER.contains(at)) {
        file.write_all_at(&[whole[at] ^ 1 << (at % 8)], at as u64).unwrap();
        match ImageBacking::open(&path, WRITE).expect_err("a byte was changed").fault {
            ImageFault::Foreign => assert!(at < 8),
            ImageFault::Version { found } => assert!((8..12).contains(&at) && found != 3),
            ImageFault::Damaged { .. } => assert!(at >= 12, "{at}"),
            other => panic!("byte {at}: {other:?}"),
        }
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    assert!(fs::read(&path).unwrap() == whole, "nobody else wrote to it");
    let mut bytes = whole;
    bytes[HOLDER].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    assert!(ImageBacking::open(&path, WRITE).is_ok(), "the holder's name is a hint");
}

#[test]
fn another_version_is_named_with_ours() {
    let (_directory, path) = place();
    let mut bytes = used(&path);
    for (version, reader) in [(0, "no kvssd"), (1, "before"), (2, "before"), (5, "a newer"), (7, "a newer")] {
        bytes[8] = version;
        fs::write(&path, &bytes).unwrap();
        let text = refused(&path, READ).to_string();
        for named in [&format!("version {version}"), "version 3", reader] {
            assert!(text.contains(named), "{text}");
        }
    }
}

#[test]
fn what_is_no_image_is_left_alone() {
    let (directory, path) = place();
    for bytes in [&b""[..], b"\0\0\0\0\0\0\0\0", b"key,value\n", &[0; 10_000], &[0xff; 5000], b"KVSSDimF and so on"] {
        fs::write(&path, bytes).unwrap();
        for options in [WRITE, READ] {
            let fault = if bytes.is_empty() { ImageFault::Empty } else { ImageFault::Foreign };
            assert_eq!(refused(&path, options).fault, fault);
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
    let made_again = || ImageBacking::create(&path, GEOMETRY, "", CREATE).unwrap_err().fault;
    assert_eq!(made_again(), ImageFault::Unfinished);
    fs::remove_file(&path).unwrap();
    let mut image = ImageBacking::create(&path, GEOMETRY, "", CREATE).unwrap();
    image.program(UnitAddress(0), unit(1), Span::NONE).unwrap();
    assert_eq!(made_again(), ImageFault::Exists, "somebody is making it");
    drop(image);
    assert_eq!(refused(&path, WRITE).fault, ImageFault::Unfinished, "it was never committed");
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
