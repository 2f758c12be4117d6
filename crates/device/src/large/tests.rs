//! Large values against a plain map: cut short at every step, shown to iterators, on a full drive.

mod iterators;
mod times;

use super::*;
use crate::clocked::Clocked;
use crate::records::Origin;
use crate::{Device, image_design, image_profile};
use kvssd_flash::RopeBacking;
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{ClientId, IteratorOptions, Nanos, Pattern, Random};

const FIRST: NamespaceId = NamespaceId::FIRST;
const VALUE_BYTES_MAX: u32 = 8 << 20;

fn drive(design: &str) -> Clocked {
    let (design, profile) = (image_design(design).unwrap(), image_profile(64 << 20).unwrap());
    let backing = Box::new(RopeBacking::new(profile.geometry));
    Clocked::new(Device::new(&design, &profile, backing).unwrap(), Nanos::ZERO)
}

fn open(drive: &mut Clocked) -> LargeValues {
    LargeValues::open(VALUE_BYTES_MAX, drive, false).unwrap()
}

/// A value that says whose it is.
fn value(seed: u64, length: u32) -> Value {
    Value::Bytes(Value::Pattern(Pattern { seed, offset: 0, length }).to_vec().into())
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key::new(bytes).unwrap()
}

fn store<'a>(name: &'a [u8], value: &Value) -> Command<'a> {
    Command::Store { key: key(name), value: value.clone(), condition: StoreCondition::Always }
}

fn read(large: &mut LargeValues, records: &mut dyn Records, name: &[u8]) -> Option<Value> {
    let command = Command::Retrieve { key: key(name), offset_bytes: 0, length_bytes: u32::MAX };
    match large.execute(records, FIRST, command) {
        Ok(Reply::Retrieved { value, value_bytes }) => {
            assert_eq!(value.len(), value_bytes as usize);
            Some(value)
        }
        Err(KvError::KeyNotFound) => None,
        other => panic!("{other:?}"),
    }
}

/// Segments that there are, of whatever value.
fn segments(drive: &Clocked, large: &LargeValues) -> u64 {
    let shadow = large.shadow(FIRST).unwrap().id;
    let info = drive.device.engine().namespaces().into_iter().find(|info| info.id == shadow).unwrap();
    info.utilization.pairs.saturating_sub(1)
}

impl LargeValues {
    fn execute(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        command: Command<'_>,
    ) -> Result<Reply, KvError> {
        self.execute_as(records, (None, namespace), command)
    }
}

/// A drive whose commands fail when a test says so.
struct Meddled<'a, F> {
    drive: &'a mut Clocked,
    fail: F,
}

impl<F: FnMut(NamespaceId, &Command<'_>) -> Result<(), KvError>> Records for Meddled<'_, F> {
    fn engine(&self) -> &Engine {
        self.drive.engine()
    }

    fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.drive.engine_mut()
    }

    fn execute_as(&mut self, origin: Origin, command: Command<'_>) -> Result<Reply, KvError> {
        (self.fail)(origin.1, &command)?;
        self.drive.execute_as(origin, command)
    }
}

fn damaged() -> KvError {
    KvError::Unrecovered("a page is damaged".to_owned())
}

#[test]
fn values_of_any_size_come_back_whole_and_in_part() {
    for design in ["plus", "pink", "kaml"] {
        let mut drive = drive(design);
        let mut large = open(&mut drive);
        let (half, segment) = (large.inline_bytes_max(), large.segment_bytes);
        for length in [0, 1, 4096, half, half + 1, segment, segment + 1, 3 * segment, VALUE_BYTES_MAX] {
            let whole = value(length.into(), length);
            large.execute(&mut drive, FIRST, store(b"key", &whole)).unwrap();
            assert!(read(&mut large, &mut drive, b"key").as_ref() == Some(&whole), "{length} bytes, {design}");
            for (offset, wanted) in
                [(0, 7), (1, 5), (segment - 3, 9), (length / 2, u32::MAX), (length, 1), (u32::MAX, 1)]
            {
                let command = Command::Retrieve { key: key(b"key"), offset_bytes: offset, length_bytes: wanted };
                let end = offset.saturating_add(wanted).min(length);
                let part = whole.slice(offset.min(end) as usize..end as usize);
                let reply = large.execute(&mut drive, FIRST, command);
                assert!(reply == Ok(Reply::Retrieved { value: part, value_bytes: length }), "{length} from {offset}");
            }
        }
        let refused = large.execute(&mut drive, FIRST, store(b"key", &value(1, VALUE_BYTES_MAX + 1)));
        let (value_bytes, value_bytes_max) = (u64::from(VALUE_BYTES_MAX) + 1, VALUE_BYTES_MAX.into());
        assert_eq!(refused, Err(KvError::InvalidValueSize { value_bytes, value_bytes_max }));
        large.execute(&mut drive, FIRST, Command::Delete { key: key(b"key") }).unwrap();
        assert!(read(&mut large, &mut drive, b"key").is_none() && segments(&drive, &large) == 0);
    }
}

