//! The commands on pairs, over an index and the log.
//!
//! Below: commands on [`blocks`], batches, whose changes are made all or none ([`batch`]), and how much a drive may hold ([`limits`]). They import
//! `namespace` and what is below it, and decide nothing about when they run: the engine does.

pub(crate) mod batch;
pub(crate) mod blocks;
pub(crate) mod limits;

use crate::commands::limits::Limits;
use crate::index::{Index, Position, Uncompared};
use crate::io::Io;
use crate::io::lack::Lack;
use crate::io::spent::SpentOn;
use crate::io::value::{parts_of, value_of};
use crate::journal::{Change, PairPlace};
use crate::layout::address::Grain;
use crate::layout::record::{RecordHead, write_record};
use crate::namespace::Namespace;
use crate::space::log::NewRecord;
use kvssd_flash::{Cause, PageAddress};
use kvssd_types::{Key, KvError, Nanos, OwnedKey, Reply, StoreCondition, Value};

/// A pair that a look-up found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) place: Grain,
    pub(crate) head: RecordHead,
}

/// How the records that a look-up meets are compared with its key.
#[derive(Clone, Copy, Debug, Default)]
struct Comparison {
    /// Bytes of the value to read together with a record's head, as far as they lie in the same page.
    value_bytes: usize,
    /// Whether a signature that matches is trusted, and no record read ([`Emulator::signatures_trusted`](kvssd_flash::Emulator::signatures_trusted)).
    is_trusting: bool,
    /// The extra time that a record of another key costs ([`Emulator::retry_ns`](kvssd_flash::Emulator::retry_ns)).
    retry: Nanos,
}

/// Looks up `key`. Returns its position and the pair that was found there. An unreadable record may be the key's, so it is an
/// error if the key is found nowhere else. An index that keeps whole keys reads no record.
pub(crate) fn find(io: &mut Io<'_>, index: &mut dyn Index, key: Key<'_>) -> Result<(Position, Option<Found>), KvError> {
    look_up(io, index, key, Comparison::default())
}

/// Like [`find`], for the commands that trust a signature where a paper's emulator does.
fn find_by_signature(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    key: Key<'_>,
) -> Result<(Position, Option<Found>), KvError> {
    let is_trusting = io.media.controller.emulator.signatures_trusted;
    look_up(io, index, key, Comparison { is_trusting, ..Comparison::default() })
}

fn look_up(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    key: Key<'_>,
    comparison: Comparison,
) -> Result<(Position, Option<Found>), KvError> {
    let (mut found, mut unreadable) = (None, None);
    let position = index.locate(io, key, &mut |io, place| {
        found = match head_at(io, place, key, comparison) {
            Err(error @ KvError::Unrecovered(_)) => {
                // Keep the first error: an index tries pairs that were not compared yet before all others.
                unreadable.get_or_insert((error, place));
                None
            }
            head => head?.map(|head| Found { place, head }),
        };
        if found.is_none() {
            io.wait_until(io.clock + comparison.retry, SpentOn::Core);
        }
        Ok(found.is_some())
    })?;
    if let (Some(place), Some(value_bytes)) = (position.place, position.value_bytes) {
        found = Some(Found { place, head: RecordHead { key_bytes: key.bytes().len() as u32, value_bytes } });
    }
    // An unreadable pair that was not compared yet may be a newer version of the key than the pair found.
    match unreadable.filter(|(_, place)| found.is_none() || index.uncompared().contains(place)) {
        Some((error, _)) => Err(error),
        None => Ok((position, found)),
    }
}

/// Reads the head of the record at `place`. `None` if the record belongs to another key.
fn head_at(
    io: &mut Io<'_>,
    place: Grain,
    key: Key<'_>,
    Comparison { value_bytes, is_trusting, .. }: Comparison,
) -> Result<Option<RecordHead>, KvError> {
    let packing = io.packing();
    let (page, start) = packing.start_of(place);
    let page_bytes = packing.page_bytes() as usize;
    let wanted = RecordHead::bytes_for(key.bytes().len()) + value_bytes;
    if !is_trusting {
        io.read_parts(&[(page, start..page_bytes.min(start + wanted))], Cause::User);
    }
    io.cpu(io.costs().key_compare_ns);
    if value_bytes == 0
        && let Some(head) = io.known_head(place, key)
    {
        return Ok(Some(head));
    }
    Ok(RecordHead::matching(io.data(page)?, start, page_bytes, key))
}

/// Notes the key of the next change, for an index that needs it at a mount.
fn note_key(io: &mut Io<'_>, index: &mut dyn Index, key: Key<'_>, value_bytes: u32) {
    if io.media.durable.is_on() && index.notes_keys() {
        io.note(Change::Key { key: key.bytes().into(), value_bytes });
    }
}

