//! A connection that threads share: one queue pair over one socket.
//!
//! ```text
//!   thread 1   submit, write | reads for all ........... its completion is there: makes thread 2 the reader | returns
//!   thread 2        submit, write | parked ............................................... reads for all ....
//!   thread 3             submit, write | parked ...... its completion was read: woken | returns
//! ```
//!
//! Who waits reads. A thread alone writes and reads itself, and wakes nobody. Of several, one reads for all and wakes
//! those whose completions came. What threads submit while one writes, that one writes, too.
//!
//! What it does not do: send anything again. After [`ConnectionLost`] the connection is gone for all.

use crate::channel::Channel;
use crate::connection_lost::ConnectionLost;
use crate::failure::Failure;
use crate::handshake;
use crate::queue_pair::{CommandId, Completion, Payload, QueueLimits, QueuePair};
use crate::time_left::{Deadline, is_timeout};
use crate::url::Digests;
use kvssd_nvme_auth::PresharedKey;
use kvssd_nvme_spec::SubmissionEntry;
use kvssd_runtime::Patience;
use kvssd_runtime::net::{Shutdown, SocketAddr};
use kvssd_runtime::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use kvssd_runtime::thread::{self, Thread};
use kvssd_runtime::time::Instant;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};

/// Size of the read buffer.
const READ_BYTES: usize = 256 << 10;
/// A buffer that is larger is not kept for the next write.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// A queue pair and its socket.
pub(crate) struct Connection {
    channel: Channel,
    state: Mutex<State>,
    /// Signals that the submission queue has room again.
    room: Condvar,
    /// Its lock is the right to read from the socket.
    reading: Mutex<Reading>,
    depth: usize,
}

/// What the thread that reads for all has.
struct Reading {
    buffer: Vec<u8>,
    patience: Patience,
}

struct State {
    queue_pair: QueuePair,
    /// Who waits for a completion, by command identifier.
    owners: Vec<Option<Thread>>,
    /// Threads that wait until the submission queue has room.
    waiting_for_room: usize,
    is_writing: bool,
    /// Kept, so that no write allocates.
    spare: Vec<u8>,
    lost: Option<ConnectionLost>,
}

/// A command of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Submission<T> {
    pub(crate) entry: SubmissionEntry,
    pub(crate) payload: Payload,
    pub(crate) tag: T,
}

/// Commands of which a thread keeps several outstanding.
pub(crate) struct Pipeline<T> {
    /// Not submitted yet.
    pub(crate) pending: VecDeque<Submission<T>>,
    /// Submitted. After a loss each may have been executed or not.
    pub(crate) outstanding: Vec<(CommandId, Submission<T>)>,
}

impl<T> Pipeline<T> {
    pub(crate) fn len(&self) -> usize {
        self.pending.len() + self.outstanding.len()
    }
}

/// The right to read from the socket, with its buffer.
type Reader<'a> = MutexGuard<'a, Reading>;

impl Connection {
    /// Connects to the first of those addresses that answers, by TLS where there are keys, and initializes the connection.
    pub(crate) fn connect(
        addresses: &[SocketAddr],
        keys: Option<Vec<PresharedKey>>,
        digests: Digests,
        limits: QueueLimits,
        deadline: &Deadline,
    ) -> Result<Connection, Failure> {
        let channel = Channel::open(handshake::connect(addresses, deadline)?, keys, deadline)?;
        let response = handshake::initialize(&channel, digests, deadline)?;
        let state = State {
            queue_pair: QueuePair::new(&response, limits).map_err(ConnectionLost::from)?,
            owners: (0..limits.depth).map(|_| None).collect(),
            waiting_for_room: 0,
            is_writing: false,
            spare: Vec::new(),
            lost: None,
        };
        let reading = Mutex::new(Reading { buffer: vec![0; READ_BYTES], patience: Patience::default() });
        let depth = limits.depth.into();
        Ok(Connection { channel, state: Mutex::new(state), room: Condvar::new(), reading, depth })
    }

    /// The most outstanding commands.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Executes one command.
    pub(crate) fn call(
        &self,
        entry: &SubmissionEntry,
        payload: &Payload,
        deadline: &Deadline,
    ) -> Result<Completion, ConnectionLost> {
        let mut state = self.lock_with_room(deadline)?;
        let id = state.submit(entry, payload).expect("the submission queue has room");
        self.write_out(state, &mut None, deadline)?;
        self.wait_for(deadline, |state| state.take(id))
    }