/// Whatever the process was doing when it ended: a key has what it had or what it was to get, and no segment is left over.
#[test]
fn whatever_step_is_the_last_a_key_has_one_of_its_values() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let segment = large.segment_bytes;
    let lengths = [3 * segment, 10, 2 * segment + 5, 2 * segment, 0, segment];
    let mut now = None;
    let client = ClientId([3; 32]);
    drive.open_client(client).unwrap();
    for (turn, &length) in lengths.iter().enumerate() {
        let request = RequestId { client, serial: turn as u64 + 1 };
        let next = (turn != 4).then(|| value(turn as u64, length));
        for left in 0.. {
            // So many commands are let through, and then the process ends.
            let mut through: u32 = left;
            let fail = |_, _: &Command<'_>| {
                through = through.checked_sub(1).ok_or(KvError::PowerLost)?;
                Ok(())
            };
            let mut ending = Meddled { drive: &mut drive, fail };
            let command = next.as_ref().map_or(Command::Delete { key: key(b"key") }, |next| store(b"key", next));
            let ended = large.execute_as(&mut ending, (Some(request), FIRST), command.clone());
            large = open(&mut drive);
            let found = read(&mut large, &mut drive, b"key");
            // It is known as made from the moment on in which the key has what it was to get.
            let is_made = drive.device.engine().recognize(request, &command).is_some();
            assert_eq!(is_made, found == next && now != next, "turn {turn}, {left} steps");
            let owned = found
                .as_ref()
                .filter(|value| value.len() > 10)
                .map_or(0, |value| (value.len() as u32).div_ceil(segment));
            assert_eq!(segments(&drive, &large), owned.into(), "turn {turn}, {left} steps");
            if ended.is_ok() || ended == Err(KvError::KeyNotFound) {
                assert!(found == next, "turn {turn}");
                break;
            }
            if is_made {
                break;
            }
            assert!(found == now || found == next, "turn {turn}, {left} steps");
            now = found;
            assert!(left < 100);
        }
        now = next;
    }
}

#[test]
fn a_drive_that_is_full_refuses_and_keeps_what_it_has() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let names: Vec<[u8; 1]> = (0..40).map(|name| [name]).collect();
    let stored = |name: &[u8; 1]| value(name[0].into(), 5 << 20);
    let full = names.iter().position(|name| large.execute(&mut drive, FIRST, store(name, &stored(name))).is_err());
    let full = full.expect("40 values of 5 MiB do not fit 64 MiB");
    assert!(full >= 4);
    let before = segments(&drive, &large);
    for _ in 0..3 {
        let refused = large.execute(&mut drive, FIRST, store(b"more", &value(99, 8 << 20)));
        assert_eq!((refused, segments(&drive, &large)), (Err(KvError::CapacityExceeded), before));
    }
    for name in &names[..full] {
        assert!(read(&mut large, &mut drive, name) == Some(stored(name)), "{name:?}");
        large.execute(&mut drive, FIRST, Command::Delete { key: key(name) }).unwrap();
    }
    assert_eq!(segments(&drive, &large), 0);
    large.execute(&mut drive, FIRST, store(b"more", &value(99, 8 << 20))).unwrap();
}

#[test]
fn conditions_and_batches_know_large_values() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let (big, small) = (value(1, 3 << 20), value(2, 100));
    let mut when = |condition, value: &Value| {
        large.execute(&mut drive, FIRST, Command::Store { key: key(b"a"), value: value.clone(), condition })
    };
    assert_eq!(when(StoreCondition::IfExists, &big), Err(KvError::KeyNotFound));
    when(StoreCondition::IfAbsent, &big).unwrap();
    assert_eq!(when(StoreCondition::IfAbsent, &small), Err(KvError::KeyExists));
    assert_eq!(when(StoreCondition::IfAbsent, &big), Err(KvError::KeyExists));
    large.execute(&mut drive, FIRST, store(b"b", &big)).unwrap();
    let change = |name, value| BatchChange { namespace: FIRST, key: key(name), value };
    let refused = large.execute(&mut drive, FIRST, Command::Batch { changes: &[change(b"a", Some(big.clone()))] });
    assert!(matches!(refused, Err(KvError::BatchValueTooLarge { .. })), "{refused:?}");
    let changes = [change(b"a", Some(small.clone())), change(b"b", None), change(b"c", Some(small.clone()))];
    large.execute(&mut drive, FIRST, Command::Batch { changes: &changes }).unwrap();
    assert_eq!(
        [b"a", b"b", b"c"].map(|name| read(&mut large, &mut drive, name)),
        [Some(small.clone()), None, Some(small)]
    );
    assert_eq!(segments(&drive, &large), 0);
}

