//! `kvssd designs` and `kvssd profiles`.

use crate::Outcome;
use kvssd_flash::{PROFILE_NAMES, Profile};
use kvssd_ftl::DESIGNS;

/// Lists the designs.
pub fn designs() -> Outcome {
    for design in DESIGNS {
        println!("{:<10} {}", design.name, design.description);
        println!(
            "{:<10} index {:?}, validity {:?}; design.grain_bytes={} design.gc_low_superblocks={} design.gc_high_superblocks={}",
            "",
            design.index,
            design.validity,
            design.grain_bytes,
            design.gc_low_superblocks,
            design.gc_high_superblocks
        );
    }
    Ok(())
}

/// Lists the profiles.
pub fn profiles() -> Outcome {
    for name in PROFILE_NAMES {
        let profile = Profile::load(name, &[])?;
        let geometry = profile.geometry;
        println!("{:<10} {}", profile.name, profile.description);
        println!(
            "{:<10} {} GiB: {} channels x {} dies x {} blocks x {} pages of {} bytes, {} MiB of DRAM",
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
    Ok(())
}
