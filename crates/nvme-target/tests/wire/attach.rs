//! How known hosts attach and detach, command by command.

use crate::host::{HOST_NQN, Heard, Host, NQN, Queue, Target, admin_connect, io_connect, key};
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage};
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::{
    CONTROLLER_ANY, Capabilities, Configuration, ControllerStatus, DISCOVERY_NQN, FabricsCommand, property,
};
use kvssd_nvme_spec::features::{event, feature, queue_count_value};
use kvssd_nvme_spec::identify::{
    IdentifyController, IdentifyIndependentNamespace, IdentifyKvNamespace, IdentifyNamespace, cns,
    descriptor_command_set, read_namespace_list,
};
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::log_page::{
    CommandEffectsPage, Discovered, EFFECT_SUPPORTED, ErrorEntry, FirmwarePage, HealthPage, page, read_discovery_page,
};
use kvssd_nvme_spec::pdu::Pdu;
use kvssd_nvme_spec::{Status, SubmissionEntry};

fn log(queue: &mut Queue, page: u8, length_bytes: u64, offset_bytes: u64) -> (Status, Vec<u8>) {
    let wanted = GetLogPage { page, length_bytes, offset_bytes, command_set: 1, ..GetLogPage::default() };
    let got = queue.admin(AdminCommand::GetLogPage(wanted), 0xffff_ffff, length_bytes as u32);
    (got.status(), got.data)
}

fn feature_of(queue: &mut Queue, feature: u8) -> (Status, u32) {
    let got = queue.admin(AdminCommand::GetFeatures { feature, select: 0, value: 0 }, 0, 0);
    (got.status(), got.entry.dword0.get())
}

fn set_feature(queue: &mut Queue, feature: u8, value: u32) -> (Status, u32) {
    let got = queue.admin(AdminCommand::SetFeatures { feature, save: false, value }, 0, 0);
    (got.status(), got.entry.dword0.get())
}

fn request_event(queue: &mut Queue) -> u16 {
    let id = queue.id();
    let mut entry = AdminCommand::AsynchronousEventRequest.entry(0);
    entry.command_id = id.into();
    queue.send(&Pdu::Command { entry, data: &[] });
    id
}