#[test]
fn a_namespace_goes_with_its_large_values_and_hosts_see_no_shadow() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let seen = |drive: &Clocked, large: &LargeValues| large.namespaces(drive.device.engine().namespaces());
    let second = large.create_namespace(&mut drive, None, &NamespaceAttributes::PLAIN).unwrap();
    large.execute(&mut drive, second, store(b"key", &value(1, 6 << 20))).unwrap();
    let infos = seen(&drive, &large);
    assert_eq!(infos.iter().map(|info| info.id).collect::<Vec<_>>(), [FIRST, second]);
    assert!(infos[1].utilization.pairs == 1 && infos[1].utilization.record_bytes >= 6 << 20, "{infos:?}");
    let shadow = large.shadow(second).unwrap().id;
    let command = || Command::Exist { key: key(b"ledger") };
    assert_eq!(large.execute(&mut drive, shadow, command()), Err(KvError::NoSuchNamespace(shadow)));
    assert_eq!(large.delete_namespace(&mut drive, shadow), Err(KvError::NoSuchNamespace(shadow)));
    // The process ends between the two.
    drive.delete_namespace(second).unwrap();
    let large = open(&mut drive);
    drive.finish_removal().unwrap();
    assert_eq!(seen(&drive, &large).len(), 1);
    assert!(drive.device.engine().utilization().pairs <= 1, "nothing is left of it");
}

#[test]
fn many_changes_leave_what_a_map_has() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let mut random = Random::new(1);
    let mut map: BTreeMap<u8, Value> = BTreeMap::new();
    for turn in 0..300 {
        let name = random.below(5) as u8;
        if random.below(4) == 0 {
            let deleted = large.execute(&mut drive, FIRST, Command::Delete { key: key(&[name]) });
            assert_eq!(deleted.is_ok(), map.remove(&name).is_some());
        } else {
            let length = [100, 200_000, 2 << 20, 4 << 20][random.below(4) as usize] as u32;
            let stored = value(turn, length + random.below(9) as u32);
            match large.execute(&mut drive, FIRST, store(&[name], &stored)) {
                Ok(_) => drop(map.insert(name, stored)),
                Err(error) => assert_eq!(error, KvError::CapacityExceeded),
            }
        }
        if turn % 50 == 0 {
            large = open(&mut drive);
        }
        let found = read(&mut large, &mut drive, &[name]);
        assert!(found.as_ref() == map.get(&name), "turn {turn}");
    }
    drive.device.engine().check_invariants();
    assert!(map.len() > 1);
}

#[test]
fn a_reader_sees_no_segments_whose_namespace_has_gone() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let second = large.create_namespace(&mut drive, None, &NamespaceAttributes::PLAIN).unwrap();
    // The process ends between the two, and the next only reads.
    drive.delete_namespace(second).unwrap();
    let large = LargeValues::open(VALUE_BYTES_MAX, &mut drive, true).unwrap();
    let seen = large.namespaces(drive.device.engine().namespaces());
    assert_eq!(seen.iter().map(|info| info.id).collect::<Vec<_>>(), [FIRST]);
}

#[test]
fn segments_that_cannot_be_deleted_keep_no_others() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let big = value(1, 2 << 20);
    let names = [&b"a"[..], b"b", b"c"];
    for name in names {
        large.execute(&mut drive, FIRST, store(name, &big)).unwrap();
    }
    let each = segments(&drive, &large) / names.len() as u64;
    // The first value's cannot be deleted.
    let fail = |_, command: &Command<'_>| match command {
        Command::Delete { key } if key.bytes() == segment_key(0, 0) => Err(damaged()),
        _ => Ok(()),
    };
    let mut stuck = Meddled { drive: &mut drive, fail };
    for name in names {
        large.execute(&mut stuck, FIRST, Command::Delete { key: key(name) }).unwrap();
    }
    assert_eq!(segments(&drive, &large), each, "those of the first are left");
    let large = open(&mut drive);
    assert_eq!(segments(&drive, &large), 0);
}

