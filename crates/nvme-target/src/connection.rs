//! One TCP connection, which is one queue: bytes in, bytes out, without a socket or a clock.
//!
//! ```text
//!   bytes -> InputBuffer -> Pdu::decode --+-> ICReq            -> digests agreed on
//!                                         +-> command, data    -> fabrics, admin: answered at once
//!                                         |                       key value: Work ---+
//!                                         +-> command, no data -> Transfers -> R2T   |
//!                                         +-> data             -> whole? Work -------+
//!                                                                                    v
//!   bytes <- Output <- answers that are due <- held until their time <- Subsystem::execute: a burst, one commit
//! ```
//!
//! Who owns the socket reads into [`Connection::spare`], says so with [`Connection::received`], calls [`Connection::take_in`] and
//! [`Connection::give_out`] with the time of the moment, and sends [`Connection::output`].
//!
//! What it does not do: wait.

mod command_ids;
mod connect;
mod dispatch;
mod output;
mod transfers;

use crate::answer::{Answer, Kind, Work};
use crate::buffer::InputBuffer;
use crate::controller::Controller;
use crate::limits::{CAPSULE_DATA_BYTES_MAX, OUTPUT_BYTES_MAX, PDU_DATA_BYTES_MAX, QUEUE_ENTRIES_MAX};
use crate::memory::Held;
use crate::subsystem::{Room, Subsystem, lock};
use command_ids::CommandIds;
use kvssd_nvme_spec::pdu::{Decoded, Fault, FaultStatus, Framing, IcRequest, IcResponse, Pdu, Sender};
use kvssd_runtime::sync::{Arc, Mutex};
use kvssd_types::Nanos;
use output::Output;
use std::collections::VecDeque;
use std::net::SocketAddr;
use transfers::Transfers;

/// Offsets in an ICReq.
const AT_VERSION: u32 = 8;
const AT_ALIGNMENT: u32 = 10;
/// The largest HPDA.
const ALIGNMENT_MAX: u8 = 31;
/// At least so often a connection is looked at where nothing comes: whether its controller lives, and an event has happened.
const LOOK_NS: Nanos = Nanos(200_000_000);

/// What a connection is.
enum Phase {
    /// Before ICReq.
    Fresh,
    /// Before Connect.
    Greeted,
    /// An admin queue.
    Admin { controller: Arc<Mutex<Controller>>, id: u16 },
    /// An I/O queue.
    Io { controller: Arc<Mutex<Controller>>, queue: u16 },
    /// What is to be sent still is sent, and nothing more is taken.
    Ended,
}

/// A connection.
pub struct Connection {
    subsystem: Arc<Subsystem>,
    /// Where the host has reached the target.
    local: SocketAddr,
    phase: Phase,
    framing: Framing,
    input: InputBuffer,
    needs_bytes: usize,
    /// What has come is less than a PDU.
    is_starved: bool,
    queue: CommandIds,
    transfers: Transfers,
    ready: VecDeque<Work>,
    output: Output,
    /// The memory of what is to be sent.
    held: Held,
    /// Commands wait for that of other connections.
    is_stalled: bool,
    began: Nanos,
}

impl Connection {
    /// A connection to `subsystem` that was made at `now`, over the target's address `local`.
    #[must_use]
    pub fn new(subsystem: Arc<Subsystem>, local: SocketAddr, now: Nanos) -> Self {
        subsystem.metrics.connections.inc();
        Connection {
            held: Held::none(&subsystem.values_out),
            is_stalled: false,
            subsystem,
            local,
            phase: Phase::Fresh,
            framing: Framing::INITIAL,
            input: InputBuffer::default(),
            needs_bytes: 0,
            is_starved: true,
            queue: CommandIds::new(QUEUE_ENTRIES_MAX),
            transfers: Transfers::default(),
            ready: VecDeque::new(),
            output: Output::default(),
            began: now,
        }
    }

    /// Where bytes of the peer are to be put.
    pub fn spare(&mut self) -> &mut [u8] {
        self.input.spare(self.needs_bytes)
    }

    /// So many bytes were put there.
    ///
    /// # Panics
    /// When there was no room for so many.
    pub fn received(&mut self, count: usize) {
        self.input.fill(count);
    }

