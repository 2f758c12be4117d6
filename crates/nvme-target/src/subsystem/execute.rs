//! Executes a connection's commands: small looks beside others, the rest in the turn of their partition or of all.

use super::{OutputRoom, Subsystem};
use crate::completion::{Completion, Success};
use crate::controller::IoSettings;
use crate::execution::{self, Executor};
use crate::io_command::{Burst, IoCommand};
use crate::limits::GLANCE_BYTES_MAX;
use kvssd_device::{Partitions, Scope};
use kvssd_nvme_spec::Status;
use kvssd_runtime::sync::atomic::Ordering;
use kvssd_types::Nanos;

impl Subsystem {
    /// Executes the commands of a burst, as far as there is room for their data. Returns whether the host's rights are
    /// those of now: no namespace comes or goes meanwhile.
    pub(crate) fn execute(
        &self,
        burst: &mut Burst<'_>,
        mut room: OutputRoom<'_>,
        now: Nanos,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) -> bool {
        self.glance(burst, &mut room, settings, completions);
        while let Some(front) = burst.front(room.bytes > 0) {
            let scope = if settings.rights.quota.is_bounded() { Scope::All } else { front.scope };
            let begin = completions.len();
            let executed = match scope {
                Scope::One(number) => self.execute_on(number, burst, &mut room, now, settings, completions),
                Scope::All => self.execute_on_all(burst, &mut room, now, settings, completions),
            };
            match executed {
                Some(true) => {}
                Some(false) => return false,
                // It was closed, or its firmware panicked.
                None => fail(burst, completions),
            }
            if completions.len() == begin {
                break;
            }
        }
        true
    }

    /// Executes the commands of a burst that concern one partition, as [`Subsystem::execute`]. `None` where there is no drive any more.
    fn execute_on(
        &self,
        number: usize,
        burst: &mut Burst<'_>,
        room: &mut OutputRoom<'_>,
        now: Nanos,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) -> Option<bool> {
        let mut turn = self.partitions[number].take().ok()?;
        let drive = Partitions::new([turn.as_mut()?]);
        let is_only = self.partitions.len() == 1;
        let next = |has_room| if is_only { burst.next(has_room) } else { burst.next_of(number, has_room) };
        Some(self.execute_with(Executor { drive, sessions: &self.sessions }, next, room, now, settings, completions))
    }

    /// Executes the commands of a burst with all partitions, as [`Subsystem::execute`]. `None` where there is no drive any more.
    fn execute_on_all(
        &self,
        burst: &mut Burst<'_>,
        room: &mut OutputRoom<'_>,
        now: Nanos,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) -> Option<bool> {
        let mut turns = self.turns()?;
        let executor = turns.executor()?;
        Some(self.execute_with(executor, |has_room| burst.next(has_room), room, now, settings, completions))
    }

    /// Executes the commands that `next` returns, unless the host's rights have changed; returns whether they have not.
    fn execute_with(
        &self,
        mut executor: Executor<'_>,
        next: impl FnMut(bool) -> Option<IoCommand>,
        room: &mut OutputRoom<'_>,
        now: Nanos,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) -> bool {
        if self.hosts.generation() != settings.generation {
            return false;
        }
        let begin = completions.len();
        // Reserved, since others execute on other partitions; of each partition one value may go beyond.
        let mut bytes_max = room.bytes.min(usize::try_from(self.values_out.free_bytes()).unwrap_or(usize::MAX));
        while bytes_max > 0 && !room.share.try_grow(bytes_max as u64) {
            bytes_max /= 2;
        }
        executor.execute(next, bytes_max, now, settings, completions);
        let bytes = completions[begin..].iter().map(|completion| completion.data.len()).sum::<usize>();
        room.used_bytes += bytes;
        room.bytes = room.bytes.saturating_sub(bytes);
        // Before the lock is released, so that the next connection sees it.
        room.share.resize(room.used_bytes);
        if let Some(why) = executor.drive.failure()
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            tracing::error!(why, "the drive has failed and takes nothing any more");
        }
        true
    }

    /// Answers the first commands of a burst beside other connections that do so, as far as they change nothing, their values are small and
    /// there is room.
    fn glance(
        &self,
        burst: &mut Burst<'_>,
        room: &mut OutputRoom<'_>,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) {
        if self.options.is_timed || !burst.front(true).is_some_and(IoCommand::is_look) {
            return;
        }
        // The partition that is shared, and its number.
        let mut shared = None;
        while let Some(ready) = burst.front(room.bytes > 0).filter(|ready| ready.is_look()) {
            let Scope::One(number) = ready.scope else { break };
            if shared.as_ref().is_none_or(|(of, _)| *of != number) {
                // Nobody waits for one partition while he shares another.
                drop(shared.take());
                let Ok(partition) = self.partitions[number].look() else { break };
                if self.hosts.generation() != settings.generation {
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
            room.used_bytes += seen_bytes;
            room.bytes = room.bytes.saturating_sub(seen_bytes);
            room.share.resize(room.used_bytes);
            let Some(outcome) = outcome else { break };
            let Some(ready) = burst.next(true) else { break };
            completions.push(ready.completion(outcome));
        }
    }
}

/// Fails the commands of a burst.
fn fail(burst: &mut Burst<'_>, completions: &mut Vec<Completion>) {
    while let Some(ready) = burst.next(true) {
        completions.push(ready.completion(Err(Status::InternalError.into())));
    }
}
