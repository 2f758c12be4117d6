//! The commands on logical blocks, over the same index, log and collector as those on pairs.
//!
//! ```text
//!   host      | 512 B | 512 B | ...                         what is addressed
//!   mapped    | 4 KiB, a grain      | 4 KiB      | ...      what has a place, and is written as a whole
//! ```
//!
//! Each command locks the range that it touches, which takes [`CoreCosts::range_lock_ns`](kvssd_flash::CoreCosts): the
//! commands themselves are handled one after the other, and no lock is ever waited for.
//!
//! A write that covers a mapped block in part is gathered ([`Gathered`](crate::controller::gathered::Gathered)) or, if the design
//! gathers nothing, reads the rest of the block first. Each mapped block is written whole or not at all. A read that continues
//! where the last one ended has the following pages read ahead. A deallocated block loses its place.

use crate::commands::{Found, bind_pair, unbind_pair};
use crate::controller::gathered::{GatheredBlock, PARTS_MAX, pieces_of};
use crate::controller::read_ahead::{AHEAD_PAGES, AheadPage};
use crate::index::{Index, Position};
use crate::io::spent::SpentOn;
use crate::io::value::{ValuePart, by_page};
use crate::io::{Io, readable};
use crate::journal::staging::Item;
use crate::layout::address::Grain;
use crate::layout::packing::Packing;
use crate::namespace::Namespace;
use crate::space::log::NewRecord;
use kvssd_flash::rope::Rope;
use kvssd_flash::{Cause, PageAddress};
use kvssd_types::{BLOCK_BYTES, Key, KvError, Nanos, Reply, Value, ValueBuilder};
use std::ops::Range;

/// Reads ahead for a host that reads from `offset_bytes` on: if its last read ended there, the following pages are read
/// without waiting.
fn follow(io: &mut Io<'_>, index: &mut dyn Index, offset_bytes: u64) -> Result<(), KvError> {
    let ahead = &mut io.media.ahead;
    if ahead.end_bytes != offset_bytes || offset_bytes == 0 {
        ahead.forget();
        return Ok(());
    }
    let packing = io.media.space.packing;
    let first = offset_bytes / u64::from(packing.grain_bytes);
    ahead.pages.retain(|known| known.last_block >= first);
    ahead.next_block = ahead.next_block.max(first);
    let known = ahead.pages.len();
    while io.media.ahead.next_block < first + u64::from(AHEAD_PAGES * packing.grains_per_page) {
        let last_block = io.media.ahead.next_block;
        if let Some(place) = locate(io, index, last_block)?.place {
            let (page, ready, pages) = (packing.page_of(place), io.clock, &mut io.media.ahead.pages);
            match pages.iter().position(|known| known.page == page) {
                Some(there) => pages[there].last_block = last_block,
                None if pages.len() == AHEAD_PAGES as usize => break,
                None => pages.push(AheadPage { page, ready, last_block }),
            }
        }
        io.media.ahead.next_block += 1;
    }
    let geometry = io.media.space.geometry;
    let unit_of = |known: &AheadPage| geometry.unit_of(known.page);
    let mut pages = std::mem::take(&mut io.media.ahead.pages);
    for run in pages[known..].chunk_by_mut(|left, right| unit_of(left) == unit_of(right)) {
        let wanted: Vec<PageAddress> = run.iter().map(|known| known.page).collect();
        let ready = io.read_without_waiting(&wanted, Cause::User);
        run.iter_mut().for_each(|known| known.ready = ready);
    }
    io.media.ahead.pages = pages;
    Ok(())
}

/// A part of a mapped block.
struct Part {
    block: u64,
    position: Position,
    bytes: Range<usize>,
}

