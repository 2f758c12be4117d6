//! What the store says of itself, as dicts.

use kvssd_host::{CacheInfo, FirmwareStats, NamespaceInfo, Stats, TrafficStats};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A dict with those fields of a structure, by their names.
macro_rules! dict_of {
    ($py:expr, $of:expr; $($field:ident),+ $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(stringify!($field), $of.$field)?;)+
        dict
    }};
}
pub(crate) use dict_of;

pub(crate) fn dict_of_namespace<'py>(py: Python<'py>, info: &NamespaceInfo) -> PyResult<Bound<'py, PyDict>> {
    let NamespaceInfo { id, attributes, index, is_ordered, birth, utilization, .. } = info;
    let dict = PyDict::new(py);
    dict.set_item("id", id.0)?;
    dict.set_item("name", attributes.name.as_deref())?;
    dict.set_item("index", index)?;
    dict.set_item("is_ordered", is_ordered)?;
    dict.set_item("birth", birth)?;
    dict.set_item("quota_bytes", attributes.quota_bytes)?;
    dict.set_item("pairs_max", info.pairs_max)?;
    dict.set_item("cache", attributes.cache.as_ref().map(ToString::to_string))?;
    dict.update(dict_of!(py, utilization; pairs, pair_bytes, live_bytes, capacity_bytes).as_mapping())?;
    Ok(dict)
}

pub(crate) fn dict_of_cache<'py>(py: Python<'py>, info: &CacheInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = dict_of!(py, info; budget_bytes, held_bytes, kept_bytes, hits, misses);
    dict.update(dict_of!(py, info.counts; admitted, kept_out, evicted, expired).as_mapping())?;
    dict.set_item("cache", info.attributes.to_string())?;
    Ok(dict)
}

pub(crate) fn dict_of_stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("design", &stats.design)?;
    let numbers = dict_of!(
        py, stats; live_bytes, capacity_bytes, value_bytes_max, batch_bytes_max, batch_value_bytes_max, batch_changes_max
    );
    dict.update(numbers.as_mapping())?;
    dict.set_item("write_amplification", stats.write_amplification())?;
    let firmware = stats.firmware.map(|firmware| dict_of_firmware(py, &firmware)).transpose()?;
    dict.set_item("firmware", firmware)?;
    let traffic = stats.traffic.map(|traffic| dict_of_traffic(py, &traffic)).transpose()?;
    dict.set_item("traffic", traffic)?;
    Ok(dict)
}

fn dict_of_firmware<'py>(py: Python<'py>, firmware: &FirmwareStats) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict_of!(
        py, firmware;
        pairs, pair_bytes, flash_bytes, dram_bytes, dram_bytes_max, page_bytes, pages_read, pages_programmed, pairs_moved,
        erases, blocks, erases_max,
    ))
}

fn dict_of_traffic<'py>(py: Python<'py>, traffic: &TrafficStats) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict_of!(py, traffic; changes, lookups, stored_bytes, retrieved_bytes, processor_ns))
}
