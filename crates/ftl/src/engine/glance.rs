//! Glances: retrieves and iterator commands that change no pair, so that several threads can run them at a time.
//!
//! ```text
//!   key -> sections in DRAM -> a page that is gathered, or on a medium that shows it ([`Backing::look`]) -> value
//!                       |                                        |
//!                       +----------- not to be seen -------------+--> none: the command must be executed
//! ```
//!
//! A glance takes no virtual time: it is for drives that nobody times. Now and then a glance is refused ([`LOOKS_MAX`]) and the command is
//! executed instead, so that a drive that is only read goes on with its own work, and knows what is used.
//!
//! [`Backing::look`]: kvssd_flash::Backing::look

use super::Engine;
use crate::index::Sight;
use crate::index::look::{REST_PAGES_MAX, Seen};
use crate::io::media::Media;
use crate::iterators::Go;
use crate::layout::address::Grain;
use crate::layout::packing::RecordLayout;
use crate::namespace::Namespace;
use kvssd_flash::rope::RopeRef;
use kvssd_types::{Command, Key, KvError, NamespaceId, Reply};
use std::sync::atomic::{AtomicU64, Ordering};

/// Of every LOOKS_MAX looks, NO_GLANCES in a row are refused: a caller that looks beside others, and again when it has the drive alone,
/// must be refused both times. Estimates: every few milliseconds, and as many threads as cores.
const LOOKS_MAX: u64 = 16_384;
const NO_GLANCES: u64 = 4;

/// What is counted of glances.
#[derive(Debug, Default)]
pub(super) struct Glances {
    looks: AtomicU64,
    pages: AtomicU64,
    kept: AtomicU64,
}

impl Glances {
    /// Counts a look. Returns whether it may be a glance.
    fn count_look(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) % LOOKS_MAX < LOOKS_MAX - NO_GLANCES
    }

    fn count_pages(&self, pages: usize) {
        self.pages.fetch_add(pages as u64, Ordering::Relaxed);
    }

    fn count_kept(&self, values: usize) {
        if values > 0 {
            self.kept.fetch_add(values as u64, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Answers a retrieve, an exist, or a command on an iterator without read-ahead, if that changes nothing but iterators. `None` otherwise,
    /// and for every other command: then [`Engine::execute_in`] answers it.
    #[must_use]
    pub fn glance(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<Result<Reply, KvError>> {
        let (key, wanted) = match *command {
            Command::Retrieve { key, offset_bytes, length_bytes } => (key, Some((offset_bytes, length_bytes))),
            Command::Exist { key } => (key, None),
            _ => return self.go_along(namespace, command).map(Ok),
        };
        let namespace = self.looked_at(namespace)?;
        let media = &self.media;
        let mut looker = Looker { media, key, wanted, seen: None };
        let position = namespace.index.glance(key, &mut looker)?;
        let Some(place) = position.place else { return Some(Err(KvError::KeyNotFound)) };
        let Some(wanted) = wanted else { return Some(Ok(Reply::Exists)) };
        // An index that keeps whole keys has not looked at the record.
        let seen = match looker.seen.filter(|seen| seen.place == place) {
            Some(seen) => seen,
            None => media.record_at(place, key, Some(wanted))??,
        };
        let value_bytes = seen.head.value_bytes;
        if position.value_bytes.is_some_and(|known| known != value_bytes) || seen.rest.len() > REST_PAGES_MAX {
            return None;
        }
        self.glances.count_pages(1 + seen.rest.len());
        Some(Ok(Reply::Retrieved { value: media.value_of(seen)?, value_bytes }))
    }

    /// The answer to a command on an iterator without read-ahead.
    fn go_along(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<Reply> {
        if !command.is_of_iterator() {
            return None;
        }
        let Namespace { index, iterators, .. } = self.looked_at(namespace)?;
        let ranges = index.ranges_beside()?;
        let (id, go, pairs_max) = match *command {
            Command::CreateIterator { ref options } => return iterators.create_beside(&self.media, ranges, options),
            Command::DestroyIterator { iterator } => return iterators.destroy_beside(&self.media, ranges, iterator),
            Command::Seek { iterator, key, pairs_max } => (iterator, Go::To(key), pairs_max),
            Command::Next { iterator, pairs_max } => (iterator, Go::On, pairs_max),
            _ => return None,
        };
        let (reply, sources) = iterators.glance(&self.media, ranges, id, go, pairs_max)?;
        self.glances.count_pages(sources.pages);
        self.glances.count_kept(sources.kept);
        Some(reply)
    }

    /// A namespace that may be looked at now.
    fn looked_at(&self, namespace: NamespaceId) -> Option<&Namespace> {
        let namespace = self.namespaces.get(namespace).filter(|namespace| namespace.lives())?;
        // Nobody may see changes that are half made.
        let is_shown = self.failure.is_none()
            && self.share.is_none()
            && self.media.space.packing.layout != RecordLayout::Blocks
            && !namespace.index.growth().keeps_out(false)
            && self.glances.count_look();
        is_shown.then_some(namespace)
    }

    /// Pages that were looked at without a flash operation ([`Engine::glance`]).
    #[must_use]
    pub fn pages_glanced(&self) -> u64 {
        self.glances.pages.load(Ordering::Relaxed)
    }

    /// Values that a glance along an iterator has shown from memory, since they had been seen before.
    #[must_use]
    pub fn kept_values_shown(&self) -> u64 {
        self.glances.kept.load(Ordering::Relaxed)
    }
}

/// Looks for a key.
struct Looker<'g> {
    media: &'g Media,
    key: Key<'g>,
    /// First byte and length of the wanted part of the value; `None` if only existence is asked.
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