/// SPDK's initiator attaches, uses a namespace, and detaches.
#[test]
fn spdk_attaches_and_detaches() {
    let target = Target::new();
    let mut admin = Queue::greeted(target.address, false, false);
    assert!(admin.data_bytes_max >= 4096);
    let got = admin.connect(admin_connect(10_000), CONTROLLER_ANY, NQN, HOST_NQN);
    let controller = got.entry.result() as u16;
    assert!((1..0xfff0).contains(&controller));
    assert_eq!(admin.property(property::VERSION, false), 0x2_0000);
    let capabilities = Capabilities(admin.property(property::CAPABILITIES, true));
    assert!(capabilities.has_command_sets() && capabilities.queue_entries_max() >= 128);
    assert_eq!(admin.property(property::CONFIGURATION, false), 0);
    assert!(!ControllerStatus(admin.property(property::STATUS, false) as u32).is_ready());
    admin.set_configuration(Configuration(0x0046_0061));
    assert!(ControllerStatus(admin.property(property::STATUS, false) as u32).is_ready());
    let data = admin.identify(cns::CONTROLLER, 0, 0).data;
    let identified = IdentifyController::from_data(&data).unwrap();
    assert_eq!((identified.controller.get(), identified.kind), (controller, 1));
    assert!(identified.command_capsule_16b.get() >= (64 + 4096) / 16 && identified.response_capsule_16b.get() >= 1);
    assert!(identified.namespaces_max.get() != 0 && 4096 << identified.transfer_pages_log2 >= 1 << 20);
    assert!(identified.sgl.get() & 1 == 1 && identified.commands_max.get() >= 128);
    assert_eq!(kvssd_nvme_spec::read_text(&identified.subsystem_nqn), Some(NQN));
    assert_eq!(set_feature(&mut admin, feature::EVENTS, 0x1ff).0, Status::Success);
    let events: Vec<u16> = (0..4).map(|_| request_event(&mut admin)).collect();
    assert_eq!(feature_of(&mut admin, feature::KEEP_ALIVE), (Status::Success, 10_000));
    assert_eq!(admin.identify(cns::COMMAND_SET_CONTROLLER, 0, 0).status(), Status::InvalidField);
    assert_eq!(admin.identify(cns::COMMAND_SET_CONTROLLER, 2, 0).status(), Status::InvalidField);
    assert_eq!(admin.identify(cns::COMMAND_SET_CONTROLLER, 1, 0).status(), Status::Success);
    let wanted = queue_count_value(4);
    assert_eq!(set_feature(&mut admin, feature::QUEUES, wanted), (Status::Success, wanted));
    assert!(read_namespace_list(&admin.identify(cns::NAMESPACE_LIST, 0, 0).data).eq([1]));
    let data = admin.identify(cns::NAMESPACE, 0, 1).data;
    assert!(IdentifyNamespace::from_data(&data).unwrap().capacity.get() > 0);
    let data = admin.identify(cns::NAMESPACE_DESCRIPTORS, 0, 1).data;
    assert_eq!(descriptor_command_set(&data), Some(1));
    let data = admin.identify(cns::COMMAND_SET_NAMESPACE, 1, 1).data;
    let format = IdentifyKvNamespace::from_data(&data).unwrap().kv_formats[0];
    assert_eq!((format.key_bytes_max.get(), format.value_bytes_max.get()), (16, 1 << 20));
    let mut io = Queue::greeted(target.address, false, false);
    assert_eq!(io.connect(io_connect(1), controller, NQN, HOST_NQN).status(), Status::Success);
    let exist = KvCommand::Exist { key: key(b"k") };
    assert_eq!(io.ask(exist.entry(1).with_data(DataPointer::NONE), &[]).status(), Status::KeyDoesNotExist);
    // Detach: it ends its event requests without a word, the last one first, and their identifiers are the next ones that it uses.
    let mut fabrics = |id: u16, command: FabricsCommand| {
        let mut entry = SubmissionEntry::from(command);
        entry.command_id = id.into();
        admin.send(&Pdu::Command { entry, data: &[] });
        let got = admin.take(id, &[]);
        assert_eq!(got.status(), Status::Success);
        got.entry.result()
    };
    let get = |offset| FabricsCommand::PropertyGet { offset, is_wide: false };
    let configuration = Configuration(fabrics(events[3], get(property::CONFIGURATION)) as u32);
    let value = configuration.with_shutdown().0.into();
    fabrics(events[3], FabricsCommand::PropertySet { offset: property::CONFIGURATION, is_wide: false, value });
    assert!(ControllerStatus(fabrics(events[2], get(property::STATUS)) as u32).is_shut_down());
    assert!(ControllerStatus(fabrics(events[2], get(property::STATUS)) as u32).is_shut_down());
    assert_eq!(io.hear(), Heard::Closed);
    drop(admin);
    assert_eq!(Host::new(&target).store(b"k", b"v"), Status::Success);
}

