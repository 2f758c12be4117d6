//! Executes a connection's commands: small looks beside others, the rest in the turn of their partition or of all.
//!
//! ```text
//!   glance                                   while the first commands are small looks
//!     |
//!   in_turn of the first command's scope --> execute, one commit --+     and so on, until it has Stopped
//!     ^                                                            |
//!     +------------------------------------------------------------+
//! ```

use super::{OutputRoom, Subsystem};
use crate::completion::{Completion, Success};
use crate::controller::IoSettings;
use crate::execution::{self, Executor};
use crate::io_command::{Burst, IoCommand};
use crate::limits::{GLANCE_BYTES_MAX, SMALL_ANSWER_BYTES_MAX};
use kvssd_device::{Partitions, Scope};
use kvssd_nvme_spec::Status;
use kvssd_runtime::sync::atomic::Ordering;

/// A burst on its way through the drive.
pub(crate) struct BurstRun<'a> {
    pub(crate) subsystem: &'a Subsystem,
    pub(crate) burst: Burst<'a>,
    pub(crate) room: OutputRoom<'a>,
    pub(crate) settings: &'a IoSettings,
    /// Of the commands that were taken from the burst.
    pub(crate) completions: &'a mut Vec<Completion>,
}

/// Why no more commands of a connection are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// There is none, its host is to wait, or its data has no room.
    Done,
    /// The host's rights are not those of now, or a namespace has come or gone: the rest waits until they were looked at.
    RightsChanged,
    /// The drive was closed, or its firmware panicked.
    NoDrive,
}

impl BurstRun<'_> {
    /// Executes the commands, as far as there is room for their data.
    pub(crate) fn run(&mut self) -> Stopped {
        self.glance();
        while let Some(front) = self.burst.front(self.room.bytes > 0) {
            let scope = if self.settings.rights.quota.is_bounded() { Scope::All } else { front.scope };
            let begin = self.completions.len();
            match self.in_turn(scope) {
                Ok(()) => {}
                Err(Stopped::NoDrive) => self.fail(),
                Err(stopped) => return stopped,
            }
            if self.completions.len() == begin {
                break;
            }
        }
        Stopped::Done
    }

    /// Executes the commands that concern one partition, or all, in the turn that they need.
    fn in_turn(&mut self, scope: Scope) -> Result<(), Stopped> {
        let subsystem = self.subsystem;
        match scope {
            Scope::One(number) => {
                let mut turn = subsystem.partitions[number].take().map_err(|_| Stopped::NoDrive)?;
                let drive = Partitions::new([turn.as_mut().ok_or(Stopped::NoDrive)?]);
                let partition = Some(number).filter(|_| subsystem.partitions.len() > 1);
                self.execute(Executor { drive, sessions: &subsystem.sessions }, partition)
            }
            Scope::All => {
                let mut turns = subsystem.turns().ok_or(Stopped::NoDrive)?;
                self.execute(turns.executor().ok_or(Stopped::NoDrive)?, None)
            }
        }
    }

    /// Executes the commands of a partition, or those that come next whatever they concern, unless the host's rights have changed.
    fn execute(&mut self, mut executor: Executor<'_>, partition: Option<usize>) -> Result<(), Stopped> {
        let BurstRun { subsystem, burst, room, settings, completions } = self;
        let now = burst.now;
        if subsystem.hosts.generation() != settings.generation {
            return Err(Stopped::RightsChanged);
        }
        let begin = completions.len();
        // Reserved, since others execute on other partitions; of each partition one value may go beyond.
        let mut bytes_max = room.bytes.min(usize::try_from(subsystem.values_out.free_bytes()).unwrap_or(usize::MAX));
        while bytes_max > 0 && !room.share.try_grow(bytes_max as u64) {
            bytes_max /= 2;
        }
        // Who has nothing to send gets a small answer all the same: others may take minutes for theirs.
        let is_small = bytes_max == 0
            && room.used_bytes == 0
            && burst
                .front(true)
                .filter(|front| front.may_return_data())
                .is_some_and(|front| executor.data_bytes_max(front) <= SMALL_ANSWER_BYTES_MAX);
        let mut left = if is_small { 1 } else { usize::MAX };
        let next = |has_room| {
            left = left.checked_sub(1)?;
            match partition {
                Some(number) => burst.next_of(number, has_room),
                None => burst.next(has_room),
            }
        };
        executor.execute(next, bytes_max.max(usize::from(is_small)), now, settings, completions);
        room.fill(completions[begin..].iter().map(|completion| completion.data.len()).sum());
        if let Some(why) = executor.drive.failure()
            && !subsystem.has_failed.swap(true, Ordering::Relaxed)
        {
            tracing::error!(why, "the drive has failed and takes nothing any more");
        }
        Ok(())
    }

    /// Answers the first commands beside other connections that do so, as far as they change nothing, their values are small and there is
    /// room.
    fn glance(&mut self) {
        let BurstRun { subsystem, burst, room, settings, completions, .. } = self;
        if subsystem.options.is_timed || !burst.front(true).is_some_and(IoCommand::is_look) {
            return;
        }
        // The partition that is shared, and its number.
        let mut shared = None;
        while let Some(ready) = burst.front(room.bytes > 0).filter(|ready| ready.is_look()) {
            let Scope::One(number) = ready.scope else { break };
            if shared.as_ref().is_none_or(|(of, _)| *of != number) {
                // Nobody waits for one partition while he shares another.
                drop(shared.take());
                let Ok(partition) = subsystem.partitions[number].look() else { break };
                if subsystem.hosts.generation() != settings.generation {
                    break;
                }
                shared = Some((number, partition));
            }
            let Some(drive) = shared.as_ref().and_then(|(_, partition)| partition.as_ref()) else { break };
            if !room.share.try_grow(GLANCE_BYTES_MAX.into()) {
                break;
            }
            let outcome = execution::glance(drive, ready, GLANCE_BYTES_MAX);
            let seen_bytes = match &outcome {
                Some(Ok(Success { data, .. })) => data.len(),
                _ => 0,
            };
            room.fill(seen_bytes);
            let Some(outcome) = outcome else { break };
            let Some(ready) = burst.next(true) else { break };
            completions.push(ready.completion(outcome));
        }
    }

    /// Fails all of them.
    fn fail(&mut self) {
        while let Some(ready) = self.burst.next(true) {
            self.completions.push(ready.completion(Err(Status::InternalError.into())));
        }
    }
}
