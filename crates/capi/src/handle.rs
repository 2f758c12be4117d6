//! A number that looks like a pointer to C.

use crate::pointers::Place;
use std::ffi::c_void;

/// `kvs_device_handle` and `kvs_key_space_handle`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Handle(Place<c_void>);

impl Handle {
    pub(crate) fn of(number: usize) -> Self {
        Handle(Place::nowhere(number))
    }

    pub(crate) fn number(self) -> usize {
        self.0.number()
    }
}