pub(crate) fn store(
    io: &mut Io<'_>,
    namespace: &mut Namespace,
    limits: &Limits,
    key: Key<'_>,
    value: &Value,
    condition: StoreCondition,
) -> Result<Reply, KvError> {
    let head = RecordHead::of(key, value);
    let is_unconditional = condition == StoreCondition::Always;
    let uncompared = if is_unconditional { uncompared(io, namespace, limits, key, &head)? } else { None };
    let (position, found) = match uncompared {
        Some(position) => (position, None),
        None => {
            compare(io, namespace, Uncompared::Of(key))?;
            // Aside, if the store need not wait for it.
            let aside = if is_unconditional { io.begin_aside(1) } else { None };
            let looked_up = look_up_for(io, namespace, limits, key, head, condition);
            io.end_aside(aside, looked_up.as_ref().map_or(true, |looked_up| looked_up.needs_freed));
            let LookedUp { position, found, .. } = looked_up?;
            (position, found)
        }
    };
    io.begin_request();
    let put = append_pair(io, key, value, position.tag)
        .and_then(|place| bind_pair(io, namespace, key, position, head.at(place), found));
    put.map_err(KvError::in_a_change)?;
    io.end_request();
    Ok(Reply::Stored)
}

/// The position for a store that is answered before its key is compared. `None` unless the design and the index do that and there is room
/// for the new pair beside the one that it may replace.
fn uncompared(
    io: &mut Io<'_>,
    namespace: &mut Namespace,
    limits: &Limits,
    key: Key<'_>,
    head: &RecordHead,
) -> Result<Option<Position>, KvError> {
    let bytes = io.packing().bytes_charged(head);
    if !io.media.controller.compares_later || !limits.have_room(io.media, namespace, bytes) {
        return Ok(None);
    }
    let position = namespace.index.position_uncompared(io, key);
    position.map_or(Ok(()), |position| namespace.index.reserve(io, position))?;
    Ok(position)
}

/// Compares pairs that were stored without a look-up, and takes the pairs that they replaced out of the counts.
pub(crate) fn compare(io: &mut Io<'_>, namespace: &mut Namespace, which: Uncompared<'_>) -> Result<(), KvError> {
    let compared = namespace.index.compare(io, which);
    io.count_replaced(&mut namespace.utilization);
    compared.map_err(KvError::in_a_change)
}

/// The result of a store's look-up, if the store can be done.
struct LookedUp {
    position: Position,
    found: Option<Found>,
    /// Whether the store fits only because it frees the pair that it replaces.
    needs_freed: bool,
}

/// Looks up the key of a store, and makes room for it in the index.
fn look_up_for(
    io: &mut Io<'_>,
    namespace: &mut Namespace,
    limits: &Limits,
    key: Key<'_>,
    head: RecordHead,
    condition: StoreCondition,
) -> Result<LookedUp, KvError> {
    let index = namespace.index.as_mut();
    let (position, found) = match condition {
        StoreCondition::Always => find_by_signature(io, index, key)?,
        _ => find(io, index, key)?,
    };
    match condition {
        StoreCondition::IfExists if found.is_none() => return Err(KvError::KeyNotFound),
        StoreCondition::IfAbsent if found.is_some() => return Err(KvError::KeyExists),
        _ => {}
    }
    let packing = io.packing();
    let bytes = packing.bytes_charged(&head);
    let freed = found.map_or(0, |found| packing.bytes_charged(&found.head));
    if position.tag == Position::FULL {
        return Err(io.refuse(Lack::InNamespace(io.namespace)));
    }
    // An overwrite that takes no more than it frees is never refused.
    if bytes > freed
        && let Some(lack) = limits.lack(io.media, namespace, bytes - freed)
    {
        return Err(io.refuse(lack));
    }
    if found.is_none() {
        namespace.index.reserve(io, position)?;
    }
    let needs_freed = freed > 0 && !limits.have_room(io.media, namespace, bytes);
    Ok(LookedUp { position, found, needs_freed })
}

/// Appends the record of a pair.
pub(crate) fn append_pair(io: &mut Io<'_>, key: Key<'_>, value: &Value, tag: u64) -> Result<Grain, KvError> {
    let (packing, head) = (io.packing(), RecordHead::of(key, value));
    let mut record = io.media.take_scratch();
    write_record(key, value, &mut record);
    packing.lay_out(&head, &mut record);
    let place = io.append(NewRecord::pair(tag, &mut record, packing.unbroken_bytes(&head)));
    io.media.scratch = Some(record);
    let place = place?;
    io.note_head(place, key, head.value_bytes);
    Ok(place)
}

