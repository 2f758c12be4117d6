//! What an image says of the drive in it: a TOML text from which its design and its profile are built again.
//!
//! ```text
//!   # drive 0123456789abcdef   what tells the drive from others: a comment, since nobody needs it to read the bytes
//!   value_bytes_max   only of a drive of large values
//!   [design]         name, what it is made of and each of its parameters, as text
//!   [out_of_band]    the widths of entries
//!   [profile]        every key of a profile file, with the numbers of this drive
//! ```
//!
//! Creating chooses and opening obeys: the presets of a program do not matter for a drive that exists.
//! An unknown key, a missing one and an impossible value are errors: a drive that was built otherwise would misread its flash.

use crate::large::LARGE_VALUE_BYTES_MAX;
use kvssd_flash::{PowerLoss, Profile};
use kvssd_ftl::{Design, DesignTable, OobFormat};
use serde::{Deserialize, Serialize};

/// The drive that an image holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    pub(crate) profile: Profile,
    pub(crate) design: Design,
    /// The number that tells the drive from all others; `None` for drives older than such numbers.
    pub(crate) identity: Option<u64>,
    /// The largest value, if values may be larger than a record.
    pub(crate) value_bytes_max: Option<u32>,
}

/// What stands before the drive's identity.
const IDENTITY: &str = "# drive ";

/// The text's tables, with the profile's as it is written or read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<P> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_bytes_max: Option<u32>,
    design: DesignTable,
    out_of_band: OobFormat,
    profile: P,
}

impl Description {
    /// The description as text.
    ///
    /// # Panics
    /// If the design has a planted bug, which no image describes.
    pub(crate) fn text(&self) -> String {
        let Description { profile, design, identity, value_bytes_max } = self;
        assert!(design.planted.is_none(), "a planted bug cannot be written down");
        let text = Text {
            value_bytes_max: *value_bytes_max,
            design: design.table(),
            out_of_band: design.oob_format(&profile.geometry),
            profile,
        };
        let identity = identity.map_or_else(String::new, |identity| format!("{IDENTITY}{identity:016x}\n"));
        identity + &toml::to_string(&text).expect("a description is plain data")
    }
}

/// A design as a drive in a file has it.
pub(crate) fn in_a_file(design: Design, out_of_band: OobFormat) -> Design {
    Design { out_of_band: Some(out_of_band), merges_by_ranges: true, ..design }
}

/// What `text` describes, or what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Description, String> {
    let Text { value_bytes_max, design, out_of_band, profile } =
        toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let profile = Profile::from_table(profile)?;
    let power_loss = profile.memory.power_loss;
    if power_loss != PowerLoss::Protected {
        return Err(format!("memory.power_loss is {}, and a drive in a file is protected", power_loss.name()));
    }
    if let Some(bytes) = value_bytes_max.filter(|bytes| *bytes > LARGE_VALUE_BYTES_MAX) {
        return Err(format!("value_bytes_max is {bytes}, and may be {LARGE_VALUE_BYTES_MAX}"));
    }
    let design = kvssd_designs::from_table(design).map_err(|error| error.to_string())?;
    let design = in_a_file(design, out_of_band);
    // Scaling checks every number.
    let profile = profile.scaled(1.0).map_err(|error| error.to_string())?;
    let identity = text.lines().next().and_then(|line| u64::from_str_radix(line.strip_prefix(IDENTITY)?, 16).ok());
    Ok(Description { profile, design, identity, value_bytes_max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_designs::{DESIGNS, PLUS};
    use kvssd_flash::PROFILE_NAMES;

    fn protected() -> [(String, String); 1] {
        [("memory.power_loss".to_owned(), "protected".to_owned())]
    }

    #[test]
    fn what_is_described_is_read_again() {
        for name in PROFILE_NAMES {
            let profile = Profile::load(name, &protected()).unwrap();
            for mut design in DESIGNS {
                design.set("gc_low_superblocks", "17").unwrap();
                design.out_of_band = Some(design.oob_format(&profile.geometry));
                design.merges_by_ranges = true;
                for (identity, value_bytes_max) in [(None, None), (Some(0x12ab), Some(LARGE_VALUE_BYTES_MAX))] {
                    let (profile, design) = (profile.clone(), design.clone());
                    let description = Description { profile, design, identity, value_bytes_max };
                    assert_eq!(read(&description.text()).unwrap(), description, "{}", description.text());
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let profile = Profile::load("kvvirt", &protected()).unwrap();
        let text = Description { profile, design: PLUS, identity: None, value_bytes_max: Some(1 << 28) }.text();
        for (old, new, named) in [
            ("268435456", "268435457", "value_bytes_max"),
            ("protected", "volatile", "volatile"),
            ("index = \"hash-compact\"", "index = \"cabbage-heap\"", "cabbage-heap"),
            ("tag_bytes = 4\n", "", "tag_bytes"),
            ("channels = 8", "channels = 0", "geometry.channels"),
            ("dram_bytes = ", "dram_bytes = 9223372036854775807 # ", "memory.dram_bytes"),
            ("write_buffer_bytes = ", "write_buffer_bytes = 9223372036854775807 # ", "memory.write_buffer_bytes"),
            ("cores = ", "cabbages = ", "cabbages"),
            ("grain_bytes = \"64\"\n", "", "grain_bytes"),
        ] {
            let error = read(&text.replacen(old, new, 1)).unwrap_err();
            assert!(error.contains(named) && error.lines().count() == 1, "{error}");
        }
    }
}
