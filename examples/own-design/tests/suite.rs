#[test]
fn it_does_what_every_design_must() {
    kvssd_conformance::run(&own_design::design()).assert_clean();
    kvssd_conformance::power_cuts::survives(&own_design::design(), 2000).unwrap();
}
