//! What a command takes, and what a drive keeps.

use super::*;
use kvssd_flash::{Cause, PowerLoss, RopeBacking};
use kvssd_types::{Pattern, StoreCondition, Value};

fn device() -> Device {
    device_with(PowerLoss::Ignored)
}

fn device_with(power_loss: PowerLoss) -> Device {
    let mut profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 256.0).unwrap();
    profile.memory.power_loss = power_loss;
    let design = kvssd_designs::named("original").unwrap();
    Device::new(&design, &profile, Box::new(RopeBacking::new(profile.geometry))).unwrap()
}

fn store(device: &mut Device, key: &[u8], length: u32, arrival: Nanos) -> Completion {
    let value = Value::Pattern(Pattern { seed: 1, offset: 0, length });
    device.submit(Command::Store { key: Key::new(key).unwrap(), value, condition: StoreCondition::Always }, arrival)
}

#[test]
fn a_retrieve_pays_the_pipeline_the_flash_and_the_link() {
    let mut device = device();
    store(&mut device, b"key", 1000, Nanos::ZERO);
    device.submit(Command::Flush, Nanos(1));
    let arrival = Nanos(1_000_000_000);
    let retrieve = |length_bytes| Command::Retrieve { key: Key::new(b"key").unwrap(), offset_bytes: 0, length_bytes };
    let done = device.submit(retrieve(1000), arrival).done - arrival;
    let costs = device.profile().core_costs;
    let cores = costs.command_ns + costs.hash_ns + costs.section_ns + costs.comparison_ns;
    // Row 0 of a block is the fast level; the comparison of the keys comes after the read.
    let expected = 21_500 + cores + 29_760 + 4_883 + costs.key_compare_ns + 284;
    assert_eq!(done, Nanos(expected));
    assert!(device.submit(retrieve(0), Nanos(2_000_000_000)).done.0 - 2_000_000_000 < expected);
}

#[test]
fn only_a_drive_that_can_be_mounted_writes_a_journal() {
    let journal_pages = |power_loss| {
        let mut device = device_with(power_loss);
        store(&mut device, b"key", 1000, Nanos::ZERO);
        device.submit(Command::Flush, Nanos(1));
        device.engine().flash_counters().programs[Cause::Journal]
    };
    assert_eq!(journal_pages(PowerLoss::Ignored), 0);
    assert!(journal_pages(PowerLoss::Volatile) > 0 && journal_pages(PowerLoss::Protected) > 0);
}

#[test]
fn the_link_carries_one_value_after_the_other() {
    let mut device = device();
    let one = store(&mut device, b"a", 1 << 20, Nanos::ZERO).done;
    let two = store(&mut device, b"b", 1 << 20, Nanos::ZERO).done;
    assert!(two >= one && two - Nanos::ZERO >= device.profile().link_time(2 << 20));
}

#[test]
#[should_panic(expected = "in the order of their arrival")]
fn time_does_not_go_back() {
    let mut device = device();
    device.submit(Command::Flush, Nanos(5));
    device.submit(Command::Flush, Nanos(4));
}
