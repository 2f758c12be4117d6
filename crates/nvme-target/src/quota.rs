//! Checks that a Store keeps to its host's quota.

use crate::completion::Failure;
use crate::rights::{Held, HostRights};
use crate::status::status_of;
use kvssd_device::Partitions;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::status::HOST_QUOTA;
use kvssd_types::{Key, NamespaceId, StoreCondition};

/// Checks a Store. The old pair is looked up only if the store would exceed the quota as a new pair.
pub(crate) fn check_quota(
    drive: &mut Partitions<'_>,
    rights: &HostRights,
    namespace: NamespaceId,
    key: Key<'_>,
    value_bytes: u64,
    condition: StoreCondition,
) -> Result<(), Failure> {
    if !rights.quota.is_bounded() {
        return Ok(());
    }
    let of = |value_bytes: u64| Held { pairs: 1, bytes: key.bytes().len() as u64 + value_bytes };
    let new = of(value_bytes);
    if rights.quota.allows(held(drive, rights, |_| true), Held::default(), new) {
        return Ok(());
    }
    // Nothing is evicted for a pair that would not fit even if all others had left.
    let could_fit = rights.quota.allows(held(drive, rights, |id| id != namespace), Held::default(), new);
    loop {
        // The key's own pair may be among the evicted ones.
        let old = drive.value_bytes_of(namespace, key).map_err(|error| status_of(&error))?;
        let old = old.map(|value_bytes| of(value_bytes.into()));
        let is_refused_anyway = match condition {
            StoreCondition::Always => false,
            StoreCondition::IfExists => old.is_none(),
            StoreCondition::IfAbsent => old.is_some(),
        };
        let held = held(drive, rights, |_| true);
        if is_refused_anyway || rights.quota.allows(held, old.unwrap_or_default(), new) {
            return Ok(());
        }
        // The cache refuses the pair or keeps it out: the Store needs no room.
        if !drive.would_take(namespace, key, value_bytes).map_err(|error| status_of(&error))? {
            return Ok(());
        }
        // For a store into a cache, other pairs are evicted.
        if !could_fit || !drive.let_go(namespace).map_err(|error| status_of(&error))? {
            return Err(Failure { status: Status::CapacityExceeded, result: HOST_QUOTA.into() });
        }
    }
}

/// What the namespaces that the host may change hold, as far as they count.
fn held(drive: &Partitions<'_>, rights: &HostRights, counts: impl Fn(NamespaceId) -> bool) -> Held {
    let namespaces = drive.namespaces();
    let counted = namespaces.iter().filter(|info| rights.read_write.contains(info.id.0) && counts(info.id));
    counted.fold(Held::default(), |held, info| Held {
        pairs: held.pairs + info.utilization.pairs,
        bytes: held.bytes + info.utilization.pair_bytes,
    })
}
