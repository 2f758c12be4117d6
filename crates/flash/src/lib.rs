//! NAND flash in user space: where bytes lie, the rules they lie by, and how long touching them takes.
//!
//! ```text
//!             firmware
//!                |  read / program / erase, each with the asker's clock; a time comes back
//!   +------------v------------+
//!   |          Flash          |  counts every operation by cause
//!   +-----+-------------+-----+
//!         |             |
//!   +-----v-----+ +-----v-----+     +-----------+
//!   |   Nand    | |  timing   |<----|  Profile  |  geometry, timings, DRAM, cores, link: a TOML file
//!   | the rules | | calendars |     +-----------+
//!   +-----+-----+ +-----------+
//!         |
//!   +-----v--------------------------+
//!   | Backing: ropes | bytes | image |  what keeps the pages
//!   +--------------------------------+
//! ```
//!
//! A page is a [`rope`]: firmware bytes are kept as bytes, generated values as the seed that describes them. It still has a byte
//! format ([`codec`]), and a backing that keeps nothing but those bytes.
//!
//! What it does not do: decide where anything goes (that is firmware), or know what a key is.

mod backing;
pub mod checksum;
pub mod codec;
mod counters;
mod emulator;
mod faults;
mod flash;
mod geometry;
mod image;
mod nand;
mod owner;
mod parity;
mod power;
mod profile;
pub mod rope;
mod simulated_disk;
mod spare;
mod spares;
mod store;
pub mod timing;
mod under_way;
mod unit;

pub use backing::{Backing, BegunCommit, BlockState, MediaError, Span};
pub use counters::{Cause, Counters, PerCause};
pub use emulator::Emulator;
pub use faults::{FaultCounts, FaultRates, FaultyMedium};
pub use flash::Flash;
pub use geometry::{BlockAddress, DieId, Geometry, PageAddress, SuperblockId, UnitAddress};
pub use image::{
    CreateOptions, DISK_WAITS_MAX, Files, ImageBacking, ImageError, ImageFault, OpenOptions, RawFile, Syncer,
    SystemFiles, is_image,
};
pub use kvssd_types::Blob;
pub use nand::{BLOCK_ERASES_MAX, Nand};
pub use owner::Owner;
pub use power::{PowerCut, PowerLoss};
pub use profile::{CoreCosts, Firmware, Link, Memory, NandTimes, PROFILE_NAMES, Profile, ProfileError, Space};
pub use simulated_disk::{DiskCall, SECTOR_BYTES, SimulatedDisk, Strike};
pub use store::{ByteBacking, PageBytes, RawMedium, RopeBacking};
pub use unit::{PageView, UnitBuilder, UnitImage};
