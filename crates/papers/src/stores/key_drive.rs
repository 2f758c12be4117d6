//! A key drive as it is: each request is a command.

use super::{HostStore, StoreUsage, costs};
use kvssd_device::Device;
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_sim::SimError;
use kvssd_types::{Command, Key, KvError, Nanos, Reply, StoreCondition, Value};

/// A key drive.
pub struct KeyDrive {
    device: Device,
    value_bytes_max: u32,
    cpu: Nanos,
    read_bytes: u64,
    written_bytes: u64,
}

impl KeyDrive {
    /// A new one, for values of at most `value_bytes_max` bytes.
    ///
    /// # Errors
    /// When the design does not fit the profile.
    pub fn new(design: &Design, profile: &Profile, value_bytes_max: u32) -> Result<Self, SimError> {
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        Ok(KeyDrive { device, value_bytes_max, cpu: Nanos::ZERO, read_bytes: 0, written_bytes: 0 })
    }

    fn call(&mut self, command: Command<'_>, at: Nanos) -> (Nanos, Result<Reply, KvError>) {
        let cpu = Nanos(costs::KEY_CALL_NS + costs::SYSTEM_CALL_NS + costs::COMMAND_NS);
        self.cpu += cpu;
        let completion = self.device.submit(command, at + cpu);
        (completion.done, completion.reply)
    }
}

impl HostStore for KeyDrive {
    fn name(&self) -> &'static str {
        "key drive"
    }

    fn insert(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        self.written_bytes += (key.bytes().len() + value.len()) as u64;
        let (done, reply) = self.call(Command::Store { key, value, condition: StoreCondition::Always }, at);
        reply.map_err(SimError::Drive).map(|_| done)
    }

    fn update(&mut self, key: Key<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        self.insert(key, value, at)
    }

    fn read(&mut self, key: Key<'_>, at: Nanos) -> Result<(Nanos, Option<Value>), SimError> {
        let command = Command::Retrieve { key, offset_bytes: 0, length_bytes: self.value_bytes_max };
        match self.call(command, at) {
            (done, Ok(Reply::Retrieved { value, .. })) => {
                self.read_bytes += value.len() as u64;
                Ok((done, Some(value)))
            }
            (done, Err(KvError::KeyNotFound)) => Ok((done, None)),
            (_, Err(other)) => Err(SimError::Drive(other)),
            (_, Ok(_)) => Err(SimError::WrongAnswers(1)),
        }
    }

    fn delete(&mut self, key: Key<'_>, at: Nanos) -> Result<Nanos, SimError> {
        match self.call(Command::Delete { key }, at) {
            (done, Ok(_) | Err(KvError::KeyNotFound)) => Ok(done),
            (_, Err(other)) => Err(SimError::Drive(other)),
        }
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage {
            cpu: self.cpu,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            space_bytes: self.device.engine().utilization().live_bytes,
            ..StoreUsage::default()
        }
    }

    fn device(&self) -> &Device {
        &self.device
    }
}
