//! Namespaces that are caches: hosts make them, change them and see what they hold, and no store finds one full.

use crate::host::{Got, HOST_NQN, Host, NQN, Queue, Target, inside, key};
use kvssd_device::Drive;
use kvssd_flash::OpenOptions;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage};
use kvssd_nvme_spec::command::{DataPointer, NAMESPACE_ALL};
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::log_page::page;
use kvssd_nvme_spec::named::{
    CacheEntry, CreateNamespace, FLAG_CACHE, SetCache, read_caches, read_name, read_namespaces,
};
use kvssd_nvme_spec::{Status, write_text};
use kvssd_nvme_target::{HostRights, Namespaces, Quota, Rights, SubsystemOptions};
use zerocopy::IntoBytes;

const GUEST: &str = "nqn.guest";

fn create(admin: &mut Queue, name: &str) -> u32 {
    let mut wanted = CreateNamespace::zeroed();
    write_text(&mut wanted.name, name);
    let data = wanted.as_bytes();
    let got = admin.ask(AdminCommand::CreateNamespace.entry(0).with_data(inside(data)), data);
    assert_eq!(got.status(), Status::Success);
    got.entry.dword0.get()
}

fn try_cache(admin: &mut Queue, id: u32, data: &[u8]) -> Status {
    admin.ask(AdminCommand::SetCache.entry(id).with_data(inside(data)), data).status()
}

fn set_cache(admin: &mut Queue, id: u32, name: &str, text: &str) -> Status {
    let mut wanted = SetCache::zeroed();
    write_text(&mut wanted.name, name);
    write_text(&mut wanted.cache, text);
    try_cache(admin, id, wanted.as_bytes())
}

fn log_page(admin: &mut Queue, page: u8) -> Vec<u8> {
    let wanted = GetLogPage { page, length_bytes: 4096, ..GetLogPage::default() };
    let got: Got = admin.admin(AdminCommand::GetLogPage(wanted), NAMESPACE_ALL, 4096);
    assert_eq!(got.status(), Status::Success);
    got.data
}

fn caches(admin: &mut Queue) -> Vec<CacheEntry> {
    read_caches(&log_page(admin, page::CACHES)).unwrap()
}

fn store(host: &mut Host, id: u32, name: &[u8], value: &[u8]) -> Status {
    let command =
        KvCommand::Store { key: key(name), value_bytes: value.len() as u32, options: StoreOptions::default() };
    host.io.ask(command.entry(id).with_data(inside(value)), value).status()
}

fn retrieve(host: &mut Host, id: u32, name: &[u8]) -> (Status, Vec<u8>, u32) {
    let command = KvCommand::Retrieve { key: key(name), buffer_bytes: 4096 };
    let got = host.io.ask(command.entry(id).with_data(DataPointer::Transport { length_bytes: 4096 }), &[]);
    (got.status(), got.data.clone(), got.entry.dword0.get())
}

