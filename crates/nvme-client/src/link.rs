//! The association that all threads of a client share, made again when it is lost.
//!
//! ```text
//!   execute  ->  association (connected now, or again)  ->  request  ->  completion: done | again, a little later
//!      ^                                                                 |
//!      +------- lost: sent again, or in doubt ---------------------------+
//! ```
//!
//! Which command is sent again when its completion was lost: `retransmission.rs`.

use crate::Error;
use crate::association::Association;
use crate::failure::Failure;
use crate::host_identity::HostIdentity;
use crate::meant::Meant;
use crate::request::{Outcome, Request, outcome};
use crate::retransmission::{Clearance, Retransmission};
use crate::serials::Serials;
use crate::time_left::Deadline;
use crate::url::DriveUrl;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::named::NamespaceEntry;
use kvssd_runtime::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use kvssd_runtime::thread::{self, ThreadId, sleep};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::{Command, NamespaceId, Reply};

/// Wait after the first failed connect; it doubles with each.
const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// How long a drive is tried again that turns a host away which comes for the first time. An estimate: what ends connections at once may be no
/// drive at all.
const TURNED_AWAY_MAX: Duration = Duration::from_secs(5);
/// Wait between these tries. An estimate: other hosts come and go meanwhile.
const TURNED_AWAY_PAUSE: Duration = Duration::from_millis(100);
/// Wait before a command is sent again that the drive did not execute.
pub(crate) const RETRY_DELAY: Duration = Duration::from_millis(10);

/// What the threads of a client share.
pub(crate) struct Link {
    pub(crate) url: DriveUrl,
    host: HostIdentity,
    pub(crate) is_read_only: bool,
    pub(crate) serials: Arc<Serials>,
    /// Which namespaces ids mean.
    pub(crate) meant: Arc<Meant>,
    state: Mutex<State>,
    /// Signals that an attempt to connect has ended.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    association: Option<Arc<Association>>,
    /// The thread that connects now, without the lock.
    connecting: Option<ThreadId>,
    /// Failed connects in a row, why there is no connection now, and when the next may be tried.
    failures: u32,
    failure: String,
    not_before: Option<Instant>,
}

/// A command's own result. An error beside it says that the drive gives none any more.
pub(crate) type CommandResult = Result<Option<Reply>, Error>;

