//! Random damage: a byte anywhere, with and without the checksum put right, and never a panic.

use crate::damage::Victim;
use crate::drive::{Snapshot, designs};
use kvssd_flash::PowerLoss;
use proptest::prelude::*;
use std::sync::LazyLock;

static VICTIMS: LazyLock<Vec<Victim>> = LazyLock::new(|| {
    let kinds = [PowerLoss::Protected, PowerLoss::Volatile];
    designs().flat_map(|design| kinds.map(|power_loss| Victim::new(&design, power_loss, 3))).collect()
});

/// Changes a byte of the `page`th written page, or of what is staged.
fn damage(victim: &Victim, damaged: &mut Snapshot, (page, byte, mask): (usize, usize, u8), puts_crc: bool) {
    let written: Vec<usize> = (0..damaged.pages.len()).filter(|&page| damaged.pages[page].is_some()).collect();
    // Sections, journal and checkpoints are few among pages of pairs: every other damage is to what was staged or to them.
    let page = written[page % written.len()];
    let bytes = damaged.pages[page].as_mut().unwrap();
    let length = bytes.len();
    bytes[byte % length] ^= mask;
    if puts_crc {
        victim.put_crc(damaged, page);
    }
}

/// Changes a byte of what is staged, and puts the checksum of its item right.
fn damage_staged(damaged: &mut Snapshot, (item, byte, mask): (usize, usize, u8), puts_crc: bool) {
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(head) = damaged.staged.get(at..at + 8) {
        let length = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
        items.push((at, length));
        at += 8 + length;
    }
    if items.is_empty() {
        return;
    }
    let (at, length) = items[item % items.len()];
    let body = at + 8..at + 8 + length;
    // What an item is stands at its start.
    let byte = if byte % 2 == 0 { byte % length.min(24) } else { byte % length };
    damaged.staged[body.start + byte] ^= mask;
    if puts_crc {
        let crc = crc32c::crc32c(&damaged.staged[body]);
        damaged.staged[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_byte_of_a_page_makes_a_mount_or_a_check_panic(
        victim in 0..VICTIMS.len(), places in prop::collection::vec((any::<usize>(), any::<usize>(), 1u8..), 1..4), puts_crc: bool,
    ) {
        let victim = &VICTIMS[victim];
        let mut damaged = victim.before.clone();
        places.into_iter().for_each(|place| damage(victim, &mut damaged, place, puts_crc));
        let _ = victim.check(&damaged).to_string();
    }

    #[test]
    fn no_byte_of_what_is_staged_makes_a_mount_or_a_check_panic(
        victim in 0..VICTIMS.len() / 2, places in prop::collection::vec((any::<usize>(), any::<usize>(), 1u8..), 1..3), puts_crc: bool,
    ) {
        let victim = &VICTIMS[victim * 2];
        let mut damaged = victim.before.clone();
        places.into_iter().for_each(|place| damage_staged(&mut damaged, place, puts_crc));
        let _ = victim.check(&damaged).to_string();
    }
}