#[test]
fn a_cache_is_made_listed_used_and_changed_and_outlives_the_service() {
    let mut target = Target::new();
    let mut host = Host::new(&target);
    let id = create(&mut host.admin, "prompts");
    assert!(caches(&mut host.admin).is_empty());
    let text = "lru budget=10000 ttl-ms=3600000";
    assert_eq!(set_cache(&mut host.admin, id, "prompts", text), Status::Success);
    for number in 0..100u8 {
        assert_eq!(store(&mut host, id, &[number], &[number; 999]), Status::Success);
        assert_eq!(retrieve(&mut host, id, &[0]).0, Status::Success, "it is asked for all the time");
    }
    let (status, value, value_bytes) = retrieve(&mut host, id, &[99]);
    assert_eq!((status, &value[..], value_bytes), (Status::Success, &[99; 999][..], 999), "no stamp is seen");
    assert_eq!(retrieve(&mut host, id, &[50]).0, Status::KeyDoesNotExist);
    assert_eq!(store(&mut host, id, b"wide", &[0; 4000]), Status::Success);
    let found = caches(&mut host.admin);
    assert_eq!(found.len(), 1);
    let entry = found[0];
    assert_eq!((entry.number.get(), read_name(&entry.cache)), (id, Some(text)));
    assert_eq!((entry.budget_bytes.get(), entry.hits.get(), entry.misses.get()), (10_000, 101, 1));
    assert_eq!((entry.admitted.get(), entry.evicted.get()), (101, 95));
    assert_eq!(entry.held_bytes.get(), 5 * 1000 + 4004);
    assert!(entry.dram_bytes.get() > 0);
    let listed = read_namespaces(&log_page(&mut host.admin, page::NAMESPACES)).unwrap();
    let told = listed.iter().map(|entry| (entry.number.get(), entry.flags.get() & FLAG_CACHE, entry.pairs.get()));
    assert_eq!(told.collect::<Vec<_>>(), [(1, 0, 0), (id, FLAG_CACHE, 6)]);
    assert_eq!(set_cache(&mut host.admin, id, "prompts", "fifo budget=5000"), Status::Success);
    target.stop();
    let folder = std::mem::replace(&mut target.folder, tempfile::tempdir().unwrap());
    let drive = Drive::open(folder.path().join("drive.kv"), OpenOptions::default()).unwrap();
    let target = Target::serving(drive, SubsystemOptions::new(NQN), folder);
    let mut host = Host::new(&target);
    assert_eq!(read_name(&caches(&mut host.admin)[0].cache), Some("fifo budget=5000"));
    assert_eq!(retrieve(&mut host, id, &[99]).0, Status::KeyDoesNotExist);
    assert_eq!(retrieve(&mut host, id, b"wide").2, 4000, "it came last, and the first left");
}

#[test]
fn what_can_be_no_cache_is_refused_and_so_is_who_may_not_make_one() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let id = create(&mut host.admin, "a");
    let mut set = |id: u32, name: &str, text: &str| set_cache(&mut host.admin, id, name, text);
    for text in ["mru budget=1", "lru", "lru budget=0", "lru budget=1 asked=2 asked=2", "lru budget=1 ttl-ms=0"] {
        assert_eq!(set(id, "a", text), Status::InvalidField, "{text}");
    }
    assert_eq!(set(id, "b", "lru budget=1"), Status::InvalidField, "another has that number");
    assert_eq!(set(9, "a", "lru budget=1"), Status::InvalidField, "there is none of that number");
    let mut wanted = SetCache::zeroed();
    write_text(&mut wanted.name, "a");
    write_text(&mut wanted.cache, "lru budget=1000000");
    let mut bytes = wanted.as_bytes().to_vec();
    assert_eq!(try_cache(&mut host.admin, id, &bytes[..255]), Status::SglLengthInvalid);
    for at in [63, 239, 240, 255] {
        bytes[at] = 1;
        assert_eq!(try_cache(&mut host.admin, id, &bytes), Status::InvalidField, "byte {at}");
        bytes[at] = 0;
    }
    assert_eq!(store(&mut host, id, b"plain", b"value"), Status::Success);
    assert_eq!(try_cache(&mut host.admin, id, &bytes), Status::InvalidField, "it has a pair");
    assert_eq!(retrieve(&mut host, id, b"plain").1, b"value");
    let guest = HostRights { manage: false, ..HostRights::EVERYTHING };
    target.subsystem.set_rights(Rights::new([(GUEST.to_owned(), guest)].into(), None));
    let mut guest = Host::named(target.address, GUEST);
    assert_eq!(try_cache(&mut guest.admin, id, &bytes), Status::OperationDenied);
}

