//! What a target gives to hosts at the most. Every queue, buffer and wait has its bound here.
//!
//! | | | why |
//! |---|---|---|
//! | connections | 128 | a thread and two buffers each |
//! | controllers | 32 | an admin queue each |
//! | I/O queues of a controller | 16 | hosts ask for one a core |
//! | entries of a queue | 256 | hosts have 128 as a rule |
//! | data in a capsule | 8 KiB | what admin queues must take; a store of 4 KiB needs no R2T |
//! | data of a PDU | 128 KiB | a connection's input buffer holds one whole |
//! | data on its way by R2T, of a connection | 8 MiB | or one value, if that is more |
//! | answers that wait to be sent, of a connection | 4 MiB | and one value beyond; no command is executed before there is room |
//! | both, of all connections | 1 GiB each | or one value beyond, where values may have 256 MiB |
//! | keys of a List | 128 KiB of them | a drive lists while others wait |
//!
//! With 128 connections that is 2 GiB when all hosts do their worst at the same time, with the copies of the value that is read and of the one that is
//! written just then 3 GiB, and some 40 MiB when they do not.

use kvssd_types::Nanos;

const SECOND: u64 = 1_000_000_000;

/// The most data of a command capsule, on any queue.
pub const CAPSULE_DATA_BYTES_MAX: u32 = 8192;
/// MAXH2CDATA, and the most data of a PDU that is sent.
pub const PDU_DATA_BYTES_MAX: u32 = 128 << 10;
/// The most entries of a queue.
pub const QUEUE_ENTRIES_MAX: u16 = 256;
/// The most I/O queues of a controller.
pub const IO_QUEUES_MAX: u16 = 16;
/// The most controllers.
pub const CONTROLLERS_MAX: usize = 32;
/// Asynchronous event requests of a controller.
pub const EVENT_REQUESTS_MAX: usize = 4;
/// Entries of the error log of a controller.
pub const ERROR_ENTRIES_MAX: usize = 16;
/// The most data of a connection's commands that is on its way by R2T.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 8 << 20;
/// How long a byte of such data may take, or of answers, over the wait for the first: 256 MiB have 4 minutes. Who sends or takes less
/// keeps memory that others wait for.
pub const TRANSFER_BYTE_NS: u64 = 1_000;
/// R2Ts of a connection that are not answered yet.
pub(crate) const TRANSFERS_MAX: usize = 32;
/// The most bytes of answers that wait to be sent.
pub(crate) const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// The most bytes of a List.
pub(crate) const LIST_BYTES_MAX: u32 = 128 << 10;
/// The most bytes of a log page.
pub(crate) const LOG_BYTES_MAX: u64 = 64 << 10;

/// Waits and numbers that a test wants other than a service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time, of all hosts.
    pub connections_max: usize,
    /// Bytes of values on their way in, and as many on their way out, of all connections together.
    pub values_bytes_max: u64,
    /// A peer that has not made itself known (ICReq and Connect) by then is sent away.
    pub connect_ns: Nanos,
    /// When all controllers are taken, one whose host has said nothing for so long, and that has no I/O queue, ends for another host's.
    pub idle_ns: Nanos,
    /// The next part of data that was asked for by R2T must be there by then; all of it, a microsecond a byte later.
    pub transfer_ns: Nanos,
    /// A peer that has not taken its answers by then, and a microsecond a byte later, is sent away.
    pub send_ns: Nanos,
    /// How long commands in flight have at the end of the service.
    pub stop_ns: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 128,
            values_bytes_max: 1 << 30,
            connect_ns: Nanos(10 * SECOND),
            idle_ns: Nanos(10 * SECOND),
            transfer_ns: Nanos(30 * SECOND),
            send_ns: Nanos(30 * SECOND),
            stop_ns: Nanos(5 * SECOND),
        }
    }
}
