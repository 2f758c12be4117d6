//! What an image says of the drive in it: a TOML text from which its design and its profile are built again.
//!
//! ```text
//!   power_loss = "protected"
//!   [design]     name, grain_bytes, gc_low_superblocks, gc_high_superblocks
//!   [profile]    every key of a profile file, with the numbers of this drive
//! ```
//!
//! An unknown key, a missing one and an impossible value are errors: a drive that was built otherwise would misread its flash.

use kvssd_flash::{PowerLoss, Profile};
use kvssd_ftl::Design;
use serde::{Deserialize, Serialize};

/// The text's tables.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    power_loss: String,
    design: DesignTable,
    profile: Profile,
}

/// The `[design]` table: a preset, and the parameters that can be put over it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DesignTable {
    name: String,
    grain_bytes: u32,
    gc_low_superblocks: u32,
    gc_high_superblocks: u32,
}

/// The description of a protected drive.
///
/// # Panics
/// When the design has a bug planted in it: no image says so.
pub(crate) fn describe(profile: &Profile, design: &Design) -> String {
    assert!(design.planted.is_none(), "a planted bug cannot be written down");
    let description = Description {
        power_loss: PowerLoss::Protected.name().to_owned(),
        design: DesignTable {
            name: design.name.to_owned(),
            grain_bytes: design.grain_bytes,
            gc_low_superblocks: design.gc_low_superblocks,
            gc_high_superblocks: design.gc_high_superblocks,
        },
        profile: profile.clone(),
    };
    toml::to_string(&description).expect("a description is plain data")
}

/// The profile and the design that `text` describes, or what is wrong with it.
pub(crate) fn read(text: &str) -> Result<(Profile, Design), String> {
    let Description { power_loss, design: table, profile } =
        toml::from_str(text).map_err(|error| error.message().to_owned())?;
    if power_loss != PowerLoss::Protected.name() {
        return Err(format!("power_loss = {power_loss:?} is not known"));
    }
    let design = Design::named(&table.name).map_err(|error| error.to_string())?;
    let design = Design {
        grain_bytes: table.grain_bytes,
        gc_low_superblocks: table.gc_low_superblocks,
        gc_high_superblocks: table.gc_high_superblocks,
        ..design
    };
    // Scaling is what looks at every number.
    Ok((profile.scaled(1.0).map_err(|error| error.to_string())?, design))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::PROFILE_NAMES;
    use kvssd_ftl::DESIGNS;

    #[test]
    fn what_is_described_is_read_again() {
        for name in PROFILE_NAMES {
            let profile = Profile::load(name, &[]).unwrap();
            for mut design in DESIGNS {
                design.set("gc_low_superblocks", "17").unwrap();
                let text = describe(&profile, &design);
                assert_eq!(read(&text).unwrap(), (profile.clone(), design), "{text}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = describe(&Profile::load("kvvirt", &[]).unwrap(), &DESIGNS[1]);
        for (old, new, named) in [
            ("protected", "volatile", "volatile"),
            ("name = \"plus\"", "name = \"minus\"", "minus"),
            ("channels = 8", "channels = 0", "geometry.channels"),
            ("cores = ", "cabbages = ", "cabbages"),
            ("grain_bytes = 64\n", "", "grain_bytes"),
        ] {
            let error = read(&text.replacen(old, new, 1)).unwrap_err();
            assert!(error.contains(named) && error.lines().count() == 1, "{error}");
        }
    }
}
