//! A service over a disk that is struck: it opens the drive, serves it, and closes it or dies.

use super::Common;
use crate::lives::conditions::{ADDRESS, Conditions, NQN};
use crate::lives::image::PATH;
use crate::{Process, service};
use kvssd_device::Drive;
use kvssd_flash::OpenOptions;
use kvssd_nvme_target::{Subsystem, SubsystemOptions};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

pub(super) const SERVICE: Process = Process(1);

/// Starts the service; gives what ends it in order.
pub(super) fn begin(common: &Rc<Common>) -> Rc<Cell<bool>> {
    common.book.borrow_mut().lives += 1;
    common.report.borrow_mut().lives += 1;
    let (stop, inner) = (Rc::new(Cell::new(false)), common.clone());
    let (given, ended) = (stop.clone(), Rc::new(Cell::new(false)));
    let noted = Noted { common: common.clone(), has_ended: ended.clone(), stops: common.machine.disk().stops() };
    drop(common.world.spawn(SERVICE, "service", move || {
        let _noted = noted;
        serve(&inner, &given);
        ended.set(true);
    }));
    stop
}

/// Counts how a life of the service ended.
struct Noted {
    common: Rc<Common>,
    has_ended: Rc<Cell<bool>>,
    stops: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut report = self.common.report.borrow_mut();
        report.power_losses += self.common.machine.disk().stops() - self.stops;
        report.kills += u64::from(!self.has_ended.get());
        report.closes += u64::from(self.has_ended.get());
    }
}

fn serve(common: &Rc<Common>, stop: &Rc<Cell<bool>>) {
    let Conditions { sync, cache_bytes, .. } = common.conditions;
    let options = OpenOptions { sync, read_only: false, cache_bytes };
    let drives = match Drive::open_all_in(&common.machine.files(), Path::new(PATH), options) {
        Ok(drives) => drives,
        Err(_) if common.excuses.has_failed() => return,
        Err(error) => return common.book.borrow_mut().fail(format!("the drive cannot be opened: {error}")),
    };
    let options = SubsystemOptions { limits: common.conditions.limits, ..SubsystemOptions::new(NQN) };
    let subsystem = Arc::new(Subsystem::over(drives, options));
    *common.subsystem.borrow_mut() = Arc::downgrade(&subsystem);
    match common.world.listen(ADDRESS.parse().expect("an address")) {
        Ok(listener) => service::serve(&common.world, &subsystem, listener, stop),
        Err(error) => return common.book.borrow_mut().fail(format!("nobody can listen: {error}")),
    }
    if let Err(error) = subsystem.close()
        && !common.excuses.has_failed()
    {
        common.book.borrow_mut().fail(format!("the drive cannot be closed: {error}"));
    }
}
