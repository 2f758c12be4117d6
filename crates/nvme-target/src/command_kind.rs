//! The kinds of commands that metrics distinguish.

use kvssd_nvme_spec::extended;
use kvssd_nvme_spec::kv::{self, KvCommand};
use kvssd_types::named_enum;

named_enum! {
    /// What a command is counted as.
    #[derive(Hash)]
    pub(crate) enum CommandKind: "kind of command" {
        Store = "store",
        Retrieve = "retrieve",
        List = "list",
        Delete = "delete",
        Exist = "exist",
        Flush = "flush",
        /// A command of an iterator.
        Iterate = "iterate",
        Admin = "admin",
        Fabrics = "fabrics",
        /// An opcode that is not known.
        Other = "other",
    }
}

impl CommandKind {
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