    /// Submits as many pending commands as there is room for, waits for at least one completion, and returns those that
    /// came.
    pub(crate) fn advance<T>(
        &self,
        pipeline: &mut Pipeline<T>,
        deadline: &Deadline,
    ) -> Result<Vec<(Submission<T>, Completion)>, ConnectionLost> {
        let Pipeline { pending, outstanding } = pipeline;
        let mut state = if outstanding.is_empty() { self.lock_with_room(deadline)? } else { self.lock() };
        // Threads that wait for room come first, except for one command.
        while outstanding.is_empty() || state.waiting_for_room == 0 {
            let Some(next) = pending.front() else { break };
            let Some(id) = state.submit(&next.entry, &next.payload) else { break };
            outstanding.extend(pending.pop_front().map(|next| (id, next)));
        }
        self.write_out(state, &mut None, deadline)?;
        self.wait_for(deadline, |state| {
            let mut completed = Vec::new();
            let mut index = 0;
            while index < outstanding.len() {
                match state.take(outstanding[index].0) {
                    Some(completion) => completed.push((outstanding.swap_remove(index).1, completion)),
                    None => index += 1,
                }
            }
            (!completed.is_empty()).then_some(completed)
        })
    }

    /// Reads for all threads, or waits for the one that does, until `poll` finds something.
    fn wait_for<A>(
        &self,
        deadline: &Deadline,
        mut poll: impl FnMut(&mut State) -> Option<A>,
    ) -> Result<A, ConnectionLost> {
        let mut reader: Option<Reader<'_>> = None;
        loop {
            if deadline.must_ask() {
                // Whoever is asked may need somebody to read.
                if reader.take().is_some() {
                    self.lock().wake_a_reader();
                }
                deadline.ask();
            }
            let mut state = self.lock();
            if let Some(found) = poll(&mut state) {
                if state.waiting_for_room > 0 {
                    self.room.notify_all();
                }
                if reader.take().is_some() {
                    state.wake_a_reader();
                }
                return Ok(found);
            }
            if let Some(lost) = &state.lost {
                return Err(lost.clone());
            }
            if deadline.is_over() {
                return Err(self.lose(state, ConnectionLost::new("it does not answer")));
            }
            // `poll` has seen all that was read: the reader held the lock meanwhile.
            if reader.is_none() {
                reader = self.try_become_reader();
            }
            // An R2T may have come, which asks for more of a value.
            self.write_out(state, &mut reader, deadline)?;
            match &mut reader {
                Some(reading) => self.read(reading)?,
                None => thread::park_timeout(deadline.wait_max()),
            }
        }
    }

    fn try_become_reader(&self) -> Option<Reader<'_>> {
        match self.reading.try_lock() {
            Ok(reader) => Some(reader),
            // Its contents are of one read only.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Reads once, waiting for at most [`POLL_INTERVAL`], and wakes the threads whose completions came.
    fn read(&self, reading: &mut Reading) -> Result<(), ConnectionLost> {
        let Reading { buffer, patience } = reading;
        let read = match self.read_awake(buffer, patience) {
            Some(read) => Ok(read),
            None => {
                let began = Instant::now();
                let read = (&self.channel).read(buffer);
                patience.slept(began.elapsed());
                read
            }
        };
        let mut state = self.lock();
        let State { queue_pair, owners, .. } = &mut *state;
        let received = match read {
            Ok(0) => Err(ConnectionLost { is_cut: true, ..ConnectionLost::new("it ended the connection") }),
            Ok(bytes) => {
                let myself = thread::current().id();
                let wake = |id: CommandId| {
                    if let Some(owner) = owners[id.index()].as_ref().filter(|owner| owner.id() != myself) {
                        owner.unpark();
                    }
                };
                queue_pair.receive(&buffer[..bytes], wake).map_err(ConnectionLost::from)
            }
            Err(error) if is_timeout(&error) => Ok(()),
            Err(error) => Err(error.into()),
        };
        received.map_err(|lost| self.lose(state, lost))
    }

    /// Reads what comes soon, without sleep, while that pays.
    fn read_awake(&self, buffer: &mut [u8], patience: &mut Patience) -> Option<usize> {
        let looked = patience.wait(|| match self.channel.try_read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            read => Some(read.ok()),
        });
        // An error is reported by the blocking read that follows.
        looked.flatten()
    }

