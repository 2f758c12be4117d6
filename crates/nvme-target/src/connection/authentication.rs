//! Authentication Send and Receive: a host proves who it is, before its queue is one.

use super::{Connection, Phase};
use crate::completion::{Outcome, Success};
use kvssd_nvme_auth::{MESSAGE_BYTES_MAX, Progress};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::fabrics::Security;

impl Connection {
    /// Takes a message of the host.
    pub(super) fn authentication_send(&mut self, security: Security, data: &[u8]) -> Outcome {
        let message = checked(security).and_then(|length| data.get(..length).ok_or(Status::SglLengthInvalid))?;
        let Phase::Authenticating { side, .. } = &mut self.phase else { return Err(Status::InvalidField.into()) };
        side.receive(message);
        self.end_authentication();
        Ok(Success::default())
    }

    /// Gives the host the next message.
    pub(super) fn authentication_receive(&mut self, security: Security, room_bytes: u32) -> Outcome {
        let length = checked(security)?.min(room_bytes as usize);
        let Phase::Authenticating { side, .. } = &mut self.phase else { return Err(Status::InvalidField.into()) };
        let message = side.message().ok_or(Status::CommandSequenceError)?;
        self.end_authentication();
        if message.len() > length {
            // It is lost, and the authentication with it.
            self.stop();
            return Err(Status::InvalidField.into());
        }
        Ok(Success::with_data(message))
    }

    /// Goes on to what was connected to, or ends, once it is known who the host is, or is not.
    fn end_authentication(&mut self) {
        let Phase::Authenticating { side, .. } = &self.phase else { return };
        let (progress, host) = (side.progress(), self.place.member().map_or("", |member| &member.nqn));
        match progress {
            Progress::UnderWay => {}
            Progress::Failed(why) => {
                tracing::warn!(host, %why, "the authentication of a host failed");
                self.stop_for_fault();
            }
            Progress::Authenticated => {
                tracing::info!(host, "a host has proved who it is");
                self.place.settle();
                if let Phase::Authenticating { connected, .. } = std::mem::replace(&mut self.phase, Phase::Ended) {
                    self.phase = *connected;
                    self.note_strange();
                }
            }
        }
    }
}

/// The length of a message, or of the room for one.
fn checked(security: Security) -> Result<usize, Status> {
    let Security { length_bytes, .. } = security;
    if security != Security::authentication(length_bytes) || length_bytes == 0 {
        return Err(Status::InvalidField);
    }
    Ok((length_bytes as usize).min(MESSAGE_BYTES_MAX))
}