#[test]
fn a_quota_is_that_of_small_values_and_large_ones_together() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let quota_bytes = 8 << 20;
    let attributes = NamespaceAttributes { quota_bytes: Some(quota_bytes), ..NamespaceAttributes::PLAIN };
    let namespace = large.create_namespace(&mut drive, None, &attributes).unwrap();
    let mut stored = 0;
    for turn in 0..200u32 {
        let length = if turn % 40 == 0 { 2 << 20 } else { 64 << 10 };
        let name = turn.to_be_bytes();
        stored += u32::from(large.execute(&mut drive, namespace, store(&name, &value(1, length))).is_ok());
        let refused = large.execute(&mut drive, namespace, store(&name, &value(2, length)));
        assert!(refused.is_ok() || refused == Err(KvError::CapacityExceeded));
        let info = large.namespaces(drive.device.engine().namespaces()).into_iter().find(|info| info.id == namespace);
        let utilization = info.unwrap().utilization;
        assert!(
            utilization.record_bytes <= quota_bytes && utilization.capacity_bytes == quota_bytes,
            "{utilization:?}"
        );
    }
    assert!((20..200).contains(&stored), "{stored}");
    // What takes no more than it frees is welcome, and a batch is bound as well.
    large.execute(&mut drive, namespace, store(&1u32.to_be_bytes(), &value(3, 64 << 10))).unwrap();
    let names: Vec<[u8; 4]> = (1000..1100u32).map(u32::to_be_bytes).collect();
    let change = |name| BatchChange { namespace, key: Key::new(name).unwrap(), value: Some(value(4, 4 << 10)) };
    let changes: Vec<BatchChange<'_>> = names.iter().map(|name| change(name)).collect();
    let refused = large.execute(&mut drive, namespace, Command::Batch { changes: &changes });
    assert_eq!(refused, Err(KvError::CapacityExceeded));
}

#[test]
fn what_waits_for_an_answer_is_done_after_it() {
    let mut drive = drive("plus");
    let mut large = open(&mut drive);
    let segment = large.segment_bytes;
    large.execute(&mut drive, FIRST, store(b"large", &value(1, segment))).unwrap();
    large.execute(&mut drive, FIRST, Command::Flush).unwrap();
    let mut took = |at: u64, namespace, command: Command<'_>, direct: bool| {
        let mut arrival = drive.arrive(Nanos(at));
        let reply =
            if direct { arrival.execute(namespace, command) } else { large.execute(&mut arrival, namespace, command) };
        reply.unwrap();
        arrival.done() - Nanos(at)
    };
    let retrieve = |name| Command::Retrieve { key: Key::new(name).unwrap(), offset_bytes: 0, length_bytes: segment };
    const LATER: u64 = 1_000_000_000_000;
    let (shadow, segment_name) = (NamespaceId(2), segment_key(0, 0));
    let manifest = took(LATER, FIRST, retrieve(b"large"), true);
    let part = took(2 * LATER, shadow, retrieve(&segment_name), true);
    let whole = took(3 * LATER, FIRST, retrieve(b"large"), false);
    assert!(whole >= manifest + part, "{whole:?} is less than {manifest:?} and {part:?}");
    assert!(whole.0 < 2 * (manifest + part).0);
}

#[test]
fn where_iterators_keep_too_much_the_oldest_is_ended() {
    let mut drive = drive("iter");
    let mut large = open(&mut drive);
    let mut begin = |large: &mut LargeValues| {
        let options = IteratorOptions::default();
        let Ok(Reply::IteratorCreated(iterator)) =
            large.execute(&mut drive, FIRST, Command::CreateIterator { options })
        else {
            panic!("there is no iterator");
        };
        iterator
    };
    let (old, young) = (begin(&mut large), begin(&mut large));
    let shadow = large.shadow_mut(FIRST).unwrap();
    shadow.ledger.unowned = (1000..1000 + UNOWNED_MAX as u64).map(|id| (id, 1)).collect();
    shadow.shown = (1000..1000 + UNOWNED_MAX as u64).map(|id| (id, old)).collect();
    large.execute(&mut drive, FIRST, store(b"key", &value(1, 3 << 20))).unwrap();
    assert!(large.shadow(FIRST).unwrap().ledger.unowned.is_empty());
    for (iterator, answer) in [(old, Err(KvError::IteratorExpired(old))), (young, Ok(Reply::Pairs(Vec::new())))] {
        let next = large.execute(&mut drive, FIRST, Command::Seek { iterator, key: None, pairs_max: 1 });
        assert_eq!(next, answer);
    }
}
