//! What the caches lie on: blocks, or pairs.

use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_sim::SimError;
use kvssd_types::{Command, Key, Nanos, Pattern, PlacementHandle, Reply, StoreCondition, Value};

/// Bytes of a write by which a drive is filled in order.
const FILL_BYTES: u32 = 128 << 10;

/// A slot, and the object that is put into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) handle: PlacementHandle,
    pub(super) offset_bytes: u64,
    /// No two stores are of the same content.
    pub(super) content: Pattern,
}

pub(super) trait Drive {
    /// Writes all of it once, in order, as `fio` did before the measurement.
    fn fill(&mut self) -> Result<(), SimError>;

    /// Puts an object into its slot.
    fn store(&mut self, placed: Placed) -> Result<(), SimError>;

    /// Reads an object, and compares it.
    fn load(&mut self, placed: Placed) -> Result<(), SimError>;

    /// Nobody wants an object any more.
    fn evict(&mut self, placed: Placed) -> Result<(), SimError>;

    /// Bytes of all programs so far.
    fn programmed_bytes(&self) -> u64;
}

/// A device that is asked for one thing after the other.
struct OneByOne {
    device: Device,
    clock: Nanos,
}

impl OneByOne {
    fn new(design: &Design, profile: &Profile) -> Result<Self, SimError> {
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        Ok(OneByOne { device, clock: Nanos::ZERO })
    }

    fn run(&mut self, command: Command<'_>) -> Result<Reply, SimError> {
        let completion = self.device.submit(command, self.clock);
        self.clock = completion.done;
        completion.reply.map_err(SimError::Drive)
    }

    fn programmed_bytes(&self) -> u64 {
        let engine = self.device.engine();
        engine.flash_counters().programs.total() * u64::from(engine.geometry().page_bytes)
    }
}

fn is_content(value: &Value, content: Pattern) -> Result<(), SimError> {
    if *value == Value::Pattern(content) { Ok(()) } else { Err(SimError::WrongValues(1)) }
}

/// Blocks; they are never told that they are dead until they are written over.
pub(super) struct BlockDrive {
    drive: OneByOne,
    has_handles: bool,
}

impl BlockDrive {
    pub(super) fn new(design: &Design, profile: &Profile, placement_handles: u32) -> Result<Self, SimError> {
        let drive = OneByOne::new(&Design { placement_handles, ..design.clone() }, profile)?;
        Ok(BlockDrive { drive, has_handles: placement_handles > 1 })
    }

    fn write(&mut self, offset_bytes: u64, content: Pattern, handle: PlacementHandle) -> Result<(), SimError> {
        let handle = if self.has_handles { handle } else { PlacementHandle::DEFAULT };
        self.drive.run(Command::Write { offset_bytes, value: Value::Pattern(content), handle }).map(|_| ())
    }
}

impl Drive for BlockDrive {
    fn fill(&mut self) -> Result<(), SimError> {
        let capacity_bytes = self.drive.device.engine().utilization().capacity_bytes;
        for offset_bytes in (0..capacity_bytes).step_by(FILL_BYTES as usize) {
            let length = u64::from(FILL_BYTES).min(capacity_bytes - offset_bytes) as u32;
            self.write(offset_bytes, Pattern { seed: offset_bytes, offset: 0, length }, PlacementHandle::DEFAULT)?;
        }
        Ok(())
    }

    fn store(&mut self, placed: Placed) -> Result<(), SimError> {
        self.write(placed.offset_bytes, placed.content, placed.handle)
    }

    fn load(&mut self, Placed { offset_bytes, content, .. }: Placed) -> Result<(), SimError> {
        match self.drive.run(Command::Read { offset_bytes, length_bytes: content.length })? {
            Reply::Read(value) => is_content(&value, content),
            _ => Err(SimError::WrongValues(1)),
        }
    }

    fn evict(&mut self, _placed: Placed) -> Result<(), SimError> {
        Ok(())
    }

    fn programmed_bytes(&self) -> u64 {
        self.drive.programmed_bytes()
    }
}

/// Pairs, whose keys are those of their objects.
pub(super) struct PairDrive(OneByOne);

impl PairDrive {
    pub(super) fn new(design: &Design, profile: &Profile) -> Result<Self, SimError> {
        OneByOne::new(design, profile).map(PairDrive)
    }
}

/// The key of an object: 16 bytes, as LMCache's hashes have.
fn key_of(content: Pattern) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&kvssd_types::mix64(content.seed).to_be_bytes());
    bytes[8..].copy_from_slice(&content.seed.to_be_bytes());
    bytes
}

impl Drive for PairDrive {
    fn fill(&mut self) -> Result<(), SimError> {
        Ok(())
    }

    fn store(&mut self, Placed { content, .. }: Placed) -> Result<(), SimError> {
        let (key, value) = (key_of(content), Value::Pattern(content));
        let key = Key::new(&key).expect("a key may have 16 bytes");
        self.0.run(Command::Store { key, value, condition: StoreCondition::IfAbsent }).map(|_| ())
    }

    fn load(&mut self, Placed { content, .. }: Placed) -> Result<(), SimError> {
        let key = key_of(content);
        let key = Key::new(&key).expect("a key may have 16 bytes");
        match self.0.run(Command::Retrieve { key, offset_bytes: 0, length_bytes: content.length })? {
            Reply::Retrieved { value, .. } => is_content(&value, content),
            _ => Err(SimError::WrongValues(1)),
        }
    }

    fn evict(&mut self, Placed { content, .. }: Placed) -> Result<(), SimError> {
        let key = key_of(content);
        let key = Key::new(&key).expect("a key may have 16 bytes");
        self.0.run(Command::Delete { key }).map(|_| ())
    }

    fn programmed_bytes(&self) -> u64 {
        self.0.programmed_bytes()
    }
}