    /// Whether more bytes are wanted: not when it has ended, nor when answers wait that the peer does not take.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.has_ended() && !self.is_congested()
    }

    /// Whether there is something to do without more bytes, once there is room for what it gives.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.wants_input() && !self.is_stalled && !(self.ready.is_empty() && self.is_starved)
    }

    /// Understands what has come, and executes it, at the time `now`.
    pub fn take_in(&mut self, now: Nanos) {
        let mut input = std::mem::take(&mut self.input);
        self.is_starved = false;
        while self.wants_input() && !self.is_starved {
            match Pdu::decode(input.filled(), Sender::Host, &self.framing) {
                Ok(Decoded::Needs(bytes)) => {
                    self.needs_bytes = bytes;
                    self.is_starved = true;
                }
                Ok(Decoded::Pdu { pdu, bytes, is_data_intact }) => match self.take_pdu(&pdu, is_data_intact, now) {
                    Ok(()) => input.consume(bytes),
                    Err(fault) => self.terminate(fault, input.filled()),
                },
                Err(fault) => self.terminate(fault, input.filled()),
            }
        }
        self.input = input;
        self.execute(now);
    }

    /// Writes out the answers that are due at `now`, and looks whether time has run out.
    pub fn give_out(&mut self, now: Nanos) {
        self.look(now);
        while let Some(request) = self.transfers.next_request(&self.subsystem.values_in, now) {
            self.output.push(&Pdu::ReadyToTransfer(request), &self.framing);
        }
        self.output.release(now, &self.framing, &mut self.queue, &self.subsystem.metrics);
        self.held.set(self.output.len());
    }

    /// When it is to be looked at again, though nothing comes.
    #[must_use]
    pub fn wakes(&self, now: Nanos) -> Nanos {
        let look = now + LOOK_NS;
        self.output.due().map_or(look, |due| due.min(look))
    }

    /// What is to be sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// So many bytes were sent.
    ///
    /// # Panics
    /// When there were not so many.
    pub fn sent(&mut self, count: usize) {
        self.output.consume(count);
        self.held.set(self.output.len());
    }

    /// Takes nothing any more. Commands that wait for data, or for their turn, are given up: nobody was told that they were done.
    pub fn stop(&mut self) {
        self.ready.clear();
        self.transfers = Transfers::default();
        self.leave();
    }

    /// Whether nothing is taken any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Whether all answers are sent.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.output.len() == 0 && self.output.due().is_none() && self.output.answers.is_empty()
    }

    fn is_congested(&self) -> bool {
        self.output.len() >= OUTPUT_BYTES_MAX
    }

    fn take_pdu(&mut self, pdu: &Pdu<'_>, is_data_intact: bool, now: Nanos) -> Result<(), Fault> {
        match (pdu, &self.phase) {
            (Pdu::Terminate { fault, .. }, _) => {
                tracing::warn!(%fault, "a host ended its connection");
                self.leave();
                Ok(())
            }
            (Pdu::IcRequest(request), Phase::Fresh) => self.greet(request),
            (Pdu::IcRequest(_), _) | (_, Phase::Fresh) => Err(Fault::of(FaultStatus::Sequence)),
            (Pdu::Command { entry, data }, _) => {
                // A queue holds no more commands than it has entries for.
                if self.queue.is_full() {
                    return Err(Fault::of(FaultStatus::Sequence));
                }
                self.take_command(entry, data, is_data_intact, now);
                Ok(())
            }
            (Pdu::Data { header, is_last, data, .. }, _) => {
                if let Some(complete) = self.transfers.receive(header, data, *is_last, is_data_intact, now)? {
                    self.take_complete(complete, now);
                }
                Ok(())
            }
            // The decoder gives nothing that only controllers send.
            (Pdu::IcResponse(_) | Pdu::Response(_) | Pdu::ReadyToTransfer(_), _) => Err(Fault::header(0)),
        }
    }

    fn greet(&mut self, request: &IcRequest) -> Result<(), Fault> {
        if request.version.get() != 0 {
            return Err(Fault { status: FaultStatus::UnsupportedParameter, information: AT_VERSION });
        }
        if request.data_alignment > ALIGNMENT_MAX {
            return Err(Fault::header(AT_ALIGNMENT));
        }
        let (header_digest, data_digest) = request.digests();
        let data_digest = data_digest && self.subsystem.options.data_digest;
        let response = IcResponse::new(header_digest, data_digest, PDU_DATA_BYTES_MAX);
        self.output.push(&Pdu::IcResponse(response), &Framing::INITIAL);
        self.framing = Framing {
            header_digest,
            data_digest,
            data_alignment_bytes: (u32::from(request.data_alignment) + 1) * 4,
            capsule_data_bytes_max: CAPSULE_DATA_BYTES_MAX,
            data_bytes_max: PDU_DATA_BYTES_MAX,
        };
        self.phase = Phase::Greeted;
        Ok(())
    }

    /// Ends the connection for what the peer sent: it is told why.
    fn terminate(&mut self, fault: Fault, pdu: &[u8]) {
        tracing::warn!(%fault, "a connection was ended for what its host sent");
        self.subsystem.metrics.faults.inc();
        let header = &pdu[..pdu.len().min(24)];
        self.output.push(&Pdu::Terminate { sender: Sender::Controller, fault, header }, &self.framing);
        self.stop();
    }

    /// Executes commands that have all they need, as long as there is room for what they give.
    fn execute(&mut self, now: Nanos) {
        self.is_stalled = false;
        let Phase::Io { controller, queue, .. } = &self.phase else { return };
        if self.ready.is_empty() || self.is_congested() {
            return;
        }
        let locked = lock(controller);
        if !locked.is_ready() {
            // The host has reset it, or shut it down: it does not wait for these.
            drop(locked);
            return self.stop();
        }
        let wishes = locked.features.wishes();
        drop(locked);
        let begin = self.output.answers.len();
        let room_bytes = OUTPUT_BYTES_MAX - self.output.len();
        let before = self.ready.len();
        let (ready, mut stored_bytes) = (&mut self.ready, 0);
        let next = |has_room: bool| {
            ready.front().filter(|work| has_room || !work.gives_data())?;
            let work = ready.pop_front()?;
            stored_bytes += work.value.as_ref().map_or(0, |value| value.len() as u64);
            Some(work)
        };
        let room = Room { bytes: room_bytes, held_bytes: self.output.len(), held: &mut self.held };
        self.subsystem.execute(next, room, now, &wishes, &mut self.output.answers);
        self.is_stalled = self.ready.len() == before;
        self.subsystem.metrics.bytes_in.inc_by(stored_bytes);
        for answer in self.output.answers[begin..].iter().filter(|answer| is_noteworthy(answer)) {
            lock(controller).note_error(*queue, answer);
        }
    }

    /// Looks at what time brings.
    fn look(&mut self, now: Nanos) {
        let limits = self.subsystem.options.limits;
        let has_failed = self.subsystem.has_failed();
        if self.transfers.expires(limits.transfer_ns).is_some_and(|expires| now > expires) {
            tracing::warn!("a host did not send in time what it was asked for");
            self.subsystem.metrics.faults.inc();
            return self.stop();
        }
        match &self.phase {
            Phase::Fresh | Phase::Greeted => {
                if now > self.began + limits.connect_ns {
                    tracing::warn!("a peer did not connect in time");
                    self.subsystem.metrics.faults.inc();
                    self.stop();
                }
            }
            Phase::Admin { controller, id } => {
                let mut controller = lock(controller);
                if !controller.is_alive || controller.expires().is_some_and(|expires| now > expires) {
                    tracing::warn!(
                        controller = id,
                        host = controller.host.nqn,
                        "a host kept silent: its controller ends"
                    );
                    drop(controller);
                    self.subsystem.metrics.faults.inc();
                    return self.stop();
                }
                controller.look(has_failed);
                while let Some(answer) = controller.next_event() {
                    self.output.answers.push(answer);
                }
            }
            Phase::Io { controller, .. } => {
                if !lock(controller).is_ready() {
                    self.stop();
                }
            }
            Phase::Ended => {}
        }
    }

    /// It is no queue any more.
    fn leave(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Admin { id, .. } => {
                tracing::info!(controller = id, "a host has gone");
                self.subsystem.remove_controller(id);
            }
            Phase::Io { controller, queue, .. } => {
                lock(&controller).queues.remove(&queue);
            }
            Phase::Fresh | Phase::Greeted | Phase::Ended => {}
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
        self.subsystem.metrics.connections.dec();
    }
}

/// Whether an error belongs into the log: that a key is there or not is an answer.
fn is_noteworthy(answer: &Answer) -> bool {
    use kvssd_nvme_spec::Status::{KeyDoesNotExist, KeyExists, Success};
    !matches!(answer.status, Success | KeyDoesNotExist | KeyExists) && answer.kind != Kind::Fabrics
}