/// Binds a key to an appended pair; the key's previous pair dies.
pub(crate) fn bind_pair(
    io: &mut Io<'_>,
    Namespace { index, utilization, .. }: &mut Namespace,
    key: Key<'_>,
    position: Position,
    pair: PairPlace,
    found: Option<Found>,
) -> Result<(), KvError> {
    let packing = io.packing();
    let Position { tag, note, .. } = position;
    note_key(io, index.as_mut(), key, pair.value_bytes);
    io.note(Change::Bound { tag, note, pair, old: found.map(|old| old.head.at(old.place)) });
    if let Some(old) = found {
        let freed = packing.grains_of_record(&old.head);
        io.media.heads.forget(old.place);
        io.pair_died(tag, old.place, freed)?;
        utilization.remove(&old.head, &packing).expect("what is overwritten was counted");
    }
    io.behind_look_up(|io| index.bind(io, key, position, pair))?;
    utilization.add(&pair.head(), &packing);
    Ok(())
}

/// Removes a key that was found.
pub(crate) fn unbind_pair(
    io: &mut Io<'_>,
    Namespace { index, utilization, .. }: &mut Namespace,
    key: Key<'_>,
    position: Position,
    found: Found,
) -> Result<(), KvError> {
    let packing = io.packing();
    let grains = packing.grains_of_record(&found.head);
    io.media.heads.forget(found.place);
    note_key(io, index.as_mut(), key, 0);
    io.note(Change::Unbound { tag: position.tag, note: position.note, old: found.head.at(found.place) });
    io.pair_died(position.tag, found.place, grains)?;
    io.behind_look_up(|io| index.unbind(io, key, position))?;
    utilization.remove(&found.head, &packing).expect("what is deleted was counted");
    Ok(())
}

pub(crate) fn retrieve(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    key: Key<'_>,
    offset_bytes: u32,
    length_bytes: u32,
) -> Result<Reply, KvError> {
    let comparison = Comparison {
        value_bytes: offset_bytes.saturating_add(length_bytes) as usize,
        is_trusting: false,
        retry: Nanos(io.media.controller.emulator.retry_ns),
    };
    let (position, found) = look_up(io, index, key, comparison)?;
    let Found { place, head } = found.ok_or(KvError::KeyNotFound)?;
    if position.value_bytes.is_some() && head_at(io, place, key, comparison)? != Some(head) {
        return Err(KvError::Unrecovered("a page holds another record than the index says".to_owned()));
    }
    read_value(io, place, head, (offset_bytes, length_bytes))
}

/// Reads a part of a value. The page with its head was read.
fn read_value(io: &mut Io<'_>, place: Grain, head: RecordHead, wanted: (u32, u32)) -> Result<Reply, KvError> {
    let parts = parts_of(&io.media.space, place, &head, head.value_range(wanted));
    let first_page = io.packing().page_of(place);
    let unread: Vec<_> = parts.iter().filter(|(page, _)| *page != first_page).cloned().collect();
    io.read_parts(&unread, Cause::User);
    Ok(Reply::Retrieved { value: value_of(io, place, &parts)?, value_bytes: head.value_bytes })
}

pub(crate) fn delete(io: &mut Io<'_>, namespace: &mut Namespace, key: Key<'_>) -> Result<Reply, KvError> {
    compare(io, namespace, Uncompared::Of(key))?;
    let (position, found) = find_by_signature(io, namespace.index.as_mut(), key)?;
    let found = found.ok_or(KvError::KeyNotFound)?;
    io.begin_request();
    unbind_pair(io, namespace, key, position, found).map_err(KvError::in_a_change)?;
    io.end_request();
    Ok(Reply::Deleted)
}

pub(crate) fn exist(io: &mut Io<'_>, index: &mut dyn Index, key: Key<'_>) -> Result<Reply, KvError> {
    let (_, found) = find(io, index, key)?;
    found.map(|_| Reply::Exists).ok_or(KvError::KeyNotFound)
}

pub(crate) fn list(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    from: Option<Key<'_>>,
    keys_max: usize,
) -> Result<Reply, KvError> {
    listed(io, index, from, keys_max).map(Reply::Listed)
}

/// Lists up to `keys_max` keys in the index's order, from `from` on, or from the next key if `from` does not exist.
pub(crate) fn listed(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    from: Option<Key<'_>>,
    keys_max: usize,
) -> Result<Vec<OwnedKey>, KvError> {
    if let Some(ranges) = index.ranges() {
        return ranges.keys(io, from.map_or(&[], |key| key.bytes()), keys_max);
    }
    let from = from.map(|key| find(io, index, key).map(|(position, _)| position)).transpose()?;
    let places = index.list(io, from, keys_max)?;
    let packing = io.packing();
    let mut pages: Vec<PageAddress> = places.iter().map(|&place| packing.page_of(place)).collect();
    pages.sort_unstable();
    pages.dedup();
    io.read_all(&pages, Cause::User);
    places.into_iter().map(|place| io.key_at(place).map(|(_, key)| key)).collect()
}
