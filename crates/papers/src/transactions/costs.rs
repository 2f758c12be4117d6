//! What the host's processors take for transactions, in nanoseconds, whatever the engine.
//!
//! All are estimates, made before the first run, for one core of about 2.3 GHz (KAML, section V-A: Xeon E5520). The way through the
//! kernel is that of the stores ([`crate::stores::costs`]).

/// Cores of the host (KAML, section V-A: two processors of four).
pub const CORES: u32 = 8;

/// A transaction is begun, with its control block.
pub const BEGIN_NS: u64 = 1000;
/// A request comes in through the engine's calls.
pub const CALL_NS: u64 = 500;
/// A lock: looked for, taken and given back. A read that is noted and checked instead is taken for as much.
pub const LOCK_NS: u64 = 1000;
/// A thread that slept goes on.
pub const WAKE_NS: u64 = 3000;
/// A transaction ends: its control block goes.
pub const END_NS: u64 = 1000;
