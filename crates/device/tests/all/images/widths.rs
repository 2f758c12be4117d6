//! What is compiled in says nothing of a drive that is there already.

use super::script::{bytes, get};
use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_flash::OpenOptions;
use kvssd_ftl::{Design, NamespaceAttributes, OobFormat};
use kvssd_types::{Command, Key, StoreCondition, Value};
use tempfile::TempDir;

const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };

/// A program with one preset more chooses wider tags: what it made is read by this one, and the other way round.
#[test]
fn an_image_of_other_widths_than_this_program_chooses_is_mounted() {
    for (name, tags) in [("plus", 1 << 39), ("rhik", 1 << 63), ("kaml", u64::MAX), ("pink", 1 << 60)] {
        let (folder, profile) = (TempDir::new().unwrap(), image_profile(64 << 20).unwrap());
        let path = folder.path().join("drive.kv");
        let design = image_design(name).unwrap();
        let chosen = design.oob_format(&profile.geometry);
        let grains_per_page = design.packing(&profile.geometry).grains_per_page;
        let format = OobFormat::new(grains_per_page, design.namespaces_max, tags);
        let format = if name == "pink" { format.with_bitmap(grains_per_page) } else { format };
        assert_eq!(format == chosen, name != "plus", "{name}: {format:?}");
        let design = Design { out_of_band: Some(format), ..design };
        let mut drive = Drive::create(&path, &profile, &design, CreateDrive::default()).unwrap();
        for end in 0..6u64 {
            for number in 0..1500u64 {
                let key = number.to_le_bytes();
                let value = Value::from(&bytes((number ^ end, 1500))[..]);
                let (key, condition) = (Key::new(&key).unwrap(), StoreCondition::Always);
                drive.execute(Command::Store { key, value, condition }).unwrap();
            }
            if end % 2 == 0 {
                drive.close().unwrap();
            } else {
                drop(drive);
            }
            drive = Drive::open(&path, WRITE).unwrap();
            assert_eq!(drive.design().oob_format(&profile.geometry), format);
            for number in 0..1500u64 {
                let found = get(&mut drive, &(0, number.to_le_bytes().to_vec())).unwrap();
                assert_eq!(found, Some(bytes((number ^ end, 1500))), "{name}");
            }
        }
        drop(drive);
        let report = Drive::check(&path).unwrap();
        assert!(report.is_clean(), "{name}: {report}");
    }
}

/// What a namespace's attributes leave to the program is chosen once.
#[test]
fn a_namespace_keeps_the_parameters_that_it_was_made_with() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("drive.kv");
    let design = image_design("original").unwrap();
    let mut drive = Drive::create(&path, &image_profile(64 << 20).unwrap(), &design, CreateDrive::default()).unwrap();
    let attributes = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let id = drive.create_namespace(attributes.clone()).unwrap();
    drop(drive);
    let drive = Drive::open(&path, WRITE).unwrap();
    let info = drive.namespaces().into_iter().find(|info| info.id == id).unwrap();
    assert_eq!((info.attributes, &*info.index), (attributes, "lsm"));
}
