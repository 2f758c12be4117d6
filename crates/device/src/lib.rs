//! The drive: commands in, completions out, on virtual time.
//!
//! ```text
//!   host     submit(command, arrival)                                   completion(done, reply)
//!              |                                                              ^
//!   link       value -> in                                           value -> out
//!              |                                                              |
//!   pipeline   fixed latency of the controller, holds no core                 |
//!              |                                                              |
//!   engine     cores, index, log, write buffer, flash ------------------------+
//! ```
//!
//! Commands must come in the order of their arrival. Each is executed at once, in virtual time that reaches ahead; resources
//! remember when they are taken. Between arrivals the background work catches up.
//!
//! A [`Device`] is measured, and so is a [`LargeDevice`]; an [`AskedDevice`] is a part of another simulator; a [`Drive`] lies in a file and is used.
//!
//! Not supported: a wire protocol, and reading a clock.

mod asked;
mod cached;
mod clocked;
mod description;
mod drive;
mod error;
mod firmware_stats;
mod large;
mod large_device;
mod medium;
mod merges;
mod partitions;
mod records;
mod sizing;
#[cfg(test)]
mod tests;

pub use asked::{Answer, AskError, AskedDevice, AskedStats};
pub use cached::CacheInfo;
pub use drive::{CreateDrive, Drive};
pub use error::DriveError;
pub use firmware_stats::FirmwareStats;
pub use large::LARGE_VALUE_BYTES_MAX;
pub use large_device::LargeDevice;
pub use partitions::{Mount, Mounts, Partitions, Scope, partition_of};
pub use sizing::{IMAGE_BYTES_MAX, IMAGE_BYTES_MIN, PARTITIONS_MAX, image_design, image_profile, partition_profile};

use kvssd_flash::timing::{Calendar, Lane, Record, Recording, Window, Work};
use kvssd_flash::{Backing, Profile};
use kvssd_ftl::{Design, DesignError, Engine, IteratorPlan, MountReport, NamespaceAttributes, Spent, SpentOn};
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Nanos, Reply, RequestId, Value};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The data that the controller's pipeline takes in one piece.
const SMALL_BYTES: u32 = 4096;

/// The most commands that the controller has in flight; later ones wait in the host's queues. An estimate.
const UNDER_WAY_MAX: usize = 1024;

/// What became of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// When the host has the answer.
    pub done: Nanos,
    /// The answer.
    pub reply: Result<Reply, KvError>,
}

impl Completion {
    /// When the host has the answer that the command was done.
    ///
    /// # Errors
    /// The command's error, if it was not done.
    pub fn success(self) -> Result<Nanos, KvError> {
        self.reply.map(|_| self.done)
    }
}

/// A drive.
pub struct Device {
    engine: Engine,
    profile: Profile,
    link_in: Calendar,
    link_out: Calendar,
    last_arrival: Nanos,
    /// When the commands in flight are done.
    under_way: BinaryHeap<Reverse<Nanos>>,
    /// Where the time of the command at hand goes.
    spent: Spent,
    /// Where the time of all commands so far went, by kind: retrieves and reads, stores and writes, others.
    spent_by: [Spent; 3],
}

impl Device {
    /// A new drive with the firmware `design` on the hardware `profile`, its pages kept by `backing`.
    ///
    /// # Errors
    /// When the design does not fit the hardware.
    pub fn new(design: &Design, profile: &Profile, backing: Box<dyn Backing>) -> Result<Self, DesignError> {
        Ok(Device::over(design.build(profile, backing)?, profile))
    }

    /// Mounts the drive whose pages are kept by `backing`, after its power went and came back. Also returns what the mount did.
    ///
    /// # Errors
    /// As [`Design::mount`].
    pub fn mount(
        design: &Design,
        profile: &Profile,
        backing: Box<dyn Backing>,
    ) -> Result<(Self, MountReport), DesignError> {
        let (engine, report) = design.mount(profile, backing)?;
        Ok((Device::over(engine, profile), report))
    }

    fn over(engine: Engine, profile: &Profile) -> Self {
        Device {
            engine,
            profile: profile.clone(),
            link_in: Calendar::default(),
            link_out: Calendar::default(),
            last_arrival: Nanos::ZERO,
            under_way: BinaryHeap::new(),
            spent: Spent::default(),
            spent_by: [Spent::default(); 3],
        }
    }

    /// A copy of the drive at this time, independent from here on. `None` if the backing cannot be copied.
    #[must_use]
    pub fn snapshot(&self) -> Option<Device> {
        Some(Device {
            engine: self.engine.snapshot()?,
            profile: self.profile.clone(),
            link_in: self.link_in.clone(),
            link_out: self.link_out.clone(),
            last_arrival: self.last_arrival,
            under_way: self.under_way.clone(),
            spent: self.spent,
            spent_by: self.spent_by,
        })
    }