impl Link {
    /// Connects to the drive at `url`, which must be there now. A connection that is cut before all is known is made again, as later; one that
    /// is turned away for [`TURNED_AWAY_MAX`].
    pub(crate) fn connect(url: &DriveUrl, is_read_only: bool) -> Result<Link, Error> {
        let host = HostIdentity::new(url.host_nqn.as_deref(), url.credentials()?, url.tls_key()?);
        let host = host.map_err(|error| Error::Io(format!("{url}: there are no random numbers: {error}")))?;
        let (serials, meant, state, changed) = Default::default();
        let link = Link { url: url.clone(), host, is_read_only, serials, meant, state, changed };
        let deadline = &link.deadline();
        let turned_away_until = Instant::now() + TURNED_AWAY_MAX;
        loop {
            match link.establish(deadline) {
                Ok(association) => link.lock().association = Some(Arc::new(association)),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Lost(lost)) if lost.is_cut => _ = link.association(deadline)?,
                Err(Failure::Lost(lost)) => {
                    let is_over = deadline.is_over() || Instant::now() >= turned_away_until;
                    if !lost.is_turned_away || is_over {
                        return Err(link.unreachable(&lost.why));
                    }
                    sleep(TURNED_AWAY_PAUSE.min(deadline.wait_max()));
                    deadline.ask();
                    continue;
                }
            }
            return Ok(link);
        }
    }

    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::of_caller(self.url.timeout)
    }

    pub(crate) fn execute(&self, namespace: NamespaceId, command: &Command<'_>) -> CommandResult {
        if self.is_read_only && command.is_change() {
            return Err(Error::ReadOnly);
        }
        let mut retransmission = Retransmission::new(command);
        self.reply_to(namespace, command, &mut retransmission)
            .map_err(|error| retransmission.doubt(&self.url, error))?
            .map_err(|error| self.explain(namespace, &retransmission, error))
    }

    /// Why a command on a namespace was refused: of one that is not there any more a drive says no more than that a field is
    /// wrong. It does not say whether a copy came before that end, or before the host lost the right to it.
    pub(crate) fn explain(&self, namespace: NamespaceId, retransmission: &Retransmission, refused: Error) -> Error {
        if !matches!(refused, Error::Refused(_)) {
            return refused;
        }
        let is_it = |entry: &NamespaceEntry| entry.number.get() == namespace.0;
        let gone = match self.query(Association::named) {
            Ok(Some(listed)) if !listed.iter().any(is_it) => {
                Some(self.meant.check(namespace).err().unwrap_or_else(|| Error::NoNamespace(namespace.to_string())))
            }
            _ => self.meant.check(namespace).err(),
        };
        retransmission.doubt(&self.url, gone.unwrap_or(refused))
    }

    /// The drive's reply; the outer error says why none comes any more.
    fn reply_to(
        &self,
        namespace: NamespaceId,
        command: &Command<'_>,
        retransmission: &mut Retransmission,
    ) -> Result<CommandResult, Error> {
        let deadline = &self.deadline();
        let mut meant = None;
        loop {
            let association = self.association(deadline)?;
            let limits = association.limits(namespace, deadline);
            let Some(limits) = self.unless_lost(&association, limits, deadline)? else { continue };
            if *meant.get_or_insert(limits.place) != limits.place {
                // Another thread has deleted it meanwhile.
                return Err(Error::NoNamespace(namespace.to_string()));
            }
            let mut request = Request::new(command.clone(), limits)?;
            if let Command::Delete { key } = *command
                && !limits.delete_needs_key
                && self.execute(namespace, &Command::Exist { key })?.is_none()
            {
                return Ok(Ok(None));
            }
            match retransmission.prepare(association.recognition, &self.serials, &mut request.entry) {
                Clearance::Send => {}
                Clearance::Wait => {
                    self.check_deadline(deadline, "it does not answer older changes")?;
                    self.serials.wait(RETRY_DELAY);
                    continue;
                }
                Clearance::Never => return Err(self.unreachable("the drive does not know any more what it has done")),
            }
            if let Some(result) = self.attempt(&association, namespace, &request, retransmission, deadline)? {
                return Ok(result);
            }
        }
    }

    /// Sends a command once; `None` when it is to be sent again.
    fn attempt(
        &self,
        association: &Arc<Association>,
        namespace: NamespaceId,
        request: &Request,
        retransmission: &mut Retransmission,
        deadline: &Deadline,
    ) -> Result<Option<CommandResult>, Error> {
        let completion = match association.io.call(&request.entry, &request.payload, deadline) {
            Ok(completion) => completion,
            Err(lost) => {
                self.lose(association, &lost.why);
                if !lost.is_unsent {
                    retransmission.completion_lost(association.recognition);
                }
                if !retransmission.is_allowed() {
                    return Err(self.unreachable(&lost.why));
                }
                return self.check_deadline(deadline, &lost.why).map(|()| None);
            }
        };
        let status = match outcome(request.operation, completion, namespace) {
            Outcome::Done(result) => return Ok(Some(result)),
            Outcome::RetryLater(status) => status,
            Outcome::Reconnect(status) => {
                self.lose(association, &says(status));
                if status == Status::RequestForgotten && retransmission.may_be_executed() {
                    return Err(self.unreachable_for(status));
                }
                status
            }
        };
        if deadline.is_over_in(RETRY_DELAY) {
            return Err(self.unreachable_for(status));
        }
        sleep(RETRY_DELAY);
        Ok(None)
    }

    pub(crate) fn check_deadline(&self, deadline: &Deadline, why: &str) -> Result<(), Error> {
        if deadline.is_over() { Err(self.unreachable(why)) } else { Ok(()) }
    }

    /// Asks the controller for something that changes nothing.
    pub(crate) fn query<T>(&self, query: impl Fn(&Association, &Deadline) -> Result<T, Failure>) -> Result<T, Error> {
        let deadline = &self.deadline();
        loop {
            let association = self.association(deadline)?;
            if let Some(found) = self.unless_lost(&association, query(&association, deadline), deadline)? {
                return Ok(found);
            }
        }
    }

    /// The result of an admin command; `None` when the connection was lost and there is time to try again.
    pub(crate) fn unless_lost<T>(
        &self,
        association: &Arc<Association>,
        result: Result<T, Failure>,
        deadline: &Deadline,
    ) -> Result<Option<T>, Error> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Failure::Final(error)) => Err(error),
            Err(Failure::Lost(lost)) => {
                self.lose(association, &lost.why);
                self.check_deadline(deadline, &lost.why).map(|()| None)
            }
        }
    }

    /// The association, connected again if it is lost. Threads that come meanwhile wait for the one that connects.
    pub(crate) fn association(&self, deadline: &Deadline) -> Result<Arc<Association>, Error> {
        loop {
            deadline.ask();
            let mut state = self.lock();
            if let Some(association) = &state.association {
                return Ok(association.clone());
            }
            if deadline.is_over() {
                return Err(self.unreachable(&state.failure));
            }
            let myself = thread::current().id();
            if state.connecting == Some(myself) {
                // Code that runs where a deadline asks would wait for the call that it interrupts.
                return Err(self.unreachable("this thread connects to it already"));
            }
            let back_off = state.not_before.and_then(|moment| moment.checked_duration_since(Instant::now()));
            let wait = state.connecting.map_or(back_off, |_| Some(deadline.wait_max()));
            if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
                drop(self.changed.wait_timeout(state, wait.min(deadline.wait_max())));
                continue;
            }
            state.connecting = Some(myself);
            drop(state);
            let mut connected = self.establish(deadline);
            if matches!(connected, Err(Failure::Final(_))) && !deadline.is_over_in(BACK_OFF_MIN) {
                // A handshake that was damaged on its way looks like another key: who was served before asks once more.
                sleep(BACK_OFF_MIN);
                connected = self.establish(deadline);
            }
            if let Some(association) = self.connection_made(connected)? {
                return Ok(association);
            }
        }
    }

    fn establish(&self, deadline: &Deadline) -> Result<Association, Failure> {
        let association = Association::connect(&self.url, &self.host, self.is_read_only, &self.meant, deadline);
        association.map_err(|failure| failure.at(&self.url))
    }

    /// Notes what came of an attempt to connect. None is to be tried again.
    fn connection_made(&self, connected: Result<Association, Failure>) -> Result<Option<Arc<Association>>, Error> {
        let mut state = self.lock();
        state.connecting = None;
        self.changed.notify_all();
        match connected {
            Ok(association) => {
                let association = Arc::new(association);
                *state = State { association: Some(association.clone()), ..State::default() };
                Ok(Some(association))
            }
            Err(Failure::Final(error)) => Err(error),
            Err(Failure::Lost(lost)) => {
                let back_off = BACK_OFF_MIN.saturating_mul(1 << state.failures.min(10)).min(BACK_OFF_MAX);
                state.failures += 1;
                state.failure = lost.why;
                state.not_before = Some(Instant::now() + back_off);
                Ok(None)
            }
        }
    }

    /// The association, if there is one now.
    pub(crate) fn connected(&self) -> Option<Arc<Association>> {
        self.lock().association.clone()
    }

    /// Takes the association out, so that nobody uses it any more.
    pub(crate) fn disconnect(&self) -> Option<Arc<Association>> {
        self.lock().association.take()
    }

    /// Notes that an association is lost, and why: who waits for another one may have nothing else to tell.
    pub(crate) fn lose(&self, association: &Arc<Association>, why: &str) {
        let mut state = self.lock();
        if state.association.take_if(|current| Arc::ptr_eq(current, association)).is_some() {
            why.clone_into(&mut state.failure);
        }
    }

    pub(crate) fn unreachable(&self, why: &str) -> Error {
        Error::Unreachable(format!("{}: {why}", self.url))
    }

    pub(crate) fn unreachable_for(&self, status: Status) -> Error {
        self.unreachable(&says(status))
    }

    /// A panic leaves the state whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A drive's status as a reason.
pub(crate) fn says(status: Status) -> String {
    format!("the drive says: {status}")
}
