//! A drive for simulators of whole systems: it takes a command at a time, and says when that is done.
//!
//! Values are given by their lengths alone. Any number of commands may be in flight, since each says when it is done.

use crate::{Completion, Device};
use kvssd_designs::{Assignment, split_overrides};
use kvssd_flash::{Profile, ProfileError, RopeBacking};
use kvssd_ftl::DesignError;
use kvssd_types::{Command, Key, KvError, Nanos, Pattern, Reply, StoreCondition, Value};
use thiserror::Error;

/// Why there is no such drive, or no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// The design does not exist, lacks a parameter, or does not fit the hardware.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The profile does not exist, or is not possible.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A command that arrives earlier than the one before it.
    #[error("at_ns = {at_ns}: commands come in the order of time, and the last came at {now_ns}")]
    Past {
        /// When it came.
        at_ns: u64,
        /// When the one before it came.
        now_ns: u64,
    },
    /// A command that the drive does not take.
    #[error(transparent)]
    Refused(KvError),
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the host has the answer.
    pub done: Nanos,
    /// Whether the key exists; for a store, whether the drive had room.
    pub is_done: bool,
    /// Bytes of the stored value, or of the whole value of which some was retrieved.
    pub value_bytes: u32,
}

/// What the flash did since the drive was new, and how large the drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct AskedStats {
    pub now_ns: u64,
    pub flash_bytes: u64,
    pub page_bytes: u64,
    pub value_bytes_max: u64,
    pub stored_bytes: u64,
    pub pages_read: u64,
    pub pages_programmed: u64,
    pub erases: u64,
}

/// A drive.
pub struct AskedDevice {
    device: Device,
    now: Nanos,
    stores: u64,
    stored_bytes: u64,
}

impl AskedDevice {
    /// A new drive of a design on a part of a profile's hardware, both by name (a profile also by its file). `overrides` replace keys of the
    /// profile, and parameters of the design if they begin with `design.`.
    ///
    /// # Errors
    /// [`AskError::Design`], [`AskError::Profile`].
    pub fn new(design: &str, profile: &str, scale: f64, overrides: &[Assignment]) -> Result<Self, AskError> {
        let (for_design, for_profile) = split_overrides(overrides);
        let profile = Profile::load(profile, &for_profile)?.scaled(scale)?;
        let mut design = kvssd_designs::named(design)?;
        for (key, value) in &for_design {
            design.set(key, value)?;
        }
        if !design.takes_keys() {
            let why = format!("{} takes blocks, and a drive to ask takes keys", design.name);
            return Err(DesignError::Parameter { key: "name".to_owned(), why }.into());
        }
        let device = Device::new(&design, &profile, Box::new(RopeBacking::new(profile.geometry)))?;
        Ok(AskedDevice { device, now: Nanos::ZERO, stores: 0, stored_bytes: 0 })
    }

    /// Stores a value of so many bytes.
    ///
    /// # Errors
    /// [`AskError::Past`], [`AskError::Refused`].
    pub fn store(&mut self, at: Nanos, key: &[u8], value_bytes: u32) -> Result<Answer, AskError> {
        let value = Value::Pattern(Pattern { seed: self.stores + 1, offset: 0, length: value_bytes });
        let condition = StoreCondition::Always;
        let answer = self.ask(at, key, |key| Command::Store { key, value, condition })?;
        self.stores += 1;
        self.stored_bytes += if answer.is_done { key.len() as u64 + u64::from(value_bytes) } else { 0 };
        Ok(Answer { value_bytes, ..answer })
    }

    /// Retrieves a value, or a part of it.
    ///
    /// # Errors
    /// As [`AskedDevice::store`].
    pub fn retrieve(
        &mut self,
        at: Nanos,
        key: &[u8],
        (offset_bytes, length_bytes): (u32, u32),
    ) -> Result<Answer, AskError> {
        self.ask(at, key, |key| Command::Retrieve { key, offset_bytes, length_bytes })
    }

    /// Deletes a pair.
    ///
    /// # Errors
    /// As [`AskedDevice::store`].
    pub fn delete(&mut self, at: Nanos, key: &[u8]) -> Result<Answer, AskError> {
        self.ask(at, key, |key| Command::Delete { key })
    }

    /// Asks whether a key is there.
    ///
    /// # Errors
    /// As [`AskedDevice::store`].
    pub fn exist(&mut self, at: Nanos, key: &[u8]) -> Result<Answer, AskError> {
        self.ask(at, key, |key| Command::Exist { key })
    }

    /// A copy of the drive at this time, independent from here on: a drive need be aged only once.
    #[must_use]
    pub fn fork(&self) -> AskedDevice {
        let device = self.device.snapshot().expect("ropes can be copied");
        AskedDevice { device, now: self.now, stores: self.stores, stored_bytes: self.stored_bytes }
    }

    /// What its flash did, and how large it is.
    #[must_use]
    pub fn stats(&self) -> AskedStats {
        let (engine, geometry) = (self.device.engine(), &self.device.profile().geometry);
        let flash = engine.flash_counters();
        AskedStats {
            now_ns: self.now.0,
            flash_bytes: geometry.raw_bytes(),
            page_bytes: geometry.page_bytes.into(),
            value_bytes_max: engine.value_bytes_max(),
            stored_bytes: self.stored_bytes,
            pages_read: flash.reads.total(),
            pages_programmed: flash.programs.total(),
            erases: flash.erases,
        }
    }

    fn ask<'k>(
        &mut self,
        at: Nanos,
        key: &'k [u8],
        command: impl FnOnce(Key<'k>) -> Command<'k>,
    ) -> Result<Answer, AskError> {
        if at < self.now {
            return Err(AskError::Past { at_ns: at.0, now_ns: self.now.0 });
        }
        let command = command(Key::new(key).map_err(AskError::Refused)?);
        self.now = at;
        let Completion { done, reply } = self.device.submit(command, at);
        let answer = |is_done, value_bytes| Ok(Answer { done, is_done, value_bytes });
        match reply {
            Ok(Reply::Retrieved { value_bytes, .. }) => answer(true, value_bytes),
            Ok(_) => answer(true, 0),
            Err(KvError::KeyNotFound | KvError::CapacityExceeded) => answer(false, 0),
            Err(other) => Err(AskError::Refused(other)),
        }
    }
}
