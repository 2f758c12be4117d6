//! A drive on the wire, reached again when the connection is lost.
//!
//! ```text
//!   execute  ->  session (connected now, or again)  ->  request  ->  answer: done | again, a little later
//!      ^                                                               |
//!      +------- lost: sent again, or in doubt -------------------------+
//! ```
//!
//! What is sent again when an answer was lost, and what is in doubt then: `copies.rs`.
//!
//! A delete that is made again because it was not made says whether the key was there then. A drive that does not tell whether a deleted key was
//! there (it refuses feature 20h) is asked just before; another host may come in between.

use super::copies::{Copies, Turn};
use super::request::{Outcome, Request, not_carried, outcome};
use super::serials::Serials;
use super::session::{HostIdentity, KEEP_ALIVE_INTERVAL, Session, Trouble};
use super::url::DriveUrl;
use crate::backend::Backend;
use crate::{Batch, Error, Stats};
use kvssd_flash::Owner;
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_runtime::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use kvssd_runtime::thread::{self, sleep};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_spec::Status;
use kvssd_types::{BatchChange, Command, NamespaceId, Reply, StoreCondition};

/// Between the first two tries to reach a drive again; doubles with each.
const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// Before a command that the drive did not want now is sent again.
pub(super) const AGAIN: Duration = Duration::from_millis(10);

/// A drive on the wire.
pub(crate) struct Remote {
    owner: Owner,
    link: Arc<Link>,
    ended: Arc<Ended>,
}

/// What is common to all threads that use a drive.
pub(super) struct Link {
    pub(super) url: DriveUrl,
    host: HostIdentity,
    pub(super) is_read_only: bool,
    /// The numbers of changes.
    pub(super) serials: Arc<Serials>,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    session: Option<Arc<Session>>,
    /// How often in a row it was not reached, why, and until when nobody tries.
    failures: u32,
    failure: String,
    not_before: Option<Instant>,
}

/// That the store is dropped.
#[derive(Default)]
struct Ended {
    is_ended: Mutex<bool>,
    changed: Condvar,
}

impl Remote {
    /// The drive at `url`, which must be there now.
    pub(crate) fn connect(url: &DriveUrl, is_read_only: bool) -> Result<Remote, Error> {
        let host = HostIdentity::new(url.host_nqn.as_deref());
        let host = host.map_err(|error| Error::Io { why: format!("{url}: there are no random numbers: {error}") })?;
        let (serials, state) = (Arc::default(), Mutex::default());
        let link = Link { url: url.clone(), host, is_read_only, serials, state };
        let session = match Session::connect(url, &link.host, is_read_only, link.deadline()) {
            Ok(session) => session,
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Lost(lost)) => return Err(link.unreachable(&lost.why)),
        };
        link.lock().session = Some(Arc::new(session));
        let (link, ended) = (Arc::new(link), Arc::new(Ended::default()));
        let (of, until) = (Arc::downgrade(&link), ended.clone());
        let spawned = thread::Builder::new().name("keep-alive".to_owned()).spawn(move || keep_alive(&of, &until));
        spawned.map_err(|error| Error::Io { why: format!("{url}: no thread can be started: {error}") })?;
        Ok(Remote { owner: Owner::here(), link, ended })
    }
}

