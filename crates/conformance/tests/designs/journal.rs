//! How much flash the journal takes.

use kvssd_conformance::{Drive, Medium};
use kvssd_types::{Command, NamespaceId};

/// On a volatile drive each flush fills a program unit up with padding. A journal that did not count it would be up to eight times as long as its share.
#[test]
fn what_fills_units_up_counts_as_journal() {
    let design = kvssd_designs::named("original").unwrap();
    let settings = [
        ("memory.power_loss", "volatile"),
        ("geometry.pages_per_program", "8"),
        ("memory.write_buffer_bytes", "262144"),
    ];
    let mut drive = Drive::of(&design, Medium::Ropes, &settings);
    let free = drive.engine.free_superblocks();
    for change in 0..400 {
        drive.engine.set_logs(NamespaceId::FIRST, (change % 2 == 0).then_some(1), drive.clock).1.unwrap();
        drive.engine.execute(Command::Flush, drive.clock).1.unwrap();
        let taken = free - drive.engine.free_superblocks();
        assert!(taken <= 3, "{taken} superblocks behind {change} changes");
    }
}
