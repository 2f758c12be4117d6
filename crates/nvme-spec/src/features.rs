//! Features (Base Specification, "Feature Identifiers").

/// FID: identifiers of features.
#[expect(missing_docs, reason = "the names are those of the specification")]
pub mod feature {
    pub const ARBITRATION: u8 = 0x01;
    pub const POWER_MANAGEMENT: u8 = 0x02;
    pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
    pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
    /// Number of Queues.
    pub const QUEUES: u8 = 0x07;
    /// Asynchronous Event Configuration.
    pub const EVENTS: u8 = 0x0b;
    pub const KEEP_ALIVE: u8 = 0x0f;
    pub const HOST_BEHAVIOR: u8 = 0x16;
    /// I/O Command Set Profile.
    pub const COMMAND_SET_PROFILE: u8 = 0x19;
    pub const KEY_VALUE_CONFIGURATION: u8 = 0x20;
    pub const HOST_ID: u8 = 0x81;
    /// Vendor specific: numbered changes (see [`numbered`](crate::numbered)).
    pub const NUMBERED_CHANGES: u8 = 0xc0;
    /// Vendor specific: the commands of [`named`](crate::named) and [`extended`](crate::extended).
    pub const EXTENSIONS: u8 = 0xc1;
}

/// Dword 11 of Number of Queues as (submission queues, completion queues).
#[must_use]
pub fn queue_count(value: u32) -> (u32, u32) {
    ((value & 0xffff) + 1, (value >> 16) + 1)
}

/// Dword 11 of Number of Queues for `queues` of either kind, at least 1.
#[must_use]
pub fn queue_count_value(queues: u16) -> u32 {
    let less_one = u32::from(queues.saturating_sub(1));
    less_one | less_one << 16
}

/// Bit 0 of Key Value Configuration: Delete fails where the key is missing.
pub const DELETE_NEEDS_KEY: u32 = 1;

/// Bit 8 of Asynchronous Event Configuration: namespace attribute notices.
pub const EVENT_NAMESPACES: u32 = 1 << 8;
/// Bit 31 of Asynchronous Event Configuration, and of OAES: discovery log page change notices.
pub const EVENT_DISCOVERY: u32 = 1 << 31;

/// Asynchronous events: dword 0 has the type in bits 2:0, the information in 15:8, the log page in 23:16.
pub mod event {
    /// Type of error events.
    pub const ERROR: u32 = 0;
    /// Type of SMART / health events.
    pub const HEALTH: u32 = 1;
    /// Type of notices.
    pub const NOTICE: u32 = 2;

    /// Dword 0 of the completion that reports an event.
    #[must_use]
    pub fn dword(kind: u32, information: u8, log_page: u8) -> u32 {
        kind | u32::from(information) << 8 | u32::from(log_page) << 16
    }

    /// Information of a notice: the namespaces have changed.
    pub const NAMESPACES_CHANGED: u8 = 0x00;
    /// Information of a notice: the discovery log page has changed.
    pub const DISCOVERY_CHANGED: u8 = 0xf0;
}
