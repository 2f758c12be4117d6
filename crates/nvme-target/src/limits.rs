//! The bounds of every queue, buffer and wait of a target.
//!
//! | | | why |
//! |---|---|---|
//! | connections | 128 | a thread and two buffers each |
//! | controllers | half as many | an admin queue and an I/O queue each |
//! | I/O queues of a controller | 16 | hosts ask for one a core |
//! | entries of a queue | 256 | hosts have 128 as a rule |
//! | in-capsule data | 8 KiB | what admin queues must take; a store of 4 KiB needs no R2T |
//! | data of a PDU | 128 KiB | a connection's input buffer holds one whole |
//! | data in transfer by R2T, of a connection | 8 MiB | or one value, if that is more |
//! | output that waits to be sent, of a connection | 4 MiB | and one value beyond; no command is executed before there is room |
//! | both, of all connections | 1 GiB each | or one value, if that is more; output has one value of each partition beyond |
//! | keys of a List | 128 KiB of them, 2 MiB where they may be long | a drive lists while others wait |
//! | iterators of a controller | 64 | each keeps flash for what it shows |
//!
//! At the worst, 128 connections take 2 GiB, and 3 GiB with copies of the values that are read and written just then.
//! As a rule they take 40 MiB.

use kvssd_types::Nanos;

const SECOND: u64 = 1_000_000_000;

/// The most in-capsule data, on any queue.
pub const CAPSULE_DATA_BYTES_MAX: u32 = 8192;
/// MAXH2CDATA, and the most data of a C2HData.
pub const PDU_DATA_BYTES_MAX: u32 = 128 << 10;
/// The most entries of a queue (MQES, MAXCMD).
pub const QUEUE_ENTRIES_MAX: u16 = 256;
/// The most I/O queues of a controller.
pub const IO_QUEUES_MAX: u16 = 16;
/// The most namespaces (NN): a drive in a file has room for 16.
pub(crate) const NAMESPACES_MAX: u32 = 16;
/// The most outstanding Asynchronous Event Requests of a controller (AERL).
pub const EVENT_REQUESTS_MAX: usize = 4;
/// Entries of a controller's error log (ELPE).
pub const ERROR_ENTRIES_MAX: usize = 16;
/// The most data of a connection that is in transfer by R2T.
pub(crate) const TRANSFER_BYTES_MAX: u64 = 8 << 20;
/// How long a byte of data in transfer, or of output, may take beyond the timeout of the first: 256 MiB may take 4
/// minutes. A slower host would keep memory that others wait for.
pub const TRANSFER_BYTE_NS: u64 = 1_000;
/// The most outstanding R2Ts of a connection.
pub(crate) const TRANSFERS_MAX: usize = 32;
/// The most output of a connection before it executes no more commands.
pub(crate) const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// The longest value that connections retrieve side by side. So much memory each takes in advance.
pub(crate) const GLANCE_BYTES_MAX: u32 = 64 << 10;
/// The longest data of a List.
pub(crate) const LIST_BYTES_MAX: u32 = 128 << 10;
/// The longest answer that does not wait for the output of other connections. So much memory each takes beyond the bound.
pub(crate) const SMALL_ANSWER_BYTES_MAX: u32 = LIST_BYTES_MAX;
/// The longest data of a List of keys of any length.
pub(crate) const LONG_LIST_BYTES_MAX: u32 = 2 << 20;
/// The longest part of a log page.
pub(crate) const LOG_BYTES_MAX: u64 = 64 << 10;

/// The bounds and timeouts that tests change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections of all hosts.
    pub connections_max: usize,
    /// The most bytes of values in transfer to the controller, and as many to hosts, of all connections.
    pub values_bytes_max: u64,
    /// Timeout of ICReq and Connect.
    pub connect_ns: Nanos,
    /// When all controllers are taken, one without commands for that long and without I/O queues ends for another
    /// host's.
    pub idle_ns: Nanos,
    /// Timeout of the next H2CData of a transfer. The whole transfer has a microsecond a byte more.
    pub transfer_ns: Nanos,
    /// Timeout of output that a peer does not take, and a microsecond a byte more.
    pub send_ns: Nanos,
    /// An iterator that is not used for that long ends.
    pub iterator_idle_ns: Nanos,
    /// How long outstanding commands have when the service stops.
    pub stop_ns: Nanos,
}

impl Limits {
    /// The most controllers of all hosts: each has an admin queue and, to be of use, an I/O queue.
    #[must_use]
    pub fn controllers_max(&self) -> usize {
        (self.connections_max / 2).max(1)
    }
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
            iterator_idle_ns: Nanos(60 * SECOND),
            stop_ns: Nanos(5 * SECOND),
        }
    }
}
