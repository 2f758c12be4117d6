//! Who connects: a host, and the program on it.

use kvssd_nvme_auth::{Credentials, Derivation, Parties, PresharedKey, TlsKey};
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
    /// By which all that is said is encrypted.
    tls_key: Option<TlsKey>,
}

impl HostIdentity {
    /// A host unlike all others. Without a name it is called by its UUID.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn new(
        nqn: Option<&str>,
        credentials: Option<Credentials>,
        tls_key: Option<TlsKey>,
    ) -> io::Result<Self> {
        let (id, instance) = (random_bytes()?, random_bytes()?);
        let id: Uuid = Builder::from_random_bytes(id).into_uuid();
        let nqn = nqn.map_or_else(|| format!("nqn.2014-08.org.nvmexpress:uuid:{id}"), str::to_owned);
        Ok(HostIdentity { id: id.into_bytes(), instance, nqn, credentials, tls_key })
    }

    /// What a handshake with that subsystem offers; `None` in the clear.
    pub(crate) fn preshared_keys(&self, subsystem: &str) -> Option<Vec<PresharedKey>> {
        let parties = Parties { host: self.nqn.clone(), subsystem: subsystem.to_owned() };
        self.tls_key.as_ref().map(|key| key.preshared_keys(&parties, Derivation::Standard))
    }

    /// Whether there is a key of TLS.
    pub(crate) fn has_tls_key(&self) -> bool {
        self.tls_key.is_some()
    }
}

fn random_bytes() -> io::Result<[u8; 16]> {
    let [low, high] = [random_u64()?, random_u64()?];
    Ok((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
}
