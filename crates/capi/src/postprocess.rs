//! The function that an asynchronous call is given.

#![expect(unsafe_code, reason = "it is a function of C's")]

use crate::abi::KvsPostprocessContext;

/// `kvs_postprocess_function`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Postprocess(Option<unsafe extern "C" fn(*mut KvsPostprocessContext)>);

impl Postprocess {
    /// Whether there is none.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_none()
    }

    /// Calls it.
    pub(crate) fn call(self, mut context: KvsPostprocessContext) {
        if let Some(function) = self.0 {
            // SAFETY: C says that it is a function that takes this, and the context outlives the call.
            unsafe { function(&raw mut context) };
        }
    }
}
