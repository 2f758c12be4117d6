//! Moves what lives in pages of a victim.

use super::GcCounters;
use super::copies::Copies;
use super::liveness::{ask, known_to_live, tag_of};
use crate::io::{Io, readable};
use crate::journal::Change;
use crate::layout::address::Grain;
use crate::layout::oob::{Entry, Kind, Oob, Stream};
use crate::namespace::Namespaces;
use crate::space::log::NewRecord;
use crate::space::superblock::Superblock;
use kvssd_flash::rope::Rope;
use kvssd_flash::{Cause, PageAddress, SuperblockId};
use kvssd_types::KvError;

/// Moves what lives in `pages`, which were read and have these out-of-band areas, and the pair that runs over into the
/// superblock whose first page is `first`. What cannot be read stays where it is.
pub(super) fn move_pages(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    pages: &[PageAddress],
    oobs: Vec<Option<Oob>>,
    first: PageAddress,
    counters: &mut GcCounters,
) -> Result<(), KvError> {
    let Superblock { stream, has_strays, .. } =
        *io.media.space.superblocks.get(io.media.space.geometry.superblock_of(first));
    let is_map = stream == Stream::Map;
    let packing = io.media.space.packing;
    let oobs: Vec<(PageAddress, Oob)> = pages.iter().zip(oobs).filter_map(|(&page, oob)| Some((page, oob?))).collect();
    if is_map {
        let entries = || oobs.iter().flat_map(|(_, oob)| &oob.entries);
        for namespace in namespaces.iter() {
            let is_own = |entry: &&Entry| entry.namespace == namespace.id && entry.tag < namespace.tags;
            let own = entries().filter(is_own);
            namespace.index.warm(&own.map(|entry| entry.tag).collect::<Vec<_>>());
        }
    }
    let mut answers = ask(io, namespaces, &oobs, has_strays)?.into_iter();
    let mut copies = Copies::default();
    for (page, oob) in &oobs {
        if *page == first
            && let Some(head) = oob.continues
            && let Some((namespace, tag)) = tag_of(io, namespaces, head)?
        {
            let is_bound = match namespaces.enter_for(io, namespace, tag) {
                Some(index) => readable(index.is_bound(io, tag, head))?,
                None => Some(false),
            };
            let lives = or_held(io, head, is_bound);
            // Of its pages, the one in this superblock has been read.
            copies.add(io, tag, head, lives, &[first])?;
        }
        for entry in &oob.entries {
            let from = packing.grain(*page, entry.grain);
            io.cpu(io.media.controller.costs.gc_record_ns);
            match oob.kind {
                Kind::Pair => {
                    let known = known_to_live(io, entry.tag, from, has_strays);
                    let is_bound = if known.is_none() { answers.next().flatten() } else { known };
                    io.namespace = entry.namespace;
                    let lives = or_held(io, from, is_bound);
                    copies.add(io, entry.tag, from, lives, pages)?;
                }
                Kind::Section => {
                    if let Some(index) = namespaces.enter_for(io, entry.namespace, entry.tag) {
                        readable(index.relocate_own(io, entry.tag, from))?;
                    }
                }
                Kind::InvalidMappings => move_spill(io, SuperblockId(entry.tag as u32), from)?,
                Kind::Padding | Kind::Journal | Kind::Checkpoint => {}
            }
        }
    }
    copies.bind(io, namespaces, io.media.space.geometry.superblock_of(first), counters)
}

/// Whether the record at `place` is to be moved: if it lives, or an iterator may want it.
fn or_held(io: &mut Io<'_>, place: Grain, lives: Option<bool>) -> Option<bool> {
    lives.map(|lives| lives || io.media.held.get_mut().has(place))
}

/// Moves a page of invalid mappings that speaks of `superblock`, if validity still has it at `from`.
fn move_spill(io: &mut Io<'_>, superblock: SuperblockId, from: Grain) -> Result<(), KvError> {
    if !io.media.space.validity.spills(superblock).contains(&from) {
        return Ok(());
    }
    let page_bytes = io.media.space.packing.page_bytes() as usize;
    let mut bytes = Rope::default();
    bytes.push_slice(io.data(io.media.space.packing.page_of(from))?, 0..page_bytes);
    let to = io.append(NewRecord {
        stream: Stream::Gc,
        kind: Kind::InvalidMappings,
        tag: superblock.0.into(),
        bytes: &mut bytes,
        unbroken_bytes: page_bytes,
        cause: Cause::InvalidMappings,
    })?;
    io.media.space.validity.spill_moved(superblock, from, to);
    io.note(Change::SpillMoved { superblock, from, to });
    io.discard(from, io.media.space.packing.grains_per_page);
    Ok(())
}
