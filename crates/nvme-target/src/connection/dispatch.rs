//! Which command goes where.

use super::connect::connect;
use super::transfers::{Complete, Pending};
use super::{Connection, Phase, is_noteworthy};
use crate::admin::Admin;
use crate::answer::{Answer, Done, Kind, Outcome, Work};
use crate::memory::Held;
use crate::subsystem::lock;
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::command::{DataPointer, FLAGS_SGL};
use kvssd_nvme_spec::fabrics::{FABRICS_OPCODE, FabricsCommand};
use kvssd_nvme_spec::identify::IDENTIFY_BYTES;
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_types::{Command, Nanos};
use std::sync::Arc;

/// Bits of an opcode: data goes to the controller.
const TO_CONTROLLER: u8 = 0b01;
/// An aborted command was not aborted (Abort, dword 0, bit 0).
const NOT_ABORTED: u64 = 1;
/// The most data that an admin command brings.
const ADMIN_DATA_BYTES_MAX: u32 = IDENTIFY_BYTES as u32;

impl Connection {
    /// A command capsule has come.
    pub(super) fn take_command(&mut self, entry: &SubmissionEntry, data: &[u8], is_intact: bool, now: Nanos) {
        self.queue.advance();
        let command_id = entry.command_id.get();
        // A host that detaches ends its event requests without a word, and uses their identifiers again (SPDK).
        if !self.queue.insert(command_id) && !self.forgets_event_request(command_id) {
            return self.refuse(entry, Status::CommandIdConflict, now);
        }
        if entry.flags != FLAGS_SGL {
            return self.refuse(entry, Status::InvalidField, now);
        }
        if !is_intact {
            return self.refuse(entry, Status::TransientTransportError, now);
        }
        match DataPointer::from(entry.data) {
            DataPointer::InCapsule { offset_bytes, length_bytes } => {
                let Some(data) = usize::try_from(offset_bytes).ok().and_then(|offset| data.get(offset..)) else {
                    return self.refuse(entry, Status::SglOffsetInvalid, now);
                };
                match data.get(..length_bytes as usize) {
                    Some(data) => self.dispatch(entry, data, None, now),
                    None => self.refuse(entry, Status::SglLengthInvalid, now),
                }
            }
            DataPointer::Transport { length_bytes } if length_bytes > 0 && brings_data(entry) => {
                match self.wanted_bytes(entry, length_bytes) {
                    Ok(0) => self.dispatch(entry, &[], None, now),
                    Ok(length_bytes) => self.transfers.add(Pending { entry: *entry, length_bytes, arrived: now }),
                    Err(status) => self.refuse(entry, status, now),
                }
            }
            DataPointer::Transport { .. } => self.dispatch(entry, &[], None, now),
            DataPointer::Other { .. } => self.refuse(entry, Status::SglTypeInvalid, now),
        }
    }

    /// Whether the outstanding command of that identifier was a request for an event, which is no more.
    fn forgets_event_request(&self, command_id: u16) -> bool {
        let Phase::Admin { controller, .. } = &self.phase else { return false };
        lock(controller).forget_event_request(command_id)
    }

    /// All data of a command has come.
    pub(super) fn take_complete(&mut self, complete: Complete, now: Nanos) {
        let Complete { entry, data, held, is_intact, arrived } = complete;
        if !is_intact {
            return self.refuse(&entry, Status::TransientTransportError, now);
        }
        self.dispatch(&entry, &[], Some((data, held)), arrived);
    }

    /// How much of a command's data is to be asked for: none when the command will be refused anyway, and of a host's buffer that is longer
    /// than the value no more than that.
    fn wanted_bytes(&self, entry: &SubmissionEntry, length_bytes: u32) -> Result<u32, Status> {
        if !matches!(self.phase, Phase::Io { .. }) || entry.opcode == FABRICS_OPCODE {
            return if length_bytes > ADMIN_DATA_BYTES_MAX { Err(Status::InvalidField) } else { Ok(length_bytes) };
        }
        Ok(self.check_store(&KvCommand::from_entry(entry)?, length_bytes)?.unwrap_or(length_bytes))
    }

