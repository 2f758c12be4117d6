//! The kinds of commands that metrics distinguish.

use kvssd_nvme_spec::kv::KvCommand;

/// What a command is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CommandKind {
    Store,
    Retrieve,
    List,
    Delete,
    Exist,
    Flush,
    Admin,
    Fabrics,
    /// An opcode that is not known.
    Other,
}

impl CommandKind {
    pub(crate) const ALL: [CommandKind; 9] = [
        CommandKind::Store,
        CommandKind::Retrieve,
        CommandKind::List,
        CommandKind::Delete,
        CommandKind::Exist,
        CommandKind::Flush,
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
            CommandKind::Admin => "admin",
            CommandKind::Fabrics => "fabrics",
            CommandKind::Other => "other",
        }
    }

    pub(crate) fn of(command: &KvCommand) -> CommandKind {
        match command {
            KvCommand::Store { .. } => CommandKind::Store,
            KvCommand::Retrieve { .. } => CommandKind::Retrieve,
            KvCommand::List { .. } => CommandKind::List,
            KvCommand::Delete { .. } => CommandKind::Delete,
            KvCommand::Exist { .. } => CommandKind::Exist,
            KvCommand::Flush => CommandKind::Flush,
        }
    }
}
