//! Who authenticates to whom, and by what.

use crate::secret::Secret;

/// The names that a proof is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    /// NQN of the host.
    pub host: String,
    /// NQN of the subsystem.
    pub subsystem: String,
}

/// The secrets of a host and of the controllers that it talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// By which the host proves itself.
    pub host: Secret,
    /// By which the controller does; `None` where it need not, or cannot.
    pub controller: Option<Secret>,
}
