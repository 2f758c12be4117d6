//! The pairs that a step of garbage collection moves.

use crate::gc::GcCounters;
use crate::index::{Fate, Move};
use crate::io::{Io, readable};
use crate::layout::address::Grain;
use crate::layout::oob::Stream;
use crate::namespace::Namespaces;
use crate::space::log::NewRecord;
use kvssd_flash::rope::Rope;
use kvssd_flash::{Cause, PageAddress, SuperblockId};
use kvssd_types::{KvError, NamespaceId};

/// The pairs that a step has copied, and that are still bound to their old places.
#[derive(Default)]
pub(super) struct Copies {
    moves: Vec<(NamespaceId, Move)>,
    bytes: Rope,
}

impl Copies {
    /// Copies the pair of `io`'s namespace with `tag` at `from`, if it lives there. `None` says that this is not known,
    /// since something cannot be read.
    pub(super) fn add(
        &mut self,
        io: &mut Io<'_>,
        tag: u64,
        from: Grain,
        lives: Option<bool>,
        read: &[PageAddress],
    ) -> Result<(), KvError> {
        if lives == Some(true) {
            let copied = readable(copy_pair(io, tag, from, read, &mut self.bytes))?;
            self.moves.extend(copied.map(|pair| (io.namespace, pair)));
        }
        Ok(())
    }

    /// Tells the indexes, and frees the old records in `victim` of the pairs that the indexes could move.
    pub(super) fn bind(
        self,
        io: &mut Io<'_>,
        namespaces: &mut Namespaces,
        victim: SuperblockId,
        counters: &mut GcCounters,
    ) -> Result<(), KvError> {
        let packing = io.media.space.packing;
        // A record that only iterators want is unknown to the index, and to the next mount.
        let held = io.media.held.get_mut();
        let (kept, mut moves): (Vec<_>, Vec<_>) = self.moves.into_iter().partition(|(_, pair)| held.has(pair.from));
        for (_, pair) in kept {
            io.media.held.get_mut().dead_moved(pair.from, pair.to);
            io.vacate(pair.from, pair.grains);
            io.media.space.superblocks.suspect(packing.superblock_of(pair.to));
        }
        let ids: Vec<NamespaceId> = namespaces.iter().map(|namespace| namespace.id).collect();
        for id in ids {
            let mut own: Vec<Move> = moves.extract_if(.., |(of, _)| *of == id).map(|(_, pair)| pair).collect();
            if let Some(index) = namespaces.enter(io, id) {
                index.relocate(io, &mut own)?;
            }
            settle(io, &own, victim, counters)?;
        }
        assert!(moves.is_empty(), "what lives is of a namespace that there is");
        Ok(())
    }
}

/// Frees the old records of pairs that the index could move.
fn settle(io: &mut Io<'_>, moves: &[Move], victim: SuperblockId, counters: &mut GcCounters) -> Result<(), KvError> {
    let packing = io.media.space.packing;
    for pair in moves {
        match pair.fate {
            Fate::Dead => panic!("validity and index disagree about {pair:?}"),
            Fate::Moved => {
                io.vacate(pair.from, pair.grains);
                // The pair that ran into the victim leaves a dead head in a superblock that will be collected later.
                if packing.superblock_of(pair.from) != victim {
                    io.mapping_died(pair.tag, pair.from)?;
                }
            }
            Fate::Unreadable => {
                io.discard(pair.to, pair.grains);
                io.media.space.superblocks.suspect(packing.superblock_of(pair.to));
                continue;
            }
        }
        io.media.held.get_mut().moved(pair.from, pair.to);
        counters.pairs_moved += 1;
    }
    Ok(())
}

/// Copies the pair at `from` to the log. Its first page and those in `read`, which is sorted, are in the controller; the others are
/// read side by side.
fn copy_pair(io: &mut Io<'_>, tag: u64, from: Grain, read: &[PageAddress], copy: &mut Rope) -> Result<Move, KvError> {
    let packing = io.media.space.packing;
    let (first, start) = packing.start_of(from);
    let head = packing.head(io.data(first)?, start)?;
    let length = packing.record_bytes(&head);
    let grains = packing.grains_of(length);
    let pages = io.media.space.pages_of(from, grains);
    let pages = pages.ok_or_else(|| KvError::Unrecovered(format!("page {} has no record of {length} B", first.0)))?;
    let unread = pages[1..].iter().copied().filter(|page| read.binary_search(page).is_err());
    let unread: Vec<PageAddress> = unread.collect();
    if !unread.is_empty() {
        io.read_all(&unread, Cause::Gc);
    }
    copy.clear();
    for page in pages {
        let data = if page == first { io.data(page)? } else { io.continued(page, from)? };
        let start = if page == first { start } else { 0 };
        let count = (packing.page_bytes() as usize - start).min(length - copy.len());
        copy.push_slice(data, start..start + count);
    }
    let copied = NewRecord::pair(tag, copy, packing.unbroken_bytes(&head));
    let to = io.append(NewRecord { stream: Stream::Gc, cause: Cause::Gc, ..copied })?;
    Ok(Move { tag, from, to, grains, fate: Fate::Dead })
}
