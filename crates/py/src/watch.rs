//! Who watches an experiment: Python's signals, and a function of the caller's.

use crate::errors::{of_failure, of_simulation};
use kvssd_cli::Failure;
use kvssd_measure::Observer;
use pyo3::prelude::*;

/// Asks Python now and then whether somebody wants it to end, and tells the function how far it is. What that raises ends it as well.
struct Watch {
    progress: Option<Py<PyAny>>,
    phase: String,
    total: u64,
    raised: Option<PyErr>,
}

impl Watch {
    fn tell(&mut self, done: u64) {
        if self.raised.is_some() {
            return;
        }
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map(|progress| progress.call1(py, (&self.phase, done, self.total))).transpose()
        });
        self.raised = told.err();
    }
}

impl Observer for Watch {
    fn begin(&mut self, phase: &str, total: u64) {
        phase.clone_into(&mut self.phase);
        self.total = total;
        self.tell(0);
    }

    fn progress(&mut self, done: u64) {
        self.tell(done);
    }

    fn is_interrupted(&self) -> bool {
        self.raised.is_some()
    }
}

/// Does an experiment without the interpreter's lock.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn Observer) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let (done, raised) = py.detach(|| {
        let mut watch = Watch { progress, phase: String::new(), total: 0, raised: None };
        let done = work(&mut watch);
        (done, watch.raised)
    });
    match (done, raised) {
        // Also where it was done before it could be ended.
        (_, Some(raised)) => Err(raised),
        (Err(Failure::Sim(error)), _) => Err(of_simulation(&error)),
        (done, _) => done.map_err(|failure| of_failure(&failure)),
    }
}
