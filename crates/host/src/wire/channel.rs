//! A queue that threads share, over a socket.
//!
//! ```text
//!   thread 1   submit, write | reads for all ............... its answer is there: makes thread 2 the reader | goes
//!   thread 2        submit, write | parked ............................................... reads for all ....
//!   thread 3             submit, write | parked ....... its answer was read: woken | goes
//! ```
//!
//! Who waits reads. A thread alone writes and reads itself, and no other thread is woken for it; of several, one reads for all
//! and wakes those whose answers came. What threads submit while one writes, that one writes, too.
//!
//! What it does not do: try anything again. After [`Lost`] the connection is gone for all.

use super::queue::{Answer, Breach, CommandId, Payload, Queue, QueueLimits};
use super::url::Digests;
use kvssd_runtime::net::{Shutdown, SocketAddr, TcpStream};
use kvssd_runtime::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use kvssd_runtime::thread::{self, Thread};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_spec::SubmissionEntry;
use kvssd_spec::pdu::{Decoded, Framing, IC_BYTES, IcRequest, Pdu, Sender};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};

/// How long a read or a write waits for the peer before the thread looks at the time, and at what others want.
const TICK: Duration = Duration::from_millis(25);
/// How long the reader stays awake for an answer. An estimate: on a machine with idle cores, to sleep and to be woken costs several times
/// what a command does.
const AWAKE: Duration = Duration::from_micros(50);
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// A buffer that is larger is not kept for the next write.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// Why a connection is no more.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) why: String,
    /// It was known before the command was sent.
    pub(crate) is_unsent: bool,
}

impl Lost {
    /// The connection was given up on this side.
    pub(crate) fn of(why: &str) -> Lost {
        Lost::here(why.to_owned())
    }

    fn here(why: String) -> Lost {
        Lost { why, is_unsent: false }
    }
}

impl From<std::io::Error> for Lost {
    fn from(error: std::io::Error) -> Self {
        Lost::here(error.to_string())
    }
}

impl From<Breach> for Lost {
    fn from(breach: Breach) -> Self {
        Lost::here(breach.to_string())
    }
}

/// A queue, and the socket that it is reached by.
pub(crate) struct Channel {
    socket: TcpStream,
    state: Mutex<State>,
    /// There is room again in the queue.
    room: Condvar,
    /// Held by the thread that reads: what it reads to.
    reader: Mutex<Vec<u8>>,
    depth: usize,
}

struct State {
    queue: Queue,
    /// Who waits for the answers, by the numbers of the commands.
    owners: Vec<Option<Thread>>,
    /// Threads that wait for room.
    wanting: usize,
    is_writing: bool,
    /// Kept, so that no write allocates.
    spare: Vec<u8>,
    lost: Option<Lost>,
}

/// A command of many.
#[derive(Clone, Debug)]
pub(crate) struct Call<T> {
    pub(crate) entry: SubmissionEntry,
    pub(crate) payload: Payload,
    /// What the caller knows it by.
    pub(crate) tag: T,
}

/// Commands that a thread gives all at once.
pub(crate) struct Pipeline<T> {
    /// Not given to the queue yet.
    pub(crate) coming: VecDeque<Call<T>>,
    /// Given to the queue. After a loss they may have been executed or not.
    pub(crate) under_way: Vec<(CommandId, Call<T>)>,
}

impl<T> Pipeline<T> {
    /// How many there are.
    pub(crate) fn commands(&self) -> usize {
        self.coming.len() + self.under_way.len()
    }
}

/// The right to read, and where to.
type Reader<'a> = MutexGuard<'a, Vec<u8>>;

impl Channel {
    /// Connects to the first of those addresses that answers, and agrees on how to talk.
    pub(crate) fn connect(
        addresses: &[SocketAddr],
        digests: Digests,
        limits: QueueLimits,
        deadline: Instant,
    ) -> Result<Channel, Lost> {
        let mut failed = Lost::here("the name of the host has no address".to_owned());
        for address in addresses {
            match TcpStream::connect_timeout(address, left(deadline)) {
                Ok(socket) => return Channel::begin(socket, digests, limits, deadline),
                Err(error) => failed = error.into(),
            }
        }
        Err(failed)
    }