    /// The bytes of a store's value, none of other commands: not more than the host's data, nor than the drive takes.
    fn check_store(&self, command: &KvCommand, length_bytes: u32) -> Result<Option<u32>, Status> {
        let KvCommand::Store { value_bytes, .. } = *command else { return Ok(None) };
        if u64::from(value_bytes) > self.subsystem.value_bytes_max {
            return Err(Status::InvalidValueSize);
        }
        if length_bytes >= value_bytes { Ok(Some(value_bytes)) } else { Err(Status::SglLengthInvalid) }
    }

    /// A command that has all it needs: `data` from its capsule, or `whole` from a transfer.
    fn dispatch(&mut self, entry: &SubmissionEntry, data: &[u8], whole: Option<(Arc<[u8]>, Held)>, arrived: Nanos) {
        let (whole, held) = whole.unzip();
        if entry.opcode == FABRICS_OPCODE {
            let outcome = self.fabrics(entry, whole.as_deref().unwrap_or(data), arrived);
            return self.answer(entry, Kind::Fabrics, outcome, arrived);
        }
        match self.phase {
            Phase::Io { .. } => match self.key_value(entry, data, whole, arrived) {
                Ok(work) => self.ready.push_back(Work { held, ..work }),
                Err(status) => self.refuse(entry, status, arrived),
            },
            Phase::Admin { .. } => self.admin(entry, whole.as_deref().unwrap_or(data), arrived),
            Phase::Fresh | Phase::Greeted | Phase::Ended => {
                self.refuse(entry, Status::CommandSequenceError, arrived);
            }
        }
    }

    fn key_value(
        &self,
        entry: &SubmissionEntry,
        data: &[u8],
        whole: Option<Arc<[u8]>>,
        arrived: Nanos,
    ) -> Result<Work, Status> {
        let mut command = KvCommand::from_entry(entry)?;
        let mut value = None;
        match &mut command {
            KvCommand::Store { value_bytes, .. } => {
                let value_bytes = *value_bytes as usize;
                let length_bytes = whole.as_ref().map_or(data.len(), |whole| whole.len());
                self.check_store(&command, length_bytes as u32)?;
                value = Some(whole.unwrap_or_else(|| data[..value_bytes].into()));
            }
            KvCommand::Retrieve { buffer_bytes, .. } | KvCommand::List { buffer_bytes, .. } => {
                // The host's buffer is as long as its descriptor says.
                if *buffer_bytes > room_bytes(entry) {
                    return Err(Status::SglLengthInvalid);
                }
            }
            KvCommand::Flush | KvCommand::Delete { .. } | KvCommand::Exist { .. } => {}
        }
        let (command_id, namespace) = (entry.command_id.get(), entry.namespace.get());
        let serial = kvssd_nvme_spec::numbered::serial(entry);
        Ok(Work { command_id, namespace, command, serial, value, arrived, held: None })
    }

    fn fabrics(&mut self, entry: &SubmissionEntry, data: &[u8], now: Nanos) -> Outcome {
        let command = FabricsCommand::from(entry);
        match (&self.phase, command) {
            (Phase::Greeted, FabricsCommand::Connect(command)) => {
                let connected = connect(&self.subsystem, &command, data, now)?;
                self.queue.resize(connected.entries);
                self.phase = connected.phase;
                Ok(connected.done)
            }
            (Phase::Fresh | Phase::Greeted | Phase::Ended, _) | (_, FabricsCommand::Connect(_)) => {
                Err(Status::CommandSequenceError.into())
            }
            (Phase::Admin { controller, .. }, FabricsCommand::PropertyGet { offset, is_wide }) => {
                let mut controller = lock(controller);
                controller.hear(now);
                Ok(Done::with_result(controller.property(offset, is_wide)?))
            }
            (Phase::Admin { controller, .. }, FabricsCommand::PropertySet { offset, is_wide, value }) => {
                let mut locked = lock(controller);
                locked.hear(now);
                if locked.set_property(offset, is_wide, value)? {
                    tracing::info!(controller = locked.id, "a host shuts its controller down");
                    drop(locked);
                    // What has been answered is safe already; a host that shuts down may expect it to be written out, too.
                    let flushed = self.subsystem.with_drive(|drive| drive.execute(Command::Flush));
                    if !matches!(flushed, Some(Ok(_))) {
                        return Err(Status::InternalError.into());
                    }
                    lock(controller).shut_down();
                }
                Ok(Done::default())
            }
            (Phase::Io { .. }, FabricsCommand::Disconnect { format: 0 }) => {
                self.leave();
                Ok(Done::default())
            }
            (Phase::Io { .. }, FabricsCommand::Disconnect { .. }) => Err(Status::ConnectIncompatibleFormat.into()),
            (_, FabricsCommand::Other { .. }) => Err(Status::InvalidField.into()),
            _ => Err(Status::InvalidField.into()),
        }
    }

