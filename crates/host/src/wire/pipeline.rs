//! Many commands of one thread, as many of them under way as the queue takes.
//!
//! ```text
//!   commands -> coming -> under way -> answered
//!                 ^           |
//!                 +-- lost: sent again, or in doubt (copies.rs)
//! ```

use super::channel::{Call, Lost, Pipeline};
use super::copies::{Copies, Turn};
use super::queue::Answer;
use super::remote::{AGAIN, Link};
use super::request::{Ask, Outcome, Request, outcome};
use super::session::{Session, Trouble};
use crate::Error;
use kvssd_runtime::thread::sleep;
use kvssd_runtime::time::Instant;
use kvssd_types::{Command, NamespaceId, Reply};
use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::Arc;

type Coming<'c> = Result<(NamespaceId, Command<'c>), Error>;

/// Commands with their numbers.
trait Commands<'c>: Iterator<Item = (usize, Coming<'c>)> {}

impl<'c, I: Iterator<Item = (usize, Coming<'c>)>> Commands<'c> for I {}

/// What a command of many is known by.
struct Tag {
    number: usize,
    namespace: NamespaceId,
    ask: Ask,
    copies: Copies,
}

/// Commands on their way.
struct Run<'l> {
    link: &'l Link,
    /// The one that the commands that are under way were given to.
    session: Option<Arc<Session>>,
    pipeline: Pipeline<Tag>,
    /// What waits for older changes to be answered. None of it was sent.
    stalled: VecDeque<Call<Tag>>,
    /// The first error; no more commands are given after it.
    failed: Option<Error>,
    deadline: Instant,
}

impl Link {
    /// Gives the queue commands as it takes them, and shows the answers.
    pub(super) fn execute_all(
        &self,
        commands: &mut dyn Iterator<Item = Coming<'_>>,
        answered: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        let mut commands = commands.enumerate().peekable();
        let pipeline = Pipeline { coming: VecDeque::new(), under_way: Vec::new() };
        let deadline = self.deadline();
        let mut run = Run { link: self, session: None, pipeline, stalled: VecDeque::new(), failed: None, deadline };
        loop {
            let session = self.session(run.deadline).map_err(|error| run.doubt(error))?;
            if let Some(before) = run.session.replace(session.clone()).filter(|before| !Arc::ptr_eq(before, &session)) {
                // Another thread has lost it. Its numbers of commands are those of others on the new one.
                run.lose(&before, &Lost::of("the connection was lost"))?;
                run.prepare_again(&session)?;
            }
            if let Err(lost) = run.fill(&session, &mut commands) {
                run.lose(&session, &lost)?;
                self.check_time(run.deadline, &lost.why).map_err(|error| run.doubt(error))?;
                continue;
            }
            if run.failed.is_some() {
                run.pipeline.coming.clear();
            }
            if run.pipeline.commands() == 0 {
                return run.failed.take().map_or(Ok(()), Err);
            }
            match session.io.advance(&mut run.pipeline, run.deadline) {
                Ok(answers) => {
                    for (call, answer) in answers {
                        run.take(&session, call, answer, answered)?;
                    }
                }
                Err(lost) => run.lose(&session, &lost)?,
            }
        }
    }
}

impl Drop for Run<'_> {
    /// Nobody takes the answers to what is left under way: the places that it has in the queue go with the connection, before its serials are
    /// released.
    fn drop(&mut self) {
        if let Some(session) = self.session.take().filter(|_| !self.pipeline.under_way.is_empty()) {
            self.link.lost(&session);
        }
    }
}

