//! The drive's counters at a moment, from which those of a phase are reckoned.

use kvssd_device::Device;
use kvssd_flash::Counters;
use kvssd_ftl::index::IndexCounters;
use kvssd_ftl::{GcCounters, GrowthCounters, Spent};
use kvssd_types::Nanos;

/// The drive's counters at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    pub(crate) flash: Counters,
    pub(crate) index: IndexCounters,
    pub(crate) gc: GcCounters,
    pub(crate) growth: GrowthCounters,
    pub(crate) spent: [(&'static str, Spent); 3],
    pub(crate) busy: Vec<(&'static str, Vec<Nanos>)>,
}

impl Baseline {
    pub(crate) fn of(device: &Device) -> Self {
        let engine = device.engine();
        Baseline {
            flash: engine.flash_counters().clone(),
            index: engine.index_counters(),
            gc: engine.gc_counters(),
            growth: engine.growth_counters(),
            spent: device.spent(),
            busy: device.busy(),
        }
    }
}
