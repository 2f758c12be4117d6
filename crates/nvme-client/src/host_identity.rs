//! Who connects: a host, and the program on it.

use kvssd_nvme_auth::Credentials;
use kvssd_nvme_spec::numbered::INSTANCE_BYTES;
use kvssd_runtime::random_u64;
use std::io;
use uuid::{Builder, Uuid};

/// The identifiers of a host that a Connect command carries, and the program's own.
#[derive(Clone, Debug)]
pub(crate) struct HostIdentity {
    /// HOSTID.
    pub(crate) id: [u8; 16],
    /// This program on it; it numbers its changes.
    pub(crate) instance: [u8; INSTANCE_BYTES],
    /// HOSTNQN.
    pub(crate) nqn: String,
    /// By what it proves who it is.
    pub(crate) credentials: Option<Credentials>,
}

impl HostIdentity {
    /// A host unlike all others. Without a name it is called by its UUID.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn new(nqn: Option<&str>, credentials: Option<Credentials>) -> io::Result<Self> {
        let (id, instance) = (random_bytes()?, random_bytes()?);
        let id: Uuid = Builder::from_random_bytes(id).into_uuid();
        let nqn = nqn.map_or_else(|| format!("nqn.2014-08.org.nvmexpress:uuid:{id}"), str::to_owned);
        Ok(HostIdentity { id: id.into_bytes(), instance, nqn, credentials })
    }
}

fn random_bytes() -> io::Result<[u8; 16]> {
    let [low, high] = [random_u64()?, random_u64()?];
    Ok((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
}
