//! The steps of a program: each asks the store, compares the answer with the model, and tells the model what was changed.

use super::act::{Act, key, number_of};
use super::hardware::{Hardware, create_namespace};
use super::model::{Change, Content, PairChange};
use super::program::{End, Program, Running, name_of};
use kvssd_device::partition_of;
use kvssd_host::{Batch, Error, Namespace, NamespaceAttributes, NamespaceId};
use kvssd_types::{Key, StoreCondition};

/// Keys that are listed at a time.
const LIST: usize = 64;
/// Bytes of flash that a pair takes at the most beside its value: key, head, padding, and its share of the index. An estimate.
const BESIDE_VALUE_BYTES: u64 = 620;

impl Program<'_> {
    /// Takes a step.
    ///
    /// # Errors
    /// The end that came meanwhile.
    pub fn act(&mut self, act: &Act) -> Result<(), End> {
        match act {
            Act::Close => {
                self.close()?;
                return self.open();
            }
            Act::Drop => {
                self.store = None;
                self.alive()?;
                return self.open();
            }
            _ => {}
        }
        let running = self.store.take().ok_or(End::Killed)?;
        let acted = self.act_with(&running, act);
        self.store = Some(running);
        let created = acted?;
        self.note_collection();
        if let (Some(running), Some((space, id))) = (&mut self.store, created) {
            running.spaces.insert(space, id);
        }
        Ok(())
    }

    /// Takes a step with a store that is open; gives the namespace that it has made.
    fn act_with(&mut self, running: &Running, act: &Act) -> Result<Option<(usize, NamespaceId)>, End> {
        let of = |space: &usize| self.namespace(running, *space);
        match act {
            Act::Store(space, number, content) => {
                let Some(namespace) = of(space) else { return Ok(None) };
                let stored = namespace.store(&key(*number), &content.value());
                self.changed(Change::Pairs(vec![(*space, *number, Some(*content))]), stored)?;
            }
            Act::StoreIf(space, number, content, condition) => {
                let Some(namespace) = of(space) else { return Ok(None) };
                let stored = namespace.store_if(&key(*number), &content.value(), *condition);
                self.stored_if(*space, *number, *content, *condition, stored)?;
            }
            Act::Delete(space, number) => {
                let Some(namespace) = of(space) else { return Ok(None) };
                let deleted = namespace.delete(&key(*number));
                self.deleted(*space, *number, deleted)?;
            }
            Act::Retrieve(space, number) => {
                let Some(namespace) = of(space) else { return Ok(None) };
                let found = namespace.retrieve(&key(*number)).map_err(|error| self.end("retrieve", &error))?;
                if found != self.model.spaces()[space].get(number).map(|content| content.value()) {
                    return Err(self.wrong(format!("{act}: another value, or none")));
                }
            }
            Act::Batch(changes) => {
                let (batch, made) = self.batch_of(running, changes);
                self.changed(Change::Pairs(made), running.store.batch(&batch))?;
            }
            Act::Bulk(changes) => {
                let (batch, made) = self.batch_of(running, changes);
                self.bulk(running, made, running.store.bulk(&batch))?;
            }
            Act::CreateSpace(space) => return self.create_space(running, *space),
            Act::DeleteSpace(space) => {
                if of(space).is_some() {
                    let deleted = running.store.delete_namespace(&name_of(*space));
                    self.windows.remove(space);
                    self.changed(Change::Delete(*space), deleted)?;
                }
            }
            Act::List(space) => {
                let Some(namespace) = of(space) else { return Ok(None) };
                self.list(*space, namespace)?;
                self.look_through_window(*space, namespace)?;
            }
            Act::Flush => running.store.flush().map_err(|error| self.end("flush", &error))?,
            Act::Close | Act::Drop => unreachable!("they were taken before"),
        }
        self.alive()?;
        Ok(None)
    }

    /// A namespace, if it is there.
    fn namespace<'s>(&self, running: &'s Running, space: usize) -> Option<Namespace<'s>> {
        let id = running.spaces.get(&space).filter(|_| self.model.spaces().contains_key(&space))?;
        Some(running.store.namespace_at(*id))
    }

    fn stored_if(
        &mut self,
        space: usize,
        number: usize,
        content: Content,
        condition: StoreCondition,
        stored: Result<(), Error>,
    ) -> Result<(), End> {
        let is_there = self.model.spaces()[&space].contains_key(&number);
        let (must_be, refusal) = match condition {
            StoreCondition::IfExists => (true, Error::KeyNotFound),
            _ => (false, Error::KeyExists),
        };
        match stored {
            Err(error) if error == refusal => {
                self.alive()?;
                if is_there == must_be {
                    return Err(self.wrong(format!("a store to {space}/{number} is refused: {error}")));
                }
                Ok(())
            }
            Ok(()) if is_there != must_be => {
                Err(self.wrong(format!("a store to {space}/{number} is done, {condition:?}")))
            }
            stored => self.changed(Change::Pairs(vec![(space, number, Some(content))]), stored),
        }
    }

    fn deleted(&mut self, space: usize, number: usize, deleted: Result<bool, Error>) -> Result<(), End> {
        let is_there = self.model.spaces()[&space].contains_key(&number);
        let was_there = deleted.as_ref().ok().copied();
        self.changed(Change::Pairs(vec![(space, number, None)]), deleted.map(|_| ()))?;
        if was_there.is_some_and(|was_there| was_there != is_there) {
            return Err(self.wrong(format!("a delete of {space}/{number} says that it was there: {}", !is_there)));
        }
        Ok(())
    }

    /// A batch of those changes whose namespaces are there, each key once.
    fn batch_of(&self, running: &Running, changes: &[PairChange]) -> (Batch, Vec<PairChange>) {
        let mut batch = Batch::new();
        let mut made: Vec<PairChange> = Vec::new();
        for &(space, number, content) in changes {
            let is_there = made.iter().any(|&(other, key, _)| (other, key) == (space, number));
            let Some(namespace) = self.namespace(running, space).filter(|_| !is_there) else { continue };
            match content {
                Some(content) => batch.store_in(namespace.id(), &key(number), &content.value()),
                None => batch.delete_in(namespace.id(), &key(number)),
            };
            made.push((space, number, content));
        }
        (batch, made)
    }

    fn create_space(&mut self, running: &Running, space: usize) -> Result<Option<(usize, NamespaceId)>, End> {
        if self.namespace(running, space).is_some() {
            return Ok(None);
        }
        let (name, index) = (Some(name_of(space)), Some(self.hardware.indexes[space - 1].to_owned()));
        let attributes = NamespaceAttributes { name, index, ..NamespaceAttributes::PLAIN };
        let created = create_namespace(&running.store, attributes);
        let made = created.as_ref().ok().map(|id| (space, *id));
        self.changed(Change::Create(space), created.map(|_| ()))?;
        self.alive()?;
        Ok(made)
    }

    fn list(&self, space: usize, namespace: Namespace<'_>) -> Result<(), End> {
        let keys = namespace.list(None, LIST).map_err(|error| self.end("list", &error))?;
        let (id, pairs) = (namespace.id(), &self.model.spaces()[&space]);
        let foreign = |key: &[u8]| self.foreign.iter().any(|all| all.contains_key(&(id, key.into())));
        let own = |key: &[u8]| number_of(key).is_some_and(|key| pairs.contains_key(&key));
        let others = self.foreign.iter().flatten().filter(|((namespace, _), _)| *namespace == id).count();
        let count = (pairs.len() + others).min(LIST);
        if keys.len() != count || !keys.iter().all(|key| own(key) || foreign(key)) {
            return Err(self.wrong(format!("a list of {space} gives {} keys of {count}", keys.len())));
        }
        Ok(())
    }

    /// That a drive which has no room for a change is half full at the least, or an index of its design, where all of it is one partition's,
    /// of small values and of this program.
    fn is_full_for(&self, change: &Change) -> Result<(), End> {
        let Hardware { design, profile, create, .. } = self.hardware;
        let has_foreign = self.foreign.iter().any(|pairs| !pairs.is_empty());
        if create.partitions > 1 || create.value_bytes_max.is_some() || has_foreign {
            return Ok(());
        }
        let stored = self.model.spaces().values().flat_map(|pairs| pairs.values());
        let changed = if let Change::Pairs(changes) = change { &changes[..] } else { &[] };
        let pairs = stored
            .chain(changed.iter().filter_map(|(_, _, content)| content.as_ref()))
            .map(|content| content.bytes as u64 + BESIDE_VALUE_BYTES);
        let (bytes, capacity_bytes) = (pairs.sum::<u64>(), design.capacity_bytes(profile));
        let is_too_many = |most| self.model.spaces().values().any(|pairs| (pairs.len() + changed.len()) as u64 > most);
        let is_index_full = design.pairs_max(profile).is_some_and(is_too_many);
        if 2 * bytes < capacity_bytes && !is_index_full {
            let why = format!("{bytes} bytes of pairs at the most are too many for {capacity_bytes}");
            return Err(self.end("full", &why));
        }
        Ok(())
    }

    /// A change was answered, refused, or not answered.
    fn changed(&mut self, change: Change, answer: Result<(), Error>) -> Result<(), End> {
        if answer == Err(Error::Full) {
            self.is_full_for(&change)?;
        }
        match answer {
            Ok(()) if !self.disk.is_killed() => self.model.made(&change),
            // It had no effect.
            Err(
                Error::Full | Error::TooManyNamespaces { .. } | Error::Refused { .. } | Error::BatchTooLarge { .. },
            ) if !self.disk.is_killed() => {}
            Ok(()) => {
                self.model.doubts(change);
                return Err(End::Killed);
            }
            Err(error) => {
                self.model.doubts(change);
                return Err(self.end("change", &error));
            }
        }
        Ok(())
    }

    /// Changes one by one, partition by partition: where it stops, those before are made.
    fn bulk(&mut self, running: &Running, mut changes: Vec<PairChange>, answer: Result<(), Error>) -> Result<(), End> {
        let partitions = self.hardware.create.partitions.max(1) as usize;
        changes.sort_by_key(|&(space, number, _)| {
            let id = self.namespace(running, space).map_or(NamespaceId::FIRST, |namespace| namespace.id());
            partition_of(id, Key::new(&key(number)).expect("a key of the world"), partitions)
        });
        let each = changes.into_iter().map(|change| Change::Pairs(vec![change]));
        match answer {
            Ok(()) if !self.disk.is_killed() => {
                each.for_each(|change| self.model.made(&change));
                Ok(())
            }
            answer => {
                each.for_each(|change| self.model.doubts(change));
                match answer {
                    Err(Error::Full) if !self.disk.is_killed() => {
                        let found = self.look_with(running)?;
                        self.model.settle(found.spaces).map_err(|what| self.wrong(what))
                    }
                    Err(error) => Err(self.end("bulk", &error)),
                    Ok(()) => Err(End::Killed),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::SimulatedDisk;

    #[test]
    fn an_empty_drive_that_is_full_is_wrong() {
        let change = |bytes| Change::Pairs(vec![(0, 1, Some(Content { seed: 1, bytes }))]);
        let hardware = Hardware::tiny(&kvssd_designs::PLUS, false, false, false);
        let mut program = Program::new(&hardware, SimulatedDisk::new(1));
        let refused = program.changed(change(100), Err(Error::Full));
        assert!(matches!(&refused, Err(End::Wrong(why)) if why.starts_with("full: 720 bytes of pairs")), "{refused:?}");
        assert_eq!(program.changed(change(8 << 20), Err(Error::Full)), Ok(()));
    }
}