/// The mapped blocks that a range of bytes touches, in order.
fn parts_of(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    offset_bytes: u64,
    length_bytes: u64,
) -> Result<Vec<Part>, KvError> {
    let mapped_bytes = u64::from(io.packing().grain_bytes);
    let capacity_bytes = io.media.space.capacity_grains * mapped_bytes;
    let is_whole = [offset_bytes, length_bytes].iter().all(|bytes| bytes.is_multiple_of(BLOCK_BYTES.into()));
    let end = offset_bytes.checked_add(length_bytes).filter(|&end| is_whole && end <= capacity_bytes);
    let Some(end) = end else { return Err(KvError::InvalidRange { offset_bytes, length_bytes, capacity_bytes }) };
    let mut parts = Vec::new();
    for block in offset_bytes / mapped_bytes..end.div_ceil(mapped_bytes) {
        let start = block * mapped_bytes;
        let bytes = offset_bytes.max(start) - start..end.min(start + mapped_bytes) - start;
        let position = locate(io, index, block)?;
        parts.push(Part { block, position, bytes: bytes.start as usize..bytes.end as usize });
    }
    Ok(parts)
}

/// Where a mapped block lies.
fn locate(io: &mut Io<'_>, index: &mut dyn Index, block: u64) -> Result<Position, KvError> {
    // The map is exact: no record is looked at.
    index.locate(io, key_of(&block.to_be_bytes()), &mut |_, _| Ok(true))
}

/// The key that stands for a mapped block.
fn key_of(number: &[u8; 8]) -> Key<'_> {
    Key::new(number).expect("a number is as long as a key may be")
}

/// The parts of pages that hold these parts of written blocks.
fn pages_of(packing: Packing, wanted: impl Iterator<Item = (Grain, Range<usize>)>) -> Vec<ValuePart> {
    by_page(wanted.map(|(place, bytes)| {
        let (page, start) = packing.start_of(place);
        (page, start + bytes.start..start + bytes.end)
    }))
}

/// Reads parts of written blocks into the controller, side by side. For parts that were read ahead it only waits.
fn fetch(io: &mut Io<'_>, wanted: impl Iterator<Item = (Grain, Range<usize>)>) {
    let pages = pages_of(io.packing(), wanted);
    let ahead = &io.media.ahead;
    let (there, unread): (Vec<_>, Vec<_>) = pages.into_iter().partition(|(page, _)| ahead.ready(*page).is_some());
    let ready: Vec<Nanos> = there.iter().filter_map(|(page, _)| ahead.ready(*page)).collect();
    io.read_parts(&unread, Cause::User);
    ready.into_iter().for_each(|ready| io.wait_until(ready, SpentOn::Record));
}

pub(crate) fn read(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    offset_bytes: u64,
    length_bytes: u32,
) -> Result<Reply, KvError> {
    io.cpu(io.costs().range_lock_ns);
    let parts = parts_of(io, index, offset_bytes, length_bytes.into())?;
    follow(io, index, offset_bytes)?;
    io.media.ahead.end_bytes = offset_bytes + u64::from(length_bytes);
    let is_gathered = |io: &Io<'_>, part: &&Part| {
        io.media.gathered.get(part.block).is_some_and(|block| block.covers(part.bytes.clone()))
    };
    let on_flash: Vec<&Part> = parts.iter().filter(|part| !is_gathered(io, part)).collect();
    fetch(io, on_flash.into_iter().filter_map(|part| Some((part.position.place?, part.bytes.clone()))));
    let packing = io.packing();
    let mut value = ValueBuilder::default();
    let push_old = |io: &mut Io<'_>, place: Option<Grain>, bytes: Range<usize>, value: &mut ValueBuilder| {
        match place {
            Some(place) => {
                let (page, start) = packing.start_of(place);
                io.data(page)?.push_to(start + bytes.start..start + bytes.end, value);
            }
            None => value.push_bytes(&vec![0; bytes.len()]),
        }
        Ok::<(), KvError>(())
    };
    for Part { block, position, bytes } in parts {
        let Some(gathered) = io.media.gathered.get(block).cloned() else {
            push_old(io, position.place, bytes, &mut value)?;
            continue;
        };
        io.wait_until(gathered.since, SpentOn::Buffer);
        for piece in pieces_of(bytes) {
            match &gathered.pieces[piece] {
                Some(Value::Bytes(come)) => value.push_bytes(come),
                Some(Value::Pattern(come)) => value.push_pattern(*come),
                None => push_old(io, position.place, bytes_of(piece), &mut value)?,
            }
        }
    }
    Ok(Reply::Read(value.build()))
}

