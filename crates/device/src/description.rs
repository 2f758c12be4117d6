//! What an image says of the drive in it: a TOML text from which its design and its profile are built again.
//!
//! ```text
//!   [design]     name, and each of its parameters, as text
//!   [profile]    every key of a profile file, with the numbers of this drive
//! ```
//!
//! An unknown key, a missing one and an impossible value are errors: a drive that was built otherwise would misread its flash.

use kvssd_flash::{PowerLoss, Profile};
use kvssd_ftl::Design;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the design is called under.
const NAME: &str = "name";

/// The text's tables.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    design: BTreeMap<String, String>,
    profile: Profile,
}

/// The description of a protected drive.
///
/// # Panics
/// When the design has a bug planted in it: no image says so.
pub(crate) fn describe(profile: &Profile, design: &Design) -> String {
    assert!(design.planted.is_none(), "a planted bug cannot be written down");
    let description = Description {
        design: std::iter::once((NAME, design.name.to_owned()))
            .chain(design.parameters())
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        profile: profile.clone(),
    };
    toml::to_string(&description).expect("a description is plain data")
}

/// The profile and the design that `text` describes, or what is wrong with it.
pub(crate) fn read(text: &str) -> Result<(Profile, Design), String> {
    let Description { design: mut table, profile } =
        toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let power_loss = profile.memory.power_loss;
    if power_loss != PowerLoss::Protected {
        return Err(format!("memory.power_loss is {}, and a drive in a file is protected", power_loss.name()));
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
    Ok((profile.scaled(1.0).map_err(|error| error.to_string())?, design))
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
                let text = describe(&profile, &design);
                assert_eq!(read(&text).unwrap(), (profile.clone(), design), "{text}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = describe(&Profile::load("kvvirt", &protected()).unwrap(), &DESIGNS[1]);
        for (old, new, named) in [
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
