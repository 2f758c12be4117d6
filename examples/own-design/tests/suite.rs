use own_design::design;
use std::process::Command;

#[test]
fn it_does_what_every_design_must() {
    kvssd_conformance::run(&design()).assert_clean();
}

#[test]
fn it_survives_power_cuts() {
    kvssd_conformance::power_cuts::survives(&design(), 2000).unwrap();
}

/// While collection moved a pair, the bucket that has it could leave DRAM without the move, and a mount did not make it again.
#[test]
fn a_bucket_does_not_leave_while_its_pair_is_moved() {
    let arguments = "crash --design two-choice --semantics volatile --seed 6002 --cuts 92";
    let status = Command::new(env!("CARGO_BIN_EXE_own-design")).args(arguments.split(' ')).status();
    assert!(status.expect("the program runs").success());
}
