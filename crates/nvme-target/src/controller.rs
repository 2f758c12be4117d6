//! A controller of one host: properties, features, keep-alive, events, error log.
//!
//! ```text
//!   Connect, queue 0  ->  Controller   properties CC, CSTS     enabled, shut down
//!   Connect, queue n  ->      "        queues in use
//!                             "        features, keep-alive, event requests, error log
//! ```
//!
//! What it does not do: read a clock, or wait.

use crate::clients::NumberedClient;
use crate::command_kind::CommandKind;
use crate::completion::{Completion, Success};
use crate::iterators::{Owner, OwnerHost};
use crate::limits::{ERROR_ENTRIES_MAX, EVENT_REQUESTS_MAX, IO_QUEUES_MAX, QUEUE_ENTRIES_MAX};
use crate::rights::{Access, HostRights};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::fabrics::{Capabilities, Configuration, ControllerStatus, VERSION_2_0, property};
use kvssd_nvme_spec::features::{EVENT_DISCOVERY, EVENT_NAMESPACES, event};
use kvssd_nvme_spec::log_page::{ErrorEntry, page};
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// 25 degrees Celsius: software has no temperature.
pub(crate) const TEMPERATURE_K: u16 = 298;
/// The default threshold, 70 degrees Celsius.
pub(crate) const TEMPERATURE_THRESHOLD_K: u16 = 343;
/// Information of a SMART event: a temperature threshold was passed.
const EVENT_TEMPERATURE: u8 = 0x01;
/// Information of a SMART event: the reliability is degraded.
const EVENT_RELIABILITY: u8 = 0x00;

/// How long a discovery controller without a keep-alive timer waits for a command (Fabrics has an activity timeout of
/// two minutes).
const DISCOVERY_ACTIVITY_NS: Nanos = Nanos(120_000_000_000);

const READY_MS: u64 = 500;

/// CAP.CSS of a controller that has the NVM command set's admin commands only.
const COMMAND_SET_NVM_BIT: u64 = 1 << 37;
const COMMAND_SETS_BIT: u64 = 1 << 43;

/// CC.CSS: all command sets that are supported.
const ALL_COMMAND_SETS: u32 = 6;

/// CNTRLTYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControllerKind {
    /// Executes I/O commands.
    Io,
    /// Has the discovery log page.
    Discovery,
}

/// The host that a controller belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) nqn: String,
    pub(crate) id: [u8; 16],
}

/// The current values of features.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    pub(crate) queues: u16,
    pub(crate) events: u32,
    pub(crate) temperature_threshold_k: u16,
    pub(crate) keep_alive_ms: u32,
    /// Namespaces with feature 20h, bit 0: Delete fails where the key is missing.
    pub(crate) delete_needs_key: BTreeSet<u32>,
    /// The client, if the host numbers its changes.
    pub(crate) client: Option<Arc<NumberedClient>>,
    /// What its iterators belong to.
    pub(crate) iterators: Owner,
}

/// What I/O commands depend on.
#[derive(Debug)]
pub(crate) struct IoSettings {
    pub(crate) rights: Arc<HostRights>,
    /// As of which change of rights or namespaces they are.
    pub(crate) generation: u64,
    /// What its iterators belong to.
    pub(crate) iterators: Owner,
    pub(crate) delete_needs_key: BTreeSet<u32>,
    pub(crate) client: Option<Arc<NumberedClient>>,
}

impl Features {
    pub(crate) fn settings(&self, rights: Arc<HostRights>, generation: u64) -> IoSettings {
        let iterators = Owner::clone(&self.iterators);
        IoSettings {
            rights,
            generation,
            iterators,
            delete_needs_key: self.delete_needs_key.clone(),
            client: self.client.clone(),
        }
    }
}

/// The state of a controller.
pub(crate) struct Controller {
    pub(crate) kind: ControllerKind,
    pub(crate) id: u16,
    pub(crate) host: Host,
    /// It has an admin queue, and was not ended for another host.
    pub(crate) is_alive: bool,
    pub(crate) features: Features,
    pub(crate) queues: BTreeSet<u16>,
    /// How often it was reset: queues of before are gone, though their connections may not know it yet.
    pub(crate) resets: u64,
    pub(crate) errors: VecDeque<ErrorEntry>,
    pub(crate) error_count: u64,
    configuration: Configuration,
    is_shut_down: bool,
    has_failed: bool,
    last_heard: Nanos,
    event_requests: VecDeque<(u16, Nanos)>,
    /// Identifiers of those that a reset has ended.
    forgotten: Vec<u16>,
    events: VecDeque<u32>,
    /// Types of events that are masked until their log page is read, with their information.
    masked: BTreeMap<u32, u8>,
    /// What the host may do with each namespace that it sees, and which one of that number it is.
    accesses: BTreeMap<u32, (Access, u64)>,
    /// Which namespace of each number the host means: the one that was there when it connected, or last looked.
    meant: BTreeMap<u32, u64>,
    /// Namespaces that have changed for the host since it read log page 04h.
    pub(crate) changed: BTreeSet<u32>,
    /// How often what the host discovers has changed (GENCTR).
    pub(crate) discovered: u64,
}

