//! Discovery controllers that stay: what they tell, whom, and when.

use crate::host::{HOST_NQN, Heard, Host, Queue, Target, admin_connect};
use kvssd_nvme_auth::TlsKey;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage};
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, Configuration, DISCOVERY_NQN};
use kvssd_nvme_spec::features::{EVENT_DISCOVERY, EVENT_NAMESPACES, event, feature};
use kvssd_nvme_spec::identify::{IdentifyController, cns};
use kvssd_nvme_spec::log_page::{DiscoveryHeader, page, read_discovery_page};
use kvssd_nvme_spec::pdu::Pdu;
use kvssd_nvme_target::{HostRights, Namespaces, Rights};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

const OTHER: &str = "nqn.other";
const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
const ENABLED: Configuration = Configuration(0x0046_0001);
/// Longer than it takes until a connection that hears nothing looks at events.
const SOON: Duration = Duration::from_millis(500);

fn with_key() -> HostRights {
    HostRights { tls_key: Some(Arc::new(TlsKey::parse(KEY).unwrap())), ..HostRights::EVERYTHING }
}

fn rights(host: Option<HostRights>, other: HostRights) -> Rights {
    let host = host.map(|rights| (HOST_NQN.to_owned(), rights));
    Rights::new(host.into_iter().chain([(OTHER.to_owned(), other)]).collect(), None)
}

fn persistent(target: &Target, host: &str, keep_alive_ms: u32) -> Queue {
    let mut queue = Queue::greeted(target.address, false, false);
    let got = queue.connect(admin_connect(keep_alive_ms), CONTROLLER_ANY, DISCOVERY_NQN, host);
    assert_eq!(got.status(), Status::Success);
    queue.set_configuration(ENABLED);
    queue
}

fn enable(queue: &mut Queue, value: u32) {
    let set = AdminCommand::SetFeatures { feature: feature::EVENTS, save: false, value };
    assert_eq!(queue.admin(set, 0, 0).status(), Status::Success);
}

fn enabled(queue: &mut Queue) -> u64 {
    queue.admin(AdminCommand::GetFeatures { feature: feature::EVENTS, select: 0, value: 0 }, 0, 0).entry.result()
}

fn request_event(queue: &mut Queue) -> u16 {
    let id = queue.id();
    let mut entry = AdminCommand::AsynchronousEventRequest.entry(0);
    entry.command_id = id.into();
    queue.send(&Pdu::Command { entry, data: &[] });
    id
}

/// GENCTR, and whether TLS is required.
fn read_page(queue: &mut Queue, retain_event: bool) -> (u64, bool) {
    let wanted = GetLogPage { page: page::DISCOVERY, length_bytes: 2048, retain_event, ..GetLogPage::default() };
    let got = queue.admin(AdminCommand::GetLogPage(wanted), 0, 2048);
    assert_eq!(got.status(), Status::Success);
    let is_secured: Vec<_> = read_discovery_page(&got.data).map(|found| found.is_secured).collect();
    assert_eq!(is_secured.len(), 1);
    (DiscoveryHeader::from_data(&got.data).unwrap().generation.get(), is_secured[0])
}

fn expect_change(queue: &mut Queue, id: u16) {
    let Heard::Response(entry) = queue.hear() else { panic!("no event") };
    // What Linux names to udev as NVME_AEN=0x70f002.
    assert_eq!((entry.command_id.get(), entry.result()), (id, 0x70_f002));
    assert_eq!(event::dword(event::NOTICE, event::DISCOVERY_CHANGED, page::DISCOVERY), 0x70_f002);
}

/// Nothing is told meanwhile: any answer but the command's own is a failure.
fn expect_silence(queue: &mut Queue) {
    sleep(SOON);
    for _ in 0..2 {
        assert_eq!(queue.admin(AdminCommand::KeepAlive, 0, 0).status(), Status::Success);
    }
}

