//! The commands on logical blocks, over the same index, log and collector as those on pairs.
//!
//! ```text
//!   host      | 512 B | 512 B | ...                         what is addressed
//!   mapped    | 4 KiB, a grain      | 4 KiB      | ...      what has a place, and is written as a whole
//! ```
//!
//! A write that covers a mapped block in part reads the rest of it first. Each mapped block is written whole or not at all.

use crate::address::Grain;
use crate::engine::Limits;
use crate::index::{Index, Position};
use crate::io::Io;
use crate::journal::Change;
use crate::log::NewRecord;
use crate::oob::{Kind, Stream};
use crate::utilization::Utilization;
use kvssd_flash::rope::Rope;
use kvssd_flash::{Cause, PageAddress};
use kvssd_types::{BLOCK_BYTES, Key, KvError, Reply, Value, ValueBuilder};
use std::collections::BTreeMap;
use std::ops::Range;

/// A part of a mapped block.
struct Part {
    position: Position,
    bytes: Range<usize>,
}

/// The mapped blocks that a range of bytes touches, in order.
fn parts(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    limits: &Limits,
    (offset_bytes, length_bytes): (u64, u64),
) -> Result<Vec<Part>, KvError> {
    let mapped_bytes = u64::from(io.packing().grain_bytes);
    let capacity_bytes = limits.capacity_grains * mapped_bytes;
    let is_whole = [offset_bytes, length_bytes].iter().all(|bytes| bytes.is_multiple_of(BLOCK_BYTES.into()));
    let end = offset_bytes.checked_add(length_bytes).filter(|&end| is_whole && end <= capacity_bytes);
    let Some(end) = end else { return Err(KvError::InvalidRange { offset_bytes, length_bytes, capacity_bytes }) };
    let mut parts = Vec::new();
    for block in offset_bytes / mapped_bytes..end.div_ceil(mapped_bytes) {
        let start = block * mapped_bytes;
        let bytes = offset_bytes.max(start) - start..end.min(start + mapped_bytes) - start;
        let number = block.to_be_bytes();
        let key = Key::new(&number).expect("a number is as long as a key may be");
        // The map is exact: no record is looked at.
        let position = index.locate(io, key, &mut |_, _| Ok(true))?;
        parts.push(Part { position, bytes: bytes.start as usize..bytes.end as usize });
    }
    Ok(parts)
}

/// Brings parts of written blocks into the controller, side by side.
fn fetch(io: &mut Io<'_>, wanted: impl Iterator<Item = (Grain, Range<usize>)>) {
    let packing = io.packing();
    let mut pages: BTreeMap<PageAddress, Range<usize>> = BTreeMap::new();
    for (place, bytes) in wanted {
        let start = packing.byte_in_page(place);
        let bytes = start + bytes.start..start + bytes.end;
        let span = pages.entry(packing.page_of(place)).or_insert(bytes.clone());
        *span = span.start.min(bytes.start)..span.end.max(bytes.end);
    }
    let pages: Vec<_> = pages.into_iter().collect();
    io.read_parts(&pages, Cause::User);
}

pub(crate) fn read(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    limits: &Limits,
    offset_bytes: u64,
    length_bytes: u32,
) -> Result<Reply, KvError> {
    let parts = parts(io, index, limits, (offset_bytes, length_bytes.into()))?;
    fetch(io, parts.iter().filter_map(|part| Some((part.position.place?, part.bytes.clone()))));
    let packing = io.packing();
    let mut value = ValueBuilder::default();
    for Part { position, bytes } in parts {
        match position.place {
            Some(place) => {
                let start = packing.byte_in_page(place);
                io.data(packing.page_of(place))?.push_to(start + bytes.start..start + bytes.end, &mut value);
            }
            None => value.push_bytes(&vec![0; bytes.len()]),
        }
    }
    Ok(Reply::Read(value.build()))
}

pub(crate) fn write(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    limits: &Limits,
    utilization: &mut Utilization,
    record: &mut Rope,
    (offset_bytes, value): (u64, &Value),
) -> Result<Reply, KvError> {
    let parts = parts(io, index, limits, (offset_bytes, value.len() as u64))?;
    let mapped_bytes = io.packing().grain_bytes as usize;
    let in_part = parts.iter().filter(|part| part.bytes.len() < mapped_bytes);
    fetch(io, in_part.filter_map(|part| Some((part.position.place?, 0..mapped_bytes))));
    let mut begin = 0;
    for Part { position, bytes } in parts {
        let end = begin + bytes.len();
        record.clear();
        keep(io, position.place, 0..bytes.start, record)?;
        record.push_value(&value.slice(begin..end));
        keep(io, position.place, bytes.end..mapped_bytes, record)?;
        put(io, index, utilization, record, position).map_err(KvError::in_a_change)?;
        begin = end;
    }
    Ok(Reply::Written)
}

/// Appends to `record` what a mapped block holds already.
fn keep(io: &mut Io<'_>, place: Option<Grain>, bytes: Range<usize>, record: &mut Rope) -> Result<(), KvError> {
    let packing = io.packing();
    match place {
        _ if bytes.is_empty() => {}
        Some(place) => {
            let start = packing.byte_in_page(place);
            record.push_slice(io.data(packing.page_of(place))?, start + bytes.start..start + bytes.end);
        }
        None => record.push_zeros(bytes.len()),
    }
    Ok(())
}

fn put(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    utilization: &mut Utilization,
    record: &mut Rope,
    position: Position,
) -> Result<(), KvError> {
    let (packing, tag) = (io.packing(), position.tag);
    let block = packing.block();
    let place = io.append(NewRecord {
        stream: Stream::User,
        kind: Kind::Pair,
        tag,
        unbroken_bytes: record.len(),
        bytes: record,
        cause: Cause::User,
    })?;
    let old = position.place.map(|old| block.at(old));
    io.note(Change::Bound { tag, probes: 0, pair: block.at(place), old });
    if let Some(old) = old {
        io.pair_died(tag, old.place, packing.grains_of_record(&block))?;
        utilization.remove(&block, &packing).expect("what is overwritten was counted");
    }
    index.bind(io, position, place)?;
    utilization.add(&block, &packing);
    Ok(())
}
