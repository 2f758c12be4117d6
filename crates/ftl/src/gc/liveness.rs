//! Which pairs of a victim live.

use super::tags;
use crate::commands;
use crate::index::Uncompared;
use crate::io::{Io, readable};
use crate::layout::address::Grain;
use crate::layout::oob::{Kind, Oob, Stream};
use crate::namespace::Namespaces;
use crate::space::superblock::{State, Superblock};
use kvssd_flash::{Cause, PageAddress};
use kvssd_types::{KvError, NamespaceId};

/// Whether the pair with `tag` at `from` lives, if validity knows. With `has_strays` the superblock may hold records
/// that were appended and never bound, which validity takes for alive.
pub(super) fn known_to_live(io: &Io<'_>, tag: u64, from: Grain, has_strays: bool) -> Option<bool> {
    io.media.space.validity.is_live(tag, from).filter(|&lives| !lives || !has_strays)
}

/// Asks the indexes about the pairs in pages that validity does not know; gives their answers in order.
pub(super) fn ask(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    oobs: &[(PageAddress, Oob)],
    has_strays: bool,
) -> Result<Vec<Option<bool>>, KvError> {
    let packing = io.media.space.packing;
    let pairs = oobs.iter().filter(|(_, oob)| oob.kind == Kind::Pair);
    let pairs = pairs.flat_map(|(page, oob)| {
        oob.entries.iter().map(|entry| (entry.namespace, (entry.tag, packing.grain(*page, entry.grain))))
    });
    let pairs: Vec<(NamespaceId, (u64, Grain))> = pairs.collect();
    compare(io, namespaces, &pairs)?;
    let is_asked = |&(_, (tag, from)): &(NamespaceId, (u64, Grain))| known_to_live(io, tag, from, has_strays).is_none();
    let asked: Vec<(NamespaceId, (u64, Grain))> = pairs.into_iter().filter(is_asked).collect();
    // What is of no namespace any more, or of one that had the number before, is nobody's.
    let mut answers = vec![Some(false); asked.len()];
    let mut whose: Vec<NamespaceId> = asked.iter().map(|(namespace, _)| *namespace).collect();
    whose.sort_unstable();
    whose.dedup();
    for namespace in whose {
        let Some(tags) = namespaces.get(namespace).map(|namespace| namespace.tags) else { continue };
        let own = || (0..).zip(&asked).filter(|(_, (of, (tag, _)))| *of == namespace && *tag < tags);
        let pairs: Vec<(u64, Grain)> = own().map(|(_, (_, pair))| *pair).collect();
        let Some(index) = namespaces.enter(io, namespace) else { continue };
        for ((position, _), answer) in own().zip(index.are_bound(io, &pairs)?) {
            answers[position] = answer;
        }
    }
    Ok(answers)
}

/// Compares pairs that may be moved with what was stored since: what was replaced is not. Afterwards validity knows of that.
fn compare(io: &mut Io<'_>, namespaces: &mut Namespaces, pairs: &[(NamespaceId, (u64, Grain))]) -> Result<(), KvError> {
    for namespace in namespaces.iter_mut() {
        if !namespace.index.uncompared().is_empty() {
            let own = pairs.iter().filter(|(of, _)| *of == namespace.id);
            let tags: Vec<u64> = own.map(|&(_, (tag, _))| tag).collect();
            io.namespace = namespace.id;
            commands::compare(io, namespace, Uncompared::Tagged(&tags))?;
        }
    }
    Ok(())
}

/// Compares some pairs of a namespace that has some to compare; returns whether there was one.
pub(super) fn compare_some(io: &mut Io<'_>, namespaces: &mut Namespaces) -> Result<bool, KvError> {
    let Some(namespace) = namespaces.iter_mut().find(|namespace| !namespace.index.uncompared().is_empty()) else {
        return Ok(false);
    };
    let before = namespace.index.uncompared().len();
    io.namespace = namespace.id;
    commands::compare(io, namespace, Uncompared::Some)?;
    Ok(namespace.index.uncompared().len() < before)
}

/// Namespace and tag of the record that starts at `head`, in another superblock. `None` if it is gone or cannot be read.
pub(super) fn tag_of(
    io: &mut Io<'_>,
    namespaces: &Namespaces,
    head: Grain,
) -> Result<Option<(NamespaceId, u64)>, KvError> {
    let packing = io.media.space.packing;
    let page = packing.page_of(head);
    // The superblock of the head may have been collected, the record with it, and its pages be written anew or not at
    // all.
    let Superblock { state, stream, .. } = *io.media.space.superblocks.get(packing.superblock_of(head));
    let is_full = matches!(state, State::Closed | State::Victim | State::Retired);
    if !matches!(stream, Stream::User | Stream::Gc) || !is_full {
        return Ok(None);
    }
    // A superblock that a power cut ended early has pages that were never written, or not to their end.
    if !io.media.flash.is_programmed(page) {
        return Ok(None);
    }
    io.read(page, Cause::Gc);
    let grain = packing.index_in_page(head);
    let Some(oob) = oob_of(io, namespaces, page)? else { return Ok(None) };
    let entry = oob.entries.iter().find(|entry| entry.grain == grain);
    Ok(entry.map(|entry| (entry.namespace, entry.tag)))
}

/// The out-of-band area of a page that was read, if it can be, with the tags of its pairs.
pub(super) fn oob_of(io: &mut Io<'_>, namespaces: &Namespaces, page: PageAddress) -> Result<Option<Oob>, KvError> {
    let (format, packing) = (io.media.log.format, io.packing());
    let Some(view) = readable(io.page(page))? else { return Ok(None) };
    let Some(mut oob) = format.decode(view.oob) else { return Ok(None) };
    let hashed = tags::complete(&mut oob, view.data, namespaces, format, &packing) as u64;
    io.cpu(hashed * io.costs().hash_ns);
    Ok(Some(oob))
}
