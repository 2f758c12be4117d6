//! Features: what a host can set (Base Specification, "Feature Identifiers").

/// Identifiers of features.
pub mod feature {
    /// Arbitration.
    pub const ARBITRATION: u8 = 0x01;
    /// Power Management.
    pub const POWER_MANAGEMENT: u8 = 0x02;
    /// Temperature Threshold.
    pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
    /// Volatile Write Cache.
    pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
    /// Number of Queues.
    pub const QUEUES: u8 = 0x07;
    /// Asynchronous Event Configuration.
    pub const EVENTS: u8 = 0x0b;
    /// Keep Alive Timer.
    pub const KEEP_ALIVE: u8 = 0x0f;
    /// Host Behavior Support.
    pub const HOST_BEHAVIOR: u8 = 0x16;
    /// I/O Command Set Profile.
    pub const COMMAND_SET_PROFILE: u8 = 0x19;
    /// Key Value Configuration.
    pub const KEY_VALUE_CONFIGURATION: u8 = 0x20;
    /// Host Identifier.
    pub const HOST_ID: u8 = 0x81;
    /// Vendor specific: numbered changes (see [`numbered`](crate::numbered)).
    pub const NUMBERED_CHANGES: u8 = 0xc0;
}

/// What Number of Queues carries: I/O queues, less one, in either half.
#[must_use]
pub fn queue_count(value: u32) -> (u32, u32) {
    ((value & 0xffff) + 1, (value >> 16) + 1)
}

/// The value of Number of Queues for `queues` of either kind, from 1 on.
#[must_use]
pub fn queue_count_value(queues: u16) -> u32 {
    let less_one = u32::from(queues.saturating_sub(1));
    less_one | less_one << 16
}

/// Bit 0 of Key Value Configuration: a Delete of a key that is not there is an error.
pub const DELETE_NEEDS_KEY: u32 = 1;

/// Bit of Asynchronous Event Configuration: the namespaces have changed.
pub const EVENT_NAMESPACES: u32 = 1 << 8;

/// Types of asynchronous events, in bits 2:0 of dword 0; information in 15:8, the log page that says more in 23:16.
pub mod event {
    /// Error.
    pub const ERROR: u32 = 0;
    /// SMART and health.
    pub const HEALTH: u32 = 1;
    /// Notice.
    pub const NOTICE: u32 = 2;

    /// Dword 0 of an event.
    #[must_use]
    pub fn dword(kind: u32, information: u8, log_page: u8) -> u32 {
        kind | u32::from(information) << 8 | u32::from(log_page) << 16
    }

    /// Information of a notice: the namespaces have changed.
    pub const NAMESPACES_CHANGED: u8 = 0x00;
    /// Information of a health event: the spare is below its threshold.
    pub const SPARE_BELOW: u8 = 0x02;
}
