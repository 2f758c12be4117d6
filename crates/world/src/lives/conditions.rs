//! What a world of hosts is like.

use super::hardware::cache_or_none;
use crate::NetworkFaults;
use kvssd_nvme_target::Limits;
use kvssd_runtime::time::Duration;
use kvssd_types::Random;

pub(super) const NQN: &str = "nqn.2025-01.org.kvssd:test";
pub(super) const ADDRESS: &str = "10.0.0.1:4420";
/// One of so many worlds is crowded.
const CROWDED: u64 = 8;
const MILLISECOND: u64 = 1_000_000;

/// What a world is like.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    pub(super) sync: bool,
    pub(super) has_large_values: bool,
    pub(super) cache_bytes: u64,
    /// More clients come than the drive remembers.
    pub(super) is_crowded: bool,
    pub(super) hosts: u32,
    pub(super) keys: usize,
    pub(super) time_max: Duration,
    pub(super) url: String,
    pub(super) network: NetworkFaults,
    pub(super) limits: Limits,
}

impl Conditions {
    pub(super) fn random(random: &mut Random) -> Conditions {
        let (sync, has_large_values) = (random.below(2) == 0, random.below(4) == 0);
        let is_crowded = random.below(CROWDED) == 0;
        let one_of = |random: &mut Random, some: &[u32]| some[random.below(some.len() as u64) as usize];
        let seconds = one_of(random, &[1, 2, 5, 20]);
        let (depth, digest) =
            (one_of(random, &[1, 2, 8, 128]), ["none", "header", "header,data"][random.below(3) as usize]);
        let network = NetworkFaults {
            cut_one_in: one_of(random, &[0, 40, 150, 600]),
            stall_one_in: one_of(random, &[0, 150, 600]),
            stall_ns: MILLISECOND * u64::from(one_of(random, &[20, 1000, 20_000])),
            refuse_one_in: one_of(random, &[0, 3, 10]),
            ..NetworkFaults::default()
        };
        // Who waits for a late piece is idle meanwhile, and the first to be forgotten.
        let (seconds, network) = match is_crowded {
            true => (
                seconds.max(5),
                NetworkFaults { stall_one_in: 1000, stall_ns: 2000 * MILLISECOND, cut_one_in: 600, ..network },
            ),
            false => (seconds, network),
        };
        let values_bytes_max = [32 << 10, 1 << 20, 1 << 30][random.below(3) as usize];
        let connections_max = if is_crowded { 128 } else { one_of(random, &[24, 128]) as usize };
        let limits = Limits { values_bytes_max, connections_max, ..Limits::default() };
        Conditions {
            sync,
            has_large_values,
            cache_bytes: cache_or_none(random),
            is_crowded,
            hosts: 2 + random.below(7) as u32,
            keys: 4 + random.below(20) as usize,
            time_max: Duration::from_secs(seconds.into()),
            url: format!("nvme+tcp://{ADDRESS}/{NQN}?timeout={seconds}&depth={depth}&digest={digest}"),
            network,
            limits,
        }
    }
}
