//! A drive that has failed takes nothing any more, whatever it is asked for.

use kvssd_flash::{
    Backing, BlockAddress, BlockState, ByteBacking, MediaError, PageAddress, PageView, PowerCut, PowerLoss, Span,
    UnitAddress, UnitImage,
};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{ClientId, Command, Key, KvError, NamespaceId, Nanos, Random, Reply, StoreCondition, Value};
use std::sync::{Arc, Mutex};

/// A medium that fails one of its writes, or one of its reads, and does those behind it again.
struct Struck {
    medium: PowerCut,
    writes_left: u64,
    reads_left: u64,
}

impl Struck {
    fn strike(&mut self) -> Result<(), MediaError> {
        count(&mut self.writes_left)
    }
}

fn count(left: &mut u64) -> Result<(), MediaError> {
    let before = *left;
    *left = before.wrapping_sub(1);
    if before == 0 { Err(MediaError::Failed("struck".to_owned())) } else { Ok(()) }
}

impl Backing for Struck {
    fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError> {
        self.strike()?;
        self.medium.program(unit, content, span)
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        count(&mut self.reads_left)?;
        self.medium.page(page)
    }

    fn erase(&mut self, block: BlockAddress, span: Span) -> Result<(), MediaError> {
        self.strike()?;
        self.medium.erase(block, span)
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        self.medium.block(block)
    }

    fn stage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        self.medium.stage(bytes, at)
    }

    fn restage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        self.strike()?;
        self.medium.restage(bytes, at)
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        self.medium.staged()
    }
}

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

/// What collection does before a command may fail as the command may. Nothing is committed behind it: the drive is mounted with all that it
/// has answered, however soon the medium writes again.
#[test]
fn a_write_that_fails_before_a_command_loses_nothing() {
    let design = kvssd_designs::named("plus").unwrap();
    let profile = design.tiny_profile(&[("memory.power_loss", PowerLoss::Protected.name())]).unwrap();
    for writes_left in (2000..6000).step_by(131) {
        let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
        let powered = || {
            let medium = Arc::clone(&medium);
            PowerCut::new(medium, profile.geometry, PowerLoss::Protected, Nanos::MAX, Random::new(1))
        };
        let mut engine =
            design.build(&profile, Box::new(Struck { medium: powered(), writes_left, reads_left: u64::MAX })).unwrap();
        engine.checkpoint_every(1);
        let (mut clock, mut versions) = (Nanos::ZERO, [0u8; 800]);
        let mut random = Random::new(writes_left);
        let failed = (0..12_000).find_map(|number| {
            let key = if number < 800 { number } else { random.below(800) } as usize;
            let version = versions[key] + 1;
            let value = Value::from(&[version; 2900][..]);
            let key_bytes = key.to_be_bytes();
            let store = Command::Store { key: Key::new(&key_bytes).unwrap(), value, condition: StoreCondition::Always };
            let (done, reply) = engine.execute(store, clock);
            clock = done;
            match reply {
                Ok(_) => versions[key] = version % 250,
                Err(error) => return Some((key, error)),
            }
            None
        });
        let (in_flight, error) = failed.expect("one of its writes fails");
        assert!(error.is_fatal(), "write {writes_left}: {error}");
        drop(engine);
        let (mut engine, report) = (design.mount(&profile, Box::new(powered())))
            .unwrap_or_else(|error| panic!("write {writes_left}: {error}"));
        for (key, &version) in versions.iter().enumerate().filter(|(key, _)| *key != in_flight) {
            let key_bytes = key.to_be_bytes();
            let (key, length_bytes) = (Key::new(&key_bytes).unwrap(), 2900);
            let retrieved = engine.execute(Command::Retrieve { key, offset_bytes: 0, length_bytes }, report.took).1;
            let Ok(Reply::Retrieved { value, .. }) = retrieved else {
                assert_eq!(version, 0, "write {writes_left}: {retrieved:?}");
                continue;
            };
            assert!(value == Value::from(&[version; 2900][..]), "write {writes_left}, key {key:?}");
        }
    }
}

/// A page that a mount could not read now may be there the next time: it must not be passed over as one that is damaged.
#[test]
fn a_read_that_fails_in_a_mount_loses_nothing() {
    let design = kvssd_designs::named("plus").unwrap();
    let profile = design.tiny_profile(&[("memory.power_loss", PowerLoss::Protected.name())]).unwrap();
    let used = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let on = |medium: &Arc<Mutex<ByteBacking>>| {
        PowerCut::new(Arc::clone(medium), profile.geometry, PowerLoss::Protected, Nanos::MAX, Random::new(1))
    };
    let mut engine = design.build(&profile, Box::new(on(&used))).unwrap();
    let (mut clock, mut random, mut versions) = (Nanos::ZERO, Random::new(1), [0u8; 800]);
    for _ in 0..6000 {
        let key = random.below(800) as usize;
        let version = versions[key] % 250 + 1;
        let (key_bytes, value) = (key.to_be_bytes(), Value::from(&[version; 700][..]));
        let store = Command::Store { key: Key::new(&key_bytes).unwrap(), value, condition: StoreCondition::Always };
        let (done, reply) = engine.execute(store, clock);
        reply.unwrap();
        (clock, versions[key]) = (done, version);
    }
    drop(engine);
    let (mut refused, mut mounted) = (0, 0);
    for reads_left in (0..300).step_by(3) {
        let medium = Arc::new(Mutex::new(used.lock().unwrap().clone()));
        let struck = Struck { medium: on(&medium), writes_left: u64::MAX, reads_left };
        match design.mount(&profile, Box::new(struck)) {
            Ok((engine, _)) => {
                mounted += 1;
                let _ = engine.close();
            }
            Err(_) => refused += 1,
        }
        let (mut engine, report) = design.mount(&profile, Box::new(on(&medium))).unwrap();
        for (key, &version) in versions.iter().enumerate().filter(|(_, version)| **version > 0) {
            let key_bytes = key.to_be_bytes();
            let (key, length_bytes) = (Key::new(&key_bytes).unwrap(), 700);
            let retrieved = engine.execute(Command::Retrieve { key, offset_bytes: 0, length_bytes }, report.took).1;
            let Ok(Reply::Retrieved { value, .. }) = retrieved else { panic!("read {reads_left}: {retrieved:?}") };
            assert!(value == Value::from(&[version; 700][..]), "read {reads_left}, key {key:?}");
        }
    }
    assert!(refused > 20 && mounted > 20, "{refused} mounts were refused, {mounted} were not");
}
