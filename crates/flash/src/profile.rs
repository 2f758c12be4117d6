//! Device profiles: everything about a testbed that is a number, read from a TOML file.
//!
//! A profile is fixed from published figures before any run; a figure that no source gives is called an estimate where it stands.
//! Units are in the key names. An unknown key, a missing one and an impossible value are errors that name the file and the key.

mod bounds;

use crate::{Emulator, Geometry, PowerLoss};
use kvssd_types::Nanos;
use serde::{Deserialize, Serialize, Serializer};
use std::fs;
use std::path::Path;
use thiserror::Error;

/// The profiles that come with the program.
pub const PROFILE_NAMES: [&str; 7] = ["970pro", "kvvirt", "kvemu", "pm983", "cosmos", "kaml", "pm9d3a"];

const BUILT_IN: [(&str, &str); 7] = [
    (PROFILE_NAMES[0], include_str!("../profiles/970pro.toml")),
    (PROFILE_NAMES[1], include_str!("../profiles/kvvirt.toml")),
    (PROFILE_NAMES[2], include_str!("../profiles/kvemu.toml")),
    (PROFILE_NAMES[3], include_str!("../profiles/pm983.toml")),
    (PROFILE_NAMES[4], include_str!("../profiles/cosmos.toml")),
    (PROFILE_NAMES[5], include_str!("../profiles/kaml.toml")),
    (PROFILE_NAMES[6], include_str!("../profiles/pm9d3a.toml")),
];

/// A testbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What it is called in reports.
    pub name: String,
    /// What it was loaded from, where that is not its name: a file of the user's.
    #[serde(skip)]
    pub file: Option<String>,
    /// Where its figures come from, in a sentence.
    pub description: String,
    /// How the flash is divided.
    #[serde(serialize_with = "write_geometry")]
    pub geometry: Geometry,
    /// How long flash takes.
    pub nand: NandTimes,
    /// The way to the host.
    pub link: Link,
    /// The controller's fixed latencies.
    pub firmware: Firmware,
    /// What the controller's cores take for a step of the firmware.
    pub core_costs: CoreCosts,
    /// The controller's memory.
    pub memory: Memory,
    /// How much of the flash is not for the user.
    pub space: Space,
    /// What it does that no drive would.
    #[serde(default, skip_serializing_if = "Emulator::is_off")]
    pub emulator: Emulator,
}

/// The `[nand]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NandTimes {
    /// tR of a read of at most `read_small_bytes_max`, one for each level of a cell; rows of a block take turns.
    pub read_small_ns: Vec<u64>,
    /// tR of a larger read, one for each level of a cell.
    pub read_large_ns: Vec<u64>,
    /// The largest read that counts as small.
    pub read_small_bytes_max: u32,
    /// tPROG of a one-shot program.
    pub program_ns: u64,
    /// tBERS of a block.
    pub erase_ns: u64,
    /// Bandwidth of a channel.
    pub channel_bytes_per_s: u64,
    /// The largest transfer that holds a channel without a pause.
    pub channel_transfer_bytes_max: u32,
}

/// The `[link]` table: the bus to the host, the same in both directions at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bandwidth of a direction.
    pub bytes_per_s: u64,
    /// Bytes of a key that a command has room for; a longer one takes a command of its own.
    pub command_key_bytes: u32,
    /// The least that a transfer moves: a page of the host's, where a controller moves whole pages (IterKVSSD, section 5.3.1). A
    /// profile that says nothing of it moves bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub transfer_bytes_min: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The `[firmware]` table: latencies of the controller's pipeline, which hold no core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// A command that reads at most 4 KiB.
    pub read_small_ns: u64,
    /// A command that reads more.
    pub read_large_ns: u64,
    /// A command that writes.
    pub write_ns: u64,
    /// More for each 4 KiB, begun or full, that it writes.
    pub write_4k_ns: u64,
}

