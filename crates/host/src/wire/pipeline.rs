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
use std::sync::Arc;

type Coming<'c> = Result<(NamespaceId, Command<'c>), Error>;

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
    pipeline: Pipeline<Tag>,
    /// What waits for older changes to be answered.
    stalled: Option<Call<Tag>>,
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
        let mut commands = commands.enumerate();
        let pipeline = Pipeline { coming: VecDeque::new(), under_way: Vec::new() };
        let mut run = Run { link: self, pipeline, stalled: None, failed: None, deadline: self.deadline() };
        let mut before: Option<Arc<Session>> = None;
        loop {
            let session = self.session(run.deadline).map_err(|error| run.doubt(error))?;
            if before.replace(session.clone()).is_none_or(|before| !Arc::ptr_eq(&before, &session)) {
                run.prepare_again(&session)?;
            }
            run.fill(&session, &mut commands);
            if run.failed.is_some() {
                run.pipeline.coming.clear();
            }
            if run.pipeline.commands() == 0 {
                return run.failed.map_or(Ok(()), Err);
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

impl Run<'_> {
    /// Takes as many commands as the queue does.
    fn fill<'c>(&mut self, session: &Session, commands: &mut dyn Iterator<Item = (usize, Coming<'c>)>) {
        while self.failed.is_none() && self.pipeline.commands() < session.io.depth() {
            let mut call = match self.stalled.take() {
                Some(call) => call,
                None => {
                    let Some((number, command)) = commands.next() else { break };
                    match self.call_of(session, number, command) {
                        Ok(call) => call,
                        Err(error) => {
                            self.failed = Some(error);
                            break;
                        }
                    }
                }
            };
            if call.tag.copies.prepare(session.memory, &self.link.serials, &mut call.entry) == Turn::Now {
                self.pipeline.coming.push_back(call);
                continue;
            }
            self.stalled = Some(call);
            if self.pipeline.commands() > 0 {
                // The older ones may be this thread's.
                break;
            }
            if Instant::now() >= self.deadline {
                self.failed = Some(self.link.unreachable("it does not answer older changes"));
            }
            self.link.serials.wait(AGAIN);
        }
    }

    fn call_of(&self, session: &Session, number: usize, command: Coming<'_>) -> Result<Call<Tag>, Error> {
        let (namespace, command) = command?;
        if self.link.is_read_only && command.is_change() {
            return Err(Error::ReadOnly);
        }
        let limits = session.limits(namespace, self.deadline).map_err(|trouble| match trouble {
            Trouble::Lost(lost) => self.link.unreachable(&lost.why),
            Trouble::Refused(error) => error,
        })?;
        let copies = Copies::of(&command);
        let Request { entry, payload, ask } = Request::of(namespace, command, limits)?;
        Ok(Call { entry, payload, tag: Tag { number, namespace, ask, copies } })
    }

    /// What was lost comes again, on another connection.
    fn prepare_again(&mut self, session: &Session) -> Result<(), Error> {
        for call in &mut self.pipeline.coming {
            if call.tag.copies.prepare(session.memory, &self.link.serials, &mut call.entry) != Turn::Now {
                return Err(call.tag.copies.doubt(&self.link.url, self.link.unreachable("it was lost for good")));
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
                let is_forgotten = status == kvssd_spec::Status::RequestForgotten && call.tag.copies.are_out();
                if is_late || is_forgotten {
                    let error = self.link.unreachable(&format!("the drive says: {status}"));
                    return Err(call.tag.copies.doubt(&self.link.url, error));
                }
                self.link.lost(session);
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
