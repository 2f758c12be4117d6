//! What takes its time behind what.

use crate::{Completion, LargeDevice, image_design, image_profile};
use kvssd_flash::{Profile, RopeBacking};
use kvssd_types::{Command, IteratorOptions, Key, Nanos, Reply, StoreCondition};

/// Whether a value lies in its record is known behind a look at it: a part of it takes the time of both.
#[test]
fn a_part_of_a_value_in_its_record_is_read_behind_the_look_at_it() {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let times_ns = |value_bytes_max: Option<u32>| {
        let backing = Box::new(RopeBacking::new(profile.geometry));
        let mut device = LargeDevice::new(&design, &profile, backing, value_bytes_max).unwrap();
        let mut now = Nanos::ZERO;
        let mut time_of = |command: Command<'_>| {
            now += Nanos(1_000_000_000);
            let Completion { done, reply, .. } = device.submit(command, now);
            reply.unwrap();
            (done - now).0
        };
        for number in 0..100u32 {
            let (name, value) = (number.to_be_bytes(), vec![7; 50_000]);
            let condition = StoreCondition::Always;
            time_of(Command::Store { key: Key::new(&name).unwrap(), value: (&*value).into(), condition });
        }
        let name = 3u32.to_be_bytes();
        let key = Key::new(&name).unwrap();
        [(0, 17), (40_000, 100)]
            .map(|(offset_bytes, length_bytes)| time_of(Command::Retrieve { key, offset_bytes, length_bytes }))
    };
    let ([look, part], [_, both]) = (times_ns(None), times_ns(Some(16 << 20)));
    assert!((look + part).abs_diff(both) < part / 10, "{look} and {part} are not {both}");
}

/// A drive whose out-of-band areas have no room for another namespace takes values that fit into records.
#[test]
fn where_records_hold_the_largest_value_no_namespace_is_added() {
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
    let device = |value_bytes_max| {
        let backing = Box::new(RopeBacking::new(profile.geometry));
        LargeDevice::new(&kvssd_designs::PLUS, &profile, backing, Some(value_bytes_max))
    };
    assert_eq!(device(1 << 20).unwrap().value_bytes_max(), 2 << 20);
    assert!(device(16 << 20).err().unwrap().to_string().contains("out-of-band bytes"));
}

#[test]
fn a_large_value_of_an_iterator_is_read_behind_the_answer_that_says_where_it_is() {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("pink").unwrap());
    let backing = Box::new(RopeBacking::new(profile.geometry));
    let mut device = LargeDevice::new(&design, &profile, backing, Some(16 << 20)).unwrap();
    let mut now = Nanos::ZERO;
    let mut answer = |command: Command<'_>| {
        now += Nanos(1_000_000_000);
        let Completion { done, reply, .. } = device.submit(command, now);
        ((done - now).0, reply.unwrap())
    };
    for number in 0..6u32 {
        let (name, value) = (number.to_be_bytes(), vec![7; 3_000_000]);
        let condition = StoreCondition::Always;
        answer(Command::Store { key: Key::new(&name).unwrap(), value: (&*value).into(), condition });
    }
    answer(Command::Flush);
    let name = 3u32.to_be_bytes();
    let key = Key::new(&name).unwrap();
    let [look, whole] =
        [0, u32::MAX].map(|length_bytes| answer(Command::Retrieve { key, offset_bytes: 0, length_bytes }).0);
    let [keys, values] = [true, false].map(|keys_only| {
        let options = IteratorOptions { keys_only, ..IteratorOptions::default() };
        let (_, Reply::IteratorCreated(iterator)) = answer(Command::CreateIterator { options }) else { panic!() };
        answer(Command::Seek { iterator, key: Some(key), pairs_max: 1 }).0
    });
    assert!(values >= keys + whole - look, "{values} is less than {keys} and {whole} - {look}");
}
