//! Namespaces by their names: made, deleted and listed by hosts, and what other hosts notice of it.

use crate::host::{Got, HOST_NQN, Heard, Host, NQN, PATIENCE, Queue, Target, admin_connect, inside, key};
use kvssd_device::Drive;
use kvssd_flash::OpenOptions;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage};
use kvssd_nvme_spec::command::{DataPointer, NAMESPACE_ALL};
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, DISCOVERY_NQN};
use kvssd_nvme_spec::features::{EVENT_NAMESPACES, event, feature};
use kvssd_nvme_spec::identify::{IdentifyNamespace, cns, read_namespace_list};
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::log_page::page;
use kvssd_nvme_spec::named::{
    CreateNamespace, FLAG_ORDERED, NamespaceEntry, SIGNATURE, SetCache, read_name, read_namespaces, set_meant_birth,
};
use kvssd_nvme_spec::pdu::Pdu;
use kvssd_nvme_spec::{Status, write_text};
use kvssd_nvme_target::{HostRights, Namespaces, Rights, SubsystemOptions};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use zerocopy::IntoBytes;

/// Sees namespace 1, and what it is given.
const GUEST: &str = "nqn.guest";
/// Sees everything, and makes nothing.
const READER: &str = "nqn.reader";

fn wanted(name: &str) -> CreateNamespace {
    let mut wanted = CreateNamespace::zeroed();
    write_text(&mut wanted.name, name);
    wanted
}

fn try_create(admin: &mut Queue, data: &[u8]) -> Got {
    admin.ask(AdminCommand::CreateNamespace.entry(0).with_data(inside(data)), data)
}

fn create(admin: &mut Queue, wanted: &CreateNamespace) -> u32 {
    let got = try_create(admin, wanted.as_bytes());
    assert_eq!(got.status(), Status::Success);
    got.entry.dword0.get()
}

fn delete(admin: &mut Queue, namespace: u32, name: &str) -> Status {
    let mut data = [0; 64];
    write_text(&mut data, name);
    admin.ask(AdminCommand::DeleteNamespace.entry(namespace).with_data(inside(&data)), &data).status()
}

fn log_page(admin: &mut Queue, page: u8, length_bytes: u64) -> Vec<u8> {
    let wanted = GetLogPage { page, length_bytes, ..GetLogPage::default() };
    let got = admin.admin(AdminCommand::GetLogPage(wanted), NAMESPACE_ALL, length_bytes as u32);
    assert_eq!(got.status(), Status::Success);
    got.data
}

fn list(admin: &mut Queue) -> Vec<NamespaceEntry> {
    read_namespaces(&log_page(admin, page::NAMESPACES, 4096)).unwrap()
}

fn names(admin: &mut Queue) -> Vec<(u32, String)> {
    let name = |entry: &NamespaceEntry| read_name(&entry.name).unwrap_or_default().to_owned();
    list(admin).iter().map(|entry| (entry.number.get(), name(entry))).collect()
}

fn store_in(host: &mut Host, namespace: u32, name: &[u8], value: &[u8]) -> Status {
    let options = StoreOptions::default();
    let command = KvCommand::Store { key: key(name), value_bytes: value.len() as u32, options };
    host.io.ask(command.entry(namespace).with_data(inside(value)), value).status()
}

fn exist_in(host: &mut Host, namespace: u32, name: &[u8]) -> Status {
    host.io.ask(KvCommand::Exist { key: key(name) }.entry(namespace).with_data(DataPointer::NONE), &[]).status()
}

fn with_guest(read_write: &[u32]) -> Rights {
    let read_write = Namespaces::Some(read_write.iter().copied().collect());
    let guest = HostRights { read_write, ..HostRights::EVERYTHING };
    let reader = HostRights { manage: false, ..HostRights::EVERYTHING };
    let all = HostRights::EVERYTHING;
    Rights::new([(GUEST.to_owned(), guest), (READER.to_owned(), reader), (HOST_NQN.to_owned(), all)].into(), None)
}

