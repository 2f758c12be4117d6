//! A measured drive that takes values larger than a record, in segments, as a drive in a file does.

use crate::clocked::Clocked;
use crate::large::{LARGE_VALUE_BYTES_MAX, LargeValues};
use crate::{Completion, Device};
use kvssd_flash::{Backing, Profile};
use kvssd_ftl::{Design, DesignError};
use kvssd_types::{Command, Key, NamespaceId, Nanos};

/// Namespaces that a drive of large values has at the least: the first, and that of its segments.
const NAMESPACES_MIN: u32 = 2;

/// A drive.
pub struct LargeDevice {
    clocked: Clocked,
    /// When it was ready: what comes at the first moment comes then.
    began: Nanos,
    large: Option<LargeValues>,
}

impl LargeDevice {
    /// A new drive, as [`Device::new`]; with a largest value that is more than a record holds, and up to [`LARGE_VALUE_BYTES_MAX`], one whose values
    /// are kept in segments.
    ///
    /// # Errors
    /// When the design does not fit the hardware, or cannot keep segments.
    pub fn new(
        design: &Design,
        profile: &Profile,
        backing: Box<dyn Backing>,
        value_bytes_max: Option<u32>,
    ) -> Result<Self, DesignError> {
        if let Some(bytes) = value_bytes_max.filter(|bytes| *bytes > LARGE_VALUE_BYTES_MAX) {
            let why = format!("values have {LARGE_VALUE_BYTES_MAX} bytes at the most, and not {bytes}");
            return Err(DesignError::Parameter { key: "value_bytes_max".to_owned(), why });
        }
        let namespaces_max = value_bytes_max.map_or(0, |_| NAMESPACES_MIN).max(design.namespaces_max);
        let device = Device::new(&Design { namespaces_max, ..design.clone() }, profile, backing)?;
        let value_bytes_max = value_bytes_max.filter(|bytes| u64::from(*bytes) > device.engine().value_bytes_max());
        let mut clocked = Clocked::new(device, Nanos::ZERO);
        let large = value_bytes_max.map(|bytes| LargeValues::open(bytes, &mut clocked, false)).transpose()?;
        let began = clocked.clock();
        Ok(LargeDevice { clocked, began, large })
    }

    /// Executes a command of the first namespace that arrives at `arrival`, as [`Device::submit`].
    ///
    /// # Panics
    /// When a command was submitted that arrived later.
    pub fn submit(&mut self, command: Command<'_>, arrival: Nanos) -> Completion {
        let Some(large) = &mut self.large else { return self.clocked.device.submit(command, arrival) };
        let mut at = self.clocked.arrive(self.began + arrival);
        let reply = large.execute_as(&mut at, None, NamespaceId::FIRST, command);
        Completion { done: at.done() - self.began, reply }
    }

    /// Tells the machine's memory which keys will be wanted, as [`Device::expect`].
    pub fn expect(&mut self, keys: &[Key<'_>]) {
        self.clocked.device.expect(keys);
    }

    /// The largest value in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u64 {
        self.large.as_ref().map_or(self.device().engine().value_bytes_max(), |large| large.value_bytes_max.into())
    }

    /// What keeps the records.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.clocked.device
    }

    /// The same, when no command will come any more.
    #[must_use]
    pub fn into_device(self) -> Device {
        self.clocked.device
    }
}
