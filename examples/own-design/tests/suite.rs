use own_design::design;

#[test]
fn it_does_what_every_design_must() {
    kvssd_conformance::run(&design()).assert_clean();
}

#[test]
fn it_survives_power_cuts() {
    kvssd_conformance::power_cuts::survives(&design(), 2000).unwrap();
}
