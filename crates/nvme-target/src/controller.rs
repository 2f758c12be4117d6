//! A controller: what one host has set, and what it waits for.
//!
//! ```text
//!   Connect, queue 0  ->  Controller   properties CC, CSTS     enabled, shut down
//!   Connect, queue n  ->      "        queues in use
//!                             "        features, keep-alive, event requests, error log
//! ```
//!
//! What it does not do: read a clock, or hold a command up.

use crate::answer::{Answer, Done, Kind};
use crate::clients::NumberedClient;
use crate::limits::{ERROR_ENTRIES_MAX, EVENT_REQUESTS_MAX, IO_QUEUES_MAX, QUEUE_ENTRIES_MAX};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::fabrics::{Capabilities, Configuration, ControllerStatus, VERSION_2_0, property};
use kvssd_nvme_spec::features::event;
use kvssd_nvme_spec::log_page::{ErrorEntry, page};
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A drive in software has no temperature: 25 degrees Celsius.
pub(crate) const TEMPERATURE_K: u16 = 298;
/// Where a host has set no threshold: 70 degrees Celsius.
pub(crate) const TEMPERATURE_THRESHOLD_K: u16 = 343;
/// Information of a health event: a temperature threshold.
const EVENT_TEMPERATURE: u8 = 0x01;
/// Information of a health event: the reliability has suffered.
const EVENT_RELIABILITY: u8 = 0x00;

/// How long a discovery controller without a keep-alive timer waits for its host: the specification's activity timeout of two minutes.
const DISCOVERY_ACTIVITY_NS: Nanos = Nanos(120_000_000_000);

const READY_MS: u64 = 500;

/// CAP.CSS of a controller that has the NVM command set's admin commands only.
const COMMAND_SET_NVM_BIT: u64 = 1 << 37;
const COMMAND_SETS_BIT: u64 = 1 << 43;

/// CC.CSS: all command sets that are supported.
const ALL_COMMAND_SETS: u32 = 6;

/// What a controller is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControllerKind {
    /// Namespaces.
    Io,
    /// Saying where subsystems are.
    Discovery,
}

/// Whose controller it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) nqn: String,
    pub(crate) id: [u8; 16],
}

/// What a host has set.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    pub(crate) queues: u16,
    pub(crate) events: u32,
    pub(crate) temperature_threshold_k: u16,
    pub(crate) keep_alive_ms: u32,
    /// Namespaces in which a delete of a key that is not there is an error.
    pub(crate) delete_needs_key: BTreeSet<u32>,
    /// Who numbers its changes, if the host does.
    pub(crate) client: Option<Arc<NumberedClient>>,
}

/// Of what a host has set, what its commands are executed by.
#[derive(Debug)]
pub(crate) struct Wishes {
    pub(crate) delete_needs_key: BTreeSet<u32>,
    pub(crate) client: Option<Arc<NumberedClient>>,
}

impl Features {
    pub(crate) fn wishes(&self) -> Wishes {
        Wishes { delete_needs_key: self.delete_needs_key.clone(), client: self.client.clone() }
    }
}

/// A controller.
pub(crate) struct Controller {
    pub(crate) kind: ControllerKind,
    pub(crate) id: u16,
    pub(crate) host: Host,
    /// Its admin queue is there, and the host has said so lately.
    pub(crate) is_alive: bool,
    pub(crate) features: Features,
    pub(crate) queues: BTreeSet<u16>,
    pub(crate) errors: VecDeque<ErrorEntry>,
    pub(crate) error_count: u64,
    configuration: Configuration,
    is_shut_down: bool,
    has_failed: bool,
    heard: Nanos,
    event_requests: VecDeque<(u16, Nanos)>,
    events: VecDeque<u32>,
    /// Kinds of events that wait for their log page to be read.
    masked: BTreeMap<u32, u8>,
}

impl Controller {
    pub(crate) fn new(kind: ControllerKind, id: u16, host: Host, keep_alive_ms: u32, now: Nanos) -> Self {
        let features = Features {
            queues: IO_QUEUES_MAX,
            events: 0,
            temperature_threshold_k: TEMPERATURE_THRESHOLD_K,
            keep_alive_ms,
            delete_needs_key: BTreeSet::new(),
            client: None,
        };
        Controller {
            kind,
            id,
            host,
            is_alive: true,
            features,
            queues: BTreeSet::new(),
            errors: VecDeque::new(),
            error_count: 0,
            configuration: Configuration::default(),
            is_shut_down: false,
            has_failed: false,
            heard: now,
            event_requests: VecDeque::new(),
            events: VecDeque::new(),
            masked: BTreeMap::new(),
        }
    }

