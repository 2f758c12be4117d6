//! Dispatches commands to the admin, fabrics and I/O handlers.

use super::connect::connect;
use super::transfers::{CompleteTransfer, PendingTransfer};
use super::{Connection, Phase, is_logged};
use crate::admin::Admin;
use crate::command_kind::CommandKind;
use crate::completion::{Completion, Outcome, Success};
use crate::io_command::{IoCommand, scope_of};
use crate::lock::lock;
use crate::memory::MemoryShare;
use crate::status::absent;
use crate::view::View;
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::command::{DataPointer, FLAGS_SGL};
use kvssd_nvme_spec::fabrics::{FABRICS_OPCODE, FabricsCommand};
use kvssd_nvme_spec::identify::IDENTIFY_BYTES;
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::{Status, SubmissionEntry, extended, named};
use kvssd_types::{Command, NamespaceId, Nanos};
use std::sync::Arc;

/// Data transfer direction, bits 1:0 of an opcode: to the controller.
const TO_CONTROLLER: u8 = 0b01;
/// Abort, dword 0 of the completion, bit 0: the command was not aborted.
const NOT_ABORTED: u64 = 1;
/// The most data to the controller of an admin command.
const ADMIN_DATA_BYTES_MAX: u32 = IDENTIFY_BYTES as u32;
/// The birth by which a host means a namespace whose birth is not known.
const BIRTH_UNKNOWN: u32 = 0;