/// The `[core_costs]` table: time on one of the firmware's cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreCosts {
    /// The cores that work on commands and in the background.
    pub cores: u32,
    /// Whether a core that reads from flash does nothing else until the data is there (IterKVSSD, section 4.3). Reads that are begun
    /// ahead hold no core.
    pub waits_for_flash: bool,
    /// Taking a command in and completing it.
    pub command_ns: u64,
    /// Hashing a key.
    pub hash_ns: u64,
    /// Finding a section of the index in the directory and the cache.
    pub section_ns: u64,
    /// Comparing two integers in a search of a section, a cache miss included.
    pub comparison_ns: u64,
    /// Comparing a whole key with the one in a record.
    pub key_compare_ns: u64,
    /// Placing a record in the log, its out-of-band entry and validity.
    pub append_ns: u64,
    /// Looking at a record in garbage collection.
    pub gc_record_ns: u64,
    /// Locking and unlocking the range of blocks that a command of a block drive touches (KAML, section V-B). A profile that says
    /// nothing of it takes no time for it.
    #[serde(default)]
    pub range_lock_ns: u64,
    /// More for a key that a table in DRAM does not have yet (KAML, section V-B). A profile that says nothing of it takes no time for it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub new_entry_ns: u64,
}

fn is_none(nanoseconds: &u64) -> bool {
    *nanoseconds == 0
}

/// The `[memory]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The one budget that index, validity, log and superblock tables are charged to. Scales with the capacity.
    pub dram_bytes: u64,
    /// The write buffer, charged to the budget and added to it: it belongs to the dies that it feeds and does not scale.
    pub write_buffer_bytes: u64,
    /// What becomes of the write buffer, and of everything that is not on flash yet, when the power goes.
    pub power_loss: PowerLoss,
}

/// The `[space]` table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// Flash that is kept from the user, in per cent of all flash.
    pub over_provisioning_percent: f64,
}

/// Why a profile cannot be used. Names the file (or the built-in profile) and the key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("profile {file}: {why}")]
pub struct ProfileError {
    file: String,
    why: String,
}

impl Profile {
    /// The built-in profile called `name`, or the one in the file of that path, with `overrides` of the form
    /// (`table.key`, TOML value) put over it.
    ///
    /// # Errors
    /// When there is no such profile, it does not parse, has an unknown key, lacks one, or a value is impossible.
    pub fn load(name: &str, overrides: &[(String, String)]) -> Result<Profile, ProfileError> {
        let fail = |why: String| ProfileError { file: name.to_owned(), why };
        let text = match BUILT_IN.iter().find(|built_in| built_in.0 == name) {
            Some(built_in) => built_in.1.to_owned(),
            None if Path::new(name).exists() => {
                fs::read_to_string(name).map_err(|error| fail(format!("cannot be read: {error}")))?
            }
            None => {
                let known = PROFILE_NAMES.join(", ");
                return Err(fail(format!("there is no such profile ({known}) and no such file")));
            }
        };
        let written = toml::from_str(&text).map_err(|error| fail(one_line(&error)))?;
        let written = Profile::from_table(written).map_err(fail)?;
        // With every key, also those that a profile need not have.
        let mut table = toml::Table::try_from(&written).expect("a profile is a TOML table");
        table.entry("emulator").or_insert_with(emulator_off);
        for (part, key) in OFF {
            let part = table.get_mut(part).and_then(toml::Value::as_table_mut).expect("every profile has the table");
            part.entry(key).or_insert(toml::Value::Integer(0));
        }
        for (key, value) in overrides {
            put_over(&mut table, key, value).map_err(fail)?;
        }
        let mut profile = Profile::from_table(table).map_err(fail)?;
        profile.check().map_err(fail)?;
        profile.file = (profile.name != name).then(|| name.to_owned());
        Ok(profile)
    }

    /// What a profile file says, as it stands: numbers are not looked at. All TOML of profiles is read with this one.
    ///
    /// # Errors
    /// When a key is unknown or missing, or of another type.
    pub fn from_table(table: toml::Table) -> Result<Profile, String> {
        table.try_into().map_err(|error| one_line(&error))
    }

