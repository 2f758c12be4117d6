//! A mount that the power ends, at each of many moments.

use crate::drive::{Medium, designs};
use kvssd_flash::{ByteBacking, PowerCut, PowerLoss, Profile};
use kvssd_ftl::{Design, DesignError, MountReport};
use kvssd_types::{BatchChange, Command, Key, NamespaceId, Nanos, Pattern, Random, StoreCondition, Value};
use std::sync::{Arc, Mutex};

const KEPT: &[u8] = b"kept";
const ROUNDS_MAX: u64 = 60;
/// Torn batches of a design.
const TORN: u64 = 2;
/// Moments of a mount at which the power goes.
const MOMENTS: u64 = 25;

fn value(seed: u64) -> Value {
    Value::Pattern(Pattern { seed, offset: 0, length: 40 })
}

fn powered(profile: &Profile, medium: &Medium, cut_at: Nanos) -> Box<PowerCut> {
    let random = Random::new(7);
    Box::new(PowerCut::new(Arc::clone(medium), profile.geometry, PowerLoss::Volatile, cut_at, random))
}

fn copy(medium: &Medium) -> Medium {
    Arc::new(Mutex::new(medium.lock().unwrap().clone()))
}

/// A mount that passes over a batch that was cut in two says so on flash. If the power goes within it, the next one must not take what was
/// said for the rest of a journal that is lost.
#[test]
fn a_volatile_drive_mounts_behind_a_mount_that_was_cut() {
    for design in designs().filter(|design| design.name != "block") {
        let profile = design.tiny_profile(&[("memory.power_loss", "volatile")]).unwrap();
        let torn = with_torn_batches(&design, &profile, |medium, whole| {
            for moment in 0..MOMENTS {
                let medium = copy(medium);
                let cut_at = Nanos(whole.took.0 * moment / MOMENTS);
                let cut = design.mount(&profile, powered(&profile, &medium, cut_at));
                assert!(matches!(cut, Err(DesignError::Drive(error)) if error.is_power_loss()), "{}", design.name);
                let (mut engine, report) = (design.mount(&profile, powered(&profile, &medium, Nanos::MAX)))
                    .unwrap_or_else(|error| panic!("{}, cut at {cut_at:?} of {:?}: {error}", design.name, whole.took));
                let key = Key::new(KEPT).unwrap();
                let retrieve = Command::Retrieve { key, offset_bytes: 0, length_bytes: 40 };
                assert!(engine.execute(retrieve, report.took).1.is_ok(), "{}", design.name);
            }
        });
        assert!(torn > 0, "{}: no batch was cut in two", design.name);
    }
}

/// Flushes a pair, changes others in batches, and shows the medium as it is when a mount finds a batch that was cut in two; returns how
/// often it was.
fn with_torn_batches(design: &Design, profile: &Profile, mut then: impl FnMut(&Medium, &MountReport)) -> u64 {
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let mut engine = design.build(profile, powered(profile, &medium, Nanos::MAX)).unwrap();
    let mut clock = Nanos::ZERO;
    let mut run = |command: Command<'_>| {
        engine.advance(clock).unwrap();
        let (done, reply) = engine.execute(command, clock);
        reply.unwrap();
        clock = done;
    };
    run(Command::Store { key: Key::new(KEPT).unwrap(), value: value(0), condition: StoreCondition::Always });
    run(Command::Flush);
    let keys: Vec<[u8; 2]> = (0..30u16).map(u16::to_be_bytes).collect();
    let mut torn = 0;
    for round in 1..=ROUNDS_MAX {
        if torn == TORN {
            break;
        }
        let change =
            |key| BatchChange { namespace: NamespaceId::FIRST, key: Key::new(key).unwrap(), value: Some(value(round)) };
        let changes: Vec<BatchChange<'_>> = keys.iter().map(|key| change(key)).collect();
        run(Command::Batch { changes: &changes });
        let left = copy(&medium);
        let report = design.mount(profile, powered(profile, &copy(&left), Nanos::MAX)).unwrap().1;
        if report.has_torn_batch {
            torn += 1;
            then(&left, &report);
        }
    }
    torn
}