impl Connection {
    /// Processes a command capsule.
    pub(super) fn process_command(&mut self, entry: &SubmissionEntry, data: &[u8], is_intact: bool, now: Nanos) {
        self.queue.fetch();
        let command_id = entry.command_id.get();
        // SPDK's detach drops its event requests locally and uses their identifiers again.
        if !self.queue.begin(command_id) && !self.forgets_event_request(command_id) {
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
                    Ok(length_bytes) => {
                        let entry = self.bound(entry);
                        self.transfers.add(PendingTransfer { entry, length_bytes, arrived: now });
                    }
                    Err(status) => self.refuse(entry, status, now),
                }
            }
            DataPointer::Transport { .. } => self.dispatch(entry, &[], None, now),
            DataPointer::Other { .. } => self.refuse(entry, Status::SglTypeInvalid, now),
        }
    }

    /// The command with the birth of the namespace that it means: that which its number has now, if it does not say. It may come to be
    /// executed when another namespace has the number and the host knows that one, too.
    fn bound(&self, entry: &SubmissionEntry) -> SubmissionEntry {
        let mut bound = *entry;
        if matches!(self.phase, Phase::Io { .. })
            && named::meant_birth(entry).is_none()
            && let Some(birth) = self.subsystem.namespaces.birth(entry.namespace.get())
        {
            named::set_meant_birth(&mut bound, birth);
        }
        bound
    }

    /// Drops the outstanding Asynchronous Event Request of that identifier; returns whether there was one.
    fn forgets_event_request(&self, command_id: u16) -> bool {
        let Phase::Admin { controller, .. } = &self.phase else { return false };
        lock(controller).forget_event_request(command_id)
    }

    /// Processes a command whose data has come by R2T.
    pub(super) fn process_transfer(&mut self, complete: CompleteTransfer, now: Nanos) {
        let CompleteTransfer { entry, data, share, is_intact, arrived } = complete;
        if !is_intact {
            return self.refuse(&entry, Status::TransientTransportError, now);
        }
        self.dispatch(&entry, &[], Some((data, share)), arrived);
    }

    /// How much data to request by R2T: no more than the value has, though the host's buffer may be longer; an error if
    /// the command will fail anyway.
    fn wanted_bytes(&self, entry: &SubmissionEntry, length_bytes: u32) -> Result<u32, Status> {
        if !matches!(self.phase, Phase::Io { .. }) || entry.opcode == FABRICS_OPCODE {
            return if length_bytes > ADMIN_DATA_BYTES_MAX { Err(Status::InvalidField) } else { Ok(length_bytes) };
        }
        if !extended::is(entry.opcode) {
            let command = KvCommand::from_entry(entry)?;
            self.permit(entry)?;
            return Ok(self.check_store(&command, length_bytes)?.unwrap_or(length_bytes));
        }
        self.permit(entry)?;
        let mut wanted = extended::lead_bytes(entry) as u64;
        if entry.opcode == extended::opcode::STORE {
            let value_bytes = u64::from(entry.dword10.get());
            if value_bytes > self.subsystem.value_bytes_max {
                return Err(Status::InvalidValueSize);
            }
            wanted += value_bytes;
        }
        u32::try_from(wanted).ok().filter(|wanted| *wanted <= length_bytes).ok_or(Status::SglLengthInvalid)
    }

    fn permit(&self, entry: &SubmissionEntry) -> Result<(), Status> {
        let kind = CommandKind::of_opcode(entry.opcode);
        self.permit_on(entry.namespace.get(), named::meant_birth(entry), kind)
    }

    fn permit_on(&self, namespace: u32, meant: Option<u32>, kind: CommandKind) -> Result<(), Status> {
        let is_another = match meant {
            Some(birth) if birth != BIRTH_UNKNOWN => self.subsystem.namespaces.birth(namespace) != Some(birth),
            Some(_) => self.strange.contains(&namespace) || self.subsystem.namespaces.birth(namespace) != meant,
            None => self.strange.contains(&namespace),
        };
        // The one that the host means is gone.
        if is_another {
            return Err(absent(namespace));
        }
        self.view()?.permit(namespace, kind)
    }

    /// The length of a Store's value, which must fit in the host's data and the drive; `None` of other commands.
    fn check_store(&self, command: &KvCommand, length_bytes: u32) -> Result<Option<u32>, Status> {
        let KvCommand::Store { value_bytes, .. } = *command else { return Ok(None) };
        if u64::from(value_bytes) > self.subsystem.value_bytes_max {
            return Err(Status::InvalidValueSize);
        }
        if length_bytes >= value_bytes { Ok(Some(value_bytes)) } else { Err(Status::SglLengthInvalid) }
    }

    /// Executes a command, or adds it to the ready ones. Its data is `data` from the capsule, or `whole` from a
    /// transfer.
    fn dispatch(
        &mut self,
        entry: &SubmissionEntry,
        data: &[u8],
        whole: Option<(Arc<[u8]>, MemoryShare)>,
        arrived: Nanos,
    ) {
        let (whole, share) = whole.unzip();
        if entry.opcode == FABRICS_OPCODE {
            let outcome = self.fabrics(entry, whole.as_deref().unwrap_or(data), arrived);
            return self.complete(entry, CommandKind::Fabrics, outcome, arrived);
        }
        match self.phase {
            Phase::Io { .. } => match self.key_value(entry, data, whole, arrived) {
                Ok(ready) => self.ready.push_back(IoCommand { share, ..ready }),
                Err(status) => self.refuse(entry, status, arrived),
            },
            Phase::Admin { .. } => self.admin(entry, whole.as_deref().unwrap_or(data), arrived),
            Phase::Authenticating { .. } => self.refuse(entry, Status::AuthenticationRequired, arrived),
            Phase::AwaitingIcRequest | Phase::AwaitingConnect | Phase::Ended => {
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
    ) -> Result<IoCommand, Status> {
        if extended::is(entry.opcode) {
            self.permit(entry)?;
        }
        let all = whole.as_deref().unwrap_or(data);
        let command = KvCommand::decode(entry, all)?;
        self.permit(entry)?;
        let mut value = None;
        match &command {
            KvCommand::Store { value_bytes, .. } => {
                let (lead_bytes, value_bytes) = (extended::lead_bytes(entry), *value_bytes as usize);
                self.check_store(&command, all.len().saturating_sub(lead_bytes) as u32)?;
                value = Some(match whole {
                    Some(whole) if lead_bytes == 0 => whole,
                    _ => all[lead_bytes..][..value_bytes].into(),
                });
            }
            KvCommand::Retrieve { buffer_bytes, .. }
            | KvCommand::List { buffer_bytes, .. }
            | KvCommand::ListLong { buffer_bytes, .. }
            | KvCommand::Iterate { buffer_bytes, .. } => {
                // The SGL says how long the host's buffer is, unless it is that of a key in the capsule.
                let is_both_ways = extended::is(entry.opcode) && extended::lead_bytes(entry) > 0;
                if !is_both_ways && *buffer_bytes > room_bytes(entry) {
                    return Err(Status::SglLengthInvalid);
                }
            }
            KvCommand::Flush
            | KvCommand::Delete { .. }
            | KvCommand::Exist { .. }
            | KvCommand::CreateIterator(_)
            | KvCommand::DestroyIterator { .. } => {}
        }
        let (command_id, namespace) = (entry.command_id.get(), entry.namespace.get());
        let (serial, meant) = (kvssd_nvme_spec::numbered::serial(entry), named::meant_birth(&self.bound(entry)));
        let scope = scope_of(namespace, &command, self.subsystem.partitions());
        Ok(IoCommand { command_id, namespace, meant, command, serial, value, arrived, share: None, scope })
    }

    /// Refuses the commands that wait and are on what the host may not use any more.
    pub(super) fn refuse_ready(&mut self, now: Nanos) {
        for ready in std::mem::take(&mut self.ready) {
            let kind = CommandKind::of(&ready.command);
            match self.permit_on(ready.namespace, ready.meant, kind) {
                Ok(()) => self.ready.push_back(ready),
                Err(status) => {
                    let completion = Completion::new(ready.command_id, kind, now, Err(status.into()));
                    self.output.completions.push(completion);
                }
            }
        }
    }

    fn fabrics(&mut self, entry: &SubmissionEntry, data: &[u8], now: Nanos) -> Outcome {
        let command = FabricsCommand::from(entry);
        match (&self.phase, command) {
            (Phase::AwaitingConnect, FabricsCommand::Connect(command)) => {
                let connected = connect(&self.subsystem, &mut self.place, self.secured.as_ref(), &command, data, now)?;
                self.queue.resize(connected.entries);
                self.phase = connected.phase;
                self.held_to = connected.held_to;
                self.note_strange();
                Ok(connected.done)
            }
            (Phase::Authenticating { .. }, FabricsCommand::AuthenticationSend(security)) => {
                self.authentication_send(security, data)
            }
            (Phase::Authenticating { .. }, FabricsCommand::AuthenticationReceive(security)) => {
                self.authentication_receive(security, room_bytes(entry))
            }
            (Phase::Authenticating { .. }, _) => Err(Status::AuthenticationRequired.into()),
            (Phase::AwaitingIcRequest | Phase::AwaitingConnect | Phase::Ended, _) | (_, FabricsCommand::Connect(_)) => {
                Err(Status::CommandSequenceError.into())
            }
            (Phase::Admin { controller, .. }, FabricsCommand::PropertyGet { offset, is_wide }) => {
                let mut controller = lock(controller);
                controller.restart_keep_alive(now);
                Ok(Success::with_result(controller.property(offset, is_wide)?))
            }
            (Phase::Admin { controller, .. }, FabricsCommand::PropertySet { offset, is_wide, value }) => {
                let mut locked = lock(controller);
                locked.restart_keep_alive(now);
                let is_shutdown = locked.set_property(offset, is_wide, value)?;
                locked.take_forgotten().into_iter().for_each(|id| self.queue.complete(id));
                if is_shutdown {
                    tracing::info!(controller = locked.id, "a host shuts its controller down");
                    drop(locked);
                    // Completed changes are safe already. A host may expect a shutdown to flush as well.
                    let flushed =
                        self.subsystem.with_drive(|drive| drive.execute_in(NamespaceId::FIRST, Command::Flush));
                    if !matches!(flushed, Some(Ok(_))) {
                        return Err(Status::InternalError.into());
                    }
                    lock(controller).shut_down();
                }
                Ok(Success::default())
            }
            (Phase::Io { .. }, FabricsCommand::Disconnect { format: 0 }) => {
                self.detach();
                Ok(Success::default())
            }
            (Phase::Io { .. }, FabricsCommand::Disconnect { .. }) => Err(Status::ConnectIncompatibleFormat.into()),
            _ => Err(Status::InvalidField.into()),
        }
    }

    fn admin(&mut self, entry: &SubmissionEntry, data: &[u8], now: Nanos) {
        let Phase::Admin { controller, id } = &self.phase else { return };
        let (controller, id) = (Arc::clone(controller), *id);
        let mut controller = lock(&controller);
        let command = AdminCommand::from(entry);
        let Some(rights) = self.place.known_rights().cloned() else { return };
        let outcome = match command {
            AdminCommand::AsynchronousEventRequest => {
                controller.restart_keep_alive(now);
                match controller.add_event_request(entry.command_id.get(), now) {
                    // It completes with an event.
                    Ok(()) => return,
                    Err(status) => Err(status.into()),
                }
            }
            AdminCommand::Abort { queue_id, command_id } => {
                controller.restart_keep_alive(now);
                // Other commands complete before an Abort could reach them.
                let aborted = (queue_id == 0).then(|| controller.abort_event_request(command_id)).flatten();
                let result = if aborted.is_some() { 0 } else { NOT_ABORTED };
                self.output.completions.extend(aborted);
                Ok(Success::with_result(result))
            }
            _ => Admin {
                view: View { subsystem: &self.subsystem, rights: &rights, controller: id },
                controller: &mut controller,
                local: self.local,
                now,
                namespace: entry.namespace.get(),
                birth: named::meant_birth(entry),
                data,
                room_bytes: room_bytes(entry) as usize,
            }
            .perform(&command),
        };
        let completion = Completion::new(entry.command_id.get(), CommandKind::Admin, now, outcome);
        if is_logged(&completion) {
            controller.log_error(0, &completion);
        }
        self.output.completions.push(completion);
    }

    fn complete(&mut self, entry: &SubmissionEntry, kind: CommandKind, outcome: Outcome, arrived: Nanos) {
        self.output.completions.push(Completion::new(entry.command_id.get(), kind, arrived, outcome));
    }

    fn refuse(&mut self, entry: &SubmissionEntry, status: Status, arrived: Nanos) {
        let kind = self.kind_of(entry);
        let completion = Completion::new(entry.command_id.get(), kind, arrived, Err(status.into()));
        let (controller, queue) = match &self.phase {
            Phase::Admin { controller, .. } => (Some(controller), 0),
            Phase::Io { controller, queue, .. } => (Some(controller), *queue),
            Phase::AwaitingIcRequest | Phase::AwaitingConnect | Phase::Authenticating { .. } | Phase::Ended => {
                (None, 0)
            }
        };
        if let Some(controller) = controller.filter(|_| is_logged(&completion)) {
            lock(controller).log_error(queue, &completion);
        }
        self.output.completions.push(completion);
    }

    fn kind_of(&self, entry: &SubmissionEntry) -> CommandKind {
        match (entry.opcode, &self.phase) {
            (FABRICS_OPCODE, _) => CommandKind::Fabrics,
            (opcode, Phase::Io { .. }) => CommandKind::of_opcode(opcode),
            _ => CommandKind::Admin,
        }
    }
}

/// Whether the command has data to the controller.
fn brings_data(entry: &SubmissionEntry) -> bool {
    let direction = if entry.opcode == FABRICS_OPCODE { entry.namespace.get() as u8 } else { entry.opcode };
    direction & 0b11 == TO_CONTROLLER
}

/// Length of the host's buffer.
fn room_bytes(entry: &SubmissionEntry) -> u32 {
    match DataPointer::from(entry.data) {
        DataPointer::Transport { length_bytes } => length_bytes,
        DataPointer::InCapsule { .. } | DataPointer::Other { .. } => 0,
    }
}