#[test]
fn a_namespace_is_made_listed_used_and_deleted() {
    let mut target = Target::new();
    let mut host = Host::new(&target);
    let get = AdminCommand::GetFeatures { feature: feature::EXTENSIONS, select: 0, value: 0 };
    assert_eq!(host.admin.admin(get, 0, 0).entry.dword0.get(), SIGNATURE);
    assert_eq!(names(&mut host.admin), [(1, String::new())]);
    let longest = "n".repeat(64);
    let mut ordered = wanted("events");
    (ordered.flags, ordered.quota_bytes) = (FLAG_ORDERED.into(), (1 << 20).into());
    assert_eq!((create(&mut host.admin, &wanted(&longest)), create(&mut host.admin, &ordered)), (2, 3));
    for (namespace, name) in [(2, &b"a"[..]), (3, b"b"), (3, b"c")] {
        assert_eq!(store_in(&mut host, namespace, name, &[7; 100]), Status::Success);
    }
    let found = list(&mut host.admin);
    assert_eq!(found.len(), 3);
    assert_eq!(read_name(&found[1].name), Some(&*longest));
    let entry = &found[2];
    assert_eq!((entry.flags.get() & 255, entry.pairs.get(), entry.pair_bytes.get()), (FLAG_ORDERED, 2, 202));
    assert_eq!((entry.quota_bytes.get(), read_name(&entry.index)), (1 << 20, Some("lsm")));
    assert!(entry.live_bytes.get() >= 202 && entry.capacity_bytes.get() == 1 << 20);
    assert!(found[0].birth() == 0 && found[1].birth() > 0 && found[2].birth() > 0, "of the first nobody knows");
    // NUSE is at most NCAP, also where a tree takes more than the quota of its pairs.
    let data = host.admin.identify(cns::NAMESPACE, 0, 3).data;
    let blocks = IdentifyNamespace::from_data(&data).unwrap();
    assert!(entry.live_bytes.get() > 1 << 20 && blocks.utilization == blocks.capacity);
    // A part of the page is a part of it.
    assert_eq!(log_page(&mut host.admin, page::NAMESPACES, 16)[4..8], 3u32.to_le_bytes());
    assert_eq!(delete(&mut host.admin, 2, &longest), Status::Success);
    assert_eq!(exist_in(&mut host, 2, b"a"), Status::InvalidField);
    assert_eq!(names(&mut host.admin), [(1, String::new()), (3, "events".to_owned())]);
    // It is so in the next life, too.
    target.stop();
    let open = kvssd_flash::OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
    let drive = kvssd_device::Drive::open(target.folder.path().join("drive.kv"), open).unwrap();
    let names: Vec<_> = drive.namespaces().into_iter().map(|info| (info.id.0, info.attributes.name)).collect();
    assert_eq!(names, [(1, None), (3, Some("events".to_owned()))]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let target = Target::new();
    let mut host = Host::new(&target);
    create(&mut host.admin, &wanted("there"));
    let before = names(&mut host.admin);
    let with = |name: &str, change: fn(&mut CreateNamespace)| {
        let mut wanted = wanted(name);
        change(&mut wanted);
        wanted
    };
    for (wanted, status) in [
        (wanted("there"), Status::NamespaceNameTaken),
        (wanted(""), Status::InvalidField),
        (wanted("17"), Status::InvalidField),
        (wanted("two\nlines"), Status::InvalidField),
        (with("new", |wanted| wanted.flags = 2.into()), Status::InvalidField),
        (with("new", |wanted| wanted.name[5] = b'x'), Status::InvalidField),
        (with("new", |wanted| wanted.name[0] = 0xff), Status::InvalidField),
        (with("new", |wanted| wanted.index[..7].copy_from_slice(b"nothing")), Status::InvalidField),
    ] {
        assert_eq!(try_create(&mut host.admin, wanted.as_bytes()).status(), status, "{wanted:?}");
    }
    for bytes in [0, 1, 127, 129, 4096] {
        assert_eq!(try_create(&mut host.admin, &vec![b'a'; bytes]).status(), Status::SglLengthInvalid, "{bytes}");
    }
    for (namespace, name, status) in [
        (2, "other", Status::InvalidField),
        (2, "", Status::InvalidField),
        (3, "there", Status::InvalidField),
        (0, "there", Status::InvalidNamespace),
        (NAMESPACE_ALL, "there", Status::InvalidNamespace),
        (1, "", Status::OperationDenied),
    ] {
        assert_eq!(delete(&mut host.admin, namespace, name), status, "{namespace} {name}");
    }
    assert_eq!(host.admin.admin(AdminCommand::DeleteNamespace, 2, 0).status(), Status::SglLengthInvalid);
    assert_eq!(names(&mut host.admin), before);
    for number in 3..=16 {
        assert_eq!(create(&mut host.admin, &wanted(&format!("n{number}"))), number);
    }
    assert_eq!(try_create(&mut host.admin, wanted("one more").as_bytes()).status(), Status::NamespaceIdUnavailable);
    let mut discovery = Queue::greeted(target.address, false, false);
    assert_eq!(discovery.connect(admin_connect(0), CONTROLLER_ANY, DISCOVERY_NQN, HOST_NQN).status(), Status::Success);
    assert_eq!(try_create(&mut discovery, wanted("new").as_bytes()).status(), Status::InvalidOpcode);
}

#[test]
fn only_who_may_manage_does_and_hidden_names_are_not_told() {
    let target = Target::with(|options| options.rights = with_guest(&[1]));
    let mut all = Host::new(&target);
    assert_eq!(create(&mut all.admin, &wanted("secret")), 2);
    for nqn in [GUEST, READER] {
        let mut host = Host::named(target.address, nqn);
        for name in ["secret", "new"] {
            assert_eq!(try_create(&mut host.admin, wanted(name).as_bytes()).status(), Status::OperationDenied);
            for number in [1, 2, 9] {
                assert_eq!(delete(&mut host.admin, number, name), Status::OperationDenied);
            }
        }
        let seen = if nqn == GUEST { 1 } else { 2 };
        assert_eq!(names(&mut host.admin).len(), seen);
    }
    let page = log_page(&mut Host::named(target.address, GUEST).admin, page::NAMESPACES, 4096);
    assert!(!page.windows(6).any(|bytes| bytes == b"secret"));
}

fn await_notice(host: &mut Host) -> u16 {
    let events = AdminCommand::SetFeatures { feature: feature::EVENTS, save: false, value: EVENT_NAMESPACES };
    assert_eq!(host.admin.admin(events, 0, 0).status(), Status::Success);
    let id = host.admin.id();
    let mut entry = AdminCommand::AsynchronousEventRequest.entry(0);
    entry.command_id = id.into();
    host.admin.send(&Pdu::Command { entry, data: &[] });
    id
}

fn changed(host: &mut Host) -> Vec<u32> {
    read_namespace_list(&log_page(&mut host.admin, page::CHANGED_NAMESPACES, 4096)).collect()
}

#[test]
fn other_hosts_are_told_when_a_namespace_comes_or_goes_and_only_of_what_they_see() {
    let target = Target::with(|options| options.rights = with_guest(&[1]));
    let (mut maker, mut reader) = (Host::new(&target), Host::named(target.address, READER));
    let mut guest = Host::named(target.address, GUEST);
    let mut ids = [&mut maker, &mut reader, &mut guest].map(await_notice);
    for step in 0..3 {
        match step {
            0 => assert_eq!(create(&mut maker.admin, &wanted("new")), 2),
            1 => assert_eq!(delete(&mut maker.admin, 2, "new"), Status::Success),
            // Another one in the same moment: the same number would not tell.
            _ => {
                let number = create(&mut maker.admin, &wanted("newer"));
                assert_eq!(delete(&mut maker.admin, number, "newer"), Status::Success);
                create(&mut maker.admin, &wanted("newest"));
            }
        }
        let Heard::Response(notice) = reader.admin.hear() else { panic!("no event") };
        let told = event::dword(event::NOTICE, event::NAMESPACES_CHANGED, page::CHANGED_NAMESPACES);
        assert_eq!((notice.command_id.get(), notice.result()), (ids[1], told.into()), "step {step}");
        assert!(!changed(&mut reader).is_empty());
        ids[1] = await_notice(&mut reader);
    }
    // Neither who did it nor who sees nothing of it: nothing but answers has come to them.
    thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!((changed(&mut maker), changed(&mut guest)), (vec![], vec![]));
}

/// A number may be given again; a right to the namespace that had it is none to the new one.
#[test]
fn rights_go_with_the_namespace_that_they_were_given_for() {
    let target = Target::with(|options| options.rights = with_guest(&[1, 2]));
    let (mut all, mut guest) = (Host::new(&target), Host::named(target.address, GUEST));
    let mut round = 0;
    let mut number = create(&mut all.admin, &wanted("round 0"));
    assert_eq!(number, 2);
    target.subsystem.set_rights(with_guest(&[1, 2]));
    assert_eq!(store_in(&mut guest, 2, b"mine", b""), Status::Success);
    // Until the number comes again.
    loop {
        assert_eq!(delete(&mut all.admin, number, &format!("round {round}")), Status::Success);
        round += 1;
        number = create(&mut all.admin, &wanted(&format!("round {round}")));
        assert_eq!(exist_in(&mut guest, number, b"mine"), Status::InvalidField, "round {round}");
        if number == 2 {
            break;
        }
        assert!(round < 100, "number 2 does not come again");
    }
    assert_eq!(names(&mut guest.admin), [(1, String::new())]);
    assert_eq!(names(&mut Host::named(target.address, GUEST).admin), [(1, String::new())]);
}

#[test]
fn a_deletion_under_load_ends_the_load_and_nothing_else() {
    let target = Target::new();
    let mut all = Host::new(&target);
    // To how many threads that has happened.
    let (stop, have_made, are_refused) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let wait_for_3 = |threads: &AtomicUsize| {
        let begin = Instant::now();
        while threads.load(Ordering::Relaxed) < 3 && begin.elapsed() < PATIENCE {
            thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    thread::scope(|scope| {
        let number = create(&mut all.admin, &wanted("busy"));
        for thread in 0..3u8 {
            let (address, stop) = (target.address, &stop);
            let (have_made, are_refused) = (&have_made, &are_refused);
            scope.spawn(move || {
                let mut host = Host::with_digests(address, false, false);
                let (mut made, mut refused) = (0, 0);
                for count in 0u32.. {
                    let name = [&[thread][..], &count.to_le_bytes()].concat();
                    let (times, threads) = match store_in(&mut host, number, &name, &[thread; 3000]) {
                        Status::Success => (&mut made, have_made),
                        Status::InvalidField => (&mut refused, are_refused),
                        other => panic!("{other}"),
                    };
                    *times += 1;
                    if *times == 1 {
                        threads.fetch_add(1, Ordering::Relaxed);
                    }
                    assert_eq!(store_in(&mut host, 1, &name, &[thread; 10]), Status::Success);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                assert!(made > 0 && refused > 0, "{made} {refused}");
            });
        }
        wait_for_3(&have_made);
        thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(delete(&mut all.admin, number, "busy"), Status::Success);
        wait_for_3(&are_refused);
        thread::sleep(std::time::Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(names(&mut all.admin), [(1, String::new())]);
    assert!(target.subsystem.failure().is_none());
}

/// What a client left on an older controller is made by nobody.
#[test]
fn a_client_that_went_on_makes_nothing_where_it_was() {
    let target = Target::new();
    let (mut old, mut new) = (Host::new(&target), Host::new(&target));
    for host in [&mut old, &mut new] {
        let value = kvssd_nvme_spec::numbered::SIGNATURE;
        let set = AdminCommand::SetFeatures { feature: feature::NUMBERED_CHANGES, save: false, value };
        let got = host.admin.ask(set.entry(0).with_data(inside(&[5; 16])), &[5; 16]);
        assert_eq!(got.status(), Status::Success);
    }
    assert_eq!(try_create(&mut old.admin, wanted("late").as_bytes()).status(), Status::ClientSuperseded);
    assert_eq!(create(&mut new.admin, &wanted("late")), 2);
    assert_eq!(delete(&mut old.admin, 2, "late"), Status::ClientSuperseded);
    assert_eq!(
        new.admin.connect(admin_connect(0), CONTROLLER_ANY, NQN, HOST_NQN).status(),
        Status::CommandSequenceError
    );
}

/// Makes namespaces in the place of that one until its number comes again, as [`rights_go_with_the_namespace_that_they_were_given_for`].
fn replace(admin: &mut Queue, number: u32, name: &str) -> String {
    let (mut last, mut name) = (number, name.to_owned());
    for round in 0..100 {
        assert_eq!(delete(admin, last, &name), Status::Success);
        name = format!("in its place {round}");
        last = create(admin, &wanted(&name));
        if last == number {
            return name;
        }
    }
    panic!("number {number} does not come again");
}

/// A host that means a namespace which is gone does nothing to the one that has its number now, until it has looked.
#[test]
fn who_has_not_looked_changes_nothing_in_a_namespace_that_came_in_anothers_place() {
    let target = Target::new();
    let (mut maker, mut host) = (Host::new(&target), Host::named(target.address, READER));
    assert_eq!(create(&mut maker.admin, &wanted("mine")), 2);
    assert_eq!(store_in(&mut host, 2, b"before", b"v"), Status::Success);
    // One is under way: its value is still to come.
    let late = KvCommand::Store { key: key(b"late"), value_bytes: 9000, options: StoreOptions::default() };
    let mut late = late.entry(2).with_data(DataPointer::Transport { length_bytes: 9000 });
    late.command_id = 40.into();
    host.io.send(&Pdu::Command { entry: late, data: &[] });
    let Heard::R2t(40, tag, 0, 9000) = host.io.hear() else { panic!("no R2T") };
    let before = host.admin.identify(3, 0, 2).data;
    let name = replace(&mut maker.admin, 2, "mine");
    assert_ne!(host.admin.identify(3, 0, 2).data, before, "its NGUID and UUID are those of another one");
    assert_eq!(store_in(&mut maker, 2, b"new", b"v"), Status::Success, "who made it knows it");
    host.io.send_data(40, tag, &[1; 9000]);
    let Heard::Response(answer) = host.io.hear() else { panic!("no answer") };
    assert_eq!((answer.command_id.get(), answer.status()), (40, Ok(Status::InvalidField)));
    for _ in 0..2 {
        assert_eq!(store_in(&mut host, 2, b"stale", b"v"), Status::InvalidField);
        assert_eq!(exist_in(&mut host, 2, b"new"), Status::InvalidField);
        // Identify tells nothing that a host could tell the two apart by.
        assert_eq!(host.admin.identify(5, 1, 2).status(), Status::Success);
    }
    for stale in [&b"before"[..], b"late", b"stale"] {
        assert_eq!(exist_in(&mut maker, 2, stale), Status::KeyDoesNotExist);
    }
    assert_eq!(names(&mut host.admin), [(1, String::new()), (2, name.clone())]);
    assert_eq!(
        (store_in(&mut host, 2, b"k", b"v"), exist_in(&mut host, 2, b"new")),
        (Status::Success, Status::Success)
    );
    // Hosts of any make look at the list of what has changed. What they sent before means what they knew then.
    late.command_id = 41.into();
    host.io.send(&Pdu::Command { entry: late, data: &[] });
    let Heard::R2t(41, tag, 0, 9000) = host.io.hear() else { panic!("no R2T") };
    let name = replace(&mut maker.admin, 2, &name);
    assert_eq!(store_in(&mut host, 2, b"k", b"v"), Status::InvalidField);
    assert!(changed(&mut host).contains(&2));
    assert_eq!(store_in(&mut host, 2, b"k", b"v"), Status::Success);
    host.io.send_data(41, tag, &[1; 9000]);
    let Heard::Response(answer) = host.io.hear() else { panic!("no answer") };
    assert_eq!((answer.command_id.get(), answer.status()), (41, Ok(Status::InvalidField)));
    assert_eq!(exist_in(&mut host, 2, b"late"), Status::KeyDoesNotExist);
    // Who connects now means what there is, and who sees a number for the first time too.
    replace(&mut maker.admin, 2, &name);
    assert_eq!(store_in(&mut Host::named(target.address, READER), 2, b"l", b"v"), Status::Success);
    assert_eq!(create(&mut maker.admin, &wanted("first")), 3);
    assert_eq!(store_in(&mut host, 3, b"k", b"v"), Status::Success);
    replace(&mut maker.admin, 3, "first");
    assert_eq!(store_in(&mut host, 3, b"k", b"v"), Status::InvalidField);
}

/// Hosts that know no births tell namespaces apart by NGUID and UUID, also those of one number and name.
#[test]
fn a_namespace_of_the_same_number_and_name_has_other_identifiers() {
    let mut target = Target::new();
    let mut maker = Host::new(&target);
    assert_eq!(create(&mut maker.admin, &wanted("mine")), 2);
    let before = maker.admin.identify(3, 0, 2).data;
    let (mut number, mut name) = (2, replace(&mut maker.admin, 2, "mine"));
    while number != 2 || name != "mine" {
        assert_eq!(delete(&mut maker.admin, number, &name), Status::Success);
        (number, name) = (create(&mut maker.admin, &wanted("mine")), "mine".to_owned());
    }
    let after = maker.admin.identify(3, 0, 2).data;
    assert_ne!(before, after);
    // They stay when the drive is served again.
    drop(maker);
    target.stop();
    let folder = std::mem::replace(&mut target.folder, tempfile::tempdir().unwrap());
    let drive = Drive::open(folder.path().join("drive.kv"), OpenOptions::default()).unwrap();
    let target = Target::serving(drive, SubsystemOptions::new(NQN), folder);
    assert_eq!(Host::new(&target).admin.identify(3, 0, 2).data, after);
}

/// A command that says which namespace it means is executed on that one alone, whatever its controller has been told.
#[test]
fn a_command_that_says_which_namespace_it_means_comes_to_no_other() {
    let target = Target::new();
    let (mut maker, mut host) = (Host::new(&target), Host::named(target.address, READER));
    let made = try_create(&mut maker.admin, wanted("mine").as_bytes()).entry.result();
    let (number, birth) = (made as u32, (made >> 32) as u32);
    assert_eq!((number, birth), (2, list(&mut host.admin)[1].birth()));
    let store = |host: &mut Host, birth: u32, name: &[u8]| {
        let command = KvCommand::Store { key: key(name), value_bytes: 1, options: StoreOptions::default() };
        let mut entry = command.entry(2).with_data(inside(b"v"));
        set_meant_birth(&mut entry, birth);
        host.io.ask(entry, b"v").status()
    };
    assert_eq!(store(&mut host, birth, b"before"), Status::Success);
    // One is under way: its value is still to come.
    let late = KvCommand::Store { key: key(b"late"), value_bytes: 9000, options: StoreOptions::default() };
    let mut late = late.entry(2).with_data(DataPointer::Transport { length_bytes: 9000 });
    late.command_id = 40.into();
    set_meant_birth(&mut late, birth);
    host.io.send(&Pdu::Command { entry: late, data: &[] });
    let Heard::R2t(40, tag, 0, 9000) = host.io.hear() else { panic!("no R2T") };
    let name = replace(&mut maker.admin, 2, "mine");
    // From here on its controller means the new one by 2.
    let new = list(&mut host.admin)[1].birth();
    assert_eq!(store_in(&mut host, 2, b"whichever", b"v"), Status::Success);
    host.io.send_data(40, tag, &[1; 9000]);
    let Heard::Response(answer) = host.io.hear() else { panic!("no answer") };
    assert_eq!((answer.command_id.get(), answer.status()), (40, Ok(Status::InvalidField)));
    for (stale, status) in [(birth, Status::InvalidField), (0, Status::InvalidField), (new, Status::Success)] {
        assert_eq!(store(&mut host, stale, b"k"), status, "{stale}");
    }
    // On the maker's controller nobody has looked, and on a new one nobody has to.
    assert_eq!(store(&mut Host::named(target.address, READER), new, b"k"), Status::Success);
    assert_eq!(store(&mut Host::named(target.address, READER), birth, b"k"), Status::InvalidField);
    for stale in [&b"before"[..], b"late"] {
        assert_eq!(exist_in(&mut maker, 2, stale), Status::KeyDoesNotExist);
    }
    // So with the commands that delete it, and that make it a cache.
    let mut data = [0; 64];
    write_text(&mut data, &name);
    let mut cache = SetCache::zeroed();
    write_text(&mut cache.name, &name);
    for (birth, status) in [(birth, Status::InvalidField), (new, Status::Success)] {
        for (command, data) in [(AdminCommand::SetCache, cache.as_bytes()), (AdminCommand::DeleteNamespace, &data)] {
            let mut entry = command.entry(2).with_data(inside(data));
            set_meant_birth(&mut entry, birth);
            assert_eq!(maker.admin.ask(entry, data).status(), status, "{command:?} {birth}");
        }
    }
}
