//! Changes that come again are made once, in whichever life of the drive.

use crate::{create, designs, key, reopened, retrieve};
use kvssd_device::Drive;
use kvssd_types::{BatchChange, ClientId, Command, KvError, NamespaceId, Reply, RequestId, StoreCondition, Value};

const FIRST: NamespaceId = NamespaceId::FIRST;
const CLIENT: ClientId = ClientId([1; 32]);
const OTHER: ClientId = ClientId([2; 32]);

fn store<'a>(name: &'a [u8], value: &[u8], condition: StoreCondition) -> Command<'a> {
    Command::Store { key: key(name), value: Value::from(value), condition }
}

fn request(client: ClientId, serial: u64) -> Option<RequestId> {
    Some(RequestId { client, serial })
}

#[test]
fn a_change_that_comes_again_after_the_drive_was_killed_or_closed_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    for (design, in_order) in designs().flat_map(|design| [(design, false), (design, true)]) {
        let path = folder.path().join(format!("{design}-{in_order}.kv"));
        let mut drive = create(&path, design, Some(8 << 20));
        let since = drive.open_client(CLIENT).unwrap();
        let (always, absent) = (StoreCondition::Always, StoreCondition::IfAbsent);
        let large = vec![5; 5 << 20];
        let changes = [BatchChange { namespace: FIRST, key: key(b"batch"), value: Some(Value::from(&b"old"[..])) }];
        drive.execute(store(b"gone", b"x", always)).unwrap();
        let requests = [
            (store(b"a", b"old", always), Reply::Stored),
            (store(b"new", b"old", absent), Reply::Stored),
            (Command::Delete { key: key(b"gone") }, Reply::Deleted),
            (store(b"large", &large, always), Reply::Stored),
            (Command::Batch { changes: &changes }, Reply::Batched),
        ];
        for (number, (command, reply)) in requests.iter().enumerate() {
            let done = drive.execute_as(request(CLIENT, number as u64 + 1), FIRST, command.clone());
            assert_eq!(done.as_ref(), Ok(reply), "{design}");
        }
        assert_eq!(retrieve(&mut drive, b"large"), Some(large.clone()));
        // Somebody else comes in between.
        for name in [&b"a"[..], b"new", b"gone", b"large", b"batch"] {
            drive.execute(store(name, b"newer", always)).unwrap();
        }
        let mut drive = reopened(drive, &path, in_order);
        assert_eq!(drive.open_client(CLIENT), Ok(since), "{design}");
        for (number, (command, reply)) in requests.iter().enumerate() {
            let again = drive.execute_as(request(CLIENT, number as u64 + 1), FIRST, command.clone());
            assert_eq!(again.as_ref(), Ok(reply), "{design}, {in_order}, request {number}");
        }
        for name in [&b"a"[..], b"new", b"gone", b"large", b"batch"] {
            assert_eq!(retrieve(&mut drive, name).unwrap(), b"newer", "{design}, {in_order}");
        }
        drive.close().unwrap();
        assert!(Drive::check(&path).unwrap().findings.is_empty(), "{design}");
    }
}

#[test]
fn what_was_executed_and_not_committed_is_neither_there_nor_known() {
    let folder = tempfile::tempdir().unwrap();
    for design in designs() {
        let path = folder.path().join(design);
        let mut drive = create(&path, design, None);
        drive.open_client(CLIENT).unwrap();
        drive.hold_commits(true);
        drive.execute_as(request(CLIENT, 1), FIRST, store(b"a", b"1", StoreCondition::Always)).unwrap();
        drive.commit().unwrap();
        drive.execute_as(request(CLIENT, 2), FIRST, store(b"b", b"1", StoreCondition::Always)).unwrap();
        let mut drive = reopened(drive, &path, false);
        assert_eq!(
            (retrieve(&mut drive, b"a").is_some(), retrieve(&mut drive, b"b").is_some()),
            (true, false),
            "{design}"
        );
        drive.execute_as(request(CLIENT, 2), FIRST, store(b"b", b"1", StoreCondition::Always)).unwrap();
        assert_eq!(retrieve(&mut drive, b"b").unwrap(), b"1", "{design}");
    }
}

#[test]
fn what_is_refused_is_tried_again_and_what_is_too_old_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let mut drive = create(&path, "plus", None);
    let again = |drive: &mut Drive, client, serial, condition| {
        drive.execute_as(request(client, serial), FIRST, store(b"a", &serial.to_le_bytes(), condition))
    };
    let (always, exists) = (StoreCondition::Always, StoreCondition::IfExists);
    assert_eq!(again(&mut drive, CLIENT, 1, always), Err(KvError::RequestForgotten), "nobody knows the client");
    let since = drive.open_client(CLIENT).unwrap();
    assert_eq!(again(&mut drive, CLIENT, 1, exists), Err(KvError::KeyNotFound));
    drive.execute(store(b"a", b"", always)).unwrap();
    assert_eq!(again(&mut drive, CLIENT, 1, exists), Ok(Reply::Stored));
    assert_eq!(again(&mut drive, CLIENT, 1 + RequestId::WINDOW, always), Ok(Reply::Stored));
    assert_eq!(again(&mut drive, CLIENT, 1, always), Err(KvError::RequestForgotten));
    assert_eq!(again(&mut drive, CLIENT, 2, always), Ok(Reply::Stored));
    let mut drive = reopened(drive, &path, false);
    assert_eq!(again(&mut drive, CLIENT, 1, always), Err(KvError::RequestForgotten));
    // Clients that come and go push it out.
    for number in 0..300u16 {
        let mut id = [9; 32];
        id[..2].copy_from_slice(&number.to_le_bytes());
        drive.open_client(ClientId(id)).unwrap();
    }
    assert_eq!(again(&mut drive, CLIENT, 2, always), Err(KvError::RequestForgotten));
    let mut drive = reopened(drive, &path, false);
    assert!(drive.open_client(CLIENT).unwrap() > since + 300);
}

#[test]
fn requests_are_known_over_checkpoints_and_thousands_of_changes() {
    let folder = tempfile::tempdir().unwrap();
    for design in ["plus", "pink"] {
        let path = folder.path().join(design);
        let mut drive = create(&path, design, None);
        drive.open_client(OTHER).unwrap();
        drive.open_client(CLIENT).unwrap();
        let value = |serial: u64| serial.to_le_bytes().repeat(40);
        for serial in 1..=20_000u64 {
            let name = (serial % 700).to_le_bytes();
            drive
                .execute_as(request(CLIENT, serial), FIRST, store(&name, &value(serial), StoreCondition::Always))
                .unwrap();
            if serial % 6000 == 0 {
                drive = reopened(drive, &path, serial % 12_000 == 0);
            }
        }
        let mut drive = reopened(drive, &path, false);
        for serial in 1..=20_000u64 {
            let name = (serial % 700).to_le_bytes();
            let again =
                drive.execute_as(request(CLIENT, serial), FIRST, store(&name, b"twice", StoreCondition::Always));
            let is_known = serial + RequestId::WINDOW > 20_000;
            assert_eq!(again, if is_known { Ok(Reply::Stored) } else { Err(KvError::RequestForgotten) }, "{serial}");
        }
        for number in 0..700u64 {
            let last = (20_000 - 699..=20_000).find(|serial| serial % 700 == number).unwrap();
            assert_eq!(retrieve(&mut drive, &number.to_le_bytes()).unwrap(), value(last));
        }
    }
}
