//! One command behind the other, and how a life ends.

use kvssd_ftl::Engine;
use kvssd_measure::Observer;
use kvssd_types::{Command, KvError, NamespaceId, Nanos, Reply};

/// Why a life ended.
pub(super) enum End {
    /// The power went.
    Cut,
    /// The observer interrupts.
    Interrupted,
    /// The drive is not what it must be.
    Wrong(String),
}

impl From<KvError> for End {
    fn from(error: KvError) -> Self {
        if error.is_power_loss() { End::Cut } else { End::Wrong(format!("the drive failed: {error}")) }
    }
}

/// Ends a life where the observer interrupts: one of a full drive may take long.
pub(super) fn go_on(observer: &dyn Observer) -> Result<(), End> {
    if observer.is_interrupted() { Err(End::Interrupted) } else { Ok(()) }
}

/// Gives a drive a command in its first namespace, and waits for its end.
pub(super) fn run(engine: &mut Engine, clock: &mut Nanos, command: Command<'_>) -> Result<Reply, KvError> {
    run_in(engine, clock, NamespaceId::FIRST, command)
}

/// The same in any namespace.
pub(super) fn run_in(
    engine: &mut Engine,
    clock: &mut Nanos,
    namespace: NamespaceId,
    command: Command<'_>,
) -> Result<Reply, KvError> {
    engine.advance(*clock)?;
    let (done, reply) = engine.execute_in(namespace, command, *clock);
    *clock = done;
    reply
}
