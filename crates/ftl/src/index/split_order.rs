//! An order of pairs that no split changes: by the reversed bits of their tags. It is that of sections with the numbers of a
//! [`SplitDirectory`]: 2^d and the low d bits of their tags, whatever says how deep each is.

use crate::index::section_index::SectionIndex;
use crate::index::split_directory::{SplitDirectory, next_section};
use crate::index::{Position, View};
use crate::layout::address::Grain;
use kvssd_types::KvError;

/// A [`SectionIndex::list`] that misses no key that stays, whatever splits meanwhile.
///
/// # Errors
/// What the flash operations answer.
pub fn list_in_split_order<I: SectionIndex>(
    index: &I,
    view: &mut View<'_, '_, I::Form>,
    from: Option<Position>,
    count: usize,
) -> Result<Vec<Grain>, KvError> {
    let start = from.map(|from| (index.first_tag(from.hash), from.place.unwrap_or(Grain(0))));
    let first = start.map_or((0, Grain(0)), |(tag, place)| SplitDirectory::order(tag, place));
    Ok(pairs_in_split_order(index, view, first, count)?.into_iter().map(|(_, place)| place).collect())
}

/// Up to `count` pairs, each as [`SplitDirectory::order`] has it, from `first` on.
///
/// # Errors
/// What the flash operations answer.
pub fn pairs_in_split_order<I: SectionIndex>(
    index: &I,
    view: &mut View<'_, '_, I::Form>,
    first: (u64, Grain),
    count: usize,
) -> Result<Vec<(u64, Grain)>, KvError> {
    let mut pairs = Vec::new();
    let mut next = Some(index.section_of(first.0.reverse_bits()));
    while pairs.len() < count
        && let Some(section) = next
    {
        next = next_section(section, |tag| index.section_of(tag));
        if view.is_nowhere(section) {
            continue;
        }
        let ticket = view.load(section)?;
        let found = index.entries(section, view.bytes(ticket));
        let mut listed: Vec<(u64, Grain)> =
            found.map(|entry| SplitDirectory::order(entry.tag, entry.place)).filter(|pair| *pair >= first).collect();
        listed.sort_unstable();
        view.compare(listed.len() as u64);
        pairs.extend(listed.into_iter().take(count - pairs.len()));
    }
    Ok(pairs)
}