/// What Linux asks for besides.
#[test]
fn linux_finds_what_it_asks_for() {
    let target = Target::new();
    let mut host = Host::with_digests(target.address, true, false);
    let admin = &mut host.admin;
    let data = admin.identify(cns::INDEPENDENT_NAMESPACE, 0, 1).data;
    let independent = IdentifyIndependentNamespace::from_data(&data).unwrap();
    assert_eq!(independent.status & 1, 1);
    let data = admin.identify(cns::NAMESPACE, 0, 1).data;
    let blocks = IdentifyNamespace::from_data(&data).unwrap().sharing;
    let data = admin.identify(cns::COMMAND_SET_NAMESPACE, 1, 1).data;
    let pairs = IdentifyKvNamespace::from_data(&data).unwrap();
    assert_eq!((blocks, pairs.sharing, independent.sharing), (1, 1, 1), "each says that controllers share it");
    assert_eq!(pairs.value_granularity_bytes.get(), 64);
    assert_eq!((pairs.formats, pairs.format, pairs.kv_formats[0].keys_max.get()), (0, 0, 0), "one format, any keys");
    let data = admin.identify(cns::COMMAND_SET_CONTROLLER, 1, 0).data;
    assert_eq!(data[..4], [0, 3, 1, 0], "TER, MNR, MJR: revision 1.3");
    assert!(read_namespace_list(&admin.identify(cns::COMMAND_SET_NAMESPACE_LIST, 1, 0).data).eq([1]));
    assert_eq!(admin.identify(cns::COMMAND_SETS, 0, 0).data[0], 2);
    assert_eq!(admin.identify(cns::COMMAND_SET_FORMAT, 1, 1).status(), Status::Success);
    let (status, data) = log(admin, page::HEALTH, 512, 0);
    assert_eq!(status, Status::Success);
    let health = HealthPage::from_data(&data).unwrap();
    assert_eq!((health.critical_warning, health.spare_percent), (0, 100));
    let (status, data) = log(admin, page::COMMAND_EFFECTS, 4096, 0);
    assert_eq!(status, Status::Success);
    let effects = CommandEffectsPage::from_data(&data).unwrap();
    let supported = |opcode: usize| effects.io[opcode].get() & EFFECT_SUPPORTED;
    assert!([0x00, 0x01, 0x02, 0x06, 0x10, 0x14].iter().all(|&opcode| supported(opcode) == 1) && supported(0x0d) == 0);
    let (status, data) = log(admin, page::FIRMWARE, 512, 0);
    assert_eq!((status, FirmwarePage::from_data(&data).unwrap().active), (Status::Success, 1));
    assert_eq!(log(admin, page::CHANGED_NAMESPACES, 4096, 0), (Status::Success, vec![0; 4096]));
    for (command_set, status) in [(0, Status::Success), (2, Status::InvalidField), (7, Status::InvalidField)] {
        let wanted =
            GetLogPage { page: page::COMMAND_EFFECTS, length_bytes: 4096, command_set, ..GetLogPage::default() };
        assert_eq!(admin.admin(AdminCommand::GetLogPage(wanted), 0xffff_ffff, 4096).status(), status);
    }
    assert_eq!(log(admin, 0xc3, 512, 0).0, Status::InvalidLogPage);
    assert_eq!(log(admin, page::HEALTH, 512, 516).0, Status::InvalidField);
    let part = log(admin, page::COMMAND_EFFECTS, 1024, 1024).1;
    assert_eq!(part[4..8], EFFECT_SUPPORTED.saturating_add(2).to_le_bytes());
    for (cns, command_set, namespace, status) in [
        (cns::COMMAND_SET_NAMESPACE, 0, 1, Status::InvalidField),
        (cns::NAMESPACE, 0, 0, Status::InvalidNamespace),
        (cns::NAMESPACE, 0, 99, Status::InvalidNamespace),
        (cns::NAMESPACE_DESCRIPTORS, 0, 5, Status::InvalidField),
        (cns::NAMESPACE_DESCRIPTORS, 0, 99, Status::InvalidNamespace),
        (cns::NAMESPACE, 0, 5, Status::Success),
        (0x20, 0, 1, Status::InvalidField),
    ] {
        assert_eq!(admin.identify(cns, command_set, namespace).status(), status, "CNS {cns:x}, namespace {namespace}");
    }
}

#[test]
fn a_discovery_names_the_address_that_the_host_used() {
    let target = Target::new();
    let mut queue = Queue::greeted(target.address, false, false);
    let got = queue.connect(admin_connect(0), CONTROLLER_ANY, DISCOVERY_NQN, HOST_NQN);
    assert_eq!(got.status(), Status::Success);
    queue.set_configuration(Configuration(0x0046_0001));
    let data = queue.identify(cns::CONTROLLER, 0, 0).data;
    assert_eq!(IdentifyController::from_data(&data).unwrap().kind, 2);
    let (status, head) = log(&mut queue, page::DISCOVERY, 1024, 0);
    assert_eq!((status, head[8]), (Status::Success, 1));
    let (_, data) = log(&mut queue, page::DISCOVERY, 2048, 0);
    let port = target.address.port().to_string();
    let found: Vec<_> = read_discovery_page(&data).collect();
    assert_eq!(found, [Discovered { subsystem_nqn: NQN, address: "127.0.0.1", service: &port, is_secured: false }]);
    assert_eq!(log(&mut queue, page::HEALTH, 512, 0).0, Status::InvalidLogPage);
    let mut io = Queue::greeted(target.address, false, false);
    let refused = io.connect(io_connect(1), got.entry.result() as u16, DISCOVERY_NQN, HOST_NQN);
    assert_eq!(refused.status(), Status::ConnectInvalidParameters);
}