    fn admin(&mut self, entry: &SubmissionEntry, data: &[u8], now: Nanos) {
        let Phase::Admin { controller, .. } = &self.phase else { return };
        let controller = Arc::clone(controller);
        let mut controller = lock(&controller);
        let command = AdminCommand::from(entry);
        let outcome = match command {
            AdminCommand::AsynchronousEventRequest => {
                controller.hear(now);
                match controller.request_event(entry.command_id.get(), now) {
                    // It is answered when something happens.
                    Ok(()) => return,
                    Err(status) => Err(status.into()),
                }
            }
            AdminCommand::Abort { queue_id, command_id } => {
                controller.hear(now);
                // Everything else is over so soon that there is nothing to abort.
                let aborted = (queue_id == 0).then(|| controller.abort_event_request(command_id)).flatten();
                let result = if aborted.is_some() { 0 } else { NOT_ABORTED };
                self.output.answers.extend(aborted);
                Ok(Done::with_result(result))
            }
            _ => Admin {
                subsystem: &self.subsystem,
                controller: &mut controller,
                local: self.local,
                now,
                namespace: entry.namespace.get(),
                data,
                room_bytes: room_bytes(entry) as usize,
            }
            .perform(&command),
        };
        let answer = Answer::new(entry.command_id.get(), Kind::Admin, now, outcome);
        if is_noteworthy(&answer) {
            controller.note_error(0, &answer);
        }
        self.output.answers.push(answer);
    }

    fn answer(&mut self, entry: &SubmissionEntry, kind: Kind, outcome: Outcome, arrived: Nanos) {
        self.output.answers.push(Answer::new(entry.command_id.get(), kind, arrived, outcome));
    }

    fn refuse(&mut self, entry: &SubmissionEntry, status: Status, arrived: Nanos) {
        let kind = self.kind_of(entry);
        let answer = Answer::new(entry.command_id.get(), kind, arrived, Err(status.into()));
        let (controller, queue) = match &self.phase {
            Phase::Admin { controller, .. } => (Some(controller), 0),
            Phase::Io { controller, queue, .. } => (Some(controller), *queue),
            Phase::Fresh | Phase::Greeted | Phase::Ended => (None, 0),
        };
        if let Some(controller) = controller.filter(|_| is_noteworthy(&answer)) {
            lock(controller).note_error(queue, &answer);
        }
        self.output.answers.push(answer);
    }

    fn kind_of(&self, entry: &SubmissionEntry) -> Kind {
        match (entry.opcode, &self.phase) {
            (FABRICS_OPCODE, _) => Kind::Fabrics,
            (_, Phase::Io { .. }) => KvCommand::from_entry(entry).map_or(Kind::Other, |command| Kind::of(&command)),
            _ => Kind::Admin,
        }
    }
}

/// Whether data goes to the controller.
fn brings_data(entry: &SubmissionEntry) -> bool {
    let direction = if entry.opcode == FABRICS_OPCODE { entry.namespace.get() as u8 } else { entry.opcode };
    direction & 0b11 == TO_CONTROLLER
}

/// Bytes that the host has room for.
fn room_bytes(entry: &SubmissionEntry) -> u32 {
    match DataPointer::from(entry.data) {
        DataPointer::Transport { length_bytes } => length_bytes,
        DataPointer::InCapsule { .. } | DataPointer::Other { .. } => 0,
    }
}
