//! After an open, a namespace is in all partitions or in none, and the same cache in all.
//!
//! ```text
//!   a namespace that is not in all partitions
//!     one has deleted it, and still holds its number      the process ended while it deleted it      it goes
//!     none has deleted it, and it has no pairs            the process ended while it made it         it goes
//!     none has deleted it, and it has pairs               the partitions are of several moments      it is made in the others
//! ```
//!
//! Partitions are of several moments when the machine stopped that had not written all of them, or when a part of the file was put back. Which
//! of them is the older one is not known: nothing that has pairs is deleted. Where a namespace cannot be made, since another one has its number
//! or its name there, hosts do not see it, and its pairs stay. The same where a namespace with pairs is a cache in some of them: it stays so there.

use super::Partitions;
use crate::drive::Drive;
use kvssd_ftl::{CheckReport, Harm, NamespaceInfo};
use kvssd_types::{KvError, NamespaceId};

/// A namespace in a partition that is not in all of them.
struct Stray {
    info: NamespaceInfo,
    /// A partition that has it.
    found: usize,
    /// Those that do not.
    lacking: Vec<usize>,
    /// Whether it is to be in all of them.
    stays: bool,
}

impl Partitions<'_> {
    /// Repairs what a process that ended in the middle left.
    ///
    /// # Errors
    /// As [`Partitions::delete_namespace`] and [`Partitions::set_cache`].
    pub(super) fn settle_namespaces(&mut self) -> Result<(), KvError> {
        // What is deleted holds its number: judge all before.
        let (stay, go): (Vec<Stray>, Vec<Stray>) = self.strays().into_iter().partition(|stray| stray.stays);
        for stray in go {
            self.all[stray.found].delete_namespace(stray.info.id)?;
        }
        // A delete must be safe in all partitions before one of them removes the namespace and forgets it.
        self.commit()?;
        self.all.iter_mut().for_each(|part| part.keep_deleted(false));
        if !stay.is_empty() {
            self.all.iter_mut().try_for_each(|part| part.free_all_numbers())?;
            self.commit()?;
        }
        let numbers: Vec<NamespaceId> = stay.iter().map(|stray| stray.info.id).collect();
        for stray in stay {
            self.complete(&stray, &numbers)?;
        }
        self.settle_caches()
    }

    /// Reports the namespaces that stay though they are not in all partitions.
    pub(super) fn check_namespaces(&self, report: &mut CheckReport) {
        for Stray { info, found, lacking, .. } in self.strays().into_iter().filter(|stray| stray.stays) {
            let lacking: Vec<String> = lacking.iter().map(usize::to_string).collect();
            let what = format!("not in partition {}: partitions are of several moments", lacking.join(", "));
            let name = info.attributes.name.unwrap_or_else(|| info.id.to_string());
            report.find(Harm::PairLost, format!("partition {found}: namespace {name}"), what);
        }
        for first in self.all[0].namespaces() {
            for (number, part) in self.all.iter().enumerate().skip(1) {
                let others = part.namespaces();
                if others.iter().any(|other| is_same(other, &first) && is_other_kind(other, &first)) {
                    let what =
                        format!("a cache in one of partitions 0 and {number}: partitions are of several moments");
                    let name = first.attributes.name.clone().unwrap_or_else(|| first.id.to_string());
                    report.find(Harm::Harmless, format!("namespace {name}"), what);
                }
            }
        }
    }

    fn strays(&self) -> Vec<Stray> {
        let all: Vec<Vec<NamespaceInfo>> = self.all.iter().map(|part| part.namespaces()).collect();
        let mut strays = Vec::new();
        for (found, info) in
            all.iter().enumerate().flat_map(|(found, infos)| infos.iter().map(move |info| (found, info)))
        {
            let has_it = |number: &usize| all[*number].iter().any(|other| is_same(other, info));
            let lacking: Vec<usize> = (0..all.len()).filter(|number| !has_it(number)).collect();
            if lacking.is_empty() {
                continue;
            }
            let name = info.attributes.name.as_deref();
            let was_deleted = lacking.iter().any(|&number| self.all[number].engine().has_deleted(info.id, name));
            let mut with_it = all.iter().flatten().filter(|other| is_same(other, info));
            let stays = !was_deleted && with_it.any(|other| other.utilization.pairs > 0);
            strays.push(Stray { info: info.clone(), found, lacking, stays });
        }
        strays
    }

    /// Makes a namespace in the partitions that lack it, as far as they can have it. No shadow takes one of the `reserved` numbers.
    fn complete(&mut self, stray: &Stray, reserved: &[NamespaceId]) -> Result<(), KvError> {
        let Stray { info, lacking, .. } = stray;
        for &number in lacking {
            let part = &mut *self.all[number];
            let has_it = part.namespaces().iter().any(|other| is_same(other, info));
            let Some(numbers) = numbers_for(part, info.id, reserved).filter(|_| !has_it) else { continue };
            match part.create_namespace_at(Some(numbers), info.attributes.clone()) {
                Ok(_) | Err(KvError::InvalidNamespace(_) | KvError::TooManyNamespaces { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// All follow the first partition, which was the last to change; it follows another one that cannot, having pairs, while it has none
    /// itself. Who cannot follow stays what it is: each partition knows how its own pairs lie.
    fn settle_caches(&mut self) -> Result<(), KvError> {
        for first in self.all[0].namespaces() {
            let of = |part: &Drive| part.namespaces().into_iter().find(|other| is_same(other, &first));
            let others = self.all[1..].iter().filter_map(|part| of(part));
            let bound = others.clone().find(|other| other.utilization.pairs > 0 && is_other_kind(other, &first));
            let leader = bound.filter(|_| first.utilization.pairs == 0).unwrap_or_else(|| first.clone());
            for part in &mut self.all {
                if of(part).is_none_or(|other| other.attributes.cache == leader.attributes.cache) {
                    continue;
                }
                match part.set_cache(first.id, leader.attributes.cache.clone()) {
                    Err(KvError::InvalidNamespace(_)) => {}
                    settled => settled?,
                }
            }
        }
        Ok(())
    }
}

/// Whether one is a cache and the other is none: what has pairs does not become the other.
fn is_other_kind(one: &NamespaceInfo, other: &NamespaceInfo) -> bool {
    one.attributes.cache.is_some() != other.attributes.cache.is_some()
}

/// That number, and another free one for a shadow, none of the `reserved` ones. None if the number is not free there.
fn numbers_for(part: &Drive, id: NamespaceId, reserved: &[NamespaceId]) -> Option<[NamespaceId; 2]> {
    let free = part.engine().free_numbers();
    let shadow = free.iter().copied().find(|other| !reserved.contains(other)).filter(|_| part.large.is_some());
    free.contains(&id).then(|| [id, shadow.unwrap_or(id)])
}

fn is_same(one: &NamespaceInfo, other: &NamespaceInfo) -> bool {
    one.id == other.id && one.attributes.name == other.attributes.name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::CreateDrive;
    use crate::sizing::{image_design, image_profile};
    use kvssd_flash::{OpenOptions, SimulatedDisk};
    use kvssd_ftl::NamespaceAttributes;
    use kvssd_types::{Command, Key, StoreCondition};
    use std::path::Path;

    /// Numbers come back one by one, so that a namespace may have the number behind another one's.
    #[test]
    fn the_shadow_of_one_stray_does_not_take_the_number_of_the_next() {
        let (disk, path) = (SimulatedDisk::new(1), Path::new("drive.kv"));
        let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
        let options = CreateDrive { partitions: 2, value_bytes_max: Some(8 << 20), ..CreateDrive::default() };
        let mut drives = Drive::create_all_in(&disk.files(), path, &profile, &design, options).unwrap();
        for (name, numbers) in [("a", [3, 5]), ("b", [4, 6])] {
            let attributes = NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN };
            let id = drives[0].create_namespace_at(Some(numbers.map(NamespaceId)), attributes).unwrap();
            let key = Key::new(b"key").unwrap();
            let command = Command::Store { key, value: b"value"[..].into(), condition: StoreCondition::Always };
            drives[0].execute_in(id, command).unwrap();
        }
        drop(drives);
        disk.kill();
        let options = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
        let mut drives = Drive::open_all_in(&disk.files(), path, options).unwrap();
        let ids: Vec<u32> = Partitions::new(&mut drives).namespaces().iter().map(|info| info.id.0).collect();
        assert_eq!(ids, [1, 3, 4]);
    }
}
