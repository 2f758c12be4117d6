//! One TCP connection, which is one queue pair. Without a socket or a clock: bytes and times in, bytes out.
//!
//! ```text
//!   bytes -> InputBuffer -> Pdu::decode --+-> ICReq            -> digests are agreed on
//!                                         +-> command, data    -> fabrics, admin: executed at once
//!                                         |                       key value: ready --+
//!                                         +-> command, no data -> Transfers -> R2T   |
//!                                         +-> data             -> complete? ready ---+
//!                                                                                    v
//!   bytes <- Output <- completions <- delayed until they are due <- BurstRun: a burst, one commit
//! ```
//!
//! [`attend`](crate::attend) drives it: reads into [`Connection::input_buffer`] and tells [`Connection::received`], calls
//! [`Connection::process_input`] and [`Connection::produce_output`] with the time, writes [`Connection::output`] and tells [`Connection::sent`].
//!
//! What it does not do: wait.

mod authentication;
mod connect;
mod dispatch;
mod output;
mod submission_queue;
mod timers;
mod transfers;

use crate::buffer::InputBuffer;
use crate::command_kind::CommandKind;
use crate::completion::Completion;
use crate::controller::Controller;
use crate::hosts::Place;
use crate::io_command::{Burst, IoCommand};
use crate::limits::{CAPSULE_DATA_BYTES_MAX, OUTPUT_BYTES_MAX, PDU_DATA_BYTES_MAX, QUEUE_ENTRIES_MAX};
use crate::lock::lock;
use crate::memory::MemoryShare;
use crate::secured::{Proofs, Secured};
use crate::subsystem::burst_run::{BurstRun, Stopped};
use crate::subsystem::{OutputRoom, Subsystem};
use crate::view::View;
use kvssd_nvme_auth::ControllerSide;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::pdu::{Decoded, Fault, FaultStatus, Framing, IcRequest, IcResponse, Pdu, Sender};
use kvssd_runtime::sync::{Arc, Mutex};
use kvssd_types::Nanos;
use output::Output;
use std::collections::{BTreeSet, VecDeque};
use std::io::IoSlice;
use std::net::SocketAddr;
use submission_queue::SubmissionQueue;
use transfers::Transfers;

/// Offsets in an ICReq.
const AT_VERSION: u32 = 8;
const AT_ALIGNMENT: u32 = 10;
/// The largest HPDA.
const ALIGNMENT_MAX: u8 = 31;
/// The longest time between two checks of keep-alive, timeouts and events.
const TIMER_NS: Nanos = Nanos(200_000_000);

/// What a connection has become so far: an admin queue, an I/O queue, or neither yet.
enum Phase {
    AwaitingIcRequest,
    AwaitingConnect,
    /// The host is to prove who it is; then the connection is what it has connected to.
    Authenticating {
        connected: Box<Phase>,
        side: Box<ControllerSide>,
    },
    Admin {
        controller: Arc<Mutex<Controller>>,
        id: u16,
    },
    Io {
        controller: Arc<Mutex<Controller>>,
        id: u16,
        queue: u16,
        /// Of its controller, before the queue was connected.
        resets: u64,
    },
    /// Remaining output is sent; no more input is processed.
    Ended,
}

/// A connection and its queue pair.
pub struct Connection {
    subsystem: Arc<Subsystem>,
    /// Among the hosts' connections.
    place: Place,
    /// Numbers of namespaces that came in the place of others, which the host means until it looks.
    strange: BTreeSet<u32>,
    /// What its host had to prove itself by, if the queue is not one of a discovery controller.
    held_to: Option<Proofs>,
    /// What TLS has shown; `None` in the clear.
    secured: Option<Secured>,
    /// The target's address.
    local: SocketAddr,
    phase: Phase,
    framing: Framing,
    input: InputBuffer,
    needs_bytes: usize,
    /// The input has no whole PDU.
    needs_input: bool,
    queue: SubmissionQueue,
    transfers: Transfers,
    ready: VecDeque<IoCommand>,
    output: Output,
    /// The memory of the output.
    share: MemoryShare,
    /// Ready commands wait for the output of other connections, or until `opens`.
    is_stalled: bool,
    /// When the host may have its next command executed, which is ready.
    opens: Option<Nanos>,
    /// The keep-alive deadline that had passed at the last look. What came meanwhile is read before it ends the controller.
    overdue: Option<Nanos>,
    began: Nanos,
    /// It ended for another connection, before its host said its name.
    has_made_room: bool,
}

impl Connection {
    /// A connection that was accepted at `now`, on the target's address `local`.
    #[must_use]
    pub fn new(subsystem: Arc<Subsystem>, local: SocketAddr, now: Nanos) -> Self {
        subsystem.metrics.connections.inc();
        Connection {
            share: MemoryShare::empty(&subsystem.values_out),
            is_stalled: false,
            opens: None,
            overdue: None,
            place: subsystem.hosts.arrive(now),
            strange: BTreeSet::new(),
            held_to: None,
            secured: None,
            subsystem,
            local,
            phase: Phase::AwaitingIcRequest,
            framing: Framing::INITIAL,
            input: InputBuffer::default(),
            needs_bytes: 0,
            needs_input: true,
            queue: SubmissionQueue::new(QUEUE_ENTRIES_MAX),
            transfers: Transfers::default(),
            ready: VecDeque::new(),
            output: Output::default(),
            began: now,
            has_made_room: false,
        }
    }

