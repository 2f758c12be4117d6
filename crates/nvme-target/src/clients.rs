//! Clients that number their changes, and which of a client's controllers is its last.
//!
//! ```text
//!   controller 3, client A   Store 7 ... (the connection is lost; the command may lie unread in it)
//!   controller 4, client A   Set Features: from here on A's changes on controller 3 are refused
//!                            Store 7 again: the firmware knows whether it was made
//! ```
//!
//! So no older copy of a change is executed after the newest one, and the completion of the newest one settles it, a
//! refusal too. A controller becomes the last while all partitions are locked: no change is executed meanwhile.

use kvssd_nvme_spec::numbered::INSTANCE_BYTES;
use kvssd_types::ClientId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A client that numbers its changes, on one controller.
#[derive(Debug)]
pub(crate) struct NumberedClient {
    pub(crate) id: ClientId,
    is_superseded: AtomicBool,
}

impl NumberedClient {
    /// Whether the client has gone on to another controller.
    pub(crate) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Relaxed)
    }
}

/// A client that was opened in the firmware.
#[derive(Debug)]
pub(crate) struct OpenedClient {
    pub(crate) client: Arc<NumberedClient>,
    /// The firmware's record of the client; another one after it was forgotten.
    pub(crate) since: u64,
}

/// The last controller of each client. There are no more clients than controllers and commands that execute.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    last: BTreeMap<ClientId, Arc<NumberedClient>>,
}

impl Clients {
    /// Makes a controller the client's only one.
    pub(crate) fn open(&mut self, id: ClientId) -> Arc<NumberedClient> {
        // A client without controllers has no commands either.
        self.last.retain(|_, client| Arc::strong_count(client) > 1);
        let opened = Arc::new(NumberedClient { id, is_superseded: AtomicBool::new(false) });
        if let Some(before) = self.last.insert(id, Arc::clone(&opened)) {
            before.is_superseded.store(true, Ordering::Relaxed);
        }
        opened
    }
}

/// The identifier of a program on a host.
pub(crate) fn client_of(host: &[u8; 16], instance: &[u8; INSTANCE_BYTES]) -> ClientId {
    let mut id = [0; 32];
    id[..16].copy_from_slice(host);
    id[16..].copy_from_slice(instance);
    ClientId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_controller_of_a_client_is_its_only_one() {
        let mut clients = Clients::default();
        let (one, other) = (client_of(&[1; 16], &[1; 16]), client_of(&[1; 16], &[2; 16]));
        let first = clients.open(one);
        let beside = clients.open(other);
        assert!(!first.is_superseded() && !beside.is_superseded());
        let second = clients.open(one);
        assert!(first.is_superseded() && !second.is_superseded() && !beside.is_superseded());
        drop((first, second, beside));
        clients.open(client_of(&[3; 16], &[3; 16]));
        assert_eq!(clients.last.len(), 1, "those that are gone are forgotten");
    }
}
