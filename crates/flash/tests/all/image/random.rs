//! Random acts against memory, and random bytes.

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;

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
        let options = CreateOptions { sync, staging_bytes: 20_000, ..CREATE };
        let mut image = ImageBacking::create(&path, GEOMETRY, "", options).unwrap();
        for act in acts {
            if let Act::Reopen = act {
                image.commit().unwrap();
                drop(image);
                image = ImageBacking::open(&path, OpenOptions { sync, read_only: false, cache_bytes: 0 }).unwrap().0;
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
        places in prop::collection::vec((any::<Index>(), prop::collection::vec(any::<u8>(), 1..40)), 0..8),
        near_the_front in any::<bool>(),
        length in any::<Index>(),
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
