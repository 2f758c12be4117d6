//! After an open, a namespace is in all partitions or in none, and the same cache in all.
//!
//! ```text
//!   a partition without it   knows that it was deleted   the process ended while it deleted it: it goes from the others, too
//!                            never heard of it           no pairs in the others: the process ended while it made it, and it goes
//!                                                        pairs: the partition is older than the others. What they have stays
//! ```
//!
//! A partition is older than the others when the machine stopped that had not written all of them, or when a part of the image was put back.

use super::Partitions;
use kvssd_ftl::{CheckReport, Harm, NamespaceInfo};
use kvssd_types::{KvError, NamespaceId};

impl Partitions<'_> {
    /// Repairs what a process that ended in the middle left.
    ///
    /// # Errors
    /// As [`Partitions::create_namespace`] and [`Partitions::delete_namespace`]; [`KvError::InvalidNamespace`] if partitions have other namespaces
    /// of the same number, with pairs.
    pub(super) fn settle_namespaces(&mut self) -> Result<(), KvError> {
        for number in 0..self.all.len() {
            for info in self.all[number].namespaces() {
                let lacking = self.lacking(&info);
                if lacking.is_empty() {
                    continue;
                }
                if self.is_of_older(&info, &lacking) {
                    self.complete(number, &info, &lacking)?;
                } else {
                    self.all[number].delete_namespace(info.id)?;
                }
            }
        }
        self.settle_caches()
    }

    /// Reports namespaces that are not in all partitions though they have pairs.
    pub(super) fn check_namespaces(&self, report: &mut CheckReport) {
        let mut known: Vec<NamespaceInfo> = Vec::new();
        for info in self.all.iter().flat_map(|part| part.namespaces()) {
            let lacking = self.lacking(&info);
            if !self.is_of_older(&info, &lacking) || known.iter().any(|other| is_same(other, &info)) {
                continue;
            }
            let older: Vec<String> = lacking.iter().map(usize::to_string).collect();
            let what = format!("partition {} does not know it: it is older than the others", older.join(", "));
            report.find(Harm::PairLost, format!("namespace {}", name_of(&info)), what);
            known.push(info);
        }
    }

    /// The partitions that do not have that namespace.
    fn lacking(&self, info: &NamespaceInfo) -> Vec<usize> {
        let has_it = |number: &usize| self.all[*number].namespaces().iter().any(|other| is_same(other, info));
        (0..self.all.len()).filter(|number| !has_it(number)).collect()
    }

    /// Whether a namespace is lacking since those partitions are older than the others. One that has deleted it still holds its number.
    fn is_of_older(&self, info: &NamespaceInfo, lacking: &[usize]) -> bool {
        let mut all = self.all.iter().flat_map(|part| part.namespaces());
        let has_pairs = all.any(|other| is_same(&other, info) && other.utilization.pairs > 0);
        let never_had_it = |number: &usize| {
            let part = &self.all[*number];
            part.engine().free_numbers().contains(&info.id) || part.namespaces().iter().any(|other| other.id == info.id)
        };
        has_pairs && !lacking.is_empty() && lacking.iter().all(never_had_it)
    }

    /// Makes a namespace in partitions that lack it, as it is in another one.
    fn complete(&mut self, number: usize, info: &NamespaceInfo, lacking: &[usize]) -> Result<(), KvError> {
        let shadow = self.all[number].large.as_ref().and_then(|large| large.shadow_of(info.id)).unwrap_or(info.id);
        let numbers: [NamespaceId; 2] = [info.id, shadow];
        for &older in lacking {
            let free = self.all[older].engine().free_numbers();
            if !numbers.iter().all(|number| free.contains(number)) {
                let why = format!(
                    "partition {older} is older than the others: it has another namespace in place of {}",
                    name_of(info)
                );
                return Err(KvError::InvalidNamespace(why));
            }
            self.all[older].create_namespace_at(Some(numbers), info.attributes.clone())?;
        }
        Ok(())
    }

    /// All follow the first partition, which was the last to change.
    fn settle_caches(&mut self) -> Result<(), KvError> {
        let of_first = self.all[0].namespaces();
        for part in &mut self.all[1..] {
            for info in part.namespaces() {
                let first = of_first.iter().find(|first| first.id == info.id);
                if let Some(first) = first.filter(|first| first.attributes.cache != info.attributes.cache) {
                    part.set_cache(info.id, first.attributes.cache.clone())?;
                }
            }
        }
        Ok(())
    }
}

fn is_same(one: &NamespaceInfo, other: &NamespaceInfo) -> bool {
    one.id == other.id && one.attributes.name == other.attributes.name
}

fn name_of(info: &NamespaceInfo) -> String {
    info.attributes.name.clone().unwrap_or_else(|| info.id.to_string())
}