    /// Notes what TLS has shown. What comes was said by that host to this subsystem, or is no Connect that is answered.
    pub fn secure(&mut self, secured: Secured) {
        self.secured = Some(secured);
    }

    /// Where to read bytes of the peer to.
    pub fn input_buffer(&mut self) -> &mut [u8] {
        self.input.spare(self.needs_bytes)
    }

    /// Notes that `count` bytes were read to [`Connection::input_buffer`].
    ///
    /// # Panics
    /// When it is shorter.
    pub fn received(&mut self, count: usize) {
        self.input.fill(count);
    }

    /// Whether to read more: not after the end, nor while too much output waits for the peer.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.has_ended() && !self.is_congested()
    }

    /// Whether [`Connection::process_input`] has something to do without more bytes.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.wants_input() && !self.is_stalled && !(self.ready.is_empty() && self.needs_input)
    }

    /// Decodes the input, and executes the commands that are ready.
    pub fn process_input(&mut self, now: Nanos) {
        self.check_rights(now);
        let mut input = std::mem::take(&mut self.input);
        self.needs_input = false;
        while self.wants_input() && !self.needs_input {
            match Pdu::decode(input.filled(), Sender::Host, &self.framing) {
                Ok(Decoded::Needs(bytes)) => {
                    self.needs_bytes = bytes;
                    self.needs_input = true;
                }
                Ok(Decoded::Pdu { pdu, bytes, is_data_intact }) => match self.process_pdu(&pdu, is_data_intact, now) {
                    Ok(()) => input.consume(bytes),
                    Err(fault) => self.terminate(fault, input.filled()),
                },
                Err(fault) => self.terminate(fault, input.filled()),
            }
        }
        self.input = input;
        self.execute(now);
    }

    /// Checks timers, requests data by R2T, and encodes the completions that are due.
    pub fn produce_output(&mut self, now: Nanos) {
        self.check_timers(now);
        // Values of a host that is to slow down wait there, not here.
        while self.opens.is_none()
            && let Some(request) = self.transfers.next_request(&self.subsystem.values_in, now)
        {
            self.output.push(&Pdu::ReadyToTransfer(request), &self.framing);
        }
        self.output.release(now, &self.framing, &mut self.queue, &self.subsystem.metrics);
        self.share.resize(self.output.len());
    }

    /// When to call [`Connection::produce_output`] again although nothing comes.
    #[must_use]
    pub fn next_timer(&self, now: Nanos) -> Nanos {
        let check_timers = now + TIMER_NS;
        [self.output.due(), self.opens].into_iter().flatten().fold(check_timers, Nanos::min)
    }

    /// The first bytes to send; none when there are none.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Bytes to send, in order, as far as they can be given to the system at once.
    #[must_use]
    pub fn output_parts(&self) -> Vec<IoSlice<'_>> {
        self.output.parts()
    }

    /// Drops the first `count` bytes of the output: they are sent.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn sent(&mut self, count: usize) {
        self.output.consume(count);
        self.share.resize(self.output.len());
    }

    /// Processes no more input. Commands that are not executed are given up: no host was told that they were.
    pub fn stop(&mut self) {
        self.ready.clear();
        self.transfers = Transfers::default();
        self.detach();
    }

    /// Whether no more input is processed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Whether it ended for another connection: its place, which is its thread's, is wanted at once.
    #[must_use]
    pub fn has_made_room(&self) -> bool {
        self.has_made_room
    }

    /// Whether all completions are sent.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.output.len() == 0 && self.output.due().is_none() && self.output.completions.is_empty()
    }

    fn is_congested(&self) -> bool {
        self.output.len() >= OUTPUT_BYTES_MAX
    }

    fn process_pdu(&mut self, pdu: &Pdu<'_>, is_data_intact: bool, now: Nanos) -> Result<(), Fault> {
        match (pdu, &self.phase) {
            (Pdu::Terminate { fault, .. }, _) => {
                tracing::warn!(%fault, "a host ended its connection");
                self.detach();
                Ok(())
            }
            (Pdu::IcRequest(request), Phase::AwaitingIcRequest) => self.initialize(request),
            (Pdu::IcRequest(_), _) | (_, Phase::AwaitingIcRequest) => Err(Fault::of(FaultStatus::Sequence)),
            (Pdu::Command { entry, data }, _) => {
                // More outstanding commands than entries.
                if self.queue.is_full() {
                    return Err(Fault::of(FaultStatus::Sequence));
                }
                self.process_command(entry, data, is_data_intact, now);
                Ok(())
            }
            (Pdu::Data { header, is_last, data, .. }, _) => {
                if let Some(complete) = self.transfers.receive(header, data, *is_last, is_data_intact, now)? {
                    self.process_transfer(complete, now);
                }
                Ok(())
            }
            // The decoder refuses what only controllers send.
            (Pdu::IcResponse(_) | Pdu::Response(_) | Pdu::ReadyToTransfer(_), _) => Err(Fault::header(0)),
        }
    }

    fn initialize(&mut self, request: &IcRequest) -> Result<(), Fault> {
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
        self.phase = Phase::AwaitingConnect;
        Ok(())
    }

    /// Ends the connection with a C2HTermReq that says why.
    fn terminate(&mut self, fault: Fault, pdu: &[u8]) {
        tracing::warn!(%fault, "a connection was ended for what its host sent");
        let header = &pdu[..pdu.len().min(24)];
        self.output.push(&Pdu::Terminate { sender: Sender::Controller, fault, header }, &self.framing);
        self.stop_for_fault();
    }

    /// As [`Connection::stop`], for what the peer has done or left undone.
    fn stop_for_fault(&mut self) {
        self.subsystem.metrics.faults.inc();
        self.stop();
    }

    /// Executes ready commands while there is room for their data, and looks at the host's rights whenever they have changed.
    fn execute(&mut self, now: Nanos) {
        (self.is_stalled, self.opens) = (false, None);
        while self.execute_burst(now) == Stopped::RightsChanged {
            self.check_rights(now);
        }
    }

    /// Executes ready commands.
    fn execute_burst(&mut self, now: Nanos) -> Stopped {
        let Phase::Io { controller, queue, resets, .. } = &self.phase else { return Stopped::Done };
        if self.ready.is_empty() || self.is_congested() {
            return Stopped::Done;
        }
        let locked = lock(controller);
        if !locked.serves(*resets) {
            // The host has reset the controller or shut it down, and awaits no completions.
            drop(locked);
            self.stop();
            return Stopped::Done;
        }
        let known = self.place.member().zip(self.place.known_rights());
        let Some((member, rights)) = known else { return Stopped::Done };
        let settings = locked.features.settings(Arc::clone(rights), self.place.generation());
        drop(locked);
        let paced = Some(&**member).filter(|_| rights.rate.is_bounded());
        let begin = self.output.completions.len();
        let free_bytes = OUTPUT_BYTES_MAX - self.output.len();
        let before = self.ready.len();
        let mut run = BurstRun {
            subsystem: &self.subsystem,
            burst: Burst::new(&mut self.ready, paced, now),
            room: OutputRoom { bytes: free_bytes, used_bytes: self.output.len(), share: &mut self.share },
            settings: &settings,
            completions: &mut self.output.completions,
        };
        let stopped = run.run();
        let stored_bytes = run.burst.stored_bytes;
        self.is_stalled = self.ready.len() == before;
        self.subsystem.metrics.bytes_in.inc_by(stored_bytes);
        if let Some(host) = paced {
            let got = self.output.completions[begin..].iter().map(|completion| completion.data.len() as u64).sum();
            host.take(0, got, now);
            self.opens = Some(host.opens(now)).filter(|opens| *opens > now && !self.ready.is_empty());
        }
        for completion in self.output.completions[begin..].iter().filter(|completion| is_logged(completion)) {
            lock(controller).log_error(*queue, completion);
        }
        stopped
    }

    /// The drive as the host sees it now.
    fn view(&self) -> Result<View<'_>, Status> {
        let rights = self.place.known_rights().ok_or(Status::ConnectInvalidHost)?;
        Ok(View { subsystem: &self.subsystem, rights, controller: self.controller_id() })
    }

    /// The number of the controller; 0 where there is none.
    fn controller_id(&self) -> u16 {
        match self.phase {
            Phase::Admin { id, .. } | Phase::Io { id, .. } => id,
            Phase::AwaitingIcRequest | Phase::AwaitingConnect | Phase::Authenticating { .. } | Phase::Ended => 0,
        }
    }

    /// Removes the queue from its controller, or the controller with its admin queue.
    fn detach(&mut self) {
        let phase = match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Authenticating { connected, .. } => *connected,
            phase => phase,
        };
        match phase {
            Phase::Admin { id, .. } => {
                tracing::info!(controller = id, "a host has gone");
                self.subsystem.remove_controller(id);
            }
            Phase::Io { controller, queue, resets, .. } => lock(&controller).disconnect(queue, resets),
            Phase::AwaitingIcRequest | Phase::AwaitingConnect | Phase::Authenticating { .. } | Phase::Ended => {}
        }
        // Those of the controller, if that was the last of it; none is idle at that time.
        self.subsystem.end_iterators(Nanos::ZERO);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.detach();
        self.subsystem.metrics.connections.dec();
    }
}

/// Whether a completion belongs into the error log. Whether a key exists is no error.
fn is_logged(completion: &Completion) -> bool {
    use kvssd_nvme_spec::Status::{KeyDoesNotExist, KeyExists, Success};
    !matches!(completion.status, Success | KeyDoesNotExist | KeyExists) && completion.kind != CommandKind::Fabrics
}