/// What the iterators of a controller of that host belong to, until the next reset.
fn owner_of(host: &Host) -> Owner {
    Owner::new(OwnerHost { nqn: host.nqn.clone() })
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
            iterators: owner_of(&host),
        };
        Controller {
            kind,
            id,
            host,
            is_alive: true,
            features,
            queues: BTreeSet::new(),
            resets: 0,
            errors: VecDeque::new(),
            error_count: 0,
            configuration: Configuration::default(),
            is_shut_down: false,
            has_failed: false,
            last_heard: now,
            event_requests: VecDeque::new(),
            forgotten: Vec::new(),
            events: VecDeque::new(),
            masked: BTreeMap::new(),
            accesses: BTreeMap::new(),
            meant: BTreeMap::new(),
            changed: BTreeSet::new(),
            discovered: 0,
        }
    }

    /// Whether it executes I/O commands.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_alive && self.configuration.is_enabled() && !self.is_shut_down
    }

    /// Whether it executes those of a queue that was connected behind so many resets.
    pub(crate) fn serves(&self, resets: u64) -> bool {
        self.is_ready() && self.resets == resets
    }

    /// A connection has ended whose queue was connected behind so many resets.
    pub(crate) fn disconnect(&mut self, queue: u16, resets: u64) {
        if self.resets == resets {
            self.queues.remove(&queue);
        }
    }

    /// Notes a command at `now`.
    pub(crate) fn restart_keep_alive(&mut self, now: Nanos) {
        self.last_heard = now;
    }

    /// When it ends, unless a command comes first.
    pub(crate) fn keep_alive_deadline(&self) -> Option<Nanos> {
        let keep_alive = match (self.kind, Nanos(u64::from(self.features.keep_alive_ms) * 1_000_000)) {
            (ControllerKind::Discovery, Nanos::ZERO) => DISCOVERY_ACTIVITY_NS,
            (_, keep_alive) => keep_alive,
        };
        (keep_alive > Nanos::ZERO).then(|| self.last_heard + keep_alive)
    }

    /// When the last command came, if there is no I/O queue. A discovery controller with a keep-alive timer is there to
    /// stay; one whose timer is long is not believed.
    pub(crate) fn idle_since(&self) -> Option<Nanos> {
        let keep_alive = Nanos(u64::from(self.features.keep_alive_ms) * 1_000_000);
        let is_persistent = self.kind == ControllerKind::Discovery && keep_alive > Nanos::ZERO;
        let is_idle = self.queues.is_empty() && !(is_persistent && keep_alive <= DISCOVERY_ACTIVITY_NS);
        is_idle.then_some(self.last_heard)
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

    /// Writes a property. Returns whether this requests a shutdown; the drive must be flushed before
    /// [`Controller::shut_down`].
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

    /// Completes a shutdown (CSTS.SHST).
    pub(crate) fn shut_down(&mut self) {
        self.is_shut_down = true;
    }

    /// Resets all. Connections of queues end by themselves.
    fn reset(&mut self) {
        self.resets += 1;
        self.queues.clear();
        self.is_shut_down = false;
        self.forgotten.extend(self.event_requests.drain(..).map(|(id, _)| id));
        self.events.clear();
        self.masked.clear();
        self.features.events = 0;
        self.features.temperature_threshold_k = TEMPERATURE_THRESHOLD_K;
        self.features.delete_needs_key.clear();
        self.features.client = None;
        self.features.iterators = owner_of(&self.host);
        // It begins anew, with what there is.
        self.mean(&self.accesses.clone());
    }

    /// Adds an Asynchronous Event Request.
    pub(crate) fn add_event_request(&mut self, command_id: u16, now: Nanos) -> Result<(), Status> {
        if self.event_requests.len() >= EVENT_REQUESTS_MAX {
            return Err(Status::EventRequestLimitExceeded);
        }
        self.event_requests.push_back((command_id, now));
        Ok(())
    }

    /// Drops an Asynchronous Event Request without a completion. Returns whether there was one.
    pub(crate) fn forget_event_request(&mut self, command_id: u16) -> bool {
        let before = self.event_requests.len();
        self.event_requests.retain(|&(id, _)| id != command_id);
        self.event_requests.len() < before
    }

    /// The Asynchronous Event Requests that a reset has ended since: none is outstanding any more, and none gets a completion.
    pub(crate) fn take_forgotten(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.forgotten)
    }

    /// Aborts an Asynchronous Event Request; `None` if there is no such one.
    pub(crate) fn abort_event_request(&mut self, command_id: u16) -> Option<Completion> {
        let at = self.event_requests.iter().position(|&(id, _)| id == command_id)?;
        let (_, arrived) = self.event_requests.remove(at)?;
        Some(Completion::new(command_id, CommandKind::Admin, arrived, Err(Status::CommandAborted.into())))
    }

    /// Raises the events that have happened.
    pub(crate) fn check_events(&mut self, has_failed: bool) {
        self.has_failed |= has_failed;
        if has_failed {
            self.raise(event::HEALTH, EVENT_RELIABILITY, page::HEALTH);
        } else if self.is_too_hot() {
            self.raise(event::HEALTH, EVENT_TEMPERATURE, page::HEALTH);
        }
    }

    /// Notes what the host sees from the beginning.
    pub(crate) fn begin_with(&mut self, accesses: BTreeMap<u32, (Access, u64)>, discovered: u64) {
        self.mean(&accesses);
        self.accesses = accesses;
        self.discovered = discovered;
    }

    /// Notes how often what the host discovers has changed. A discovery controller tells it by a notice, if the host
    /// wants those.
    pub(crate) fn note_discovered(&mut self, discovered: u64) {
        if self.discovered != discovered
            && self.kind == ControllerKind::Discovery
            && self.features.events & EVENT_DISCOVERY != 0
        {
            self.raise(event::NOTICE, event::DISCOVERY_CHANGED, page::DISCOVERY);
        }
        self.discovered = discovered;
    }

    /// Notes that the host has looked: from here on it means these namespaces by their numbers.
    fn mean(&mut self, accesses: &BTreeMap<u32, (Access, u64)>) {
        self.meant.extend(accesses.iter().map(|(&number, &(_, born))| (number, born)));
    }

    /// The numbers by which the host means namespaces that are gone, and that others have now. One that it never saw before
    /// can only mean the one that is there.
    pub(crate) fn strange(&mut self, living: &BTreeMap<u32, (Access, u64)>) -> BTreeSet<u32> {
        let is_strange = |(&number, &(_, born)): (&u32, &(Access, u64))| {
            (*self.meant.entry(number).or_insert(born) != born).then_some(number)
        };
        living.iter().filter_map(is_strange).collect()
    }

    /// Notes what became of a namespace by the host itself, which is told so already.
    pub(crate) fn know(&mut self, namespace: u32, access: Option<(Access, u64)>) {
        match access {
            Some(access) => {
                self.meant.insert(namespace, access.1);
                self.accesses.insert(namespace, access)
            }
            None => self.accesses.remove(&namespace),
        };
    }

    /// Notes what the host sees now. What differs is told by a notice, if the host wants those, and log page 04h.
    pub(crate) fn note_accesses(&mut self, accesses: BTreeMap<u32, (Access, u64)>) {
        let ids = self.accesses.keys().chain(accesses.keys());
        let differing = ids.copied().filter(|id| self.accesses.get(id) != accesses.get(id));
        let before = self.changed.len();
        self.changed.extend(differing);
        if self.changed.len() > before && self.features.events & EVENT_NAMESPACES != 0 {
            self.raise(event::NOTICE, event::NAMESPACES_CHANGED, page::CHANGED_NAMESPACES);
        }
        self.accesses = accesses;
    }

    /// Whether the temperature has reached the host's threshold.
    pub(crate) fn is_too_hot(&self) -> bool {
        self.features.temperature_threshold_k <= TEMPERATURE_K
    }

    /// Raises an event, unless the last one of its type is masked still.
    fn raise(&mut self, kind: u32, information: u8, log_page: u8) {
        if self.masked.insert(kind, information).is_none() {
            self.events.push_back(event::dword(kind, information, log_page));
        }
    }

    /// Unmasks the events of a log page that was read, and notes which namespaces the host has seen in it. Returns whether
    /// it means others by their numbers from now on.
    pub(crate) fn log_page_read(&mut self, log_page: u8, seen: &BTreeMap<u32, (Access, u64)>) -> bool {
        let before = self.meant.clone();
        match log_page {
            page::HEALTH => {
                self.masked.remove(&event::HEALTH);
            }
            page::CHANGED_NAMESPACES => {
                self.masked.remove(&event::NOTICE);
                self.changed.clear();
                self.mean(&self.accesses.clone());
            }
            page::NAMESPACES => self.mean(seen),
            page::DISCOVERY => {
                self.masked.remove(&event::NOTICE);
            }
            _ => {}
        }
        self.meant != before
    }

    /// Completes an Asynchronous Event Request, if there are both a request and an event.
    pub(crate) fn complete_event_request(&mut self) -> Option<Completion> {
        if self.events.is_empty() {
            return None;
        }
        let (command_id, arrived) = self.event_requests.pop_front()?;
        let event = self.events.pop_front()?;
        Some(Completion::new(command_id, CommandKind::Admin, arrived, Ok(Success::with_result(event.into()))))
    }

    /// Adds an entry to the error log (page 01h).
    pub(crate) fn log_error(&mut self, queue_id: u16, completion: &Completion) {
        self.error_count += 1;
        self.errors.truncate(ERROR_ENTRIES_MAX - 1);
        let mut entry = ErrorEntry::zeroed();
        entry.error_count = self.error_count.into();
        entry.queue_id = queue_id.into();
        entry.command_id = completion.command_id.into();
        entry.status = completion.entry(0).status;
        entry.parameter = u16::MAX.into();
        entry.transport = kvssd_nvme_spec::log_page::TRANSPORT_TCP;
        self.errors.push_front(entry);
    }
}
