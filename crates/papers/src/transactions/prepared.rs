//! Drives as experiments find them: with a namespace for each table, and on flash that was written before.
//!
//! ```text
//!   key_drive   table 1 -> namespace 1, of the design     table 2 -> namespace 2     ...     each with slots of its own
//!   wear_in     large values over and over, until every page was programmed so many times on average, and then dead
//! ```
//!
//! KAML, section V-A: "we preconditioned the device by filling the SSD with random data multiple times". What is written for that is a
//! small part of the drive, again and again, so that it takes no room afterwards: a key drive deletes it with its namespace, a block
//! drive has it at its end. So both sides begin with no more free blocks than collection keeps, and with hardly anything alive.
//!
//! What it does not do: tables for indexes other than `dram-hash`.

use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_measure::Observer;
use kvssd_sim::SimError;
use kvssd_types::{Command, Key, NamespaceId, Nanos, Pattern, PlacementHandle, Random, StoreCondition, Value};

/// The parameter that gives a table its size.
const TABLE_SIZE: &str = "flash_bytes_per_slot";
/// Bytes of an entry of a table, and with them the least value of that parameter.
const ENTRY_BYTES: u64 = 16;
/// Values that flash is worn in with, and the part of the drive that they have. Estimates.
const VALUE_BYTES: u32 = 64 << 10;
const PART: u64 = 64;
/// How often the observer is told, in values.
const REPORT_EVERY: u64 = 1 << 10;

/// A new drive of `design` with namespaces 1, 2 ... whose tables have so many slots; and when it is there.
///
/// # Errors
/// When the design has no such tables, or the drive no room for them.
pub fn key_drive(design: &Design, profile: &Profile, slots: &[u64]) -> Result<(Device, Nanos), SimError> {
    let size = |slots: u64| {
        let bytes = profile.geometry.raw_bytes() / slots.max(1);
        bytes.clamp(ENTRY_BYTES, u32::MAX.into()).to_string()
    };
    let (first, others) = slots.split_first().ok_or_else(|| SimError::Setup("a drive has a table".to_owned()))?;
    let mut design = design.clone();
    design.set(TABLE_SIZE, &size(*first))?;
    let mut device = Device::new(&design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
    let mut clock = Nanos::ZERO;
    for &slots in others {
        let parameters = vec![(TABLE_SIZE.to_owned(), size(slots))];
        let attributes = NamespaceAttributes { parameters, ..NamespaceAttributes::PLAIN };
        clock = device.create_namespace(attributes, clock).map_err(SimError::Drive)?.0;
    }
    Ok((device, clock))
}

/// Programs each page of a drive of `design` so many times on average, and leaves next to nothing; gives when that is done.
///
/// # Errors
/// When the drive fails, or the observer interrupts.
pub fn wear_in(
    device: &mut Device,
    design: &Design,
    times: u64,
    start: Nanos,
    observer: &mut dyn Observer,
) -> Result<Nanos, SimError> {
    let capacity_bytes = device.engine().utilization().capacity_bytes;
    let places = (capacity_bytes / PART / u64::from(VALUE_BYTES)).max(1);
    let end = capacity_bytes / u64::from(VALUE_BYTES);
    let mut clock = start;
    let mut worn = None;
    if design.takes_keys() {
        // Some more slots than places, so that no page of the table is full.
        let slots = (places * 4).max(4096);
        let size = device.profile().geometry.raw_bytes() / slots;
        let parameters = vec![(TABLE_SIZE.to_owned(), size.to_string())];
        let attributes = NamespaceAttributes { parameters, ..NamespaceAttributes::PLAIN };
        let (done, namespace) = device.create_namespace(attributes, clock).map_err(SimError::Drive)?;
        (clock, worn) = (done, Some(namespace));
    }
    let pages = times * device.profile().geometry.pages();
    let programs = |device: &Device| device.engine().flash_counters().programs.total();
    observer.begin(&format!("{} worn in", design.name), pages);
    let mut random = Random::new(times);
    for count in 1u64.. {
        if programs(device) >= pages {
            break;
        }
        let place = random.below(places);
        let value = Value::Pattern(Pattern { seed: count, offset: 0, length: VALUE_BYTES });
        let key = place.to_be_bytes();
        let command = match worn {
            Some(_) => Command::Store {
                key: Key::new(&key).expect("eight bytes are a key"),
                value,
                condition: StoreCondition::Always,
            },
            None => Command::Write {
                offset_bytes: (end - 1 - place) * u64::from(VALUE_BYTES),
                value,
                handle: PlacementHandle::DEFAULT,
            },
        };
        let completion = device.submit_in(worn.unwrap_or(NamespaceId::FIRST), command, clock);
        clock = completion.success().map_err(SimError::Drive)?;
        if count.is_multiple_of(REPORT_EVERY) {
            observer.progress(programs(device).min(pages));
            if observer.is_interrupted() {
                return Err(SimError::Interrupted);
            }
        }
    }
    if let Some(namespace) = worn {
        clock = device.delete_namespace(namespace, clock).map_err(SimError::Drive)?;
    }
    device.submit(Command::Flush, clock).success().map_err(SimError::Drive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_designs::BLOCK;
    use kvssd_measure::Quiet;
    use kvssd_types::{KvError, Reply};

    #[test]
    fn tables_have_the_slots_that_were_asked_for_and_pairs_of_their_own() {
        let design = kvssd_designs::named("kaml").unwrap();
        let profile = design.tiny_profile(&[("memory.dram_bytes", "4194304")]).unwrap();
        let (mut device, start) = key_drive(&design, &profile, &[1000, 5000]).unwrap();
        let slots = device.engine().index_counters().slots;
        let slots_per_page = u64::from(profile.geometry.page_bytes) / ENTRY_BYTES;
        assert!((6000..=6000 + 3 * slots_per_page).contains(&slots), "{slots}");
        let key = Key::new(b"12345678").unwrap();
        let command = Command::Store { key, value: Value::from(&b"second"[..]), condition: StoreCondition::Always };
        let stored = device.submit_in(NamespaceId(2), command, start);
        assert_eq!(stored.reply, Ok(Reply::Stored));
        let reply = device.submit(Command::Exist { key }, stored.done).reply;
        assert_eq!(reply, Err(KvError::KeyNotFound));
    }

    #[test]
    fn flash_is_written_and_hardly_anything_lives() {
        for design in [kvssd_designs::named("kaml").unwrap(), BLOCK] {
            let profile = design.tiny_profile(&[("memory.dram_bytes", "4194304")]).unwrap();
            let mut device = Device::new(&design, &profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
            let done = wear_in(&mut device, &design, 3, Nanos::ZERO, &mut Quiet).unwrap();
            assert!(device.engine().flash_counters().programs.total() >= 3 * profile.geometry.pages());
            // What was deleted goes in the background.
            let later = done + Nanos(1_000_000_000);
            let flushed = device.submit(Command::Flush, later);
            assert_eq!(flushed.reply, Ok(Reply::Flushed));
            let used = device.engine().utilization();
            let allowed = used.capacity_bytes / PART + u64::from(VALUE_BYTES) * 2;
            assert!(used.live_bytes <= allowed, "{}: {used:?}", design.name);
        }
    }
}
