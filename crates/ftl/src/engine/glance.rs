//! Retrieves that change nothing, so that several go on at a time.
//!
//! ```text
//!   key -> sections in DRAM -> a page that is gathered, or on a medium that shows it ([`Backing::look`]) -> value
//!                       |                                        |
//!                       +----------- not to be seen -------------+--> none: the command must be executed
//! ```
//!
//! A glance takes no virtual time: it is for drives that nobody times. One in [`LOOKS_MAX`] is left to the command, so that a drive that is
//! only read goes on with its own work, and knows what is used.
//!
//! [`Backing::look`]: kvssd_flash::Backing::look

use super::Engine;
use crate::address::Grain;
use crate::index::Sight;
use crate::media::Media;
use crate::oob::OobFormat;
use crate::packing::RecordLayout;
use crate::record::RecordHead;
use crate::value::{ValuePart, parts_of};
use kvssd_flash::rope::RopeRef;
use kvssd_flash::{PageAddress, PageView};
use kvssd_types::{Command, Key, KvError, NamespaceId, Reply, Value, ValueBuilder};
use std::sync::atomic::{AtomicU64, Ordering};

/// One look in so many is no glance. An estimate: every few milliseconds one.
const LOOKS_MAX: u64 = 4096;
/// Pages of a value beside its first that a glance looks at, one by one; a command has more of them read side by side.
const REST_PAGES_MAX: usize = 1;

/// What is counted of glances.
#[derive(Debug, Default)]
pub(super) struct Glances {
    looks: AtomicU64,
    pages: AtomicU64,
}

impl Glances {
    /// Another look; gives whether it may be a glance.
    fn look(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) % LOOKS_MAX != LOOKS_MAX - 1
    }

    fn see(&self, pages: usize) {
        self.pages.fetch_add(pages as u64, Ordering::Relaxed);
    }
}

/// A record that was seen: what was wanted of its value as far as it lies in the first page, and where the rest lies.
struct Seen {
    place: Grain,
    head: RecordHead,
    value: ValueBuilder,
    rest: Vec<ValuePart>,
}

impl Engine {
    /// The answer to a retrieve or an exist, if it can be given without changing anything. Else, and of every other command, none:
    /// [`Engine::execute_in`] gives it.
    #[must_use]
    pub fn glance(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<Result<Reply, KvError>> {
        let (key, wanted) = match *command {
            Command::Retrieve { key, offset_bytes, length_bytes } => (key, Some((offset_bytes, length_bytes))),
            Command::Exist { key } => (key, None),
            _ => return None,
        };
        let namespace = self.namespaces.get(namespace).filter(|namespace| namespace.lives())?;
        // What is half made is nobody's to see.
        if self.failure.is_some()
            || self.share.is_some()
            || self.media.space.packing.layout == RecordLayout::Blocks
            || namespace.index.growth().keeps_out(false)
            || !self.glances.look()
        {
            return None;
        }
        let media = &self.media;
        let mut looker = Looker { media, key, wanted, seen: None };
        let position = namespace.index.glance(key, &mut looker)?;
        let Some(place) = position.place else { return Some(Err(KvError::KeyNotFound)) };
        let Some(wanted) = wanted else { return Some(Ok(Reply::Exists)) };
        // An index that keeps whole keys has not looked.
        let seen = match looker.seen.filter(|seen| seen.place == place) {
            Some(seen) => seen,
            None => media.record_at(place, key, Some(wanted))??,
        };
        let value_bytes = seen.head.value_bytes;
        if position.value_bytes.is_some_and(|known| known != value_bytes) || seen.rest.len() > REST_PAGES_MAX {
            return None;
        }
        self.glances.see(1 + seen.rest.len());
        Some(Ok(Reply::Retrieved { value: media.value_of(seen)?, value_bytes }))
    }

    /// Pages that were looked at without a flash operation ([`Engine::glance`]).
    #[must_use]
    pub fn pages_glanced(&self) -> u64 {
        self.glances.pages.load(Ordering::Relaxed)
    }
}

/// Looks for a key.
struct Looker<'g> {
    media: &'g Media,
    key: Key<'g>,
    /// The first byte of the value, and how many; none where it is to be there.
    wanted: Option<(u32, u32)>,
    /// The key's record.
    seen: Option<Seen>,
}

impl Sight for Looker<'_> {
    fn verify(&mut self, place: Grain) -> Option<bool> {
        self.seen = self.media.record_at(place, self.key, self.wanted)?;
        Some(self.seen.is_some())
    }

    fn look(&self, place: Grain, see: &mut dyn FnMut(RopeRef<'_>)) -> bool {
        self.media.look(self.media.space.packing.page_of(place), None, see)
    }
}

impl Media {
    /// The record at a place, if it is the key's; none at all where it is not to be seen.
    fn record_at(&self, place: Grain, key: Key<'_>, wanted: Option<(u32, u32)>) -> Option<Option<Seen>> {
        let packing = self.space.packing;
        let (page, start) = (packing.page_of(place), packing.byte_in_page(place));
        let mut seen = None;
        self.look(page, None, &mut |data| {
            let Some(head) = RecordHead::matching(data, start, packing.page_bytes() as usize, key) else { return };
            let wanted = wanted.map_or(0..0, |wanted| head.value_range(wanted));
            let mut value = ValueBuilder::with_length(wanted.len());
            let mut rest = parts_of(&self.space, place, &head, wanted);
            // Of a value that is left to the command nothing is copied.
            if rest.len() <= 1 + REST_PAGES_MAX
                && let Some((_, range)) = rest.first().filter(|(first, _)| *first == page).cloned()
            {
                data.push_to(range, &mut value);
                rest.remove(0);
            }
            seen = Some(Seen { place, head, value, rest });
        })
        .then_some(seen)
    }

    /// The value of a record whose first page was seen.
    fn value_of(&self, seen: Seen) -> Option<Value> {
        let Seen { place, mut value, rest, .. } = seen;
        for (page, range) in rest {
            self.look(page, Some(place), &mut |data| data.push_to(range.clone(), &mut value)).then_some(())?;
        }
        Some(value.build())
    }

    /// Shows a page that is gathered, or on flash, and on which the record at a place goes on, if one is given; gives whether it could.
    fn look(&self, page: PageAddress, continued: Option<Grain>, see: &mut dyn FnMut(RopeRef<'_>)) -> bool {
        let geometry = self.flash.geometry();
        if let Some(data) = self.log.open_page(geometry, page) {
            let is_it = continued.is_none() || self.log.continued(geometry, page) == continued;
            return is_it.then(|| see(data)).is_some();
        }
        let mut is_it = false;
        let mut see_view = |PageView { oob, data }: PageView<'_>| {
            is_it = continued.is_none() || OobFormat::continued(oob) == continued;
            if is_it {
                see(data);
            }
        };
        self.flash.look(page, &mut see_view) && is_it
    }
}
