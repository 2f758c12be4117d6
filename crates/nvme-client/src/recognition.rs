//! How a drive recognizes this host's changes, if it is one that does ([`kvssd_nvme_spec::numbered`]).

use crate::connection::Connection;
use crate::failure::Failure;
use crate::queue_pair::Payload;
use crate::request::drive_failed;
use crate::time_left::Deadline;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::features::feature::NUMBERED_CHANGES;
use kvssd_nvme_spec::numbered::{INSTANCE_BYTES, Opened, SIGNATURE};

/// The drive recognizes this host's changes by their serials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recognition {
    /// Which record of this client the drive has. It has another one after it has forgotten the client.
    pub(crate) since: u64,
    /// How far below the highest serial one is recognized.
    pub(crate) window: u16,
}

impl Recognition {
    /// Turns recognition on with Set Features, if the controller is of this project. Another make's feature C0h is
    /// vendor specific and unknown, so nothing is set there. A
    /// controller whose drive has failed refuses the connection: it is none without recognition.
    pub(crate) fn negotiate(
        admin: &Connection,
        instance: [u8; INSTANCE_BYTES],
        deadline: &Deadline,
    ) -> Result<Option<Recognition>, Failure> {
        let get = AdminCommand::GetFeatures { feature: NUMBERED_CHANGES, select: 0, value: 0 };
        let completion = admin.call(&get.entry(0), &Payload::None, deadline)?.entry;
        if completion.status() != Ok(Status::Success) || completion.dword0.get() != SIGNATURE {
            return Ok(None);
        }
        let set = AdminCommand::SetFeatures { feature: NUMBERED_CHANGES, save: false, value: SIGNATURE };
        let completion = admin.call(&set.entry(0), &Payload::Out(instance.into()), deadline)?.entry;
        if completion.status() == Ok(Status::InternalError) {
            return Err(drive_failed().into());
        }
        let Opened { since, window } = Opened::from_result(completion.result());
        let is_on = completion.status() == Ok(Status::Success) && window > 0;
        Ok(is_on.then_some(Recognition { since, window }))
    }
}
