//! Fabrics and admin commands of a peer.

use super::{Connection, End};
use crate::peer::{CAPSULE_DATA_BYTES, NAMESPACES, NQN, Numbers, VALUE_BYTES_MAX};
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::fabrics::{
    Capabilities, Configuration, ControllerStatus, DISCOVERY_NQN, FabricsCommand, property,
};
use kvssd_nvme_spec::features::feature::{KEY_VALUE_CONFIGURATION, NUMBERED_CHANGES};
use kvssd_nvme_spec::identify::{IDENTIFY_BYTES, IdentifyController, IdentifyKvNamespace, cns, namespace_list};
use kvssd_nvme_spec::log_page::{Discovered, HealthPage, discovery_page, page};
use kvssd_nvme_spec::numbered::Opened;
use kvssd_nvme_spec::{Status, SubmissionEntry, numbered, read_text};
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

impl Connection {
    pub(super) fn fabrics(&mut self, entry: &SubmissionEntry, data: &[u8]) -> Result<(), End> {
        let result = match FabricsCommand::from(entry) {
            FabricsCommand::Connect(connect) => {
                let nqn = read_text(&data[256..512]).unwrap();
                self.host.copy_from_slice(&data[..16]);
                self.is_discovery = nqn == DISCOVERY_NQN;
                self.is_io = connect.queue_id > 0;
                if self.is_io {
                    self.shared.io_queues.fetch_add(1, Ordering::SeqCst);
                    self.framing.data_bytes_max = VALUE_BYTES_MAX;
                }
                if nqn == NQN || self.is_discovery { Ok(7) } else { Err(Status::ConnectInvalidParameters) }
            }
            FabricsCommand::PropertyGet { offset: property::CAPABILITIES, .. } => Ok(Capabilities::new(128, 500).0),
            FabricsCommand::PropertyGet { offset: property::STATUS, .. } => {
                let is_shut_down = self.configuration.shutdown() != 0;
                self.shared.shutdowns.fetch_add(u64::from(is_shut_down), Ordering::SeqCst);
                Ok(ControllerStatus::new(self.configuration.is_enabled(), false, is_shut_down).0.into())
            }
            FabricsCommand::PropertySet { offset: property::CONFIGURATION, value, .. } => {
                self.configuration = Configuration(value as u32);
                Ok(0)
            }
            _ => Err(Status::InvalidField),
        };
        self.answer(entry, result);
        Ok(())
    }

    pub(super) fn admin(&mut self, entry: &SubmissionEntry) -> Result<(), End> {
        let id = entry.command_id.get();
        let namespace = entry.namespace.get();
        let data = match AdminCommand::from(entry) {
            AdminCommand::KeepAlive => {
                self.shared.keep_alives.fetch_add(1, Ordering::SeqCst);
                Vec::new()
            }
            AdminCommand::SetFeatures { feature: KEY_VALUE_CONFIGURATION, .. }
                if !self.shared.behaviour.tells_of_deletes =>
            {
                self.answer(entry, Err(Status::InvalidField));
                return Ok(());
            }
            AdminCommand::GetFeatures { feature: NUMBERED_CHANGES, .. }
            | AdminCommand::SetFeatures { feature: NUMBERED_CHANGES, .. } => {
                let result = self.numbered(matches!(AdminCommand::from(entry), AdminCommand::SetFeatures { .. }));
                self.answer(entry, result);
                return Ok(());
            }
            AdminCommand::SetFeatures { .. } => Vec::new(),
            AdminCommand::Identify(identify) => match identify.cns {
                cns::CONTROLLER => controller(),
                _ if self.shared.behaviour.has_failed => {
                    self.answer(entry, Err(Status::InternalError));
                    return Ok(());
                }
                cns::COMMAND_SET_NAMESPACE if (1..=NAMESPACES).contains(&namespace) => self.kv_namespace(),
                cns::COMMAND_SET_NAMESPACE_LIST => {
                    let gone = u32::from(self.shared.behaviour.loses_namespaces);
                    namespace_list(1..=NAMESPACES + gone, namespace).to_vec()
                }
                _ => {
                    self.answer(entry, Err(Status::InvalidNamespace));
                    return Ok(());
                }
            },
            AdminCommand::GetLogPage(get) if get.page == page::HEALTH => vec![0; size_of::<HealthPage>()],
            AdminCommand::GetLogPage(get) if get.page == page::DISCOVERY => {
                let (address, service) = (self.shared.address.ip().to_string(), self.shared.address.port().to_string());
                let found = self.shared.behaviour.subsystems.iter().map(|&subsystem_nqn| Discovered {
                    subsystem_nqn,
                    address: &address,
                    service: &service,
                    is_secured: false,
                });
                let found: Vec<_> = found.collect();
                let mut log = discovery_page(&found, 1, 32, false);
                log.truncate(get.length_bytes as usize);
                log
            }
            _ => {
                self.answer(entry, Err(Status::InvalidOpcode));
                return Ok(());
            }
        };
        self.data(id, 0, &data, false);
        self.answer(entry, Ok(0));
        Ok(())
    }

    /// The result of Get Features C0h, or Set Features.
    fn numbered(&self, begins: bool) -> Result<u64, Status> {
        match self.shared.behaviour.numbers {
            // One that takes whatever it is told, and means something else by it.
            Numbers::None => Ok(0),
            _ if !begins => Ok(numbered::SIGNATURE.into()),
            Numbers::Failed => Err(Status::InternalError),
            Numbers::Known => Ok(Opened { since: 1, window: 1024 }.result()),
            Numbers::Forgotten => {
                self.shared.made.lock().unwrap().clear();
                let since = self.shared.begins.fetch_add(1, Ordering::SeqCst);
                Ok(Opened { since, window: 1024 }.result())
            }
        }
    }

    fn kv_namespace(&self) -> Vec<u8> {
        let mut data = IdentifyKvNamespace::zeroed();
        data.size_bytes = (1 << 30).into();
        data.utilization_bytes = (self.shared.pairs.lock().unwrap().len() as u64 * 4096).into();
        data.kv_formats[0].key_bytes_max = 16.into();
        data.kv_formats[0].value_bytes_max = VALUE_BYTES_MAX.into();
        data.as_bytes().to_vec()
    }
}

fn controller() -> Vec<u8> {
    let mut data = IdentifyController::zeroed();
    kvssd_nvme_spec::write_padded(&mut data.model, "a peer for tests");
    data.transfer_pages_log2 = 9;
    data.command_capsule_16b = ((64 + CAPSULE_DATA_BYTES) / 16).into();
    data.namespaces_max = NAMESPACES.into();
    let bytes = data.as_bytes().to_vec();
    assert_eq!(bytes.len(), IDENTIFY_BYTES);
    bytes
}
