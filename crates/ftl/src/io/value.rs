//! Values as they lie in the log: finds which bytes of which pages they are, and makes one piece of them again.

use crate::io::Io;
use crate::layout::address::Grain;
use crate::layout::record::RecordHead;
use crate::space::Space;
use kvssd_flash::PageAddress;
use kvssd_types::{KvError, Value, ValueBuilder};
use std::collections::BTreeMap;
use std::ops::Range;

/// A part of a value: its bytes in a page.
pub(crate) type ValuePart = (PageAddress, Range<usize>);

/// Where the bytes `wanted` of the value of the record at `place` lie, in order.
pub(crate) fn parts_of(space: &Space, place: Grain, head: &RecordHead, wanted: Range<usize>) -> Vec<ValuePart> {
    each_part(space, place, head, wanted).collect()
}

/// As [`parts_of`], one by one.
pub(crate) fn each_part(
    space: &Space,
    place: Grain,
    head: &RecordHead,
    wanted: Range<usize>,
) -> impl Iterator<Item = ValuePart> {
    let packing = space.packing;
    let (mut page, end) = (packing.page_of(place), wanted.end);
    let parts = packing.value_parts(head, packing.byte_in_page(place)).enumerate();
    let before_end = parts.take_while(move |(_, (_, part))| part.start < end);
    before_end.filter_map(move |(number, (at, part))| {
        if number > 0 {
            page = space.page_after(page);
        }
        let (begin, end) = (part.start.max(wanted.start), part.end.min(wanted.end));
        (begin < end).then(|| (page, at + begin - part.start..at + end - part.start))
    })
}

/// One part for each page, from the first byte that is wanted of it to the last, in the order of the flash.
pub(crate) fn by_page(parts: impl Iterator<Item = ValuePart>) -> Vec<ValuePart> {
    let mut pages: BTreeMap<PageAddress, Range<usize>> = BTreeMap::new();
    for (page, bytes) in parts {
        let span = pages.entry(page).or_insert(bytes.clone());
        *span = span.start.min(bytes.start)..span.end.max(bytes.end);
    }
    pages.into_iter().collect()
}

/// Values from this length on do not go into the page cache, where they would evict the pages of others.
const THROUGH_BYTES_MIN: usize = 256 << 10;

/// The value of the record at `place` whose parts are in the controller. It is an error if one of the pages belongs to
/// another record.
pub(crate) fn value_of(io: &mut Io<'_>, place: Grain, parts: &[ValuePart]) -> Result<Value, KvError> {
    let geometry = *io.media.flash.geometry();
    let first = io.packing().page_of(place);
    let length = parts.iter().map(|(_, range)| range.len()).sum();
    let goes_on = |(left, _): &ValuePart, (right, bytes): &ValuePart| {
        let is_next = *left != first && right.0 == left.0 + 1 && geometry.unit_of(*left) == geometry.unit_of(*right);
        length >= THROUGH_BYTES_MIN && is_next && bytes.len() == geometry.page_bytes as usize
    };
    let mut value = ValueBuilder::with_length(length);
    for run in parts.chunk_by(goes_on) {
        if run.len() > 1 && io.read_through(run, place, &mut value) {
            continue;
        }
        for (page, range) in run.iter().cloned() {
            let data = if page == first { io.data(page)? } else { io.continued(page, place)? };
            data.push_to(range, &mut value);
        }
    }
    Ok(value.build())
}
