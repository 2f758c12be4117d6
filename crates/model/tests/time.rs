//! How long an estimate takes: the table of docs/ESTIMATE.md.
//!
//! `cargo test -p kvssd-model --test time -- --ignored --nocapture`

use kvssd_designs::{BLOCK, DESIGNS};
use kvssd_flash::Profile;
use kvssd_model::{Load, Mix, estimate};
use std::time::Instant;

/// Half updates on `kvvirt`, seven tenths full, the best of so many.
const TIMES: usize = 5;

#[test]
#[ignore = "it is about this machine"]
fn an_estimate_takes_about_a_millisecond() {
    for (name, scale) in [("1/256", 1.0 / 256.0), ("1/16", 1.0 / 16.0), ("1", 1.0)] {
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(scale).unwrap();
        let pairs = (0.7 * profile.geometry.raw_bytes() as f64 / 1088.0) as u64;
        let mix = Mix::Points { retrieves: 0.5, stores: 0.5, modifies: false };
        let load = Load {
            pairs,
            key_bytes: 8,
            value_bytes: 1000,
            overwrites: pairs,
            operations: pairs / 10,
            mix,
            skew: 0.0,
            ranks: pairs,
            clients: 20,
            batch_pairs: 1,
        };
        for design in DESIGNS.iter().chain([&BLOCK]) {
            let took_ms = |_| {
                let begun = Instant::now();
                estimate(&profile, design, &load).is_ok().then(|| begun.elapsed().as_secs_f64() * 1e3)
            };
            if let Some(best_ms) = (0..TIMES).filter_map(took_ms).min_by(f64::total_cmp) {
                println!("{name} {}: {best_ms:.2} ms", design.name);
                assert!(best_ms < 3.0, "{}: {best_ms:.2} ms", design.name);
            }
        }
    }
}
