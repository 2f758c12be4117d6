//! A life of a drive by script: what is done follows from a seed, and so does what the drive must then hold.

use kvssd_device::{CreateDrive, Drive};
use kvssd_flash::Profile;
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Random, Reply, StoreCondition, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Keys of each namespace, as a rule.
pub const KEYS: u64 = 120;
/// Bytes of a value that lies in a record; a few have all sizes up to the first, most up to the second.
const SIZES: [u64; 2] = [9000, 700];
/// Bytes of a large value: segments of two or three superblocks.
const LARGE_BYTES: u64 = 400_000;

/// The namespaces by their names; the first one has none.
pub const NAMES: [Option<&str>; 4] = [None, Some("in order"), Some("of another index"), Some("comes and goes")];

/// What a drive must hold: by namespace and key, the seed and the length of the value.
pub type Model = BTreeMap<(usize, Vec<u8>), (u64, u32)>;

/// One thing that is done.
pub enum Step {
    /// Makes a namespace.
    Create(usize),
    /// Deletes a namespace.
    Delete(usize),
    /// Binds a key to a value, or to none.
    Put(Change),
    /// Does so with several keys at once.
    Batch(Vec<Change>),
}

/// A key that gets a value, or loses it.
pub type Change = ((usize, Vec<u8>), Option<(u64, u32)>);

/// The first `length` steps that follow from a seed, with so many keys in each namespace.
pub fn steps(seed: u64, length: usize, keys: u64) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut steps: Vec<Step> = (1..NAMES.len()).map(Step::Create).collect();
    let mut lives = true;
    let key = |random: &mut Random, names: usize| {
        let number = random.below(keys);
        (
            random.below(names as u64) as usize,
            format!("key {number:0width$}", width = (number % 30) as usize).into_bytes(),
        )
    };
    while steps.len() < length {
        let names = if lives { NAMES.len() } else { NAMES.len() - 1 };
        let change = |random: &mut Random, is_short: bool| {
            let bytes = SIZES[usize::from(is_short || random.below(4) > 0)];
            let value = (random.below(5) > 0).then(|| (random.bits(), random.below(bytes) as u32));
            (key(random, names), value)
        };
        if matches!(steps.len() % 1000, 90 | 180) {
            lives = !lives;
            steps.push(if lives { Step::Create(NAMES.len() - 1) } else { Step::Delete(NAMES.len() - 1) });
            continue;
        }
        let step = match random.below(60) {
            1 => {
                let length = LARGE_BYTES / 2 + random.below(LARGE_BYTES / 2);
                Step::Put((
                    (0, format!("large {}", random.below(3)).into_bytes()),
                    Some((random.bits(), length as u32)),
                ))
            }
            2..10 => {
                let changes: BTreeMap<_, _> = (0..2 + random.below(5)).map(|_| change(&mut random, true)).collect();
                Step::Batch(changes.into_iter().collect())
            }
            _ => Step::Put(change(&mut random, false)),
        };
        steps.push(step);
    }
    steps
}

/// What a drive holds when these steps were taken.
pub fn model(steps: &[Step]) -> Model {
    let mut model = Model::new();
    for step in steps {
        let changes = match step {
            Step::Put(change) => std::slice::from_ref(change),
            Step::Batch(changes) => changes,
            Step::Create(name) | Step::Delete(name) => {
                model.retain(|(of, _), _| of != name);
                continue;
            }
        };
        for (key, value) in changes {
            match value {
                Some(value) => drop(model.insert(key.clone(), *value)),
                None => drop(model.remove(key)),
            }
        }
    }
    model
}

/// The bytes of a value. They repeat themselves, so that an image of them takes little room in the repository.
pub fn bytes((seed, length): (u64, u32)) -> Vec<u8> {
    let mut bytes = seed.to_le_bytes().repeat((length as usize).div_ceil(8));
    bytes.truncate(length as usize);
    bytes
}

/// The namespace of that name.
pub fn id(drive: &Drive, name: usize) -> NamespaceId {
    let Some(name) = NAMES[name] else { return NamespaceId::FIRST };
    let all = drive.namespaces();
    let found = all.iter().find(|info| info.attributes.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("{name} is not there")).id
}

