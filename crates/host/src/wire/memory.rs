//! What a drive remembers of this host's changes, if it is one that does ([`kvssd_spec::numbered`]).

use super::channel::Channel;
use super::queue::Payload;
use super::request::drive_failed;
use super::session::Trouble;
use kvssd_runtime::time::Instant;
use kvssd_spec::Status;
use kvssd_spec::admin::AdminCommand;
use kvssd_spec::features::feature::NUMBERED_CHANGES;
use kvssd_spec::numbered::{INSTANCE_BYTES, Opened, SIGNATURE};

/// A drive knows this host's changes by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    /// Since when. What was sent before it may make again.
    pub(super) since: u64,
    /// How far behind the highest number it knows one.
    pub(super) window: u16,
}

impl Memory {
    /// Has a controller know the changes of this program by their numbers, if it can. Of one of another make nothing is set: what its feature
    /// C0h means nobody knows. One that can, and fails in it, takes no change, and is not to be taken for one that makes changes without numbers.
    pub(super) fn begin(
        admin: &Channel,
        instance: [u8; INSTANCE_BYTES],
        deadline: Instant,
    ) -> Result<Option<Memory>, Trouble> {
        let get = AdminCommand::GetFeatures { feature: NUMBERED_CHANGES, select: 0, value: 0 };
        let said = admin.call(&get.entry(0), &Payload::None, deadline)?.entry;
        if said.status() != Ok(Status::Success) || said.dword0.get() != SIGNATURE {
            return Ok(None);
        }
        let set = AdminCommand::SetFeatures { feature: NUMBERED_CHANGES, save: false, value: SIGNATURE };
        let said = admin.call(&set.entry(0), &Payload::Out(instance.into()), deadline)?.entry;
        if said.status() == Ok(Status::InternalError) {
            return Err(drive_failed().into());
        }
        let Opened { since, window } = Opened::from_result(said.result());
        let is_on = said.status() == Ok(Status::Success) && window > 0;
        Ok(is_on.then_some(Memory { since, window }))
    }
}
