//! The seam under a replay: a drive that takes the commands of pairs, whatever it makes of them.

use kvssd_device::{CacheInfo, Completion, Device, LargeDevice};
use kvssd_types::{Command, Key, Nanos, OwnedKey};

pub(super) trait PairDrive {
    /// Executes a command on pairs that arrives at `at`, not before the one before it. A store says of which stream it is, if the trace does.
    fn submit(&mut self, command: Command<'_>, stream: Option<u64>, at: Nanos) -> Completion;

    /// Tells the machine's memory which keys will be wanted.
    fn expect(&mut self, _keys: &[Key<'_>]) {}

    /// The keys of the pairs that left by the drive's own policy since this was asked.
    fn take_left(&mut self) -> Vec<OwnedKey> {
        Vec::new()
    }

    /// The cache that the drive keeps by itself.
    fn cache(&self) -> Option<CacheInfo> {
        None
    }

    /// The largest value in bytes.
    fn value_bytes_max(&self) -> u64;

    /// What keeps it all.
    fn device(&self) -> &Device;

    /// The same, when no command will come any more.
    fn into_device(self: Box<Self>) -> Device;
}

impl PairDrive for LargeDevice {
    fn submit(&mut self, command: Command<'_>, _stream: Option<u64>, at: Nanos) -> Completion {
        LargeDevice::submit(self, command, at)
    }

    fn expect(&mut self, keys: &[Key<'_>]) {
        LargeDevice::expect(self, keys);
    }

    fn take_left(&mut self) -> Vec<OwnedKey> {
        LargeDevice::take_left(self)
    }

    fn cache(&self) -> Option<CacheInfo> {
        LargeDevice::cache(self)
    }

    fn value_bytes_max(&self) -> u64 {
        LargeDevice::value_bytes_max(self)
    }

    fn device(&self) -> &Device {
        LargeDevice::device(self)
    }

    fn into_device(self: Box<Self>) -> Device {
        LargeDevice::into_device(*self)
    }
}
