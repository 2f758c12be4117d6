//! How the table comes back: the directory and the changed pages of a checkpoint, and the journal from there on.
//!
//! A page that is on flash holds all that was done to it before it was written, and no change is about two pages. A pair that comes
//! needs its key, which its tag does not say: that is noted before it.

use super::DramHash;
use super::entry::KeyWord;
use super::page::HashPage;
use crate::index::sections::SavedSections;
use crate::io::Io;
use crate::journal::Change;
use kvssd_types::{Key, KvError, VALUE_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// What a checkpoint holds of it.
#[derive(Serialize, Deserialize)]
struct Saved {
    pairs: u64,
    pages: SavedSections,
}

impl DramHash {
    pub(super) fn saved(&self) -> Vec<u8> {
        let saved = Saved { pairs: self.pairs, pages: self.pages.save() };
        postcard::to_allocvec(&saved).expect("a directory and pages are plain data")
    }

    pub(super) fn restore_from(&mut self, bytes: &[u8]) -> Option<()> {
        let Saved { pairs, pages } = postcard::from_bytes(bytes).ok()?;
        self.pairs = Some(pairs).filter(|&pairs| pairs <= self.slots())?;
        self.is_whole = false;
        self.pages.restore(pages)
    }

    pub(super) fn redo_change(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError> {
        let tag = match *change {
            Change::Key { ref key, .. } => {
                self.redo_key = Key::new(key).ok().map(KeyWord::of);
                return Ok(());
            }
            Change::Bound { tag, .. } | Change::Unbound { tag, .. } | Change::Moved { tag, .. } => tag,
            _ => return Ok(()),
        };
        let wants = self.pages.redo_wants(io, self.form().page_of(tag), position)?;
        match *change {
            Change::Bound { old: None, .. } => self.count(true),
            Change::Unbound { .. } => self.count(false),
            _ => {}
        }
        if !wants || self.redo_in_page(io, change)? {
            return Ok(());
        }
        Err(KvError::Unrecovered("the journal speaks of a pair that the table has not, or has no room for".to_owned()))
    }

    /// Makes a change of a pair again; gives whether that can be.
    fn redo_in_page(&mut self, io: &mut Io<'_>, change: &Change) -> Result<bool, KvError> {
        match *change {
            Change::Bound { pair, .. } if pair.value_bytes as usize > VALUE_BYTES_MAX => Ok(false),
            Change::Bound { tag, old: Some(old), pair, .. } => {
                let set = |form: &HashPage, page: &mut _, slot| {
                    form.set_pair(page, slot, pair.place, pair.value_bytes);
                };
                self.change_pair(io, (tag, old.place), set)
            }
            Change::Bound { tag, pair, .. } => match self.redo_key.filter(|key| key.tag() == tag) {
                Some(key) => self.insert(io, key, pair),
                None => Ok(false),
            },
            Change::Unbound { tag, old, .. } => self.remove(io, tag, old.place),
            Change::Moved { tag, from, to, .. } => {
                self.change_pair(io, (tag, from), |form, page, slot| form.set_place(page, slot, to))
            }
            _ => Ok(true),
        }
    }
}
