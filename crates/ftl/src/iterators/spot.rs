//! Where an iterator stands.

use kvssd_types::OwnedKey;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The position of an iterator without read-ahead.
#[derive(Clone, Debug, Default)]
pub(super) struct Spot {
    /// Whether it was sent somewhere.
    pub(super) has_sought: bool,
    /// The key that it was sent to; `None` for behind all keys.
    pub(super) from: Option<Vec<u8>>,
    /// The last key that it has returned since.
    pub(super) given: Option<OwnedKey>,
    /// Whether pairs were returned that the index's cursor has not come to.
    pub(super) is_ahead: bool,
}

/// A spot that one thread at a time uses. Who finds it in use has no glance: it takes the drive and executes its command.
#[derive(Debug, Default)]
pub(super) struct OwnSpot(Mutex<Spot>);

impl Clone for OwnSpot {
    fn clone(&self) -> Self {
        OwnSpot(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl OwnSpot {
    /// None while another thread uses it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Spot>> {
        self.0.try_lock().ok()
    }

    pub(super) fn get_mut(&mut self) -> &mut Spot {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cursor was sent somewhere.
    pub(super) fn sought(&mut self, from: Option<Vec<u8>>) {
        *self.get_mut() = Spot { has_sought: true, from, given: None, is_ahead: false };
    }

    /// `key` was returned; the cursor stands behind it.
    pub(super) fn gave(&mut self, key: &OwnedKey) {
        self.get_mut().given = Some(key.clone());
    }
}
