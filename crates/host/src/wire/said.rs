//! What a drive on the wire says of itself, as a store says it.

use super::session::{Session, Trouble};
use crate::Stats;
use kvssd_ftl::{DramUse, NamespaceAttributes, NamespaceInfo, Utilization};
use kvssd_spec::identify::IdentifyKvNamespace;
use kvssd_spec::read_text;
use kvssd_types::NamespaceId;
use std::time::Instant;

/// A namespace as far as Identify tells of it.
pub(super) fn namespace_info(id: NamespaceId, said: &IdentifyKvNamespace) -> NamespaceInfo {
    let utilization = Utilization {
        live_bytes: said.utilization_bytes.get(),
        capacity_bytes: said.size_bytes.get(),
        ..Utilization::default()
    };
    NamespaceInfo {
        id,
        attributes: NamespaceAttributes::PLAIN,
        index: "",
        is_ordered: false,
        utilization,
        dram: DramUse::default(),
    }
}

/// How full the drive is.
pub(super) fn stats(session: &Session, deadline: Instant) -> Result<Stats, Trouble> {
    let namespaces = session.namespaces(deadline)?;
    let sum = |of: fn(&IdentifyKvNamespace) -> u64| namespaces.iter().map(|(_, said)| of(said)).sum::<u64>();
    let value_bytes_max = namespaces.iter().map(|(_, said)| said.kv_formats[0].value_bytes_max.get()).max();
    Ok(Stats {
        design: read_text(&session.controller().model).unwrap_or_default().to_owned(),
        pairs: 0,
        pair_bytes: 0,
        live_bytes: sum(|said| said.utilization_bytes.get()),
        capacity_bytes: sum(|said| said.size_bytes.get()),
        flash_bytes: 0,
        value_bytes_max: value_bytes_max.unwrap_or(0).into(),
        batch_changes_max: 0,
        dram_bytes: 0,
        dram_bytes_max: 0,
        pages_read: 0,
        pages_programmed: 0,
        pairs_moved: 0,
    })
}