    /// Writes the outgoing bytes, unless another thread does.
    fn write_out<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        reader: &mut Option<Reader<'a>>,
        deadline: &Deadline,
    ) -> Result<(), ConnectionLost> {
        if state.is_writing {
            return Ok(());
        }
        while !state.queue_pair.outgoing().is_empty() {
            let spare = std::mem::take(&mut state.spare);
            let mut bytes = std::mem::replace(state.queue_pair.outgoing(), spare);
            state.is_writing = true;
            drop(state);
            let written = self.write_all(&bytes, reader, deadline);
            state = self.lock();
            state.is_writing = false;
            if bytes.capacity() <= SPARE_BYTES_MAX {
                bytes.clear();
                state.spare = bytes;
            }
            if let Err(lost) = written {
                return Err(self.lose(state, lost));
            }
        }
        Ok(())
    }

    /// Writes those bytes. A peer that takes none may wait until somebody reads what it sends, so this reads in
    /// between.
    fn write_all<'a>(
        &'a self,
        mut bytes: &[u8],
        reader: &mut Option<Reader<'a>>,
        deadline: &Deadline,
    ) -> Result<(), ConnectionLost> {
        let held_before = reader.is_some();
        loop {
            match self.channel.write(&mut bytes) {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) if is_timeout(&error) => {
                    deadline.ask();
                    if deadline.is_over() {
                        return Err(ConnectionLost::new("it takes nothing"));
                    }
                    if reader.is_none() {
                        *reader = self.try_become_reader();
                    }
                    if let Some(buffer) = reader {
                        self.read(buffer)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !held_before && reader.take().is_some() {
            self.lock().wake_a_reader();
        }
        Ok(())
    }

    /// Waits until the submission queue has room.
    fn lock_with_room(&self, deadline: &Deadline) -> Result<MutexGuard<'_, State>, ConnectionLost> {
        let mut state = self.lock();
        loop {
            if let Some(lost) = &state.lost {
                return Err(ConnectionLost { is_unsent: true, ..lost.clone() });
            }
            if !state.queue_pair.is_full() {
                return Ok(state);
            }
            if deadline.is_over() {
                let lost = ConnectionLost::new("it answers none of the commands that fill its queue");
                return Err(ConnectionLost { is_unsent: true, ..self.lose(state, lost) });
            }
            state.waiting_for_room += 1;
            let waited = self.room.wait_timeout(state, deadline.wait_max());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting_for_room -= 1;
            if deadline.must_ask() {
                drop(state);
                deadline.ask();
                state = self.lock();
            }
        }
    }

    /// Ends the connection for all threads. The first reason counts.
    fn lose(&self, mut state: MutexGuard<'_, State>, lost: ConnectionLost) -> ConnectionLost {
        let lost = state.lost.get_or_insert(lost).clone();
        // The peer may have closed it already.
        let _ = self.channel.socket().shutdown(Shutdown::Both);
        state.owners.iter().flatten().for_each(Thread::unpark);
        drop(state);
        self.room.notify_all();
        lost
    }

    /// A panic leaves the state whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn submit(&mut self, entry: &SubmissionEntry, payload: &Payload) -> Option<CommandId> {
        let id = self.queue_pair.submit(entry, payload)?;
        self.owners[id.index()] = Some(thread::current());
        Some(id)
    }

    fn take(&mut self, id: CommandId) -> Option<Completion> {
        let completion = self.queue_pair.take(id)?;
        self.owners[id.index()] = None;
        Some(completion)
    }

    /// Wakes one of the other threads that wait for a completion, since nobody reads now.
    fn wake_a_reader(&self) {
        if self.queue_pair.is_idle() {
            return;
        }
        let myself = thread::current().id();
        let mut waiting = self.queue_pair.outstanding().filter_map(|id| self.owners[id.index()].as_ref());
        if let Some(other) = waiting.find(|owner| owner.id() != myself) {
            other.unpark();
        }
    }
}