impl Link {
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.url.timeout
    }

    fn execute(&self, namespace: NamespaceId, command: &Command<'_>) -> Result<Option<Reply>, Error> {
        if self.is_read_only && command.is_change() {
            return Err(Error::ReadOnly);
        }
        let mut copies = Copies::of(command);
        self.answer_to(namespace, command, &mut copies).map_err(|error| copies.doubt(&self.url, error))?
    }

    /// What the drive answers, or why no answer comes any more.
    fn answer_to(
        &self,
        namespace: NamespaceId,
        command: &Command<'_>,
        copies: &mut Copies,
    ) -> Result<Result<Option<Reply>, Error>, Error> {
        let deadline = self.deadline();
        loop {
            let session = self.session(deadline)?;
            let Some(limits) = self.settle(&session, session.limits(namespace, deadline), deadline)? else { continue };
            let mut request = Request::of(namespace, command.clone(), limits)?;
            if let Command::Delete { key } = *command
                && !limits.delete_needs_key
                && self.execute(namespace, &Command::Exist { key })?.is_none()
            {
                return Ok(Ok(None));
            }
            match copies.prepare(session.memory, &self.serials, &mut request.entry) {
                Turn::Now => {}
                Turn::Later => {
                    self.check_time(deadline, "it does not answer older changes")?;
                    self.serials.wait(AGAIN);
                    continue;
                }
                Turn::Never => return Err(self.unreachable("the drive does not know any more what it has done")),
            }
            match session.io.call(&request.entry, &request.payload, deadline) {
                Ok(answer) => match outcome(request.ask, answer, namespace) {
                    Outcome::Done(result) => return Ok(result),
                    Outcome::Again(status) => {
                        self.check_time(deadline - AGAIN, &format!("the drive says: {status}"))?;
                        sleep(AGAIN);
                    }
                    Outcome::Elsewhere(status) => {
                        self.lost(&session);
                        let why = format!("the drive says: {status}");
                        if status == Status::RequestForgotten && copies.are_out() {
                            return Err(self.unreachable(&why));
                        }
                        self.check_time(deadline - AGAIN, &why)?;
                        sleep(AGAIN);
                    }
                },
                Err(lost) => {
                    self.lost(&session);
                    if !lost.is_unsent {
                        copies.lost(session.memory);
                    }
                    if !copies.may_go_again() {
                        return Err(self.unreachable(&lost.why));
                    }
                    self.check_time(deadline, &lost.why)?;
                }
            }
        }
    }

    pub(super) fn check_time(&self, deadline: Instant, why: &str) -> Result<(), Error> {
        if Instant::now() >= deadline { Err(self.unreachable(why)) } else { Ok(()) }
    }

    /// Asks the controller for something that it can be asked for twice.
    fn ask<T>(&self, mut ask: impl FnMut(&Session, Instant) -> Result<T, Trouble>) -> Result<T, Error> {
        let deadline = self.deadline();
        loop {
            let session = self.session(deadline)?;
            if let Some(found) = self.settle(&session, ask(&session, deadline), deadline)? {
                return Ok(found);
            }
        }
    }

    /// What was found out; none when the connection was lost and it is to be tried again.
    fn settle<T>(
        &self,
        session: &Arc<Session>,
        found: Result<T, Trouble>,
        deadline: Instant,
    ) -> Result<Option<T>, Error> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Trouble::Refused(error)) => Err(error),
            Err(Trouble::Lost(lost)) => {
                self.lost(session);
                self.check_time(deadline, &lost.why).map(|()| None)
            }
        }
    }

    /// The controller, connected again where that is needed. Threads that come meanwhile wait.
    pub(super) fn session(&self, deadline: Instant) -> Result<Arc<Session>, Error> {
        loop {
            let mut state = self.lock();
            if let Some(session) = &state.session {
                return Ok(session.clone());
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(self.unreachable(&state.failure));
            }
            if let Some(wait) = state.not_before.and_then(|moment| moment.checked_duration_since(now)) {
                drop(state);
                sleep(wait.min(deadline - now));
                continue;
            }
            match Session::connect(&self.url, &self.host, self.is_read_only, deadline) {
                Ok(session) => {
                    let session = Arc::new(session);
                    *state = LinkState { session: Some(session.clone()), ..LinkState::default() };
                    return Ok(session);
                }
                Err(Trouble::Refused(error)) => return Err(error),
                Err(Trouble::Lost(lost)) => {
                    let back_off = BACK_OFF_MIN.saturating_mul(1 << state.failures.min(10)).min(BACK_OFF_MAX);
                    state.failures += 1;
                    state.failure = lost.why;
                    state.not_before = Some(Instant::now() + back_off);
                }
            }
        }
    }

    /// Nobody is to use that connection any more.
    pub(super) fn lost(&self, session: &Arc<Session>) {
        let mut state = self.lock();
        state.session.take_if(|current| Arc::ptr_eq(current, session));
    }

    pub(super) fn unreachable(&self, why: &str) -> Error {
        Error::Unreachable { why: format!("{}: {why}", self.url) }
    }

    /// What is in it is whole between any two statements that can panic.
    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Remote {
    fn execute(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.link.execute(namespace, &command)
    }

    fn execute_each(
        &self,
        commands: &mut dyn Iterator<Item = Result<(NamespaceId, Command<'_>), Error>>,
        answered: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        self.link.execute_all(commands, answered)
    }

    /// Commands of a queue have no order, so that only the last change of each key is made.
    fn bulk(&self, batch: &Batch, own: NamespaceId) -> Result<(), Error> {
        let changes = batch.last_changes(own)?;
        self.link.execute_all(&mut changes.into_iter().map(command_of), &mut |_, _| {})
    }

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error> {
        let found = self.link.ask(Session::namespaces)?;
        Ok(found.into_iter().map(|(id, said)| super::said::namespace_info(id, &said)).collect())
    }

    fn create_namespace(&self, _attributes: NamespaceAttributes) -> Result<NamespaceId, Error> {
        Err(not_carried("way to make a namespace with an index and an order of its own"))
    }

    fn delete_namespace(&self, _id: NamespaceId) -> Result<(), Error> {
        Err(not_carried("way to delete a namespace"))
    }

    fn stats(&self) -> Result<Stats, Error> {
        self.link.ask(super::said::stats)
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        let session = self.link.lock().session.take();
        match session.map(|session| session.shut_down()) {
            // That the drive is gone before is as good an end.
            None | Some(Ok(()) | Err(Trouble::Lost(_))) => Ok(()),
            Some(Err(Trouble::Refused(error))) => Err(error),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // A child that was forked has no such thread, and perhaps its lock held for ever.
        if !self.owner.is_surely_here() {
            return;
        }
        *self.ended.is_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.changed.notify_all();
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as commands come that may not be")]
fn command_of(change: BatchChange<'_>) -> Result<(NamespaceId, Command<'_>), Error> {
    let BatchChange { namespace, key, value } = change;
    let command = match value {
        Some(value) => Command::Store { key, value, condition: StoreCondition::Always },
        None => Command::Delete { key },
    };
    Ok((namespace, command))
}

/// Says now and then that this host is there, while it has a connection.
fn keep_alive(link: &Weak<Link>, ended: &Ended) {
    let mut is_ended = ended.is_ended.lock().unwrap_or_else(PoisonError::into_inner);
    while !*is_ended {
        is_ended = ended.changed.wait_timeout(is_ended, KEEP_ALIVE_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        let Some(link) = link.upgrade().filter(|_| !*is_ended) else { return };
        let session = link.lock().session.clone();
        if let Some(session) = session
            && session.keep_alive(Instant::now() + KEEP_ALIVE_INTERVAL).is_err()
        {
            link.lost(&session);
        }
    }
}
