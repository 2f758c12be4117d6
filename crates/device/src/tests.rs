//! What a command takes, and what a drive keeps.

use super::*;
use kvssd_flash::{Cause, PowerLoss, RopeBacking};
use kvssd_types::{NamespaceId, Pattern, Random, StoreCondition, Value};

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

#[test]
fn what_a_glance_sees_in_an_image_is_what_the_command_answers() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (cache_bytes, value_bytes_max)) in
        [(0, None), (64 << 10, None), (0, Some(4 << 20))].into_iter().enumerate()
    {
        let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
        let options = CreateDrive { cache_bytes, value_bytes_max, ..CreateDrive::default() };
        let path = folder.path().join(format!("{number}.kv"));
        let mut drive = Drive::create(path, &profile, &design, options).unwrap();
        let (mut random, mut glances) = (Random::new(7), 0);
        for step in 0..30_000 {
            let key = random.below(200).to_be_bytes();
            let key = Key::new(&key).unwrap();
            let length = [30, 500, 3_000, 9_000][random.below(4) as usize];
            let pattern = Pattern { seed: step, offset: 0, length };
            let part = (random.below(4_000) as u32, random.below(9_000) as u32);
            let command = match random.below(10) {
                0..4 => {
                    let value = Value::from(&Value::Pattern(pattern).to_vec()[..]);
                    Command::Store { key, value, condition: StoreCondition::Always }
                }
                4 => Command::Delete { key },
                5 => Command::Exist { key },
                6 => Command::Retrieve { key, offset_bytes: part.0, length_bytes: part.1 },
                _ => Command::Retrieve { key, offset_bytes: 0, length_bytes: u32::MAX },
            };
            let glance = drive.glance(NamespaceId::FIRST, &command);
            glances += u32::from(glance.is_some());
            let reply = drive.execute(command);
            assert!(glance.is_none_or(|seen| seen == reply), "step {step}, cache of {cache_bytes}");
        }
        assert!(glances > 6_000, "{glances} of some 15 000 looks");
        drive.close().unwrap();
    }
}