/// A host may see a cache, and with a quota below its budget no store of it is refused: it never has more than the quota.
#[test]
fn a_host_with_a_quota_lets_pairs_of_its_own_go_and_a_stranger_sees_no_cache() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let id = create(&mut host.admin, "cache");
    assert_eq!(set_cache(&mut host.admin, id, "cache", "lru budget=100000"), Status::Success);
    let own = Namespaces::Some([id].into());
    let quota = Quota { bytes_max: Some(20_000), pairs_max: Some(15) };
    let guest = HostRights { manage: false, read_write: own, quota, ..HostRights::EVERYTHING };
    let stranger = HostRights { manage: false, read_write: Namespaces::Some([1].into()), ..HostRights::EVERYTHING };
    let all = HostRights::EVERYTHING;
    target.subsystem.set_rights(Rights::new(
        [(GUEST.to_owned(), guest), ("nqn.stranger".to_owned(), stranger), (HOST_NQN.to_owned(), all)].into(),
        None,
    ));
    let mut guest = Host::named(target.address, GUEST);
    for number in 0..100u8 {
        let bytes = if number < 50 { 1999 } else { 99 };
        assert_eq!(store(&mut guest, id, &[number], &vec![number; bytes]), Status::Success, "{number}");
        assert_eq!(retrieve(&mut guest, id, &[number]).2, bytes as u32);
        let entry = read_namespaces(&log_page(&mut guest.admin, page::NAMESPACES)).unwrap()[0];
        assert!(entry.pair_bytes.get() <= 20_000 && entry.pairs.get() <= 15, "{entry:?}");
    }
    // The oldest may be the one that is stored again, and leave for itself.
    for number in (0..3).flat_map(|_| 85..100u8) {
        assert_eq!(store(&mut guest, id, &[number], &[number; 1999]), Status::Success, "{number}");
        let entry = read_namespaces(&log_page(&mut guest.admin, page::NAMESPACES)).unwrap()[0];
        assert!(entry.pair_bytes.get() <= 20_000, "{entry:?}");
    }
    let [seen] = caches(&mut guest.admin)[..] else { panic!("it sees the one that it may") };
    assert_eq!((seen.hits.get(), seen.misses.get()), (100, 0), "who looks at a quota asks for nothing");
    assert!(caches(&mut Host::named(target.address, "nqn.stranger").admin).is_empty());
    // Nobody leaves for what does not come in, and the budget is as it was for those without a quota.
    let held = caches(&mut host.admin)[0];
    assert_eq!(set_cache(&mut host.admin, id, "cache", "lru budget=100000 at-most=2000"), Status::Success);
    assert_eq!(store(&mut guest, id, b"out", &[1; 4_000]), Status::Success);
    assert_eq!(retrieve(&mut guest, id, b"out").0, Status::KeyDoesNotExist);
    assert_eq!(caches(&mut host.admin)[0].held_bytes, held.held_bytes);
    (100..200u8).for_each(|number| assert_eq!(store(&mut host, id, &[number], &[number; 900]), Status::Success));
    assert!(read_namespaces(&log_page(&mut host.admin, page::NAMESPACES)).unwrap()[1].pairs.get() > 100);
    // Nobody leaves for what the rest of the quota does not let in.
    let plain = create(&mut host.admin, "plain");
    let quota = Quota { bytes_max: Some(20_000), pairs_max: Some(9) };
    let both =
        HostRights { manage: false, read_write: Namespaces::Some([id, plain].into()), quota, ..HostRights::EVERYTHING };
    (0..9u8).for_each(|number| assert_eq!(store(&mut host, plain, &[number], b"1"), Status::Success));
    let held = caches(&mut host.admin)[0];
    target.subsystem.set_rights(Rights::new(
        [(GUEST.to_owned(), both), (HOST_NQN.to_owned(), HostRights::EVERYTHING)].into(),
        None,
    ));
    let mut guest = Host::named(target.address, GUEST);
    assert_eq!(store(&mut guest, id, b"new", b"1"), Status::CapacityExceeded);
    assert_eq!(caches(&mut host.admin)[0].held_bytes, held.held_bytes);
}
