//! The check of large values: whether manifests, segments and ledgers agree.
//!
//! ```text
//!   every pair of a namespace  ->  manifests           each has its segments, of the right length, under an id of its own
//!   every key of its shadow    ->  segments, ledger    each is a manifest's, or the ledger says that it goes next
//! ```
//!
//! The walk over the pages has already checked the bytes of segments.

use super::ledger::{Ledger, MANIFEST_BYTES, Manifest, Tagged, segment_key};
use super::shadows::Shadow;
use super::{LargeValues, Records, unexpected};
use kvssd_ftl::{CheckReport, Harm};
use kvssd_types::{Command, Key, KvError, NamespaceId, OwnedKey, Reply};
use std::collections::BTreeMap;

/// Keys that are listed at once.
const KEYS_AT_ONCE: usize = 1000;

/// The key of a large value, and where it is.
type Found = BTreeMap<u64, (OwnedKey, Manifest)>;

impl LargeValues {
    /// Adds to `report` what is wrong with the large values of a drive that was just opened read-only.
    pub(crate) fn check(&self, records: &mut dyn Records, report: &mut CheckReport) {
        for shadow in &self.shadows {
            let place = format!("large values of namespace {}", shadow.owner);
            match self.check_one(records, shadow, &place, report) {
                // A process that ended between the two has deleted its namespace; the next open deletes it.
                Err(KvError::NoSuchNamespace(id)) if id == shadow.owner => {}
                Err(error) => report.find(Harm::PairLost, place, error.to_string()),
                Ok(()) => {}
            }
        }
    }

    fn check_one(
        &self,
        records: &mut dyn Records,
        shadow: &Shadow,
        place: &str,
        report: &mut CheckReport,
    ) -> Result<(), KvError> {
        if let Some(error) = &shadow.fault {
            report.find(Harm::NotMounted, format!("{place}, ledger"), error.to_string());
            return Ok(());
        }
        let mut found = Found::new();
        each_key(records, shadow.owner, |records, key| {
            match manifest_of(records, shadow.owner, key) {
                Ok(Some(manifest)) => self.take(&mut found, key, manifest, place, report),
                Ok(None) => {}
                Err(error) => report.find(Harm::PairLost, name(place, key.bytes()), error.to_string()),
            }
            Ok(())
        })?;
        check_ledger(&shadow.ledger, &found, place, report);
        for (key, manifest) in found.values() {
            check_segments(records, shadow.id, (key, manifest), place, report)?;
        }
        each_key(records, shadow.id, |_, key| {
            // The walk has counted it, and it is not a pair of a host.
            report.pairs = report.pairs.saturating_sub(1);
            if key != Ledger::key() {
                check_owned(&shadow.ledger, &found, key.bytes(), place, report);
            }
            Ok(())
        })
    }

    /// Notes that a key has a large value, after checks of its manifest.
    fn take(&self, found: &mut Found, key: Key<'_>, manifest: Manifest, place: &str, report: &mut CheckReport) {
        let at = || name(place, key.bytes());
        if manifest.value_bytes > self.value_bytes_max || manifest.segment_bytes != self.segment_bytes {
            report.find(Harm::PairLost, at(), "its manifest is not one of this drive");
        } else if let Some((other, _)) = found.insert(manifest.id, (key.bytes().into(), manifest)) {
            let what = format!("its segments are those of key \"{}\" too", other.escape_ascii());
            report.find(Harm::PairLost, at(), what);
        }
    }
}

fn name(place: &str, key: &[u8]) -> String {
    format!("{place}, key \"{}\"", key.escape_ascii())
}

