//! Requests: changes that a client may send again, and that are made once.

/// Names a client: whoever may send a change again that it had no answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub [u8; 32]);

/// Names a change, however often it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// Whose change it is.
    pub client: ClientId,
    /// The client's own number of it: it uses none twice.
    pub serial: u64,
}

impl RequestId {
    /// A change is known again as long as its client has numbered fewer than so many behind it.
    pub const WINDOW: u64 = 1024;
}