impl Run<'_> {
    /// Takes as many commands as the queue does.
    fn fill<'c>(&mut self, session: &Session, commands: &mut Peekable<impl Commands<'c>>) -> Result<(), Lost> {
        while self.failed.is_none() && self.pipeline.commands() < session.io.depth() {
            let mut call = match self.stalled.pop_front() {
                Some(call) => call,
                None => match self.next_call(session, commands) {
                    Ok(Some(call)) => call,
                    Ok(None) => break,
                    Err(Trouble::Lost(lost)) => return Err(lost),
                    Err(Trouble::Refused(error)) => {
                        self.failed = Some(error);
                        break;
                    }
                },
            };
            if call.tag.copies.prepare(session.memory, &self.link.serials, &mut call.entry) == Turn::Now {
                self.pipeline.coming.push_back(call);
                continue;
            }
            self.stalled.push_front(call);
            if self.pipeline.commands() > 0 {
                // The older ones may be this thread's.
                break;
            }
            if Instant::now() >= self.deadline {
                self.failed = Some(self.link.unreachable("it does not answer older changes"));
            }
            self.link.serials.wait(AGAIN);
        }
        Ok(())
    }

    /// The next command, which stays where it is when the connection is lost before it is known what its namespace takes.
    fn next_call<'c>(
        &self,
        session: &Session,
        commands: &mut Peekable<impl Commands<'c>>,
    ) -> Result<Option<Call<Tag>>, Trouble> {
        let limits = match commands.peek() {
            Some((_, Ok((namespace, _)))) => Some(session.limits(*namespace, self.deadline)?),
            _ => None,
        };
        let Some((number, command)) = commands.next() else { return Ok(None) };
        let (namespace, command) = command?;
        if self.link.is_read_only && command.is_change() {
            return Err(Error::ReadOnly.into());
        }
        let limits = limits.expect("there is a command");
        let copies = Copies::of(&command);
        let Request { entry, payload, ask } = Request::of(namespace, command, limits)?;
        Ok(Some(Call { entry, payload, tag: Tag { number, namespace, ask, copies } }))
    }

    /// What was lost comes again, on another connection.
    fn prepare_again(&mut self, session: &Session) -> Result<(), Error> {
        for mut call in std::mem::take(&mut self.pipeline.coming) {
            match call.tag.copies.prepare(session.memory, &self.link.serials, &mut call.entry) {
                Turn::Now => self.pipeline.coming.push_back(call),
                Turn::Later => self.stalled.push_back(call),
                Turn::Never => {
                    return Err(call.tag.copies.doubt(&self.link.url, self.link.unreachable("it was lost for good")));
                }
            }
        }
        Ok(())
    }

    /// What an answer means for its command.
    fn take(
        &mut self,
        session: &Arc<Session>,
        call: Call<Tag>,
        answer: Answer,
        answered: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        let is_late = Instant::now() + AGAIN >= self.deadline;
        match outcome(call.tag.ask, answer, call.tag.namespace) {
            Outcome::Done(result) => {
                self.deadline = self.link.deadline();
                match result {
                    Ok(reply) => answered(call.tag.number, reply),
                    Err(error) => self.failed = self.failed.take().or(Some(error)),
                }
                return Ok(());
            }
            Outcome::Again(status) if is_late => {
                let error = self.link.unreachable(&format!("the drive says: {status}"));
                let error = call.tag.copies.doubt(&self.link.url, error);
                self.failed = self.failed.take().or(Some(error));
                return Ok(());
            }
            Outcome::Again(_) => sleep(AGAIN),
            Outcome::Elsewhere(status) => {
                self.link.lost(session);
                let is_forgotten = status == kvssd_spec::Status::RequestForgotten && call.tag.copies.are_out();
                if is_late || is_forgotten {
                    let error = self.link.unreachable(&format!("the drive says: {status}"));
                    return Err(call.tag.copies.doubt(&self.link.url, error));
                }
            }
        }
        self.pipeline.coming.push_back(call);
        Ok(())
    }

    /// The connection is lost, with what was under way.
    fn lose(&mut self, session: &Arc<Session>, lost: &Lost) -> Result<(), Error> {
        self.link.lost(session);
        let is_late = Instant::now() >= self.deadline;
        let mut given_up = None;
        for (_, mut call) in self.pipeline.under_way.drain(..) {
            call.tag.copies.lost(session.memory);
            if is_late || !call.tag.copies.may_go_again() {
                let error = given_up.take().unwrap_or_else(|| self.link.unreachable(&lost.why));
                given_up = Some(call.tag.copies.doubt(&self.link.url, error));
            }
            self.pipeline.coming.push_back(call);
        }
        given_up.map_or(Ok(()), Err)
    }

    /// What the caller is told when the drive is not reached any more.
    fn doubt(&self, error: Error) -> Error {
        self.pipeline.coming.iter().fold(error, |error, call| call.tag.copies.doubt(&self.link.url, error))
    }
}
