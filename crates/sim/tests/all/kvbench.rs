//! KVbench's workloads on drives.

use kvssd_flash::Profile;
use kvssd_measure::Quiet;
use kvssd_sim::Session;
use kvssd_sim::workload::KvBench;

const INI: &str = "[document]\nndocs = 2000\n[threads]\nwriters = 2\n[key_length]\ndistribution = fixed\n\
    [operation]\nnops = 1000\nread_write_insert_delete = 40:10:10:40\n";

/// A run that deleted before has left less than was ever inserted.
#[test]
fn the_records_of_a_run_are_those_that_are_there_when_it_begins() {
    let design = kvssd_designs::named("plus").unwrap();
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
    let bench = KvBench::parse(INI).unwrap();
    let mut session = Session::of_kvbench(&design, &profile, &bench, 1).unwrap();
    session.populate(&mut Quiet).unwrap();
    for run in 0..3 {
        let there = session.device().engine().utilization().pairs;
        let report = session.run_kvbench_mix(&bench, 3000, &mut Quiet).unwrap().report;
        assert_eq!(report.records, there, "run {run}");
        assert!(run == 0 || there < 2000, "{there}");
    }
}