/// The bytes that logical block number `piece` takes in its mapped block.
fn bytes_of(piece: usize) -> Range<usize> {
    piece * BLOCK_BYTES as usize..(piece + 1) * BLOCK_BYTES as usize
}

pub(crate) fn write(
    io: &mut Io<'_>,
    namespace: &mut Namespace,
    offset_bytes: u64,
    value: &Value,
) -> Result<Reply, KvError> {
    io.cpu(io.costs().range_lock_ns);
    let length_bytes = value.len() as u64;
    let mut parts = parts_of(io, namespace.index.as_mut(), offset_bytes, length_bytes)?;
    let mapped_bytes = io.packing().grain_bytes as usize;
    let gathers = io.media.gathered.is_on();
    if gathers {
        let is_new = |part: &&Part| part.bytes.len() < mapped_bytes && io.media.gathered.get(part.block).is_none();
        if parts.iter().filter(is_new).count() > io.media.gathered.free_places() {
            // An interrupted command left no place free, or gathered blocks cannot be written. Blocks of this command may move.
            make_places(io, namespace, PARTS_MAX)?;
            parts = parts_of(io, namespace.index.as_mut(), offset_bytes, length_bytes)?;
        }
    } else {
        let in_part = parts.iter().filter(|part| part.bytes.len() < mapped_bytes);
        let in_part = in_part.filter_map(|part| Some((part.position.place?, 0..mapped_bytes)));
        io.read_parts(&pages_of(io.packing(), in_part), Cause::User);
    }
    let mut record = io.media.take_scratch();
    let mut begin = 0;
    for Part { block, position, bytes } in parts {
        let end = begin + bytes.len();
        let come = value.slice(begin..end);
        begin = end;
        record.clear();
        if gathers && bytes.len() < mapped_bytes {
            let Some(whole) = gather(io, block, bytes.start, &come)? else { continue };
            whole.pieces.iter().flatten().for_each(|piece| record.push_value(piece));
        } else {
            keep(io, position.place, 0..bytes.start, &mut record)?;
            record.push_value(&come);
            keep(io, position.place, bytes.end..mapped_bytes, &mut record)?;
        }
        put(io, namespace, &mut record, position).map_err(KvError::in_a_change)?;
        let now = io.settle();
        io.media.gathered.remove(block, now);
    }
    io.media.scratch = Some(record);
    if gathers {
        // A block whose rest cannot be read keeps its place; the command that finds no free place gets the error.
        let wanted = io.media.gathered.wanted_places();
        readable(make_places(io, namespace, wanted))?;
    }
    Ok(Reply::Written)
}

/// Unmaps mapped blocks. A block that the range covers only in part, or of which a part is gathered, stays mapped: a host may still read data
/// that it deallocated.
pub(crate) fn deallocate(
    io: &mut Io<'_>,
    namespace: &mut Namespace,
    offset_bytes: u64,
    length_bytes: u32,
) -> Result<Reply, KvError> {
    io.cpu(io.costs().range_lock_ns);
    let (packing, mapped_bytes) = (io.packing(), io.packing().grain_bytes as usize);
    let parts = parts_of(io, namespace.index.as_mut(), offset_bytes, length_bytes.into())?;
    for Part { block, position, bytes } in parts {
        let Some(place) = position.place else { continue };
        if bytes.len() < mapped_bytes || io.media.gathered.get(block).is_some() {
            continue;
        }
        let (key, found) = (position.tag.to_be_bytes(), Found { place, head: packing.block() });
        unbind_pair(io, namespace, key_of(&key), position, found).map_err(KvError::in_a_change)?;
    }
    Ok(Reply::Deallocated)
}

