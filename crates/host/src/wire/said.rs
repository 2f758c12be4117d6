//! What a drive on the wire says of itself, as a store says it.

use super::session::{Session, Trouble};
use crate::{FirmwareStats, Stats, TrafficStats};
use kvssd_ftl::{DramUse, NamespaceAttributes, NamespaceInfo, Utilization};
use kvssd_runtime::time::Instant;
use kvssd_spec::identify::IdentifyKvNamespace;
use kvssd_spec::log_page::{HEALTH_UNIT_BYTES, HealthPage, page};
use kvssd_spec::read_text;
use kvssd_spec::statistics::{STATISTICS_BYTES, StatisticsPage};
use kvssd_types::NamespaceId;

/// Bytes of the log page of SMART and health.
const HEALTH_BYTES: u32 = size_of::<HealthPage>() as u32;

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

/// How full the drive is: by its own statistics where it is one of this project's, else by Identify and SMART.
pub(super) fn stats(session: &Session, deadline: Instant) -> Result<Stats, Trouble> {
    let namespaces = session.namespaces(deadline)?;
    let value_bytes_max = namespaces.iter().map(|(_, said)| said.kv_formats[0].value_bytes_max.get()).max();
    let stats = Stats {
        design: read_text(&session.controller().model).unwrap_or_default().to_owned(),
        live_bytes: namespaces.iter().map(|(_, said)| said.utilization_bytes.get()).sum(),
        capacity_bytes: namespaces.iter().map(|(_, said)| said.size_bytes.get()).sum(),
        value_bytes_max: value_bytes_max.unwrap_or(0).into(),
        batch_bytes_max: 0,
        batch_changes_max: 0,
        firmware: None,
        traffic: None,
    };
    match session.log_page(page::STATISTICS, STATISTICS_BYTES as u32, deadline) {
        Ok(data) => {
            if let Some(said) = StatisticsPage::from_data(&data) {
                return Ok(with_statistics(&stats, said));
            }
        }
        Err(Trouble::Lost(lost)) => return Err(lost.into()),
        // It has no such page.
        Err(Trouble::Refused(_)) => {}
    }
    let data = session.log_page(page::HEALTH, HEALTH_BYTES, deadline)?;
    let traffic = HealthPage::from_data(&data).map(|said| {
        let number = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        let bytes = |units: u128| number(units).saturating_mul(HEALTH_UNIT_BYTES);
        TrafficStats {
            changes: number(said.writes.get()),
            lookups: number(said.reads.get()),
            stored_bytes: bytes(said.units_written.get()),
            retrieved_bytes: bytes(said.units_read.get()),
            processor_ns: None,
        }
    });
    Ok(Stats { traffic, ..stats })
}

fn with_statistics(stats: &Stats, said: &StatisticsPage) -> Stats {
    Stats {
        design: read_text(&said.design).unwrap_or_default().to_owned(),
        live_bytes: said.live_bytes.get(),
        capacity_bytes: said.capacity_bytes.get(),
        firmware: Some(FirmwareStats {
            pairs: said.pairs.get(),
            pair_bytes: said.pair_bytes.get(),
            flash_bytes: said.flash_bytes.get(),
            dram_bytes: said.dram_bytes.get(),
            dram_bytes_max: said.dram_bytes_max.get(),
            page_bytes: said.page_bytes.get(),
            pages_read: said.pages_read.get(),
            pages_programmed: said.pages_programmed.get(),
            pairs_moved: said.pairs_moved.get(),
            erases: said.erases.get(),
            blocks: said.blocks.get(),
            erases_max: said.erases_max.get(),
        }),
        traffic: Some(TrafficStats {
            changes: said.changes.get(),
            lookups: said.lookups.get(),
            stored_bytes: said.stored_bytes.get(),
            retrieved_bytes: said.retrieved_bytes.get(),
            processor_ns: Some(said.processor_ns.get()).filter(|time| *time > 0),
        }),
        ..*stats
    }
}
