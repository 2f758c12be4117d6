//! Many lives of one image, each with thousands of synced puts and an orderly close: everything that was acknowledged is there in the next.
//!
//! ```sh
//! cargo test -p kvssd-host --test all lives                        # 12 lives of each design
//! cargo test -p kvssd-host --test all lives -- --ignored           # 200 lives of each design
//! ```

use kvssd_host::{Options, Store};
use kvssd_types::Random;
use std::collections::BTreeMap;
use std::path::Path;

const PUTS: u64 = 3000;
const KEYS: u64 = 3000;
const SIZES: [usize; 3] = [10, 100, 1000];
const LIVES: u32 = 12;
const LIVES_LONG: u32 = 200;

/// A folder in memory where there is one: what is tried is the order of what is written, and not how long a disk takes.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn live(design: &str, lives: u32) {
    let folder = folder();
    let path = folder.path().join("drive.kv");
    let mut pairs: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut random = Random::new(16);
    for life in 0..=lives {
        let options = Options { create_bytes: 64 << 20, design: design.to_owned(), sync: true, ..Options::default() };
        let store = Store::open(&path, options).unwrap_or_else(|error| panic!("{design}, life {life}: {error}"));
        for (key, value) in &pairs {
            let found = store.retrieve(key).unwrap_or_else(|error| panic!("{design}, life {life}: {error}"));
            assert!(found.as_ref() == Some(value), "{design}, life {life}: {} is not as it was", key.escape_ascii());
        }
        assert_eq!(store.keys(None).count(), pairs.len(), "{design}, life {life}: there are others");
        for _ in 0..if life < lives { PUTS } else { 0 } {
            let key = format!("k{:05}", random.below(KEYS)).into_bytes();
            let length = SIZES[random.below(SIZES.len() as u64) as usize];
            let value: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            store.store(&key, &value).unwrap_or_else(|error| panic!("{design}, life {life}: {error}"));
            pairs.insert(key, value);
        }
        store.close().unwrap_or_else(|error| panic!("{design}, life {life}: {error}"));
    }
}

macro_rules! lives {
    ($($design:ident $name:literal)*) => {
        $(mod $design {
            #[test]
            fn synced_pairs_outlive_orderly_closes() {
                super::live($name, super::LIVES);
            }

            #[test]
            #[ignore = "takes minutes"]
            fn synced_pairs_outlive_many_orderly_closes() {
                super::live($name, super::LIVES_LONG);
            }
        })*

        #[test]
        fn every_design_has_its_lives() {
            assert_eq!(kvssd_designs::DESIGNS.map(|design| design.name).to_vec(), [$($name),*]);
        }
    };
}

lives! { original "original" plus "plus" rhik "rhik" multilevel "multilevel" pink "pink" iter "iter" kaml "kaml" }
