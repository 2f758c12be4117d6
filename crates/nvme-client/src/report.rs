//! What a drive says of itself: Identify and its log pages.

use crate::admin_queue::AdminQueue;
use crate::failure::Failure;
use crate::time_left::Deadline;
use kvssd_nvme_spec::identify::{IdentifyController, IdentifyKvNamespace};
use kvssd_nvme_spec::log_page::{HealthPage, page};
use kvssd_nvme_spec::read_text;
use kvssd_nvme_spec::statistics::{STATISTICS_BYTES, StatisticsPage};
use kvssd_types::NamespaceId;

/// Bytes of the SMART / Health log page.
const HEALTH_BYTES: u32 = size_of::<HealthPage>() as u32;
/// Critical Warning: the subsystem is not to be relied upon, or all media only read.
const WARNING_FAILED: u8 = 1 << 2 | 1 << 3;

/// How full a drive is, and what it did.
#[derive(Clone, Debug)]
pub struct DriveReport {
    /// MN of Identify Controller.
    pub model: String,
    /// Identify of each key-value namespace, in the order of their numbers.
    pub namespaces: Vec<(NamespaceId, IdentifyKvNamespace)>,
    /// Whether the drive says that it cannot be relied upon or that it only reads: Critical Warning of the SMART / Health log page, bits 2 and 3.
    pub has_failed: bool,
    /// Commands that one connection has under way at the most.
    pub queue_depth: u16,
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
        queue_depth: u16,
        deadline: &Deadline,
    ) -> Result<DriveReport, Failure> {
        let namespaces = admin.namespaces(deadline)?;
        let model = read_text(&controller.model).unwrap_or_default().to_owned();
        let data = admin.log_page(page::HEALTH, HEALTH_BYTES, deadline)?;
        let health = HealthPage::from_data(&data).map(|page| Box::new(*page));
        let has_failed = health.as_ref().is_some_and(|page| page.critical_warning & WARNING_FAILED != 0);
        let counters = Counters::read(admin, health, deadline)?;
        Ok(DriveReport { model, namespaces, has_failed, queue_depth, counters })
    }
}

impl Counters {
    fn read(admin: &AdminQueue, health: Option<Box<HealthPage>>, deadline: &Deadline) -> Result<Counters, Failure> {
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
        Ok(health.map_or(Counters::None, Counters::Health))
    }
}