    /// Where the time of all commands so far went, from arrival to the answer at the host, by kind of command.
    #[must_use]
    pub fn spent(&self) -> [(&'static str, Spent); 3] {
        let [retrieves, stores, others] = self.spent_by;
        [("retrieve", retrieves), ("store", stores), ("other", others)]
    }

    /// How long each die, channel, core and direction of the link was reserved so far, including reservations that lie ahead.
    #[must_use]
    pub fn busy(&self) -> Vec<(&'static str, Vec<Nanos>)> {
        let link = [("link_in", vec![self.link_in.busy()]), ("link_out", vec![self.link_out.busy()])];
        self.engine.busy().into_iter().chain(link).collect()
    }

    /// Executes a command of the first namespace, as [`Device::submit_in`].
    ///
    /// # Panics
    /// When a command was submitted that arrived later.
    pub fn submit(&mut self, command: Command<'_>, arrival: Nanos) -> Completion {
        self.submit_in(NamespaceId::FIRST, command, arrival)
    }

    /// Executes a command of a namespace that arrives at `arrival`.
    ///
    /// # Panics
    /// When a command was submitted that arrived later.
    pub fn submit_in(&mut self, namespace: NamespaceId, command: Command<'_>, arrival: Nanos) -> Completion {
        self.submit_as(None, namespace, command, arrival)
    }

    /// Like [`Device::submit_in`]. `request` names a change that the host may send again and that was not made yet.
    fn submit_as(
        &mut self,
        request: Option<RequestId>,
        namespace: NamespaceId,
        command: Command<'_>,
        arrival: Nanos,
    ) -> Completion {
        self.spent = Spent::default();
        if let Err(error) = self.arrive(arrival) {
            return Completion { done: arrival, reply: Err(error) };
        }
        self.engine.recording().begin_command(&command);
        let class = class_of(&command);
        let taken = self.wait_in_queue(arrival);
        let begin = self.take_key(&command, taken);
        let start = self.take_in(&command, begin);
        let (executed, reply) = match request {
            None => self.engine.execute_in(namespace, command, start),
            Some(request) => self.engine.execute_request(request, namespace, command, start),
        };
        self.spent += self.engine.spent();
        let length = self.profile.link_time(reply.as_ref().map_or(0, bytes_of));
        let recording = self.engine.recording();
        let done = recording.squeeze(&mut self.link_out, (executed, length), Lane::LinkOut, Work::Out);
        self.spend(SpentOn::Link, executed, done);
        self.engine.recording().end_command(arrival, done);
        assert_eq!(self.spent.total(), done - arrival, "a command's time goes somewhere");
        self.spent_by[class] += self.spent;
        self.under_way.push(Reverse(done));
        Completion { done, reply }
    }

    /// A command arrives at `arrival`. No later one arrives earlier.
    fn arrive(&mut self, arrival: Nanos) -> Result<(), KvError> {
        assert!(self.last_arrival <= arrival, "commands are submitted in the order of their arrival");
        self.last_arrival = arrival;
        self.link_in.advance(arrival);
        self.link_out.advance(arrival);
        self.engine.advance(arrival)
    }

    /// Waits until the controller can take a command that has come.
    fn wait_in_queue(&mut self, arrival: Nanos) -> Nanos {
        while self.under_way.peek().is_some_and(|Reverse(done)| *done <= arrival) {
            self.under_way.pop();
        }
        let first = if self.under_way.len() < UNDER_WAY_MAX { None } else { self.under_way.pop() };
        let taken = first.map_or(arrival, |Reverse(done)| done);
        self.spend(SpentOn::Queue, arrival, taken);
        taken
    }

    /// Makes a namespace, with a command that arrives at `arrival`; returns when that is done, and its number.
    ///
    /// # Errors
    /// As [`Engine::create_namespace`].
    pub fn create_namespace(
        &mut self,
        attributes: NamespaceAttributes,
        arrival: Nanos,
    ) -> Result<(Nanos, NamespaceId), KvError> {
        if attributes.cache.is_some() {
            let why = "a device alone lets nobody leave: a drive in a file does, and LargeDevice";
            return Err(KvError::InvalidNamespace(why.to_owned()));
        }
        self.arrive(arrival)?;
        let (done, created) = self.engine.create_namespace(attributes, arrival);
        created.map(|id| (done, id))
    }

    /// Deletes a namespace, with a command that arrives at `arrival`; returns when that is done.
    ///
    /// # Errors
    /// As [`Engine::delete_namespace`].
    pub fn delete_namespace(&mut self, namespace: NamespaceId, arrival: Nanos) -> Result<Nanos, KvError> {
        self.arrive(arrival)?;
        let (done, deleted) = self.engine.delete_namespace(namespace, arrival);
        deleted.map(|()| done)
    }

    /// Maps a namespace to so many logs, with a command that arrives at `arrival`; returns when that is done.
    ///
    /// # Errors
    /// As [`Engine::set_logs`].
    pub fn set_logs(&mut self, namespace: NamespaceId, logs: Option<u32>, arrival: Nanos) -> Result<Nanos, KvError> {
        self.arrive(arrival)?;
        let (done, set) = self.engine.set_logs(namespace, logs, arrival);
        set.map(|()| done)
    }

    /// Records, from now on, what happens in a window of virtual time.
    pub fn record(&mut self, window: Window) {
        *self.engine.recording() = Recording::of(window);
    }

    /// Stops recording. Returns what was recorded, if anything was to be.
    pub fn take_record(&mut self) -> Option<Record> {
        std::mem::take(self.engine.recording()).finish()
    }

    /// See [`Engine::expect`].
    pub fn expect(&mut self, keys: &[Key<'_>]) {
        self.engine.expect(keys);
    }

    /// See [`Engine::set_iterator_plan`].
    pub fn set_iterator_plan(&mut self, plan: IteratorPlan) {
        self.engine.set_iterator_plan(plan);
    }

    /// The firmware, to look at.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The hardware.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// A key that does not fit into its command comes before it, with a command of its own (Study, section IV).
    fn take_key(&mut self, command: &Command<'_>, arrival: Nanos) -> Nanos {
        let Some(key) = command.key().filter(|key| key.bytes().len() > self.profile.link.command_key_bytes as usize)
        else {
            return arrival;
        };
        let length = self.profile.link_time(key.bytes().len() as u64);
        let arrived = self.bring_in(length, arrival);
        let ready = self.pipeline(arrived, self.profile.firmware.write_ns);
        let taken = self.engine.take_part(ready);
        self.spent += self.engine.spent();
        taken
    }

    /// Moves data that is to be stored over the link and through the controller's pipeline.
    fn take_value(&mut self, bytes: u64, arrival: Nanos) -> Nanos {
        let firmware = self.profile.firmware;
        let length = self.profile.link_time(bytes);
        let arrived = self.bring_in(length, arrival);
        let pages = bytes.div_ceil(SMALL_BYTES.into()).max(1);
        self.pipeline(arrived, firmware.write_ns + firmware.write_4k_ns * pages)
    }

    /// Reserves the link to the drive for `length`. Returns when the data has arrived.
    fn bring_in(&mut self, length: Nanos, at: Nanos) -> Nanos {
        let arrived = self.engine.recording().squeeze(&mut self.link_in, (at, length), Lane::LinkIn, Work::In);
        self.spend(SpentOn::Link, at, arrived);
        arrived
    }

    /// Counts a time of the present command under `part`.
    fn spend(&mut self, part: SpentOn, from: Nanos, until: Nanos) {
        self.spent.add(part, until - from);
        self.engine.recording().part(part.name(), from, until);
    }

    /// The controller's fixed latency.
    fn pipeline(&mut self, at: Nanos, latency_ns: u64) -> Nanos {
        let until = at + Nanos(latency_ns);
        self.spend(SpentOn::Pipeline, at, until);
        until
    }

    /// Moves a command's data over the link and the command through the controller's pipeline.
    fn take_in(&mut self, command: &Command<'_>, arrival: Nanos) -> Nanos {
        let firmware = self.profile.firmware;
        match command {
            Command::Store { value, .. } | Command::Write { value, .. } => self.take_value(value.len() as u64, arrival),
            Command::Batch { changes } => {
                let bytes =
                    |change: &BatchChange<'_>| change.key.bytes().len() + change.value.as_ref().map_or(0, Value::len);
                self.take_value(changes.iter().map(|change| bytes(change) as u64).sum(), arrival)
            }
            Command::Retrieve { length_bytes, .. } | Command::Read { length_bytes, .. }
                if *length_bytes > SMALL_BYTES =>
            {
                self.pipeline(arrival, firmware.read_large_ns)
            }
            Command::Retrieve { .. }
            | Command::Exist { .. }
            | Command::List { .. }
            | Command::Seek { .. }
            | Command::Next { .. }
            | Command::Read { .. } => self.pipeline(arrival, firmware.read_small_ns),
            Command::Delete { .. }
            | Command::Deallocate { .. }
            | Command::CreateIterator { .. }
            | Command::DestroyIterator { .. }
            | Command::Flush => self.pipeline(arrival, firmware.write_ns),
        }
    }
}

/// Which part of [`Device::spent`] a command belongs to.
fn class_of(command: &Command<'_>) -> usize {
    match command {
        Command::Retrieve { .. } | Command::Read { .. } => 0,
        Command::Store { .. } | Command::Write { .. } => 1,
        _ => 2,
    }
}

/// The bytes that a reply brings over the link.
fn bytes_of(reply: &Reply) -> u64 {
    match reply {
        Reply::Retrieved { value, .. } | Reply::Read(value) => value.len() as u64,
        // In a list, each key has its length before it, in two bytes.
        Reply::Listed(keys) => keys.iter().map(|key| key.len() as u64 + 2).sum(),
        // A pair also has the length of its value behind the key, in four bytes.
        Reply::Pairs(pairs) => {
            let value_bytes = |value: &Option<Value>| value.as_ref().map_or(0, |value| 4 + value.len() as u64);
            pairs.iter().map(|(key, value)| key.len() as u64 + 2 + value_bytes(value)).sum()
        }
        _ => 0,
    }
}