#[test]
fn an_event_is_told_to_who_waits_for_it_and_once() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let admin = &mut host.admin;
    let ids: Vec<u16> = (0..4).map(|_| request_event(admin)).collect();
    let fifth = request_event(admin);
    assert_eq!(admin.take(fifth, &[]).status(), Status::EventRequestLimitExceeded);
    // It is as warm as the host wants it to be told.
    let id = admin.id();
    let mut entry =
        AdminCommand::SetFeatures { feature: feature::TEMPERATURE_THRESHOLD, save: false, value: 250 }.entry(0);
    entry.command_id = id.into();
    admin.send(&Pdu::Command { entry, data: &[] });
    let mut answers: Vec<_> = (0..2)
        .map(|_| match admin.hear() {
            Heard::Response(entry) => (entry.command_id.get(), entry.dword0.get()),
            other => panic!("{other:?}"),
        })
        .collect();
    answers.sort_unstable();
    assert_eq!(answers, [(ids[0], event::dword(event::HEALTH, 1, page::HEALTH)), (id, 0)]);
    let (_, data) = log(admin, page::HEALTH, 512, 0);
    assert_eq!(HealthPage::from_data(&data).unwrap().critical_warning, 2);
    // The page was read, and it still is too warm.
    assert_eq!(admin.take(ids[1], &[]).entry.dword0.get(), event::dword(event::HEALTH, 1, page::HEALTH));
    assert_eq!(set_feature(admin, feature::TEMPERATURE_THRESHOLD, 343).0, Status::Success);
    // A request can be taken back; anything else is over before it could be.
    let abort = |queue_id, command_id| AdminCommand::Abort { queue_id, command_id };
    let id = admin.id();
    let mut entry = abort(0, ids[2]).entry(0);
    entry.command_id = id.into();
    admin.send(&Pdu::Command { entry, data: &[] });
    assert_eq!(admin.take(ids[2], &[]).status(), Status::CommandAborted);
    assert_eq!(admin.take(id, &[]).entry.dword0.get(), 0);
    let got = admin.admin(abort(1, 77), 0, 0);
    assert_eq!((got.status(), got.entry.dword0.get()), (Status::Success, 1));
}

#[test]
fn features_are_set_and_read_back() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let admin = &mut host.admin;
    assert_eq!(set_feature(admin, feature::QUEUES, queue_count_value(100)), (Status::Success, queue_count_value(16)));
    assert_eq!(feature_of(admin, feature::QUEUES), (Status::Success, queue_count_value(16)));
    assert_eq!(set_feature(admin, feature::COMMAND_SET_PROFILE, 0).0, Status::Success);
    assert_eq!(set_feature(admin, feature::COMMAND_SET_PROFILE, 1).0, Status::CommandSetRejected);
    assert_eq!(set_feature(admin, feature::KEEP_ALIVE, 5000).0, Status::Success);
    assert_eq!(feature_of(admin, feature::KEEP_ALIVE), (Status::Success, 5000));
    assert_eq!(feature_of(admin, feature::VOLATILE_WRITE_CACHE), (Status::Success, 0));
    assert_eq!(set_feature(admin, 0xcc, 0).0, Status::InvalidField);
    assert_eq!(feature_of(admin, 0xcc).0, Status::InvalidField);
    let save = AdminCommand::SetFeatures { feature: feature::KEEP_ALIVE, save: true, value: 1 };
    assert_eq!(admin.admin(save, 0, 0).status(), Status::FeatureNotSaveable);
    let host_id = AdminCommand::GetFeatures { feature: feature::HOST_ID, select: 0, value: 1 };
    assert_eq!(admin.admin(host_id, 0, 16).data, crate::host::HOST_ID);
    let short = AdminCommand::GetFeatures { feature: feature::HOST_ID, select: 0, value: 0 };
    assert_eq!(admin.admin(short, 0, 8).status(), Status::InvalidField, "over fabrics it has 128 bits");
    let data = admin.identify(cns::CONTROLLER, 0, 0).data;
    assert_eq!(IdentifyController::from_data(&data).unwrap().attributes.get() & 1, 1);
    assert_eq!(admin.ask(SubmissionEntry::new(0x0d, 0), &[]).status(), Status::InvalidOpcode);
    assert_eq!(admin.ask(FabricsCommand::Other { kind: 0x55 }.into(), &[]).status(), Status::InvalidField);
    let unknown = FabricsCommand::PropertyGet { offset: 0x40, is_wide: false };
    assert_eq!(admin.ask(unknown.into(), &[]).status(), Status::InvalidField);
    // What went wrong is in the log, the latest first.
    let (_, data) = log(admin, page::ERROR, 64, 0);
    let error = ErrorEntry::from_data(&data).unwrap();
    assert_eq!(error.status.get() >> 1 & 0x7ff, Status::InvalidOpcode.code());
    assert!(error.error_count.get() >= 3);
}

#[test]
fn a_disconnect_ends_a_queue_and_its_place_is_free() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let got = host.io.ask(FabricsCommand::Disconnect { format: 0 }.into(), &[]);
    assert_eq!(got.status(), Status::Success);
    assert_eq!(host.io.hear(), Heard::Closed);
    host.io = Queue::greeted(target.address, false, false);
    assert_eq!(host.io.connect(io_connect(1), host.controller, NQN, HOST_NQN).status(), Status::Success);
    assert_eq!(host.store(b"k", b"v"), Status::Success);
    // A controller that is reset lets its queues go.
    host.admin.set_configuration(Configuration(0));
    assert_eq!(host.io.hear(), Heard::Closed);
}