/// What is chosen of a namespace: all that the design's out-of-band areas have room for.
fn attributes(design: &str, name: usize) -> NamespaceAttributes {
    let index = match (name, design) {
        (2, "plus") => Some("hash-fixed"),
        (2, "rhik") => Some("multilevel"),
        (2, _) => Some("rhik"),
        _ => None,
    };
    // A tree's pages are larger than what records may take there.
    let is_ordered = name == 1 && design != "multilevel";
    let name = NAMES[name].map(str::to_owned);
    NamespaceAttributes { name, index: index.map(str::to_owned), is_ordered, ..NamespaceAttributes::PLAIN }
}

/// Takes a step.
pub fn take(drive: &mut Drive, step: &Step) -> Result<(), KvError> {
    let value = |value: &Option<(u64, u32)>| value.map(|value| Value::from(&bytes(value)[..]));
    match step {
        Step::Create(name) => {
            let attributes = attributes(drive.design().name, *name);
            drive.create_namespace(attributes).map(|_| ())
        }
        Step::Delete(name) => {
            let id = id(drive, *name);
            drive.delete_namespace(id)
        }
        Step::Put(((name, key), put)) => {
            let (id, key) = (id(drive, *name), Key::new(key).unwrap());
            let command = match value(put) {
                Some(value) => Command::Store { key, value, condition: StoreCondition::Always },
                None => Command::Delete { key },
            };
            match drive.execute_in(id, command) {
                Err(KvError::KeyNotFound) if put.is_none() => Ok(()),
                other => other.map(|_| ()),
            }
        }
        Step::Batch(changes) => {
            let changes: Vec<BatchChange<'_>> = changes
                .iter()
                .map(|((name, key), put)| BatchChange {
                    namespace: id(drive, *name),
                    key: Key::new(key).unwrap(),
                    value: value(put),
                })
                .collect();
            drive.execute(Command::Batch { changes: &changes }).map(|_| ())
        }
    }
}

/// The whole value of a key, none when there is no such key.
pub fn get(drive: &mut Drive, (name, key): &(usize, Vec<u8>)) -> Result<Option<Vec<u8>>, KvError> {
    let id = id(drive, *name);
    let command = Command::Retrieve { key: Key::new(key).unwrap(), offset_bytes: 0, length_bytes: u32::MAX };
    match drive.execute_in(id, command) {
        Ok(Reply::Retrieved { value, .. }) => Ok(Some(value.to_vec())),
        Err(KvError::KeyNotFound) => Ok(None),
        Err(error) => Err(error),
        Ok(other) => panic!("{other:?}"),
    }
}

/// Every key that the script ever speaks of, with what must be there.
pub fn expected(steps: &[Step]) -> Vec<Change> {
    let model = model(steps);
    let lives = steps.iter().fold(true, |lives, step| match step {
        Step::Create(3) => true,
        Step::Delete(3) => false,
        _ => lives,
    });
    let changes = steps.iter().flat_map(|step| match step {
        Step::Put(change) => std::slice::from_ref(change),
        Step::Batch(changes) => changes,
        Step::Create(_) | Step::Delete(_) => &[],
    });
    let keys: BTreeMap<_, _> = changes.map(|(key, _)| (key.clone(), model.get(key).copied())).collect();
    keys.into_iter().filter(|((name, _), _)| *name != 3 || lives).collect()
}

/// A drive of 24 MiB: everything is soon collected, and the file is small. Of DRAM it has as much as given.
pub fn small_profile(design: &Design, dram_bytes: u64) -> Profile {
    let dram_bytes = dram_bytes.to_string();
    let keys = [
        ("geometry.blocks_per_die", "192"),
        ("geometry.oob_bytes", "512"),
        ("memory.dram_bytes", dram_bytes.as_str()),
        ("memory.power_loss", "protected"),
    ];
    design.tiny_profile(&keys).unwrap()
}

/// A new drive of that profile.
pub fn create(path: &Path, design: &Design, profile: &Profile) -> Drive {
    let options = CreateDrive { value_bytes_max: Some(2 << 20), ..CreateDrive::default() };
    Drive::create(path, profile, design, options).unwrap()
}
