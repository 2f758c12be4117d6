//! What a host proves itself by, and what TLS has shown of it.

use crate::rights::HostRights;
use kvssd_nvme_auth::{Credentials, Parties, TlsKey};
use std::sync::Arc;

/// What a handshake of TLS has shown: the other side has this key, and uses it as that host, for that subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secured {
    pub(crate) parties: Parties,
    pub(crate) key: Arc<TlsKey>,
}

/// What a connected host has proved itself by. When its rights say something else, it is to prove itself anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proofs {
    authentication: Option<Arc<Credentials>>,
    tls_key: Option<Arc<TlsKey>>,
}

impl Proofs {
    pub(crate) fn of(rights: &HostRights) -> Proofs {
        Proofs { authentication: rights.authentication.clone(), tls_key: rights.tls_key.clone() }
    }
}