/// Also where its connections look only when all is over.
#[test]
fn a_reset_ends_queues_and_what_they_wait_for() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let store =
        KvCommand::Store { key: key(b"k"), value_bytes: 50_000, options: kvssd_nvme_spec::kv::StoreOptions::default() };
    let mut entry = store.entry(1).with_data(DataPointer::Transport { length_bytes: 50_000 });
    let id = host.io.id();
    entry.command_id = id.into();
    host.io.send(&Pdu::Command { entry, data: &[] });
    let Heard::R2t(_, tag, ..) = host.io.hear() else { panic!("the store is asked for its data") };
    host.admin.set_configuration(Configuration(0));
    host.admin.set_configuration(Configuration::KEY_VALUE);
    let mut before = std::mem::replace(&mut host.io, Queue::greeted(target.address, false, false));
    assert_eq!(host.io.connect(io_connect(1), host.controller, NQN, HOST_NQN).status(), Status::Success);
    assert_eq!(host.store(b"k", b"newer"), Status::Success);
    before.send_data(id, tag, &[1; 50_000]);
    assert_eq!(before.hear(), Heard::Closed);
    drop(before);
    assert_eq!(host.retrieve(b"k", 9), Ok((b"newer".to_vec(), 5)));
    // Nor has the end of the one taken the other's place.
    let mut third = Queue::greeted(target.address, false, false);
    let refused = third.connect(io_connect(1), host.controller, NQN, HOST_NQN).status();
    assert_eq!(refused, Status::ConnectInvalidParameters);
}

/// Their identifiers and their entries of the queue are free again, however often that is so.
#[test]
fn a_reset_ends_event_requests() {
    let target = Target::new();
    let mut host = Host::new(&target);
    for round in 0..20 {
        for id in 1000..1004u16 {
            let mut entry = AdminCommand::AsynchronousEventRequest.entry(0).with_data(DataPointer::NONE);
            entry.command_id = id.into();
            host.admin.send(&Pdu::Command { entry, data: &[] });
        }
        host.admin.set_configuration(Configuration(0));
        host.admin.set_configuration(Configuration::KEY_VALUE);
        let mut entry = SubmissionEntry::from(FabricsCommand::PropertyGet { offset: property::STATUS, is_wide: false });
        entry.command_id = 1001.into();
        host.admin.send(&Pdu::Command { entry, data: &[] });
        assert_eq!(host.admin.take(1001, &[]).status(), Status::Success, "round {round}");
    }
}

#[test]
fn a_stop_closes_the_drive_in_order_and_the_next_service_finds_everything() {
    let mut target = Target::new();
    let mut host = Host::new(&target);
    for index in 0..200u32 {
        assert_eq!(host.store(&index.to_le_bytes(), &index.to_be_bytes()), Status::Success);
    }
    target.stop();
    assert_eq!(host.io.hear(), Heard::Closed);
    let folder = tempfile::tempdir().unwrap();
    let path = target.folder.path().join("drive.kv");
    let options = kvssd_flash::OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
    let drive = kvssd_device::Drive::open(path, options).unwrap();
    assert!(drive.mounted().unwrap().was_closed);
    let again = Target::serving(drive, kvssd_nvme_target::SubsystemOptions::new(NQN), folder);
    let mut host = Host::new(&again);
    for index in 0..200u32 {
        assert_eq!(host.retrieve(&index.to_le_bytes(), 9), Ok((index.to_be_bytes().to_vec(), 4)));
    }
}

#[test]
fn timed_answers_come_when_the_modelled_drive_gives_them() {
    let profile = kvssd_flash::Profile::load("pm983", &[]).unwrap();
    let plain = Target::new();
    let mut host = Host::new(&plain);
    assert_eq!(host.store(b"k", &[1; 4096]), Status::Success);
    drop(host);
    let mut plain = plain;
    plain.stop();
    let path = plain.folder.path().join("drive.kv");
    let options = kvssd_flash::OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
    let drive = kvssd_device::Drive::open_timed(path, options, &profile).unwrap();
    let mut options = kvssd_nvme_target::SubsystemOptions::new(NQN);
    options.is_timed = true;
    let timed = Target::serving(drive, options, tempfile::tempdir().unwrap());
    let mut host = Host::new(&timed);
    let begin = std::time::Instant::now();
    const READS: u32 = 50;
    for _ in 0..READS {
        assert_eq!(host.retrieve(b"k", 4096).unwrap().0.len(), 4096);
    }
    let each = begin.elapsed() / READS;
    assert!(each >= std::time::Duration::from_micros(40), "{each:?} is less than a page of that flash takes");
}
