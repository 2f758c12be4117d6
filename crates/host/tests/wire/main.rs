//! The client of NVMe/TCP against a peer that does what it should, and against one that does not.

mod calls;
mod faults;
mod losses;
mod peer;

use kvssd_host::{Error, Store, StoreCondition};
use peer::{Act, Behaviour, PLAIN, Peer};

fn value(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + seed * 7 + at / 251) as u8).collect()
}

const SIZES: [usize; 9] = [0, 1, 100, 4095, 4096, 4097, 70_000, 1 << 20, 2 << 20];

/// All that a store is asked to do.
fn exercise(store: &Store) {
    for (number, size) in SIZES.into_iter().enumerate() {
        let (key, value) = (format!("key {number}"), value(number, size));
        store.store(key.as_bytes(), &value).unwrap();
        assert!(store.retrieve(key.as_bytes()).unwrap().as_deref() == Some(&value[..]), "{size} bytes");
        assert_eq!(
            store.retrieve_part(key.as_bytes(), 10, 20).unwrap().unwrap(),
            value.get(10..).map_or(&[][..], |rest| &rest[..rest.len().min(20)])
        );
    }
    let key = b"sixteen bytes ok";
    store.store_if(key, b"1", StoreCondition::IfAbsent).unwrap();
    assert_eq!(store.store_if(key, b"2", StoreCondition::IfAbsent), Err(Error::KeyExists));
    assert_eq!(store.store_if(b"none", b"2", StoreCondition::IfExists), Err(Error::KeyNotFound));
    store.store_if(key, b"3", StoreCondition::IfExists).unwrap();
    assert_eq!((store.retrieve(key), store.retrieve(b"none")), (Ok(Some(b"3".to_vec())), Ok(None)));
    assert_eq!((store.exist(key), store.exist(b"none")), (Ok(true), Ok(false)));
    assert_eq!(store.list(None, 100).unwrap().len(), SIZES.len() + 1);
    assert_eq!(store.list(Some(b"key 3"), 2).unwrap(), [b"key 3"[..].into(), b"key 4"[..].into()]);
    assert_eq!((store.delete(key), store.delete(key)), (Ok(true), Ok(false)));
    store.flush().unwrap();
    assert_eq!(store.keys(None).count(), SIZES.len());
    for number in 0..SIZES.len() {
        assert!(store.delete(format!("key {number}").as_bytes()).unwrap());
    }
}

/// A peer that does something else with one of the commands, the first of its kind behind `number`.
fn misbehaving(act: Act, number: u64) -> Peer {
    numbered(PLAIN, act, number)
}

/// The same, of that behaviour.
fn numbered(behaviour: Behaviour, act: Act, number: u64) -> Peer {
    Peer::new(behaviour, move |_, count| if count == number { act } else { Act::Answer })
}
