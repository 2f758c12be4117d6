//! `kvssd designs` and `kvssd profiles`.

use crate::Outcome;
use crate::output::print;
use kvssd_flash::{PROFILE_NAMES, Profile};

/// Lists the designs.
pub fn designs() -> Outcome {
    let text: String = kvssd_designs::all()
        .into_iter()
        .map(|design| {
            let parameters = design.parameters().into_iter().map(|(key, value)| format!(" design.{key}={value}"));
            format!(
                "{:<10} {}\n{:<10} index {}, validity {}, victims {};{}\n",
                design.name,
                design.description,
                "",
                design.index.plan().name(),
                design.validity.name(),
                design.victims.policy().name(),
                parameters.collect::<String>()
            )
        })
        .collect();
    print(&text)
}

/// Lists the profiles.
pub fn profiles() -> Outcome {
    let mut text = String::new();
    for name in PROFILE_NAMES {
        let profile = Profile::load(name, &[])?;
        let geometry = profile.geometry;
        text += &format!(
            "{:<10} {}\n{:<10} {} GiB: {} channels x {} dies x {} blocks x {} pages of {} bytes, {} MiB of DRAM\n",
            profile.name,
            profile.description,
            "",
            geometry.raw_bytes() >> 30,
            geometry.channels,
            geometry.dies_per_channel,
            geometry.blocks_per_die,
            geometry.pages_per_block,
            geometry.page_bytes,
            profile.memory.dram_bytes >> 20
        );
    }
    print(&text)
}
