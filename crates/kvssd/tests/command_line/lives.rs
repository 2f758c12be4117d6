//! Many lives of a service, each with thousands of synced puts of a host and SIGTERM: everything that was acknowledged is there in the next.
//!
//! ```sh
//! cargo test -p kvssd --test command_line lives                        # 6 lives of each design
//! cargo test -p kvssd --test command_line lives -- --ignored           # 200 lives of each design
//! ```

use crate::desk::Desk;
use crate::serve::Service;
use kvssd_types::Random;
use std::collections::BTreeMap;

const PUTS: u64 = 3000;
const KEYS: u64 = 3000;
const SIZES: [usize; 3] = [10, 100, 1000];
const LIVES: u32 = 6;
const LIVES_LONG: u32 = 200;

fn live(design: &str, lives: u32) {
    let desk = Desk::in_memory();
    desk.prints(&format!("create drive.kv --size 64MiB --design {design}"));
    let mut pairs: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut random = Random::new(16);
    for life in 0..=lives {
        let service = Service::start(&desk, "--sync");
        let store = kvssd_host::connect(&format!("nvme+tcp://{}", service.address));
        let store = store.unwrap_or_else(|error| panic!("{design}, life {life}: {error}"));
        let keys: Vec<&[u8]> = pairs.keys().map(Vec::as_slice).collect();
        let found = store.retrieve_many(&keys).unwrap_or_else(|error| panic!("{design}, life {life}: {error}"));
        for ((key, value), found) in pairs.iter().zip(found) {
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
        drop(store);
        assert_eq!(service.end("-TERM"), Some(0), "{design}, life {life}");
    }
    desk.prints("check drive.kv");
}

macro_rules! lives {
    ($($design:ident $name:literal)*) => {
        $(mod $design {
            #[test]
            fn synced_pairs_outlive_sigterm() {
                super::live($name, super::LIVES);
            }

            #[test]
            #[ignore = "takes minutes"]
            fn synced_pairs_outlive_many_sigterms() {
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
