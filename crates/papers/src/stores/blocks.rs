//! The block drive as a store sees it: what is read is compared with what was written, and all is counted.

use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_sim::SimError;
use kvssd_types::{Command, KvError, Nanos, Pattern, PlacementHandle, Reply, Value};

/// Longer transfers are cut into commands of this, all sent at once. Estimate: the kernel's limit.
const COMMAND_BYTES_MAX: u32 = 512 << 10;

/// A block drive, and the processor time of the store on it.
pub(super) struct Blocks {
    device: Device,
    pub(super) cpu: Nanos,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

impl Blocks {
    pub(super) fn new(design: &Design, profile: &Profile) -> Result<Self, SimError> {
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        Ok(Blocks { device, cpu: Nanos::ZERO, read_bytes: 0, written_bytes: 0 })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        self.device.engine().utilization().capacity_bytes
    }

    /// Work of a processor; gives how long it takes.
    pub(super) fn work(&mut self, time: Nanos) -> Nanos {
        self.cpu += time;
        time
    }

    /// Reads what must be `content`; gives when it is there.
    pub(super) fn read(&mut self, offset_bytes: u64, content: Pattern, at: Nanos) -> Result<Nanos, SimError> {
        self.read_bytes += u64::from(content.length);
        let mut done = at;
        for (offset_bytes, content) in commands(offset_bytes, content) {
            let command = Command::Read { offset_bytes, length_bytes: content.length };
            let completion = self.device.submit(command, at);
            match completion.reply.map_err(SimError::Drive)? {
                Reply::Read(value) if value == Value::Pattern(content) => done = done.max(completion.done),
                _ => return Err(SimError::WrongValues(1)),
            }
        }
        Ok(done)
    }

    /// Writes; gives when the drive has it.
    pub(super) fn write(&mut self, offset_bytes: u64, content: Pattern, at: Nanos) -> Result<Nanos, SimError> {
        self.written_bytes += u64::from(content.length);
        let mut done = at;
        for (offset_bytes, content) in commands(offset_bytes, content) {
            let command =
                Command::Write { offset_bytes, value: Value::Pattern(content), handle: PlacementHandle::DEFAULT };
            done = done.max(self.device.submit(command, at).success().map_err(SimError::Drive)?);
        }
        Ok(done)
    }

    /// Says that nobody wants these bytes any more.
    pub(super) fn trim(&mut self, offset_bytes: u64, length_bytes: u32, at: Nanos) -> Result<(), SimError> {
        let trimmed = self.device.submit(Command::Deallocate { offset_bytes, length_bytes }, at);
        trimmed.success().map(drop).map_err(SimError::Drive)
    }
}

/// What a store says when its drive has no more room.
pub(super) fn full() -> SimError {
    SimError::Drive(KvError::CapacityExceeded)
}

fn commands(offset_bytes: u64, content: Pattern) -> impl Iterator<Item = (u64, Pattern)> {
    (0..content.length).step_by(COMMAND_BYTES_MAX as usize).map(move |start| {
        let end = content.length.min(start + COMMAND_BYTES_MAX);
        (offset_bytes + u64::from(start), content.slice(start as usize..end as usize))
    })
}
