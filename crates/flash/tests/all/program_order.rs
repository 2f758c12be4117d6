//! The order of programs in time.

use kvssd_flash::{ByteBacking, Cause, Flash, Profile, SuperblockId, UnitAddress, UnitImage};
use kvssd_types::Nanos;

/// A power cut between the two would leave a hole otherwise: the second unit of a block in flash, and the first one not.
#[test]
fn the_next_unit_of_a_block_waits_for_the_one_before_although_its_clock_is_behind() {
    let profile = Profile::load("cosmos", &[]).unwrap().scaled(1.0 / 1024.0).unwrap();
    let geometry = profile.geometry;
    let mut flash = Flash::new(&profile, Box::new(ByteBacking::new(geometry)));
    let units_of_row = geometry.pages_per_superblock() / geometry.pages_per_block;
    let first = geometry.unit_of(geometry.first_page(SuperblockId(1)));
    let mut program = |unit: u32, at| {
        flash.buffer.take(at);
        let content = UnitImage::of_bytes(&[], &vec![7; geometry.page_bytes as usize]);
        flash.program(UnitAddress(unit), content, &[Cause::User], at).unwrap()
    };
    let ahead = program(first.0, Nanos(5_000_000));
    let other_die = program(first.0 + 1, Nanos::ZERO);
    let behind = program(first.0 + units_of_row, Nanos::ZERO);
    assert!(other_die < ahead, "dies do not wait for each other");
    assert!(behind >= ahead + Nanos(profile.nand.program_ns), "{behind} follows {ahead}");
}
