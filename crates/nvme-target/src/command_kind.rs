//! The kinds of commands that metrics distinguish.

use kvssd_nvme_spec::extended;
use kvssd_nvme_spec::kv::{self, KvCommand};

/// What a command is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CommandKind {
    Store,
    Retrieve,
    List,
    Delete,
    Exist,
    Flush,
    /// A command of an iterator.
    Iterate,
    Admin,
    Fabrics,
    /// An opcode that is not known.
    Other,
}

impl CommandKind {
    pub(crate) const ALL: [CommandKind; 10] = [
        CommandKind::Store,
        CommandKind::Retrieve,
        CommandKind::List,
        CommandKind::Delete,
        CommandKind::Exist,
        CommandKind::Flush,
        CommandKind::Iterate,
        CommandKind::Admin,
        CommandKind::Fabrics,
        CommandKind::Other,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            CommandKind::Store => "store",
            CommandKind::Retrieve => "retrieve",
            CommandKind::List => "list",
            CommandKind::Delete => "delete",
            CommandKind::Exist => "exist",
            CommandKind::Flush => "flush",
            CommandKind::Iterate => "iterate",
            CommandKind::Admin => "admin",
            CommandKind::Fabrics => "fabrics",
            CommandKind::Other => "other",
        }
    }

    pub(crate) fn of(command: &KvCommand) -> CommandKind {
        CommandKind::of_opcode(command.opcode())
    }

    /// Of an I/O command with that opcode.
    pub(crate) fn of_opcode(opcode: u8) -> CommandKind {
        match opcode {
            kv::opcode::STORE | extended::opcode::STORE => CommandKind::Store,
            kv::opcode::RETRIEVE | extended::opcode::RETRIEVE => CommandKind::Retrieve,
            kv::opcode::LIST | extended::opcode::LIST => CommandKind::List,
            kv::opcode::DELETE | extended::opcode::DELETE => CommandKind::Delete,
            kv::opcode::EXIST | extended::opcode::EXIST => CommandKind::Exist,
            kv::opcode::FLUSH => CommandKind::Flush,
            extended::opcode::CREATE_ITERATOR
            | extended::opcode::NEXT
            | extended::opcode::SEEK
            | extended::opcode::DESTROY_ITERATOR => CommandKind::Iterate,
            _ => CommandKind::Other,
        }
    }
}
