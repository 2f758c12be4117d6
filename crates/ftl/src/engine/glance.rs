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
use crate::io::Io;
use crate::look::{REST_PAGES_MAX, Seen};
use crate::media::Media;
use crate::namespace::Namespace;
use crate::packing::RecordLayout;
use kvssd_flash::rope::RopeRef;
use kvssd_types::{Command, Key, KvError, NamespaceId, Nanos, Reply};
use std::sync::atomic::{AtomicU64, Ordering};

/// One look in so many is no glance. An estimate: every few milliseconds one.
const LOOKS_MAX: u64 = 4096;

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

    /// The answer to a seek or a next of an iterator, and when it is done, if its pairs are to be had without a flash operation for each:
    /// virtual time passes for what is read of the index alone. Else, and of every other command, none: [`Engine::execute_in`] gives it.
    #[must_use]
    pub fn pairs_at_hand(
        &mut self,
        namespace: NamespaceId,
        command: &Command<'_>,
        at: Nanos,
    ) -> Option<(Nanos, Result<Reply, KvError>)> {
        let (iterator, asked) = match *command {
            Command::Seek { iterator, key, pairs_max } => (iterator, (Some(key), pairs_max)),
            Command::Next { iterator, pairs_max } => (iterator, (None, pairs_max)),
            _ => return None,
        };
        if self.failure.is_some() || self.share.is_some() || !self.glances.look() {
            return None;
        }
        let Namespace { index, iterators, .. } =
            self.namespaces.living(namespace).ok().filter(|namespace| !namespace.index.growth().keeps_out(false))?;
        let mut io = Io::new(&mut self.media, at, false).of(namespace);
        let reply = iterators.at_hand(&mut io, index.as_mut(), iterator, asked)?;
        let done = io.clock;
        let reply = reply.map(|(reply, pages)| {
            self.glances.see(pages);
            reply
        });
        self.note_failure(&reply);
        Some((done, reply))
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
