//! What a drive says of itself: Identify and its log pages.

use crate::admin_queue::AdminQueue;
use crate::failure::Failure;
use kvssd_nvme_spec::identify::{IdentifyController, IdentifyKvNamespace};
use kvssd_nvme_spec::log_page::{HealthPage, page};
use kvssd_nvme_spec::read_text;
use kvssd_nvme_spec::statistics::{STATISTICS_BYTES, StatisticsPage};
use kvssd_runtime::time::Instant;
use kvssd_types::NamespaceId;

/// Bytes of the SMART / Health log page.
const HEALTH_BYTES: u32 = size_of::<HealthPage>() as u32;

/// How full a drive is, and what it did.
#[derive(Clone, Debug)]
pub struct DriveReport {
    /// MN of Identify Controller.
    pub model: String,
    /// Identify of each key-value namespace, in the order of their numbers.
    pub namespaces: Vec<(NamespaceId, IdentifyKvNamespace)>,
    /// The best log page that the drive has.
    pub counters: Counters,
}

/// The counters of a drive.
#[derive(Clone, Debug)]
pub enum Counters {
    /// Log page C0h, of drives of this project.
    Statistics(Box<StatisticsPage>),
    /// Log page 02h, of any other drive.
    Health(Box<HealthPage>),
    /// The drive has neither.
    None,
}

impl DriveReport {
    pub(crate) fn read(
        admin: &AdminQueue,
        controller: &IdentifyController,
        deadline: Instant,
    ) -> Result<DriveReport, Failure> {
        let namespaces = admin.namespaces(deadline)?;
        let model = read_text(&controller.model).unwrap_or_default().to_owned();
        Ok(DriveReport { model, namespaces, counters: Counters::read(admin, deadline)? })
    }
}

impl Counters {
    fn read(admin: &AdminQueue, deadline: Instant) -> Result<Counters, Failure> {
        match admin.log_page(page::STATISTICS, STATISTICS_BYTES as u32, deadline) {
            Ok(data) => {
                if let Some(page) = StatisticsPage::from_data(&data) {
                    return Ok(Counters::Statistics(Box::new(*page)));
                }
            }
            Err(Failure::Lost(lost)) => return Err(lost.into()),
            // The drive has no page C0h.
            Err(Failure::Final(_)) => {}
        }
        let data = admin.log_page(page::HEALTH, HEALTH_BYTES, deadline)?;
        Ok(HealthPage::from_data(&data).map_or(Counters::None, |page| Counters::Health(Box::new(*page))))
    }
}