    fn begin(mut socket: TcpStream, digests: Digests, limits: QueueLimits, deadline: Instant) -> Result<Channel, Lost> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(left(deadline)))?;
        socket.set_write_timeout(Some(TICK))?;
        let mut request = Vec::new();
        let wanted = IcRequest::new(digests.header, digests.data, 1);
        Pdu::IcRequest(wanted).encode(&Framing::INITIAL, &mut request);
        socket.write_all(&request)?;
        let mut response = [0; IC_BYTES];
        socket.read_exact(&mut response).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Lost::here("it does not answer".to_owned()),
            ErrorKind::UnexpectedEof => Lost::here("it ended the connection at once".to_owned()),
            _ => error.into(),
        })?;
        let decoded = Pdu::decode(&response, Sender::Controller, &Framing::INITIAL).map_err(Breach::from)?;
        let Decoded::Pdu { pdu: Pdu::IcResponse(response), .. } = decoded else {
            return Err(Lost::here("what answers there is no NVMe/TCP controller".to_owned()));
        };
        let granted = response.digests();
        if (granted.0 && !digests.header) || (granted.1 && !digests.data) {
            return Err(Lost::here("it insists on digests; add ?digest=header,data to the URL".to_owned()));
        }
        socket.set_read_timeout(Some(TICK))?;
        let state = State {
            queue: Queue::new(&response, limits)?,
            owners: (0..limits.depth).map(|_| None).collect(),
            wanting: 0,
            is_writing: false,
            spare: Vec::new(),
            lost: None,
        };
        let reader = Mutex::new(vec![0; READ_BYTES]);
        let depth = limits.depth.into();
        Ok(Channel { socket, state: Mutex::new(state), room: Condvar::new(), reader, depth })
    }

    /// Commands under way at a time.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Executes one command.
    pub(crate) fn call(&self, entry: &SubmissionEntry, payload: &Payload, deadline: Instant) -> Result<Answer, Lost> {
        let mut state = self.lock_with_room(deadline)?;
        let id = state.submit(entry, payload).expect("there is room");
        self.write_out(state, &mut None, deadline)?;
        self.drive(deadline, |state| state.take(id))
    }

    /// Gives the queue as many of the coming commands as it takes; waits for an answer at least, and gives those that are there.
    pub(crate) fn advance<T>(
        &self,
        pipeline: &mut Pipeline<T>,
        deadline: Instant,
    ) -> Result<Vec<(Call<T>, Answer)>, Lost> {
        let Pipeline { coming, under_way } = pipeline;
        let mut state = if under_way.is_empty() { self.lock_with_room(deadline)? } else { self.lock() };
        // Who waits for room comes first, but for one command.
        while under_way.is_empty() || state.wanting == 0 {
            let Some(call) = coming.front() else { break };
            let Some(id) = state.submit(&call.entry, &call.payload) else { break };
            under_way.extend(coming.pop_front().map(|call| (id, call)));
        }
        self.write_out(state, &mut None, deadline)?;
        self.drive(deadline, |state| {
            let mut answers = Vec::new();
            let mut index = 0;
            while index < under_way.len() {
                match state.take(under_way[index].0) {
                    Some(answer) => answers.push((under_way.swap_remove(index).1, answer)),
                    None => index += 1,
                }
            }
            (!answers.is_empty()).then_some(answers)
        })
    }

    /// Reads for all, or waits for who does, until `poll` finds what it looks for.
    fn drive<A>(&self, deadline: Instant, mut poll: impl FnMut(&mut State) -> Option<A>) -> Result<A, Lost> {
        let mut reader: Option<Reader<'_>> = None;
        loop {
            let mut state = self.lock();
            if let Some(found) = poll(&mut state) {
                if state.wanting > 0 {
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
            if Instant::now() >= deadline {
                return Err(self.lose(state, Lost::here("it does not answer".to_owned())));
            }
            // What was read before was looked through just now: who read it had the lock then.
            if reader.is_none() {
                reader = self.try_read();
            }
            // Reading may have asked for more of a value.
            self.write_out(state, &mut reader, deadline)?;
            match &mut reader {
                Some(buffer) => self.read(buffer)?,
                None => thread::park_timeout(left(deadline)),
            }
        }
    }

    fn try_read(&self) -> Option<Reader<'_>> {
        match self.reader.try_lock() {
            Ok(reader) => Some(reader),
            // What is in it does not matter.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Reads what is there, or waits a tick for it; wakes those whose answers it has.
    fn read(&self, buffer: &mut [u8]) -> Result<(), Lost> {
        let read = match self.read_awake(buffer) {
            Some(read) => Ok(read),
            None => (&self.socket).read(buffer),
        };
        let mut state = self.lock();
        let State { queue, owners, .. } = &mut *state;
        let received = match read {
            Ok(0) => Err(Lost::here("it ended the connection".to_owned())),
            Ok(bytes) => {
                let myself = thread::current().id();
                let wake = |id: CommandId| {
                    if let Some(owner) = owners[id.index()].as_ref().filter(|owner| owner.id() != myself) {
                        owner.unpark();
                    }
                };
                queue.receive(&buffer[..bytes], wake).map_err(Lost::from)
            }
            Err(error) if is_tick(&error) => Ok(()),
            Err(error) => Err(error.into()),
        };
        received.map_err(|lost| self.lose(state, lost))
    }

    /// Reads what comes within a moment, without sleep.
    fn read_awake(&self, buffer: &mut [u8]) -> Option<usize> {
        let until = Instant::now() + AWAKE;
        loop {
            // What is wrong, if anything is, the read that waits will say.
            match self.socket.try_read(buffer) {
                Ok(bytes) => return Some(bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => std::hint::spin_loop(),
                Err(_) => return None,
            }
        }
    }

    /// Writes what is to be sent, unless another thread does.
    fn write_out<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        reader: &mut Option<Reader<'a>>,
        deadline: Instant,
    ) -> Result<(), Lost> {
        if state.is_writing {
            return Ok(());
        }
        while !state.queue.outgoing().is_empty() {
            let spare = std::mem::take(&mut state.spare);
            let mut bytes = std::mem::replace(state.queue.outgoing(), spare);
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

    /// Writes those bytes. Where the peer takes nothing, it may wait for somebody to read what it sends.
    fn write_all<'a>(
        &'a self,
        mut bytes: &[u8],
        reader: &mut Option<Reader<'a>>,
        deadline: Instant,
    ) -> Result<(), Lost> {
        let held_before = reader.is_some();
        while !bytes.is_empty() {
            match (&self.socket).write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if is_tick(&error) => {
                    if Instant::now() >= deadline {
                        return Err(Lost::here("it takes nothing".to_owned()));
                    }
                    if reader.is_none() {
                        *reader = self.try_read();
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

    /// Waits until the queue has room.
    fn lock_with_room(&self, deadline: Instant) -> Result<MutexGuard<'_, State>, Lost> {
        let mut state = self.lock();
        loop {
            if let Some(lost) = &state.lost {
                return Err(Lost { is_unsent: true, ..lost.clone() });
            }
            if !state.queue.is_full() {
                return Ok(state);
            }
            if Instant::now() >= deadline {
                let lost = Lost::here("it answers none of the commands that fill its queue".to_owned());
                return Err(Lost { is_unsent: true, ..self.lose(state, lost) });
            }
            state.wanting += 1;
            let waited = self.room.wait_timeout(state, left(deadline));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.wanting -= 1;
        }
    }

    /// Ends the connection for all, for the reason that is the first one.
    fn lose(&self, mut state: MutexGuard<'_, State>, lost: Lost) -> Lost {
        let lost = state.lost.get_or_insert(lost).clone();
        // It may be gone already.
        let _ = self.socket.shutdown(Shutdown::Both);
        state.owners.iter().flatten().for_each(Thread::unpark);
        drop(state);
        self.room.notify_all();
        lost
    }

    /// What is in it is whole between any two statements that can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn submit(&mut self, entry: &SubmissionEntry, payload: &Payload) -> Option<CommandId> {
        let id = self.queue.submit(entry, payload)?;
        self.owners[id.index()] = Some(thread::current());
        Some(id)
    }

    fn take(&mut self, id: CommandId) -> Option<Answer> {
        let answer = self.queue.take(id)?;
        self.owners[id.index()] = None;
        Some(answer)
    }

    /// Wakes one of the others that wait for an answer, which nobody reads now.
    fn wake_a_reader(&self) {
        if self.queue.is_idle() {
            return;
        }
        let myself = thread::current().id();
        let mut waiting = self.queue.under_way().filter_map(|id| self.owners[id.index()].as_ref());
        if let Some(other) = waiting.find(|owner| owner.id() != myself) {
            other.unpark();
        }
    }
}

fn is_tick(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