    /// Whether it takes I/O commands.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_alive && self.configuration.is_enabled() && !self.is_shut_down
    }

    /// The host has said something at `now`.
    pub(crate) fn hear(&mut self, now: Nanos) {
        self.heard = now;
    }

    /// When it is dead, if the host says nothing until then.
    pub(crate) fn expires(&self) -> Option<Nanos> {
        let keep_alive = match (self.kind, Nanos(u64::from(self.features.keep_alive_ms) * 1_000_000)) {
            (ControllerKind::Discovery, Nanos::ZERO) => DISCOVERY_ACTIVITY_NS,
            (_, keep_alive) => keep_alive,
        };
        (keep_alive > Nanos::ZERO).then(|| self.heard + keep_alive)
    }

    /// Since when nobody has said anything, if it has no queue but its admin queue.
    pub(crate) fn idle_since(&self) -> Option<Nanos> {
        self.queues.is_empty().then_some(self.heard)
    }

    pub(crate) fn property(&self, offset: u32, is_wide: bool) -> Result<u64, Status> {
        let status = ControllerStatus::new(self.configuration.is_enabled(), self.has_failed, self.is_shut_down);
        match (offset, is_wide) {
            (property::CAPABILITIES, true) => {
                let capabilities = Capabilities::new(QUEUE_ENTRIES_MAX, READY_MS).0;
                Ok(match self.kind {
                    ControllerKind::Io => capabilities,
                    ControllerKind::Discovery => capabilities & !COMMAND_SETS_BIT | COMMAND_SET_NVM_BIT,
                })
            }
            (property::VERSION, false) => Ok(VERSION_2_0.into()),
            (property::CONFIGURATION, false) => Ok(self.configuration.0.into()),
            (property::STATUS, false) => Ok(status.0.into()),
            (property::SUBSYSTEM_RESET, false) => Ok(0),
            (property::READY_TIMEOUTS, false) => Ok(READY_MS.div_ceil(500)),
            _ => Err(Status::InvalidField),
        }
    }

    /// Writes a property. Gives whether this asks for a shutdown: the drive is to write out what it buffers then, before
    /// [`Controller::shut_down`] says so.
    pub(crate) fn set_property(&mut self, offset: u32, is_wide: bool, value: u64) -> Result<bool, Status> {
        if offset != property::CONFIGURATION || is_wide {
            return Err(Status::InvalidField);
        }
        let wanted = Configuration(value as u32);
        let is_io = self.kind == ControllerKind::Io;
        if is_io && wanted.is_enabled() && wanted.command_sets() != ALL_COMMAND_SETS {
            return Err(Status::InvalidField);
        }
        if self.configuration.is_enabled() != wanted.is_enabled() {
            self.reset();
        }
        self.configuration = wanted;
        Ok(wanted.shutdown() != 0 && !self.is_shut_down)
    }

    /// All that was written is safe.
    pub(crate) fn shut_down(&mut self) {
        self.is_shut_down = true;
    }

    /// As after it was connected, but for the queues, which notice.
    fn reset(&mut self) {
        self.is_shut_down = false;
        self.event_requests.clear();
        self.events.clear();
        self.masked.clear();
        self.features.events = 0;
        self.features.temperature_threshold_k = TEMPERATURE_THRESHOLD_K;
        self.features.delete_needs_key.clear();
        self.features.client = None;
    }

    /// Waits for an event.
    pub(crate) fn request_event(&mut self, command_id: u16, now: Nanos) -> Result<(), Status> {
        if self.event_requests.len() >= EVENT_REQUESTS_MAX {
            return Err(Status::EventRequestLimitExceeded);
        }
        self.event_requests.push_back((command_id, now));
        Ok(())
    }

    /// Forgets a request for an event, if there is such a one: its host has.
    pub(crate) fn forget_event_request(&mut self, command_id: u16) -> bool {
        let before = self.event_requests.len();
        self.event_requests.retain(|&(id, _)| id != command_id);
        self.event_requests.len() < before
    }

    /// Aborts a request for an event, if there is such a one.
    pub(crate) fn abort_event_request(&mut self, command_id: u16) -> Option<Answer> {
        let at = self.event_requests.iter().position(|&(id, _)| id == command_id)?;
        let (_, arrived) = self.event_requests.remove(at)?;
        Some(Answer::new(command_id, Kind::Admin, arrived, Err(Status::CommandAborted.into())))
    }

    /// Looks whether something has happened.
    pub(crate) fn look(&mut self, has_failed: bool) {
        self.has_failed |= has_failed;
        if has_failed {
            self.raise(EVENT_RELIABILITY);
        } else if self.is_too_hot() {
            self.raise(EVENT_TEMPERATURE);
        }
    }

    /// Whether the drive is as hot as the host wanted to be told.
    pub(crate) fn is_too_hot(&self) -> bool {
        self.features.temperature_threshold_k <= TEMPERATURE_K
    }

    /// A health event, unless the host has not looked at the last one yet.
    fn raise(&mut self, information: u8) {
        if self.masked.insert(event::HEALTH, information).is_none() {
            self.events.push_back(event::dword(event::HEALTH, information, page::HEALTH));
        }
    }

    /// The host has read a log page.
    pub(crate) fn has_read(&mut self, log_page: u8) {
        if log_page == page::HEALTH {
            self.masked.remove(&event::HEALTH);
        }
    }

    /// An answer to a request, if something has happened.
    pub(crate) fn next_event(&mut self) -> Option<Answer> {
        if self.events.is_empty() {
            return None;
        }
        let (command_id, arrived) = self.event_requests.pop_front()?;
        let event = self.events.pop_front()?;
        Some(Answer::new(command_id, Kind::Admin, arrived, Ok(Done::with_result(event.into()))))
    }

    /// Keeps an error for the log.
    pub(crate) fn note_error(&mut self, queue_id: u16, answer: &Answer) {
        self.error_count += 1;
        self.errors.truncate(ERROR_ENTRIES_MAX - 1);
        let mut entry = ErrorEntry::zeroed();
        entry.error_count = self.error_count.into();
        entry.queue_id = queue_id.into();
        entry.command_id = answer.command_id.into();
        entry.status = answer.completion(0).status;
        entry.parameter = u16::MAX.into();
        entry.transport = kvssd_nvme_spec::log_page::TRANSPORT_TCP;
        self.errors.push_front(entry);
    }
}