/// Gathers a part of a block. Returns the block once all of it has come.
fn gather(io: &mut Io<'_>, block: u64, start: usize, come: &Value) -> Result<Option<GatheredBlock>, KvError> {
    let since = io.media.gathered.place_since(block);
    io.wait_until(since, SpentOn::Buffer);
    let (handle, at) = (io.handle, io.settle());
    let mut part = Rope::default();
    part.push_value(come);
    io.stage(&Item::Gathered { block, start: start as u32, handle: handle.0 }, Some(&part))?;
    io.media.gathered.put(block, start, come, handle, at);
    Ok(io.media.gathered.get(block).filter(|block| block.is_whole()).cloned())
}

/// Writes gathered blocks out, the oldest first, until `places` places are free. No command waits for that. A block whose rest
/// cannot be read stays.
fn make_places(io: &mut Io<'_>, namespace: &mut Namespace, places: usize) -> Result<(), KvError> {
    let mut unread = Ok(());
    let missing = places.saturating_sub(io.media.gathered.free_places());
    if missing == 0 {
        return unread;
    }
    let blocks: Vec<u64> = io.media.gathered.blocks().map(|block| block.number).collect();
    for block in blocks {
        if io.media.gathered.free_places() >= places {
            return Ok(());
        }
        match io.unwaited(|io| write_out(io, namespace, block)) {
            (Err(why @ KvError::Unrecovered(_)), _) => unread = Err(why),
            (written, _) => written?,
        }
    }
    unread
}

/// Writes out all gathered blocks, and waits for that. A block whose rest cannot be read stays, as safe as it was.
pub(crate) fn write_all(io: &mut Io<'_>, namespace: &mut Namespace) -> Result<(), KvError> {
    let blocks: Vec<u64> = io.media.gathered.blocks().map(|block| block.number).collect();
    let mut last = io.clock;
    for block in blocks {
        let (written, until) = io.unwaited(|io| write_out(io, namespace, block));
        last = last.max(until);
        readable(written)?;
    }
    io.wait_until(last, SpentOn::Buffer);
    Ok(())
}

/// Writes out a block that is gathered in part; the missing parts are read first.
fn write_out(io: &mut Io<'_>, namespace: &mut Namespace, block: u64) -> Result<(), KvError> {
    let gathered = io.media.gathered.get(block).expect("it is gathered").clone();
    io.wait_until(gathered.since, SpentOn::Buffer);
    let mapped_bytes = io.packing().grain_bytes as usize;
    let position = locate(io, namespace.index.as_mut(), block)?;
    let held = position.place.into_iter().map(|place| (place, 0..mapped_bytes));
    io.read_parts(&pages_of(io.packing(), held), Cause::User);
    let mut record = io.media.take_scratch();
    for (number, piece) in gathered.pieces.iter().enumerate() {
        match piece {
            Some(come) => record.push_value(come),
            None => keep(io, position.place, bytes_of(number), &mut record)?,
        }
    }
    let handle = std::mem::replace(&mut io.handle, gathered.handle);
    let written = put(io, namespace, &mut record, position).map_err(KvError::in_a_change);
    io.handle = handle;
    io.media.scratch = Some(record);
    written?;
    let now = io.settle();
    io.media.gathered.remove(block, now);
    Ok(())
}

/// Appends to `record` these bytes of a mapped block as they are on flash, or zeros if it has no place.
fn keep(io: &mut Io<'_>, place: Option<Grain>, bytes: Range<usize>, record: &mut Rope) -> Result<(), KvError> {
    match place {
        _ if bytes.is_empty() => {}
        Some(place) => {
            let (page, start) = io.packing().start_of(place);
            record.push_slice(io.data(page)?, start + bytes.start..start + bytes.end);
        }
        None => record.push_zeros(bytes.len()),
    }
    Ok(())
}

/// Appends a mapped block, which replaces the one at its position.
fn put(io: &mut Io<'_>, namespace: &mut Namespace, record: &mut Rope, position: Position) -> Result<(), KvError> {
    let block = io.packing().block();
    let unbroken_bytes = record.len();
    let place = io.append(NewRecord::pair(position.tag, record, unbroken_bytes))?;
    let (key, found) = (position.tag.to_be_bytes(), position.place.map(|place| Found { place, head: block }));
    bind_pair(io, namespace, key_of(&key), position, block.at(place), found)
}
