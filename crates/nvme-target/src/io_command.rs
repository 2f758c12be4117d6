//! I/O commands that are ready to be executed.

use crate::command_kind::CommandKind;
use crate::completion::{Completion, Outcome};
use crate::hosts::Member;
use crate::memory::MemoryShare;
use kvssd_device::Scope;
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_types::{Key, NamespaceId, Nanos};
use std::collections::VecDeque;
use std::sync::Arc;

/// An I/O command whose data has come.
#[derive(Debug)]
pub(crate) struct IoCommand {
    pub(crate) command_id: u16,
    pub(crate) namespace: u32,
    /// Which birth of that number it means, if it says (see [`kvssd_nvme_spec::named`]).
    pub(crate) meant: Option<u32>,
    pub(crate) command: KvCommand,
    /// The serial of a change, if its host numbers them (see [`kvssd_nvme_spec::numbered`]).
    pub(crate) serial: Option<u64>,
    /// The value of a Store.
    pub(crate) value: Option<Arc<[u8]>>,
    /// The memory of a value that was transferred by R2T.
    pub(crate) share: Option<MemoryShare>,
    pub(crate) arrived: Nanos,
    /// What of the drive it concerns.
    pub(crate) scope: Scope,
}

/// What a command concerns of a drive in so many partitions.
pub(crate) fn scope_of(namespace: u32, command: &KvCommand, partitions: usize) -> Scope {
    let key = match command {
        KvCommand::Store { key, .. }
        | KvCommand::Retrieve { key, .. }
        | KvCommand::Delete { key }
        | KvCommand::Exist { key } => Key::new(key.bytes()).ok(),
        _ => None,
    };
    Scope::of_key(NamespaceId(namespace), key, partitions)
}

impl IoCommand {
    pub(crate) fn completion(&self, outcome: Outcome) -> Completion {
        Completion::new(self.command_id, CommandKind::of(&self.command), self.arrived, outcome)
    }

    /// Whether it looks at one key.
    pub(crate) fn is_look(&self) -> bool {
        matches!(self.command, KvCommand::Retrieve { .. } | KvCommand::Exist { .. })
    }

    /// Whether its completion may come with data.
    pub(crate) fn may_return_data(&self) -> bool {
        matches!(
            self.command,
            KvCommand::Retrieve { .. }
                | KvCommand::List { .. }
                | KvCommand::ListLong { .. }
                | KvCommand::Iterate { .. }
        )
    }
}

/// The commands of a connection that are executed now.
pub(crate) struct Burst<'a> {
    ready: &'a mut VecDeque<IoCommand>,
    /// The host, if there is a bound to how fast it may go.
    paced: Option<&'a Member>,
    pub(crate) now: Nanos,
    /// Of the commands that were taken.
    pub(crate) stored_bytes: u64,
}

impl<'a> Burst<'a> {
    pub(crate) fn new(ready: &'a mut VecDeque<IoCommand>, paced: Option<&'a Member>, now: Nanos) -> Self {
        Burst { ready, paced, now, stored_bytes: 0 }
    }

    /// The next command, if its host may go on, and it comes without data or there is room for that.
    pub(crate) fn front(&self, has_room: bool) -> Option<&IoCommand> {
        let command = self.ready.front().filter(|command| has_room || !command.may_return_data())?;
        self.paced.is_none_or(|host| host.opens(self.now) <= self.now).then_some(command)
    }

    /// Takes the next command, as [`Burst::front`].
    pub(crate) fn next(&mut self, has_room: bool) -> Option<IoCommand> {
        self.front(has_room)?;
        self.take(0)
    }

    /// Takes the next command that concerns that partition, as [`Burst::front`]; it may overtake commands on others, but none on all.
    pub(crate) fn next_of(&mut self, partition: usize, has_room: bool) -> Option<IoCommand> {
        self.front(true)?;
        let before_all = self.ready.iter().take_while(|command| command.scope != Scope::All);
        let at = before_all.enumerate().find(|(_, command)| command.scope == Scope::One(partition));
        let (at, _) = at.filter(|(_, command)| has_room || !command.may_return_data())?;
        self.take(at)
    }

    fn take(&mut self, at: usize) -> Option<IoCommand> {
        let command = self.ready.remove(at)?;
        let bytes = command.value.as_ref().map_or(0, |value| value.len() as u64);
        if let Some(host) = self.paced {
            host.take(1, bytes, self.now);
        }
        self.stored_bytes += bytes;
        Some(command)
    }
}
