//! Executes admin commands, except for Abort and Asynchronous Event Request.

use crate::clients::{OpenedClient, client_of};
use crate::completion::{Outcome, Success};
use crate::controller::{Controller, ControllerKind};
use crate::identify::identify;
use crate::limits::IO_QUEUES_MAX;
use crate::logs::log_page;
use crate::management::Meant;
use crate::status::{absent, status_of};
use crate::view::View;
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::attachment::{ATTACH, DETACH, read_controller_list};
use kvssd_nvme_spec::features::{
    DELETE_NEEDS_KEY, EVENT_DISCOVERY, EVENT_NAMESPACES, feature, queue_count, queue_count_value,
};
use kvssd_nvme_spec::identify::IDENTIFY_BYTES;
use kvssd_nvme_spec::numbered::{INSTANCE_BYTES, Opened, SIGNATURE};
use kvssd_nvme_spec::{Status, named};
use kvssd_types::{Nanos, RequestId};
use std::net::SocketAddr;

/// EXHID of feature 81h.
const EXTENDED_HOST_ID: u32 = 1;
/// Length of the data of Host Behavior Support.
const HOST_BEHAVIOR_BYTES: usize = 512;
/// The events that can be enabled of an I/O controller: SMART critical warnings, and changed namespaces.
const EVENTS: u32 = 0xff | EVENT_NAMESPACES;
/// SEL of Get Features: supported capabilities.
const SELECT_CAPABILITIES: u8 = 3;
/// Capability of a feature: changeable.
const CHANGEABLE: u64 = 1 << 2;
/// Capability of a feature: namespace specific.
const OF_NAMESPACES: u64 = 1 << 1;

/// What the execution of an admin command needs.
pub(crate) struct Admin<'a> {
    pub(crate) view: View<'a>,
    pub(crate) controller: &'a mut Controller,
    /// The target's address.
    pub(crate) local: SocketAddr,
    pub(crate) now: Nanos,
    pub(crate) namespace: u32,
    /// Which birth of that number it means, if it says.
    pub(crate) birth: Option<u32>,
    /// The command's data to the controller.
    pub(crate) data: &'a [u8],
    /// Length of the host's buffer.
    pub(crate) room_bytes: usize,
}