    /// The same testbed with a `factor` of the capacity and of the memory: fewer blocks a die, everything else alike.
    ///
    /// # Errors
    /// When the factor is not above zero, or so small or large that no superblock, or no addressable drive, is left.
    pub fn scaled(&self, factor: f64) -> Result<Profile, ProfileError> {
        let mut scaled = self.clone();
        let fail = |why: String| ProfileError { file: self.origin().to_owned(), why };
        if !(factor.is_finite() && factor > 0.0) {
            return Err(fail(format!("a scale of {factor}: it must be above 0 and finite, such as 1/64")));
        }
        let blocks = f64::from(self.geometry.blocks_per_die) * factor;
        if blocks < 1.0 {
            return Err(fail(format!(
                "a scale of {factor:?} of {} superblocks leaves no superblock",
                self.geometry.blocks_per_die
            )));
        }
        scaled.geometry.blocks_per_die = blocks as u32;
        let part_of = |bytes: u64| (bytes as f64 * factor) as u64;
        scaled.memory.dram_bytes = part_of(self.memory.dram_bytes);
        if self.emulator.section_dram_bytes > 0 {
            // None at all would mean that there is one budget.
            scaled.emulator.section_dram_bytes = part_of(self.emulator.section_dram_bytes).max(1);
        }
        scaled.check().map_err(fail)?;
        Ok(scaled)
    }

    /// The same flash and memory with the times of another testbed: of its flash, link, pipeline and cores.
    #[must_use]
    pub fn with_times_of(&self, other: &Profile) -> Profile {
        let Profile { nand, link, firmware, core_costs, .. } = other.clone();
        Profile { nand, link, firmware, core_costs, ..self.clone() }
    }

    /// What a person knows it by: its file, or its name.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.file.as_deref().unwrap_or(&self.name)
    }

    /// The number of units that the write buffer holds.
    #[must_use]
    pub fn write_buffer_units(&self) -> u32 {
        u32::try_from(self.memory.write_buffer_bytes / self.geometry.unit_bytes()).unwrap_or(u32::MAX)
    }

    /// The time that `bytes` take over the link.
    #[must_use]
    #[inline]
    pub fn link_time(&self, bytes: u64) -> Nanos {
        let least = if bytes == 0 { 0 } else { u64::from(self.link.transfer_bytes_min) };
        Nanos::of_transfer(bytes.max(least), self.link.bytes_per_s)
    }
}

/// The `[geometry]` table, as it is read.
fn write_geometry<S: Serializer>(geometry: &Geometry, serializer: S) -> Result<S::Ok, S::Error> {
    let Geometry { channels, dies_per_channel, blocks_per_die, pages_per_block, pages_per_program, .. } = *geometry;
    let fields = [
        ("channels", channels),
        ("dies_per_channel", dies_per_channel),
        ("blocks_per_die", blocks_per_die),
        ("pages_per_block", pages_per_block),
        ("pages_per_program", pages_per_program),
        ("page_bytes", geometry.page_bytes),
        ("oob_bytes", geometry.oob_bytes),
        ("superblock_dies", geometry.superblock_dies),
        ("read_bytes_min", geometry.read_bytes_min),
    ];
    serializer.collect_map(fields)
}

fn put_over(table: &mut toml::Table, key: &str, value: &str) -> Result<(), String> {
    // A word needs no quotes, which a shell would take away.
    let is_word = !value.is_empty() && value.chars().all(char::is_alphabetic) && !["true", "false"].contains(&value);
    let quoted = if is_word { format!("\"{value}\"") } else { value.to_owned() };
    let parsed: toml::Table = toml::from_str(&format!("value = {quoted}"))
        .map_err(|_| format!("{key}={value}: the value is not a TOML value"))?;
    let unknown = || format!("there is no key {key}");
    let (table_name, field) = key.split_once('.').ok_or_else(unknown)?;
    let inner = table.get_mut(table_name).and_then(toml::Value::as_table_mut).ok_or_else(unknown)?;
    let slot = inner.get_mut(field).ok_or_else(unknown)?;
    *slot = parsed["value"].clone();
    Ok(())
}

/// Keys that are written only where they are not 0, so that what was written before they were there is what is written now.
const OFF: [(&str, &str); 2] = [("link", "transfer_bytes_min"), ("core_costs", "new_entry_ns")];

fn emulator_off() -> toml::Value {
    toml::Value::try_from(Emulator::default()).expect("switches are TOML values")
}

