//! A drive that has failed takes nothing any more, whatever it is asked for.

use kvssd_flash::{ByteBacking, PowerCut, PowerLoss};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{ClientId, Command, Key, KvError, NamespaceId, Nanos, Random, StoreCondition, Value};
use std::sync::{Arc, Mutex};

#[test]
fn a_drive_that_has_failed_opens_no_client_and_shares_no_logs() {
    let design = kvssd_designs::named("plus").unwrap();
    let profile = design.tiny_profile(&[("memory.power_loss", PowerLoss::Protected.name())]).unwrap();
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let cut_at = Nanos(20_000_000);
    let backing = PowerCut::new(medium, profile.geometry, PowerLoss::Protected, cut_at, Random::new(1));
    let mut engine = design.build(&profile, Box::new(backing)).unwrap();
    let known = ClientId([1; 32]);
    let (mut clock, opened) = engine.open_client(known, Nanos::ZERO);
    assert!(opened.is_ok());
    let failure = loop {
        assert!(clock < Nanos(60 * 1_000_000_000), "the power stays");
        let (key, value) = (Key::new(b"a").unwrap(), Value::from(&[1; 4000][..]));
        let store = Command::Store { key, value, condition: StoreCondition::Always };
        match engine.execute(store, clock) {
            (done, Ok(_)) => clock = done,
            (_, Err(error)) => break error,
        }
    };
    assert_eq!(failure, KvError::PowerLost);
    assert_eq!(engine.open_client(known, clock).1, Err(failure.clone()));
    assert_eq!(engine.set_logs(NamespaceId::FIRST, None, clock).1, Err(failure.clone()));
    assert_eq!(engine.create_namespace(NamespaceAttributes::PLAIN, clock).1, Err(failure));
}