impl Admin<'_> {
    pub(crate) fn perform(&mut self, command: &AdminCommand) -> Outcome {
        self.controller.restart_keep_alive(self.now);
        let is_discovery = self.controller.kind == ControllerKind::Discovery;
        match command {
            AdminCommand::KeepAlive => Ok(Success::default()),
            AdminCommand::Identify(wanted) => {
                let data = identify(self.view, self.controller, wanted, self.namespace)?;
                self.data(data)
            }
            AdminCommand::GetLogPage(wanted) => {
                // What comes after this the host has not seen.
                let seen = self.view.accesses();
                let data = log_page(self.view, self.controller, wanted, self.local)?;
                if !wanted.retain_event && self.controller.log_page_read(wanted.page, &seen) {
                    self.view.subsystem.hosts.look_anew();
                }
                self.data(data)
            }
            AdminCommand::SetFeatures { save: true, .. } => Err(Status::FeatureNotSaveable.into()),
            AdminCommand::SetFeatures { feature, value, .. } if !is_discovery || is_of_discovery(*feature) => {
                self.set_feature(*feature, *value)
            }
            AdminCommand::GetFeatures { feature, select, value } if !is_discovery || is_of_discovery(*feature) => {
                self.get_feature(*feature, *select, *value)
            }
            AdminCommand::SetFeatures { .. } | AdminCommand::GetFeatures { .. } => Err(Status::InvalidField.into()),
            AdminCommand::CreateNamespace | AdminCommand::DeleteNamespace | AdminCommand::SetCache if !is_discovery => {
                self.manage(command)
            }
            AdminCommand::NamespaceAttachment { select } if !is_discovery => self.attach(*select),
            AdminCommand::CreateNamespace
            | AdminCommand::DeleteNamespace
            | AdminCommand::SetCache
            | AdminCommand::NamespaceAttachment { .. }
            | AdminCommand::Abort { .. }
            | AdminCommand::AsynchronousEventRequest
            | AdminCommand::Other { .. } => Err(Status::InvalidOpcode.into()),
        }
    }

    /// Makes or deletes a namespace, or makes it a cache, for a host that may. It is told by its completion; others get a notice.
    fn manage(&mut self, command: &AdminCommand) -> Outcome {
        let View { subsystem, rights, .. } = self.view;
        if !rights.may_manage() {
            return Err(Status::OperationDenied.into());
        }
        // What a client that went on to another controller left here is made by nobody, so that it can ask what there is.
        if self.controller.features.client.as_ref().is_some_and(|client| client.is_superseded()) {
            return Err(Status::ClientSuperseded.into());
        }
        let host = &self.controller.host.nqn;
        let meant = Meant { id: self.namespace, birth: self.birth };
        let (number, birth) = if *command == AdminCommand::CreateNamespace {
            let (number, birth) = subsystem.create_namespace(host, self.data)?;
            tracing::info!(host, number, "a host has made a namespace");
            (number, birth)
        } else if *command == AdminCommand::SetCache {
            subsystem.set_cache(host, meant, self.data)?;
            tracing::info!(host, number = self.namespace, "a host has made a namespace a cache, another one, or none");
            return Ok(Success::with_result(self.namespace.into()));
        } else {
            subsystem.delete_namespace(host, meant, self.data)?;
            tracing::info!(host, number = self.namespace, "a host has deleted a namespace");
            (self.namespace, 0)
        };
        self.controller.know(number, self.view.accesses().get(&number).copied());
        Ok(Success::with_result(u64::from(birth) << 32 | u64::from(number)))
    }

    /// Attaches a namespace to controllers, or detaches it, for a host that may manage namespaces. All hosts of those
    /// controllers get a notice, the one that asked included: its driver looks at namespaces by notices alone.
    fn attach(&self, select: u8) -> Outcome {
        if !self.view.rights.may_manage() {
            return Err(Status::OperationDenied.into());
        }
        let list = self.data.get(..IDENTIFY_BYTES).ok_or(Status::SglLengthInvalid)?;
        let is_attach = match select {
            ATTACH => true,
            DETACH => false,
            _ => return Err(Status::InvalidField.into()),
        };
        let controllers = read_controller_list(list).ok_or(Status::ControllerListInvalid)?;
        let (host, number) = (&self.controller.host.nqn, self.namespace);
        self.view.subsystem.set_attached(host, (number, is_attach), &controllers)?;
        tracing::info!(host, number, is_attach, ?controllers, "a host has attached or detached a namespace");
        Ok(Success::default())
    }

    /// As much of `data` as the host's buffer takes.
    fn data(&self, mut data: Vec<u8>) -> Outcome {
        data.truncate(self.room_bytes);
        Ok(Success::with_data(data))
    }

    fn set_feature(&mut self, feature: u8, value: u32) -> Outcome {
        let features = &mut self.controller.features;
        match feature {
            feature::ARBITRATION | feature::VOLATILE_WRITE_CACHE => {}
            feature::POWER_MANAGEMENT if value & 0x1f == 0 => {}
            feature::TEMPERATURE_THRESHOLD => {
                // The over-temperature threshold of the composite temperature.
                if value >> 16 & 0xf == 0 && value >> 20 & 3 == 0 {
                    features.temperature_threshold_k = value as u16;
                }
            }
            feature::QUEUES => {
                let (submission, completion) = queue_count(value);
                if submission > 0xffff || completion > 0xffff {
                    return Err(Status::InvalidField.into());
                }
                features.queues = submission.min(completion).min(IO_QUEUES_MAX.into()) as u16;
                return Ok(Success::with_result(queue_count_value(features.queues).into()));
            }
            feature::EVENTS => {
                features.events = value
                    & match self.controller.kind {
                        ControllerKind::Io => EVENTS,
                        ControllerKind::Discovery => EVENT_DISCOVERY,
                    };
            }
            feature::KEEP_ALIVE => features.keep_alive_ms = value,
            feature::HOST_BEHAVIOR if self.data.len() >= HOST_BEHAVIOR_BYTES => {}
            feature::COMMAND_SET_PROFILE if value & 0x1ff == 0 => {}
            feature::COMMAND_SET_PROFILE => return Err(Status::CommandSetRejected.into()),
            feature::KEY_VALUE_CONFIGURATION => self.configure_namespace(value)?,
            feature::NUMBERED_CHANGES if value == SIGNATURE => return self.number_changes(),
            feature::HOST_ID | feature::EXTENSIONS => return Err(Status::FeatureNotChangeable.into()),
            _ => return Err(Status::InvalidField.into()),
        }
        Ok(Success::default())
    }

    /// Set Features C0h: the host numbers its changes from now on.
    fn number_changes(&mut self) -> Outcome {
        let instance = self.data.first_chunk::<INSTANCE_BYTES>().ok_or(Status::SglLengthInvalid)?;
        let client = client_of(&self.controller.host.id, instance);
        let opened = self.view.subsystem.open_client(client).ok_or(Status::InternalError)?;
        let OpenedClient { client, since } = opened.map_err(|error| status_of(&error))?;
        self.controller.features.client = Some(client);
        let opened = Opened { since, window: RequestId::WINDOW as u16 };
        Ok(Success::with_result(opened.result()))
    }

    fn configure_namespace(&mut self, value: u32) -> Result<(), Status> {
        let all = self.namespace == kvssd_nvme_spec::command::NAMESPACE_ALL;
        let chosen: Vec<u32> = self.view.namespaces()?.iter().map(|info| info.id.0).collect();
        let chosen: Vec<u32> = chosen.into_iter().filter(|&id| all || id == self.namespace).collect();
        if chosen.is_empty() {
            return Err(absent(self.namespace));
        }
        let needs_key = &mut self.controller.features.delete_needs_key;
        for id in chosen {
            if value & DELETE_NEEDS_KEY != 0 {
                needs_key.insert(id)
            } else {
                needs_key.remove(&id)
            };
        }
        Ok(())
    }

    fn get_feature(&mut self, feature: u8, select: u8, value: u32) -> Outcome {
        let features = &self.controller.features;
        let is_default = select == 1 || select == 2;
        let (current, default, capabilities) = match feature {
            feature::ARBITRATION | feature::POWER_MANAGEMENT | feature::COMMAND_SET_PROFILE => (0, 0, CHANGEABLE),
            feature::VOLATILE_WRITE_CACHE => (0, 0, CHANGEABLE),
            feature::TEMPERATURE_THRESHOLD if value >> 16 & 0xf == 0 => {
                let default = u64::from(crate::controller::TEMPERATURE_THRESHOLD_K);
                // The under-temperature threshold is never reached.
                let is_under = value >> 20 & 3 == 1;
                if is_under {
                    (0, 0, CHANGEABLE)
                } else {
                    (features.temperature_threshold_k.into(), default, CHANGEABLE)
                }
            }
            feature::QUEUES => {
                (queue_count_value(features.queues).into(), queue_count_value(IO_QUEUES_MAX).into(), CHANGEABLE)
            }
            feature::EVENTS => (features.events.into(), 0, CHANGEABLE),
            feature::KEEP_ALIVE => (features.keep_alive_ms.into(), 0, CHANGEABLE),
            feature::KEY_VALUE_CONFIGURATION => {
                let needs_key = features.delete_needs_key.contains(&self.namespace);
                (u64::from(needs_key) * u64::from(DELETE_NEEDS_KEY), 0, CHANGEABLE | OF_NAMESPACES)
            }
            feature::HOST_BEHAVIOR => return self.data(vec![0; HOST_BEHAVIOR_BYTES]),
            feature::EXTENSIONS => (named::SIGNATURE.into(), named::SIGNATURE.into(), 0),
            feature::NUMBERED_CHANGES => (SIGNATURE.into(), SIGNATURE.into(), CHANGEABLE),
            // Over fabrics host identifiers have 128 bits (EXHID).
            feature::HOST_ID if value & EXTENDED_HOST_ID == 0 => return Err(Status::InvalidField.into()),
            feature::HOST_ID => return self.data(self.controller.host.id.to_vec()),
            _ => return Err(Status::InvalidField.into()),
        };
        Ok(Success::with_result(match select {
            SELECT_CAPABILITIES => capabilities,
            _ if is_default => default,
            _ => current,
        }))
    }
}

/// Whether a discovery controller has that feature.
fn is_of_discovery(feature: u8) -> bool {
    matches!(feature, feature::EVENTS | feature::KEEP_ALIVE | feature::HOST_ID)
}