fn one_line(error: &toml::de::Error) -> String {
    let lines: Vec<_> =
        error.to_string().lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(overrides: &[(&str, &str)]) -> String {
        let overrides: Vec<_> = overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Profile::load("kvvirt", &overrides).unwrap_err().to_string()
    }

    #[test]
    fn the_profiles_that_come_along_are_sound() {
        for name in PROFILE_NAMES {
            let profile = Profile::load(name, &[]).unwrap();
            assert_eq!(profile.name, name);
        }
        let kvvirt = Profile::load("kvvirt", &[]).unwrap().geometry;
        let kaml = Profile::load("kaml", &[]).unwrap();
        assert_eq!(kaml.geometry.raw_bytes() / 1_000_000_000, 375);
        assert!(
            kaml.core_costs.range_lock_ns > 0 && Profile::load("cosmos", &[]).unwrap().core_costs.range_lock_ns == 0
        );
        assert_eq!((kvvirt.raw_bytes(), kvvirt.superblock_bytes(), kvvirt.superblocks()), (128 << 30, 8 << 20, 16384));
    }

    #[test]
    fn keys_that_are_off_can_be_put_on_and_are_written_only_then() {
        let load = |overrides: &[(&str, &str)]| {
            let owned: Vec<_> = overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Profile::load("kvvirt", &owned).unwrap()
        };
        let off = toml::to_string(&load(&[])).unwrap();
        assert!(OFF.iter().all(|(_, key)| !off.contains(key)));
        let on = load(&[("core_costs.new_entry_ns", "5"), ("link.transfer_bytes_min", "4096")]);
        assert_eq!((on.core_costs.new_entry_ns, on.link.transfer_bytes_min), (5, 4096));
        assert!(OFF.iter().all(|(_, key)| toml::to_string(&on).unwrap().contains(key)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key() {
        assert!(error(&[("geometry.channels", "0")]).contains("kvvirt: geometry.channels must be above 0"));
        assert!(error(&[("emulator.dies", "true")]).contains("there is no key emulator.dies"));
        let unwritten = [("emulator.moves_dirty_nothing", "true"), ("memory.power_loss", "volatile")];
        assert!(error(&unwritten).contains("needs memory.power_loss"), "nobody could mount it");
        assert!(error(&[("geometry.chanels", "1")]).contains("there is no key geometry.chanels"));
        assert!(error(&[("channels", "1")]).contains("there is no key channels"));
        assert!(
            error(&[("geometry.page_bytes", "5000")]).contains("geometry.page_bytes = 5000 must be a power of two")
        );
        assert!(error(&[("geometry.page_bytes", "\"x\"")]).contains("page_bytes"));
        assert!(
            error(&[("geometry.pages_per_block", "33")]).contains("geometry.pages_per_block = 33 must be a multiple")
        );
        assert!(error(&[("memory.power_loss", "never")]).contains("ignored"));
        assert!(error(&[("nand.read_small_ns", "[]")]).contains("nand.read_small_ns"));
        assert!(error(&[("nand.erase_ns", "0")]).contains("nand.erase_ns must be above 0"));
        assert!(error(&[("memory.write_buffer_bytes", "1")]).contains("memory.write_buffer_bytes = 1"));
        let many_logs = error(&[("geometry.superblock_dies", "1"), ("memory.write_buffer_bytes", "4194304")]);
        assert!(many_logs.contains("at least 193 programs of 32768 bytes"), "{many_logs}");
        assert!(error(&[("geometry.blocks_per_die", "100000000")]).contains("2^32"));
        assert!(Profile::load("nowhere", &[]).unwrap_err().to_string().contains("970pro, kvvirt"));
    }

    #[test]
    fn an_unknown_key_in_a_file_is_named() {
        let text = BUILT_IN[1].1.replace("page_bytes", "page_octets");
        let error = toml::from_str::<Profile>(&text).unwrap_err().to_string();
        assert!(error.contains("page_octets"), "{error}");
    }

    #[test]
    fn scaling_keeps_dies_and_shrinks_capacity_and_memory() {
        let whole = Profile::load("kvvirt", &[]).unwrap();
        let part = whole.scaled(1.0 / 64.0).unwrap();
        assert_eq!(part.geometry.raw_bytes(), whole.geometry.raw_bytes() / 64);
        assert_eq!(part.memory.dram_bytes, whole.memory.dram_bytes / 64);
        assert_eq!(part.memory.write_buffer_bytes, whole.memory.write_buffer_bytes);
        assert_eq!(part.geometry.dies(), whole.geometry.dies());
        let refused = |scale| whole.scaled(scale).unwrap_err().to_string();
        assert!(refused(1e-300).contains("a scale of 1e-300 of 16384 superblocks leaves no superblock"));
        for scale in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(refused(scale).contains(&format!("a scale of {scale}: it must be above 0")), "{scale}");
        }
    }
}
