//! Stores that are answered before their keys are looked up: who waits, and that nothing is had for nothing.

use kvssd_conformance::{Drive, Medium};
use kvssd_designs::DESIGNS;
use kvssd_ftl::Design;
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Nanos, Reply, StoreCondition, Value};

/// Less than any read of flash takes, and more than any store that waits for none.
const READ: Nanos = Nanos(20_000);

/// A drive of 400 pairs, all of them in flash, long ago.
fn drive(design: &Design, stores_behind_max: &str) -> Drive {
    let mut design = design.clone();
    design.set("stores_behind_max", stores_behind_max).unwrap();
    design.compares_later = false;
    let mut drive = Drive::of(&design, Medium::Ropes, &[]);
    for number in 0..400u32 {
        drive.store(&number.to_be_bytes(), 2000).unwrap();
    }
    drive.clock.0 += 1_000_000_000;
    drive
}

/// How long commands take that all arrive now.
fn take(drive: &mut Drive, commands: &[Command<'_>]) -> Vec<Nanos> {
    let now = drive.clock;
    drive.engine.advance(now).unwrap();
    let executed = commands.iter().map(|command| drive.engine.execute(command.clone(), now));
    executed
        .map(|(done, reply)| {
            assert!(!matches!(reply, Err(KvError::Failed(_))), "{reply:?}");
            done - now
        })
        .collect()
}

fn store(number: &[u8], condition: StoreCondition) -> Command<'_> {
    Command::Store { key: Key::new(number).unwrap(), value: Value::from(&[7; 100][..]), condition }
}

#[test]
fn a_store_waits_for_its_look_up_only_where_the_design_says_so_or_its_answer_needs_it() {
    for design in DESIGNS.iter().filter(|design| !["dram-hash", "lsm"].contains(&design.index.plan().name())) {
        let mut reads = Vec::new();
        for (stores_behind_max, waits) in [("0", true), ("8", false)] {
            let mut drive = drive(design, stores_behind_max);
            let before = drive.engine.flash_counters().reads.total();
            let keys = [1u32, 2, 3].map(u32::to_be_bytes);
            let took = take(&mut drive, &[store(&keys[0], StoreCondition::Always)]);
            assert_eq!(took[0] > READ, waits, "{}: {took:?}", design.name);
            drive.clock.0 += 1_000_000;
            let took = take(&mut drive, &[store(&keys[1], StoreCondition::IfExists)]);
            assert!(took[0] > READ, "{}: its answer says whether the key is there: {took:?}", design.name);
            drive.clock.0 += 1_000_000;
            let took = take(&mut drive, &[store(&keys[2], StoreCondition::Always), Command::Flush]);
            assert!(took[1] > READ, "{}: a flush waits for all: {took:?}", design.name);
            reads.push(drive.engine.flash_counters().reads.total() - before);
        }
        assert!(reads[0] == reads[1] && reads[0] >= 3, "{}: the same is read: {reads:?}", design.name);
    }
}

#[test]
fn no_more_stores_are_behind_than_may_be_and_the_others_wait_for_their_own_look_up() {
    let mut drive = drive(&kvssd_designs::TESSERA, "4");
    let keys: Vec<[u8; 4]> = (10u32..22).map(u32::to_be_bytes).collect();
    let commands: Vec<Command<'_>> = keys.iter().map(|key| store(key, StoreCondition::Always)).collect();
    for _ in 0..2 {
        let took = take(&mut drive, &commands);
        let waits: Vec<bool> = took.iter().map(|&took| took > READ).collect();
        assert_eq!((&waits[..4], &waits[4..]), (&[false; 4][..], &[true; 8][..]), "{took:?}");
        for key in &keys {
            let wanted = Command::Retrieve { key: Key::new(key).unwrap(), offset_bytes: 0, length_bytes: 100 };
            let (_, reply) = drive.engine.execute(wanted, drive.clock);
            assert!(matches!(reply, Ok(Reply::Retrieved { value_bytes: 100, .. })), "{reply:?}");
        }
        // Until what was stored is in flash.
        assert!(take(&mut drive, &[Command::Flush])[0] > READ);
        drive.clock.0 += 1_000_000_000;
    }
}

/// What finds nothing to change was looked up all the same.
#[test]
fn a_batch_takes_as_much_room_as_it_has_keys() {
    let mut drive = drive(&kvssd_designs::TESSERA, "8");
    let numbers: Vec<[u8; 4]> = (0..36u32).map(u32::to_be_bytes).collect();
    let change = |number, value| BatchChange { namespace: NamespaceId::FIRST, key: Key::new(number).unwrap(), value };
    let all = |from: usize, count: usize| -> Vec<BatchChange<'_>> {
        numbers[from..from + count].iter().map(|number| change(number, Some(Value::from(&[7; 100][..])))).collect()
    };
    let gone: Vec<BatchChange<'_>> = numbers[30..36].iter().map(|number| change(number, None)).collect();
    for number in &numbers[30..36] {
        drive.delete(number).unwrap();
    }
    drive.clock.0 += 1_000_000_000;
    let (large, small, more) = (all(0, 9), all(10, 2), all(20, 1));
    let took = take(&mut drive, &[&large, &gone, &small, &more].map(|changes| Command::Batch { changes }));
    // Nine are more than ever have room. Six whose keys are not there have, and two beside them, but none beside those.
    let waits: Vec<bool> = took.iter().map(|&took| took > READ).collect();
    assert_eq!(waits, [true, false, false, true], "{took:?}");
}