/// Calls `visit` with each key of a namespace: as they are listed, or where its index has no list as they are told.
pub(crate) fn each_key(
    records: &mut dyn Records,
    namespace: NamespaceId,
    mut visit: impl FnMut(&mut dyn Records, Key<'_>) -> Result<(), KvError>,
) -> Result<(), KvError> {
    let mut last: Option<OwnedKey> = None;
    loop {
        let from = last.as_deref().map(Key::new).transpose()?;
        let keys = match records.execute(namespace, Command::List { from, keys_max: KEYS_AT_ONCE }) {
            Ok(Reply::Listed(keys)) => keys,
            Ok(other) => return Err(unexpected(&other)),
            Err(error @ KvError::InvalidCommand(_)) => {
                let keys = told_keys(records, namespace)?.ok_or(error)?;
                return keys.iter().try_for_each(|key| visit(records, Key::new(key)?));
            }
            Err(error) => return Err(error),
        };
        // The last key of the previous list comes again.
        let fresh = &keys[usize::from(last.is_some() && keys.first() == last.as_ref())..];
        for key in fresh {
            visit(records, Key::new(key)?)?;
        }
        match fresh.last() {
            Some(key) => last = Some(key.clone()),
            None => return Ok(()),
        }
    }
}

/// The keys of a namespace that are told without a list ([`Engine::salvage_keys`](kvssd_ftl::Engine::salvage_keys)); `None` if nothing may
/// change.
pub(crate) fn told_keys(records: &mut dyn Records, namespace: NamespaceId) -> Result<Option<Vec<OwnedKey>>, KvError> {
    let Some(engine) = records.engine_mut() else { return Ok(None) };
    let mut keys = Vec::new();
    for told in engine.salvage_keys(namespace)? {
        // What says that a key was deleted may be lost.
        if records.execute(namespace, Command::Exist { key: Key::new(&told)? }) != Err(KvError::KeyNotFound) {
            keys.push(told);
        }
    }
    Ok(Some(keys))
}

/// Where the value of a key is, if it is a large one.
fn manifest_of(records: &mut dyn Records, namespace: NamespaceId, key: Key<'_>) -> Result<Option<Manifest>, KvError> {
    match records.execute(namespace, Command::Retrieve { key, offset_bytes: 0, length_bytes: MANIFEST_BYTES })? {
        Reply::Retrieved { value, .. } => Ok(match Tagged::read(&value)? {
            Tagged::Inline => None,
            Tagged::Large(manifest) => Some(manifest),
        }),
        other => Err(unexpected(&other)),
    }
}

/// Checks that the ledger's ids and counts are those that were found.
fn check_ledger(ledger: &Ledger, found: &Found, place: &str, report: &mut CheckReport) {
    let place = format!("{place}, ledger");
    let mut unowned: Vec<u64> = ledger.unowned.iter().map(|&(id, _)| id).collect();
    unowned.sort_unstable();
    if let Some(id) = found.keys().chain(&unowned).max().filter(|id| **id >= ledger.next_id) {
        let what = format!("the next id is {}, and {id} is in use: a value will be written over", ledger.next_id);
        report.find(Harm::DriveStops, place.as_str(), what);
    }
    for pair in unowned.windows(2).filter(|pair| pair[0] == pair[1]) {
        report.find(Harm::Harmless, place.as_str(), format!("id {} is to be deleted twice", pair[0]));
    }
    for id in unowned.iter().filter(|id| found.contains_key(id)) {
        let what = format!("id {id} is to be deleted, and key \"{}\" has it", found[id].0.escape_ascii());
        report.find(Harm::PairLost, place.as_str(), what);
    }
    let (there, known) = (found.len() as u64, ledger.values);
    if there != known {
        let harm = if known < there { Harm::SpaceLeaked } else { Harm::Harmless };
        report.find(harm, place, format!("{there} large values were found, and {known} are counted"));
    }
}

/// Checks that a manifest's segments exist and have the right lengths.
fn check_segments(
    records: &mut dyn Records,
    shadow: NamespaceId,
    (key, manifest): (&OwnedKey, &Manifest),
    place: &str,
    report: &mut CheckReport,
) -> Result<(), KvError> {
    for number in 0..manifest.segments() {
        let begin = u64::from(number) * u64::from(manifest.segment_bytes);
        let wanted = (u64::from(manifest.value_bytes) - begin).min(manifest.segment_bytes.into());
        let segment = segment_key(manifest.id, number);
        let command = Command::Retrieve { key: Key::new(&segment)?, offset_bytes: 0, length_bytes: 0 };
        let what = match records.execute(shadow, command) {
            Ok(Reply::Retrieved { value_bytes, .. }) if u64::from(value_bytes) == wanted => continue,
            Ok(Reply::Retrieved { value_bytes, .. }) => format!("has {value_bytes} bytes, and should have {wanted}"),
            Ok(other) => return Err(unexpected(&other)),
            Err(KvError::KeyNotFound) => "is missing".to_owned(),
            Err(error) => format!("cannot be read: {error}"),
        };
        report.find(Harm::PairLost, name(place, key), format!("segment {number} of its value {what}"));
    }
    Ok(())
}

/// Checks that a record of a shadow belongs to a manifest, or that the ledger has it deleted next.
fn check_owned(ledger: &Ledger, found: &Found, key: &[u8], place: &str, report: &mut CheckReport) {
    let Some((id, number)) = key.split_first_chunk::<8>() else {
        return report.find(Harm::SpaceLeaked, name(place, key), "it is the key of no segment");
    };
    let Ok(number) = <[u8; 4]>::try_from(number) else {
        return report.find(Harm::SpaceLeaked, name(place, key), "it is the key of no segment");
    };
    let (id, number) = (u64::from_be_bytes(*id), u32::from_be_bytes(number));
    let of_key = found.get(&id).is_some_and(|(_, manifest)| number < manifest.segments());
    let goes = ledger.unowned.iter().any(|&(unowned, segments)| unowned == id && number < segments);
    if !of_key && !goes {
        report.find(Harm::SpaceLeaked, place, format!("no key has segment {number} of id {id}, and it will stay"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateDrive, Drive, image_design, image_profile};
    use kvssd_flash::OpenOptions;
    use kvssd_types::{StoreCondition, Value};
    use std::path::Path;

    const FIRST: NamespaceId = NamespaceId::FIRST;
    const WRITE: OpenOptions = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };

    fn store(drive: &mut dyn Records, namespace: NamespaceId, key: &[u8], value: Value) {
        let command = Command::Store { key: Key::new(key).unwrap(), value, condition: StoreCondition::Always };
        assert_eq!(drive.execute(namespace, command), Ok(Reply::Stored));
    }

    /// A drive with small and large values, some of which were written over.
    fn used(path: &Path, design: &str) -> Drive {
        let (design, profile) = (image_design(design).unwrap(), image_profile(64 << 20).unwrap());
        let options = CreateDrive { value_bytes_max: Some(4 << 20), ..CreateDrive::default() };
        let mut drive = Drive::create(path, &profile, &design, options).unwrap();
        for number in 0..12u8 {
            let length = if number % 2 == 0 { 1_300_000 } else { 3000 };
            let value = Value::from(&vec![number; length][..]);
            let (key, condition) = ([number % 9], StoreCondition::Always);
            drive.execute(Command::Store { key: Key::new(&key).unwrap(), value, condition }).unwrap();
        }
        drive
    }

    /// What is done behind the back of the large values, with their shadow and its ledger.
    type Damage = fn(&mut dyn Records, NamespaceId, Ledger);

    fn report_of(design: &str, damage: Damage) -> CheckReport {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("drive.kv");
        let mut drive = used(&path, design);
        let shadow = drive.large.as_ref().unwrap().shadow(FIRST).unwrap();
        let (id, ledger) = (shadow.id, shadow.ledger.clone());
        damage(&mut drive.clocked, id, ledger);
        drive.close().unwrap();
        Drive::check(&path).unwrap()
    }

    fn ledger(drive: &mut dyn Records, shadow: NamespaceId, ledger: &Ledger) {
        store(drive, shadow, Ledger::key().bytes(), ledger.encode());
    }

    fn manifest(drive: &mut dyn Records, key: &[u8]) -> Manifest {
        manifest_of(drive, FIRST, Key::new(key).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn each_damage_of_large_values_is_found() {
        let damages: [(Damage, Harm, &str); 13] = [
            (
                |drive, shadow, _| {
                    let key = segment_key(manifest(drive, &[4]).id, 1);
                    drive.execute(shadow, Command::Delete { key: Key::new(&key).unwrap() }).unwrap();
                },
                Harm::PairLost,
                "segment 1 of its value is missing",
            ),
            (
                |drive, shadow, _| {
                    let key = segment_key(manifest(drive, &[4]).id, 0);
                    store(drive, shadow, &key, Value::from(&b"short"[..]));
                },
                Harm::PairLost,
                "segment 0 of its value has 5 bytes",
            ),
            (
                |drive, shadow, _| store(drive, shadow, &segment_key(1, 7), Value::from(&b"lost"[..])),
                Harm::SpaceLeaked,
                "segment 7 of id 1",
            ),
            (
                |drive, shadow, _| store(drive, shadow, &segment_key(99, 0), Value::from(&b"lost"[..])),
                Harm::SpaceLeaked,
                "segment 0 of id 99",
            ),
            (
                |drive, shadow, _| store(drive, shadow, b"cabbages", Value::from(&b"x"[..])),
                Harm::SpaceLeaked,
                "key of no segment",
            ),
            (
                |drive, shadow, _| store(drive, shadow, Ledger::key().bytes(), Value::from(&[255; 3][..])),
                Harm::NotMounted,
                "the ledger of large values",
            ),
            (
                |drive, shadow, found| ledger(drive, shadow, &Ledger { next_id: 2, ..found }),
                Harm::DriveStops,
                "the next id is 2",
            ),
            (
                |drive, shadow, found| ledger(drive, shadow, &Ledger { values: 0, ..found }),
                Harm::SpaceLeaked,
                "and 0 are counted",
            ),
            (
                |drive, shadow, found| ledger(drive, shadow, &Ledger { values: 90, ..found }),
                Harm::Harmless,
                "and 90 are counted",
            ),
            (
                |drive, shadow, found| {
                    let id = manifest(drive, &[4]).id;
                    ledger(drive, shadow, &Ledger { unowned: vec![(id, 0)], ..found });
                },
                Harm::PairLost,
                "is to be deleted, and key",
            ),
            (
                |drive, _, _| {
                    let same = manifest(drive, &[4]);
                    store(drive, FIRST, &[3], same.encode());
                },
                Harm::PairLost,
                "its segments are those of key",
            ),
            (
                |drive, _, _| {
                    let manifest = Manifest { segment_bytes: 77, ..manifest(drive, &[4]) };
                    store(drive, FIRST, &[4], manifest.encode());
                },
                Harm::PairLost,
                "not one of this drive",
            ),
            (|drive, _, _| store(drive, FIRST, &[3], Value::from(&[9; 40][..])), Harm::PairLost, "no tag"),
        ];
        for design in ["original", "plus", "pink"] {
            for (damage, harm, says) in damages {
                let report = report_of(design, damage);
                let found = report.findings.iter().any(|finding| finding.harm == harm && finding.what.contains(says));
                assert!(found, "{design}, {says}:\n{report}");
            }
        }
    }

    #[test]
    fn large_values_that_are_whole_have_no_findings_whatever_ended_the_drives_life() {
        for design in kvssd_designs::DESIGNS.map(|design| design.name) {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("drive.kv");
            drop(used(&path, design));
            assert_eq!(Drive::check(&path).unwrap().to_string().lines().count(), 2, "{design}");
            Drive::open(&path, WRITE).unwrap().close().unwrap();
            let report = Drive::check(&path).unwrap();
            assert!(report.is_clean() && report.pairs == 9, "{design}:\n{report}");
        }
    }
}
