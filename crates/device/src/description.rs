//! What an image says of the drive in it: a TOML text from which its design and its profile are built again.
//!
//! ```text
//!   value_bytes_max   only of a drive of large values
//!   [design]     name, and each of its parameters, as text
//!   [profile]    every key of a profile file, with the numbers of this drive
//! ```
//!
//! An unknown key, a missing one and an impossible value are errors: a drive that was built otherwise would misread its flash.

use crate::large::LARGE_VALUE_BYTES_MAX;
use kvssd_flash::{PowerLoss, Profile};
use kvssd_ftl::Design;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the design is called under.
const NAME: &str = "name";

/// What drive there is in an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    pub(crate) profile: Profile,
    pub(crate) design: Design,
    /// The largest value, of a drive whose values may be larger than a record.
    pub(crate) value_bytes_max: Option<u32>,
}

/// The text's tables.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_bytes_max: Option<u32>,
    design: BTreeMap<String, String>,
    profile: Profile,
}

impl Description {
    /// The text that says so.
    ///
    /// # Panics
    /// When the design has a bug planted in it: no image says so.
    pub(crate) fn text(&self) -> String {
        let Description { profile, design, value_bytes_max } = self;
        assert!(design.planted.is_none(), "a planted bug cannot be written down");
        let text = Text {
            value_bytes_max: *value_bytes_max,
            design: std::iter::once((NAME, design.name.to_owned()))
                .chain(design.parameters())
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
            profile: profile.clone(),
        };
        toml::to_string(&text).expect("a description is plain data")
    }
}

/// What `text` describes, or what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Description, String> {
    let Text { value_bytes_max, design: mut table, profile } =
        toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let power_loss = profile.memory.power_loss;
    if power_loss != PowerLoss::Protected {
        return Err(format!("memory.power_loss is {}, and a drive in a file is protected", power_loss.name()));
    }
    if let Some(bytes) = value_bytes_max.filter(|bytes| *bytes > LARGE_VALUE_BYTES_MAX) {
        return Err(format!("value_bytes_max is {bytes}, and may be {LARGE_VALUE_BYTES_MAX}"));
    }
    let name = table.remove(NAME).ok_or_else(|| format!("it has no design.{NAME}"))?;
    let mut design = Design::named(&name).map_err(|error| error.to_string())?;
    for (key, _) in design.parameters() {
        let value = table.remove(key).ok_or_else(|| format!("it has no design.{key}"))?;
        design.set(key, &value).map_err(|error| error.to_string())?;
    }
    if let Some(key) = table.keys().next() {
        return Err(format!("design.{key} is not known"));
    }
    // Scaling is what looks at every number.
    let profile = profile.scaled(1.0).map_err(|error| error.to_string())?;
    Ok(Description { profile, design, value_bytes_max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::PROFILE_NAMES;
    use kvssd_ftl::DESIGNS;

    fn protected() -> [(String, String); 1] {
        [("memory.power_loss".to_owned(), "protected".to_owned())]
    }

    #[test]
    fn what_is_described_is_read_again() {
        for name in PROFILE_NAMES {
            let profile = Profile::load(name, &protected()).unwrap();
            for mut design in DESIGNS {
                design.set("gc_low_superblocks", "17").unwrap();
                for value_bytes_max in [None, Some(LARGE_VALUE_BYTES_MAX)] {
                    let description = Description { profile: profile.clone(), design: design.clone(), value_bytes_max };
                    assert_eq!(read(&description.text()).unwrap(), description, "{}", description.text());
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let profile = Profile::load("kvvirt", &protected()).unwrap();
        let text = Description { profile, design: DESIGNS[1].clone(), value_bytes_max: Some(1 << 28) }.text();
        for (old, new, named) in [
            ("268435456", "268435457", "value_bytes_max"),
            ("protected", "volatile", "volatile"),
            ("name = \"plus\"", "name = \"minus\"", "minus"),
            ("channels = 8", "channels = 0", "geometry.channels"),
            ("cores = ", "cabbages = ", "cabbages"),
            ("grain_bytes = \"64\"\n", "", "grain_bytes"),
        ] {
            let error = read(&text.replacen(old, new, 1)).unwrap_err();
            assert!(error.contains(named) && error.lines().count() == 1, "{error}");
        }
    }
}
