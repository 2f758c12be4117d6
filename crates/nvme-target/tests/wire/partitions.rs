//! A drive in partitions is one drive to its hosts.

use crate::extended::{TREE, create, iterate};
use crate::host::{Host, NQN, Target, key, value};
use crate::together::ask_together;
use kvssd_device::{CreateDrive, Drive, Partitions, image_design, partition_profile};
use kvssd_flash::{Files, OpenOptions, SystemFiles};
use kvssd_ftl::NamespaceAttributes;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::extended::IteratorRange;
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::list::ListReader;
use kvssd_nvme_target::SubsystemOptions;
use kvssd_types::NamespaceId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

const PARTITIONS: u32 = 3;
const KEYS: usize = 60;

fn create_drive(folder: &tempfile::TempDir) -> Vec<Drive> {
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let (profile, design) = (partition_profile(192 << 20, PARTITIONS).unwrap(), image_design("plus").unwrap());
    let options = CreateDrive { partitions: PARTITIONS, ..CreateDrive::default() };
    let mut drives = Drive::create_all_in(&files, &folder.path().join("drive.kv"), &profile, &design, options).unwrap();
    let tree = NamespaceAttributes { name: Some("tree".to_owned()), is_ordered: true, ..NamespaceAttributes::PLAIN };
    assert_eq!(Partitions::new(&mut drives).create_namespace(tree), Ok(NamespaceId(TREE)));
    drives
}

fn name(host: usize, number: usize) -> [u8; 4] {
    [host as u8, number as u8, 0, 1]
}

fn store(host: &mut Host, namespace: u32, host_number: usize) {
    let values: Vec<Vec<u8>> = (0..KEYS).map(|number| value(host_number * KEYS + number, 300)).collect();
    let stores = values.iter().enumerate().map(|(number, bytes)| {
        let options = StoreOptions::default();
        let command = KvCommand::Store { key: key(&name(host_number, number)), value_bytes: 300, options };
        let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 300 };
        (command.entry(namespace).with_data(pointer), &bytes[..])
    });
    let answers = ask_together(&mut host.io, stores.collect());
    assert!(answers.iter().all(|got| got.status() == Status::Success));
}

fn listed(host: &mut Host, namespace: u32) -> BTreeSet<Vec<u8>> {
    let command = KvCommand::List { from: None, buffer_bytes: 64 << 10 };
    let pointer = DataPointer::Transport { length_bytes: 64 << 10 };
    let got = host.io.ask(command.entry(namespace).with_data(pointer), &[]);
    assert_eq!(got.status(), Status::Success);
    ListReader::new(&got.data).unwrap().map(|key| key.unwrap().to_vec()).collect()
}

/// Hosts whose commands are under way together change both namespaces; each finds its own, a list finds all, an iterator goes along the keys.
#[test]
fn hosts_share_a_drive_in_partitions_and_find_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let drives = create_drive(&folder);
    let mut target = Target::serving_all(drives, SubsystemOptions::new(NQN), folder);
    let hosts: Vec<usize> = (0..4).collect();
    thread::scope(|scope| {
        for &number in &hosts {
            let target = &target;
            scope.spawn(move || {
                let mut host = Host::new(target);
                for namespace in [1, TREE] {
                    store(&mut host, namespace, number);
                }
                let retrieves = (0..KEYS).map(|of| {
                    let command = KvCommand::Retrieve { key: key(&name(number, of)), buffer_bytes: 1000 };
                    let pointer = DataPointer::Transport { length_bytes: 1000 };
                    (command.entry(1).with_data(pointer), &[][..])
                });
                let answers = ask_together(&mut host.io, retrieves.collect());
                for (of, got) in answers.into_iter().enumerate() {
                    assert_eq!(got.data, value(number * KEYS + of, 300));
                }
                let deletes = (0..KEYS)
                    .step_by(2)
                    .map(|of| (KvCommand::Delete { key: key(&name(number, of)) }.entry(1), &[][..]));
                let answers = ask_together(&mut host.io, deletes.collect());
                assert!(answers.iter().all(|got| got.status() == Status::Success));
            });
        }
    });
    let all = |step: usize| -> BTreeSet<Vec<u8>> {
        hosts
            .iter()
            .flat_map(|host| (0..KEYS).skip(step - 1).step_by(step).map(|of| name(*host, of).to_vec()))
            .collect()
    };
    let mut host = Host::new(&target);
    assert_eq!(listed(&mut host, 1), all(2));
    assert_eq!(listed(&mut host, TREE), all(1));
    let range = IteratorRange::default();
    let iterator = create(&mut host, TREE, &range).unwrap();
    let mut seen = Vec::new();
    loop {
        let page = iterate(&mut host, iterator, None, 7, 64 << 10).unwrap();
        if page.is_empty() {
            break;
        }
        seen.extend(page.into_iter().map(|(key, _)| key));
    }
    assert!(seen.iter().eq(all(1).iter()), "{seen:?}");
    drop(host);
    target.stop();
    let path = target.folder.path().join("drive.kv");
    assert_eq!(Drive::check(&path).unwrap().findings, []);
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let options = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };
    let mut drives = Drive::open_all_in(&files, &path, options).unwrap();
    let pairs: Vec<u64> = Partitions::new(&mut drives).namespaces().iter().map(|info| info.utilization.pairs).collect();
    assert_eq!(pairs, [4 * KEYS as u64 / 2, 4 * KEYS as u64]);
}