#[test]
fn a_host_is_told_when_what_it_discovers_changes_and_once() {
    let target = Target::with(|options| options.rights = rights(Some(HostRights::EVERYTHING), HostRights::EVERYTHING));
    let mut queue = persistent(&target, HOST_NQN, 30_000);
    let data = queue.identify(cns::CONTROLLER, 0, 0).data;
    assert_eq!(IdentifyController::from_data(&data).unwrap().events.get(), EVENT_DISCOVERY);
    enable(&mut queue, u32::MAX);
    assert_eq!(enabled(&mut queue), EVENT_DISCOVERY.into(), "it has this event and no other");
    let ids = [request_event(&mut queue), request_event(&mut queue), request_event(&mut queue)];
    assert_eq!(read_page(&mut queue, false), (1, false));
    target.subsystem.set_rights(rights(Some(with_key()), HostRights::EVERYTHING));
    expect_change(&mut queue, ids[0]);
    // Until the page is read, and the event with it, there is no other.
    target.subsystem.set_rights(rights(Some(HostRights::EVERYTHING), HostRights::EVERYTHING));
    expect_silence(&mut queue);
    assert_eq!(read_page(&mut queue, true), (3, false));
    target.subsystem.set_rights(rights(Some(with_key()), HostRights::EVERYTHING));
    expect_silence(&mut queue);
    assert_eq!(read_page(&mut queue, false), (4, true));
    target.subsystem.set_rights(rights(Some(HostRights::EVERYTHING), HostRights::EVERYTHING));
    expect_change(&mut queue, ids[1]);
    assert_eq!(read_page(&mut queue, false), (5, false));
    // A host that does not want to be told sees it by GENCTR.
    enable(&mut queue, EVENT_NAMESPACES);
    target.subsystem.set_rights(rights(Some(with_key()), HostRights::EVERYTHING));
    expect_silence(&mut queue);
    assert_eq!(read_page(&mut queue, false), (6, true));
    // A reset forgets what was enabled and requested.
    enable(&mut queue, EVENT_DISCOVERY);
    queue.set_configuration(Configuration(0));
    queue.set_configuration(ENABLED);
    assert_eq!(enabled(&mut queue), 0);
    target.subsystem.set_rights(rights(Some(HostRights::EVERYTHING), HostRights::EVERYTHING));
    expect_silence(&mut queue);
    assert_eq!(read_page(&mut queue, false), (7, false));
}

#[test]
fn what_does_not_change_the_page_of_a_host_is_not_told_to_it() {
    let target = Target::with(|options| options.rights = rights(Some(HostRights::EVERYTHING), HostRights::EVERYTHING));
    let (mut queue, mut other) = (persistent(&target, HOST_NQN, 30_000), persistent(&target, OTHER, 30_000));
    enable(&mut queue, EVENT_DISCOVERY);
    enable(&mut other, EVENT_DISCOVERY);
    request_event(&mut queue);
    let id = request_event(&mut other);
    // The namespaces of a host, the key of another one, a host more, and a connection and its end.
    let reader = HostRights { read_write: Namespaces::NONE, read_only: Namespaces::All, ..HostRights::EVERYTHING };
    target.subsystem.set_rights(rights(Some(reader), HostRights::EVERYTHING));
    drop(Host::named(target.address, OTHER));
    target.subsystem.set_rights(Rights::only([HOST_NQN.to_owned(), OTHER.to_owned(), "nqn.third".to_owned()]));
    expect_silence(&mut queue);
    expect_silence(&mut other);
    target.subsystem.set_rights(rights(Some(HostRights::EVERYTHING), with_key()));
    expect_change(&mut other, id);
    expect_silence(&mut queue);
    assert_eq!((read_page(&mut queue, false), read_page(&mut other, false)), ((1, false), (2, true)));
    // An I/O controller has nothing to say of discovery.
    let mut host = Host::new(&target);
    enable(&mut host.admin, EVENT_DISCOVERY | EVENT_NAMESPACES);
    assert_eq!(enabled(&mut host.admin), EVENT_NAMESPACES.into());
    request_event(&mut host.admin);
    target.subsystem.set_rights(rights(Some(HostRights::EVERYTHING), HostRights::EVERYTHING));
    expect_silence(&mut host.admin);
}

#[test]
fn a_host_that_lost_its_rights_is_sent_away_and_finds_another_generation() {
    let target = Target::with(|options| options.rights = rights(Some(HostRights::EVERYTHING), HostRights::EVERYTHING));
    let mut queue = persistent(&target, HOST_NQN, 30_000);
    assert_eq!(read_page(&mut queue, false), (1, false));
    enable(&mut queue, EVENT_DISCOVERY);
    request_event(&mut queue);
    target.subsystem.set_rights(rights(None, HostRights::EVERYTHING));
    assert_eq!(queue.hear(), Heard::Closed);
    let mut again = Queue::greeted(target.address, false, false);
    let got = again.connect(admin_connect(30_000), CONTROLLER_ANY, DISCOVERY_NQN, HOST_NQN);
    assert_eq!(got.status(), Status::ConnectInvalidHost);
    target.subsystem.set_rights(rights(Some(with_key()), HostRights::EVERYTHING));
    let mut queue = persistent(&target, HOST_NQN, 30_000);
    assert_eq!(read_page(&mut queue, false), (3, true));
}

#[test]
fn a_discovery_controller_stays_for_as_long_as_it_is_kept_alive() {
    let target = Target::new();
    let mut queue = persistent(&target, HOST_NQN, 4000);
    for _ in 0..5 {
        sleep(Duration::from_millis(900));
        assert_eq!(queue.admin(AdminCommand::KeepAlive, 0, 0).status(), Status::Success);
    }
    assert_eq!(read_page(&mut queue, false), (1, false));
    assert_eq!(queue.hear(), Heard::Closed, "it is silent");
}
