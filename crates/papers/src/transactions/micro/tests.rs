//! Microbenchmarks on small drives.

use super::*;
use kvssd_flash::Cause;
use kvssd_measure::Quiet;

const OPTIONS: MicroOptions =
    MicroOptions { record_bytes: 512, threads: 8, batch_pairs: 1, records_max: 1000, seed: 3 };

fn run(design: &str, options: MicroOptions) -> [MicroReport; 3] {
    let mut design = kvssd_designs::named(design).unwrap();
    // As the paper's, which reads before it writes a part.
    design.gathered_blocks_max = 0;
    let profile = design.tiny_profile(&[]).unwrap();
    let mut bench = MicroBench::new(&design, &profile, options).unwrap();
    [(MicroKind::Insert, 1000), (MicroKind::Update, 500), (MicroKind::Fetch, 500)]
        .map(|(kind, pairs)| bench.run(kind, pairs, &mut Quiet).unwrap())
}

#[test]
fn both_kinds_of_drives_give_back_what_was_stored() {
    for design in ["plus", "rhik", "block"] {
        let reports = run(design, OPTIONS);
        assert_eq!(reports, run(design, OPTIONS));
        assert!(reports.iter().all(|report| report.bytes_per_s > 0.0 && report.records == 1000));
    }
}

#[test]
fn small_updates_of_a_block_drive_wait_for_a_read_and_those_of_4_kib_do_not() {
    let latency = |record_bytes| {
        let options = MicroOptions { record_bytes, threads: 1, records_max: 1000, ..OPTIONS };
        run("block", options)[1].latency_ns.p50
    };
    assert!(latency(512) > 2 * latency(4096), "{} and {}", latency(512), latency(4096));
}

#[test]
fn a_new_entry_of_the_table_costs_an_insert_and_no_update() {
    let latencies = |new_entry_ns: &str| {
        let design = kvssd_designs::named("kaml").unwrap();
        let overrides = [("memory.dram_bytes", "4194304"), ("core_costs.new_entry_ns", new_entry_ns)];
        let profile = design.tiny_profile(&overrides).unwrap();
        let mut bench = MicroBench::new(&design, &profile, MicroOptions { threads: 1, ..OPTIONS }).unwrap();
        [MicroKind::Insert, MicroKind::Update].map(|kind| bench.run(kind, 500, &mut Quiet).unwrap().latency_ns.p50)
    };
    let (without, with) = (latencies("0"), latencies("50000"));
    // Latencies are kept to two digits and a half.
    assert!((49_000..51_000).contains(&(with[0] - without[0])), "{with:?} {without:?}");
    assert_eq!(with[1], without[1]);
}

#[test]
fn scattered_inserts_of_a_block_drive_read_what_they_modify_and_those_in_order_do_not() {
    let mut design = kvssd_designs::named("block").unwrap();
    design.gathered_blocks_max = 0;
    let reads = |scattered: &str, record_bytes| {
        let profile = design.tiny_profile(&[("emulator.inserts_scattered", scattered)]).unwrap();
        let options = MicroOptions { record_bytes, threads: 1, records_max: 1000, ..OPTIONS };
        let mut bench = MicroBench::new(&design, &profile, options).unwrap();
        bench.run(MicroKind::Insert, 1000, &mut Quiet).unwrap();
        let read = bench.device().engine().flash_counters().reads[Cause::User];
        bench.run(MicroKind::Fetch, 1000, &mut Quiet).unwrap();
        read
    };
    assert_eq!(reads("false", 512), 0);
    assert!(reads("true", 512) > 900, "{}", reads("true", 512));
    assert_eq!(reads("true", 4096), 0);
}

#[test]
fn impossible_options_are_refused() {
    let design = kvssd_designs::named("block").unwrap();
    let profile = design.tiny_profile(&[]).unwrap();
    let wrong = [
        MicroOptions { record_bytes: 100, ..OPTIONS },
        MicroOptions { threads: 0, ..OPTIONS },
        MicroOptions { batch_pairs: 2, ..OPTIONS },
    ];
    assert!(wrong.into_iter().all(|options| MicroBench::new(&design, &profile, options).is_err()));
    let mut bench = MicroBench::new(&design, &profile, OPTIONS).unwrap();
    assert!(bench.run(MicroKind::Fetch, 1, &mut Quiet).is_err());
    assert!(bench.run(MicroKind::Insert, 1001, &mut Quiet).is_err());
}
