//! The native part of the Python package `kvssd`.
//!
//! ```text
//!   python/kvssd/       Store, Namespace, Batch, Transaction, Cache: mappings, context managers, types
//!     |
//!   _kvssd (this)       bytes in, bytes out; nothing holds the interpreter's lock while it works
//!     |           |                                                |
//!   kvssd_host   kvssd_cli (plans, folders, reports), kvssd_papers   kvssd_device
//! ```
//!
//! What it does not do: anything that Python can say as well. No rules are here, only calls.

mod bytes;
mod cache;
mod device;
mod dicts;
mod errors;
mod experiments;
mod json;
mod keys;
mod locks;
mod numbers;
mod signals;
mod store;
mod sweep;
mod transaction;
mod watch;

use pyo3::prelude::*;

/// The module that Python loads.
#[pymodule]
mod _kvssd {
    #[pymodule_export]
    use crate::bytes::to_bytes;
    #[pymodule_export]
    use crate::cache::RawCache;
    #[pymodule_export]
    use crate::device::RawDevice;
    #[pymodule_export]
    use crate::errors::{
        AbortedError, ClosedError, DamagedError, Error, ExperimentError, FailedError, ForkedError, FullError,
        InvalidError, NamespaceError, OpenError, ReadOnlyError, RefusedError,
    };
    #[pymodule_export]
    use crate::experiments::{bench, reproduce};
    #[pymodule_export]
    use crate::store::RawStore;
    #[pymodule_export]
    use crate::store::cursors::{RawCursor, RawRange};
    #[pymodule_export]
    use crate::sweep::{RawClaim, RawSweep, limits, run_point};
    #[pymodule_export]
    use crate::transaction::RawTransaction;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        kvssd_host::give_up_when(crate::signals::is_interrupted);
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
