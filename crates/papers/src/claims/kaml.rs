//! The claims of the KAML paper (section V): a drive of pairs with a table in DRAM, many logs and batches against a block drive on the
//! same flash, and transactions on both.

mod cell;
mod drives;
mod logs;
mod oltp;
mod side;
mod ycsb;

pub use self::cell::KamlCell;

use self::cell::Bench;
use crate::claims::Claim;
use kvssd_flash::Profile;
use kvssd_measure::Observer;
use kvssd_sim::SimError;

/// Runs the claims at a `scale` of the paper's board; `profile` is that board unscaled, `parameters` are put over the key drive. Gives
/// all that was measured beside them.
///
/// # Errors
/// When an experiment does not run to its end.
pub fn reproduce_kaml(
    profile: &Profile,
    parameters: &[(String, String)],
    scale: f64,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<(Vec<Claim>, Vec<KamlCell>), SimError> {
    let mut bench = Bench::new(profile, parameters, scale, seed, observer)?;
    let mut claims = vec![drives::load_factors(&mut bench)?];
    claims.extend(drives::small_records(&mut bench)?);
    claims.push(drives::filling(&mut bench)?);
    claims.push(logs::more_logs(&mut bench)?);
    claims.extend(oltp::transactions(&mut bench)?);
    claims.push(ycsb::workloads(&mut bench)?);
    Ok((claims, bench.cells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_measure::Quiet;

    #[test]
    fn what_the_claims_choose_themselves_is_refused() {
        let profile = Profile::load("kaml", &[]).unwrap();
        let refused = |key: &str, value: &str| {
            let parameters = [(key.to_owned(), value.to_owned())];
            reproduce_kaml(&profile, &parameters, 1.0 / 64.0, 1, &mut Quiet).unwrap_err().to_string()
        };
        assert!(refused("flash_bytes_per_slot", "3072").contains("load factors"));
        assert!(refused("nonsense", "1").contains("flash_bytes_per_slot"));
    }
}
