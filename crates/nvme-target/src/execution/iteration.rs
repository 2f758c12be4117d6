//! Executes the commands of iterators.
//!
//! ```text
//!   next   drive: 1 pair, then as many as are likely to fit        page: what fits, to 128 KiB
//!            the one that does not fit is sought again by the next command: nothing is kept for it
//! ```

use super::Execution;
use crate::completion::{Failure, Outcome, Success};
use crate::iterators::{Owner, Position};
use crate::status::status_of;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::extended::{IteratorRange, PairsWriter};
use kvssd_nvme_spec::kv::{KvKey, LONG_KEY_BYTES_MAX};
use kvssd_types::{Command, IteratedPair, IteratorOptions, Key, Reply};

/// A page of pairs ends behind so many bytes, unless one pair has more.
const PAGE_BYTES: usize = 128 << 10;
/// The most pairs that are asked of the drive at a time.
const PAIRS_AT_A_TIME: u32 = 64;
/// What a pair takes beside its value, at the most, with the numbers before the first.
const BESIDE_VALUE_BYTES: u64 = 512;
/// The least that a pair takes.
const PAIR_BYTES_MIN: usize = 12;

impl Execution<'_, '_> {
    pub(super) fn create_iterator(&mut self, range: &IteratorRange, owner: &Owner) -> Outcome {
        let IteratorRange { prefix, first, end, descending, keys_only } = range;
        let (descending, keys_only) = (*descending, *keys_only);
        self.executor.end_iterators(self.now);
        let sessions = self.executor.sessions;
        if !sessions.on_iterators(|iterators| iterators.has_room(owner)) {
            return Err(Status::TooManyIterators.into());
        }
        let options = IteratorOptions { prefix, first, end: end.as_deref(), descending, keys_only };
        let id = loop {
            match self.on_drive(Command::CreateIterator { options }) {
                Ok(Reply::IteratorCreated(id)) => break id,
                Err(refused) if refused.status == Status::TooManyIterators && self.make_room(owner) => {}
                other => return Err(other.err().unwrap_or(Status::InternalError.into())),
            }
        };
        let of_drive = (self.namespace, id);
        let number = sessions.on_iterators(|iterators| iterators.add(owner, of_drive, keys_only, self.now));
        Ok(Success::with_result(number.into()))
    }

    /// Ends an iterator of the host that has the most of this namespace, so that `owner` can have another one. Returns whether there was one to end.
    fn make_room(&mut self, owner: &Owner) -> bool {
        let namespace = self.namespace;
        let taken = self.executor.sessions.on_iterators(|iterators| iterators.take_from_greediest(owner, namespace));
        let Some((host, taken)) = taken else { return false };
        tracing::info!(
            host,
            room_for = owner.nqn,
            "the drive's memory for iterators is taken: one of a host made room"
        );
        self.executor.end_iterator(&taken);
        true
    }

    pub(super) fn destroy_iterator(&mut self, number: u32, owner: &Owner) -> Outcome {
        let namespace = self.namespace;
        let ended = self.executor.sessions.on_iterators(|iterators| iterators.remove(owner, namespace, number));
        let ended = ended.ok_or(Status::IteratorEnded)?;
        self.on_drive(Command::DestroyIterator { iterator: ended.id }).map(|_| Success::default())
    }

    /// The pairs that come next, as many as the host wants and its buffer takes.
    pub(super) fn iterate(
        &mut self,
        number: u32,
        owner: &Owner,
        seek: Option<Option<KvKey>>,
        pairs_max: u32,
        buffer_bytes: u32,
    ) -> Outcome {
        let bytes_max = u64::from(buffer_bytes).min(self.executor.drive.first().value_bytes_max() + BESIDE_VALUE_BYTES);
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let mut writer = PairsWriter::new(bytes_max).ok_or(Status::InvalidField)?;
        let (namespace, now) = (self.namespace, self.now);
        let begun = self.executor.sessions.on_iterators(|iterators| {
            let iterator = iterators.get(owner, namespace, number, now)?;
            match seek {
                None => {}
                Some(None) => iterator.position = Position::Begin,
                Some(Some(key)) => iterator.position = Position::At(key.bytes().into()),
            }
            Some((iterator.id, iterator.keys_only, iterator.position.clone()))
        });
        let (id, keys_only, mut position) = begun.ok_or(Status::IteratorEnded)?;
        let pairs_max = if pairs_max == 0 { u32::MAX } else { pairs_max };
        let mut at_a_time = if keys_only { PAIRS_AT_A_TIME } else { 1 };
        loop {
            let pairs_wanted = at_a_time.min(pairs_max - writer.pairs());
            let command = match &position {
                Position::Behind => Command::Next { iterator: id, pairs_max: pairs_wanted },
                Position::Begin => Command::Seek { iterator: id, key: None, pairs_max: pairs_wanted },
                Position::At(key) => {
                    let key = Some(Key::new(key).map_err(|error| status_of(&error))?);
                    Command::Seek { iterator: id, key, pairs_max: pairs_wanted }
                }
            };
            let pairs = self.iterated(command, number, owner)?;
            position = Position::Behind;
            let is_end = pairs.is_empty();
            let left_out = pairs.into_iter().find(|(key, value)| {
                let value = value.as_ref().map_or_else(Vec::new, kvssd_types::Value::to_vec);
                writer.bytes() >= PAGE_BYTES || !writer.push(key, &value)
            });
            if let Some((key, _)) = &left_out {
                position = Position::At(key.clone());
            }
            if is_end || left_out.is_some() || writer.pairs() == pairs_max || writer.bytes() >= PAGE_BYTES {
                break;
            }
            let mean_bytes = (writer.bytes() / writer.pairs().max(1) as usize).max(PAIR_BYTES_MIN);
            let room_bytes = bytes_max.min(PAGE_BYTES + LONG_KEY_BYTES_MAX) - writer.bytes().min(bytes_max);
            at_a_time = (room_bytes / mean_bytes).clamp(1, PAIRS_AT_A_TIME as usize) as u32;
        }
        self.executor.sessions.on_iterators(|iterators| {
            if let Some(iterator) = iterators.get(owner, namespace, number, now) {
                iterator.position = position;
            }
        });
        Ok(Success::with_data(writer.finish()))
    }

    /// Pairs of the drive's iterator. One that has ended in the drive has ended for its host, too.
    fn iterated(&mut self, command: Command<'_>, number: u32, owner: &Owner) -> Result<Vec<IteratedPair>, Failure> {
        match self.on_drive(command) {
            Ok(Reply::Pairs(pairs)) => Ok(pairs),
            Ok(_) => Err(Status::InternalError.into()),
            Err(failure) => {
                if failure.status == Status::IteratorEnded {
                    // The drive forgets then that it has ended it.
                    let _ = self.destroy_iterator(number, owner);
                }
                Err(failure)
            }
        }
    }
}
