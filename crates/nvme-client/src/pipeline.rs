//! Many commands of one thread, with as many outstanding as the queue has entries for.
//!
//! ```text
//!   commands -> pending -> outstanding -> completed
//!                 ^           |
//!                 +-- lost: sent again, or in doubt (retransmission.rs)
//! ```

use crate::Error;
use crate::association::Association;
use crate::connection::{Pipeline, Submission};
use crate::connection_lost::ConnectionLost;
use crate::failure::Failure;
use crate::link::{Link, RETRY_DELAY, says};
use crate::queue_pair::Completion;
use crate::request::{Operation, Outcome, Request, outcome};
use crate::retransmission::{Clearance, Retransmission};
use crate::time_left::Deadline;
use kvssd_nvme_spec::Status;
use kvssd_runtime::thread::sleep;
use kvssd_types::{Command, NamespaceId, Reply};
use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::Arc;

/// Commands with their indexes.
trait Commands<'c>: Iterator<Item = (usize, (NamespaceId, Command<'c>))> {}

impl<'c, I: Iterator<Item = (usize, (NamespaceId, Command<'c>))>> Commands<'c> for I {}

/// Identifies a submission.
struct Tag {
    index: usize,
    namespace: NamespaceId,
    operation: Operation,
    retransmission: Retransmission,
}

/// The commands of one call that were taken and are not completed.
struct Run<'l> {
    link: &'l Link,
    /// Where the outstanding commands were submitted.
    association: Option<Arc<Association>>,
    pipeline: Pipeline<Tag>,
    /// Changes that wait for a serial. None of them was sent.
    stalled: VecDeque<Submission<Tag>>,
    /// The first error, after which nothing more is submitted.
    failed: Option<Error>,
    deadline: Deadline,
}

/// Executes `commands`; calls `completed` with the index of each and its reply.
pub(crate) fn execute_all(
    link: &Link,
    commands: &mut dyn Iterator<Item = (NamespaceId, Command<'_>)>,
    completed: &mut dyn FnMut(usize, Option<Reply>),
) -> Result<(), Error> {
    let mut commands = commands.enumerate().peekable();
    let pipeline = Pipeline { pending: VecDeque::new(), outstanding: Vec::new() };
    let deadline = link.deadline();
    let mut run = Run { link, association: None, pipeline, stalled: VecDeque::new(), failed: None, deadline };
    loop {
        let association = link.association(&run.deadline).map_err(|error| run.doubt(error))?;
        let before = run.association.replace(association.clone());
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, &association)) {
            // Another thread has lost it. The outstanding identifiers mean other commands on the new one.
            run.lose(&before, &ConnectionLost::new("the connection was lost"))?;
            run.prepare_again(&association)?;
        }
        if let Err(lost) = run.fill(&association, &mut commands) {
            run.lose(&association, &lost)?;
            link.check_deadline(&run.deadline, &lost.why).map_err(|error| run.doubt(error))?;
            continue;
        }
        if run.failed.is_some() {
            run.pipeline.pending.clear();
        }
        if run.pipeline.len() == 0 {
            return run.failed.take().map_or(Ok(()), Err);
        }
        match association.io.advance(&mut run.pipeline, &run.deadline) {
            Ok(completions) => {
                for (submission, completion) in completions {
                    run.complete(&association, submission, completion, completed)?;
                }
            }
            Err(lost) => run.lose(&association, &lost)?,
        }
    }
}

impl Drop for Run<'_> {
    /// Nobody takes the completions of commands that are still outstanding. Their slots go with the connection, before their
    /// serials are released.
    fn drop(&mut self) {
        if let Some(association) = self.association.take().filter(|_| !self.pipeline.outstanding.is_empty()) {
            self.link.lose(&association, "a call has left it in the middle");
        }
    }
}

impl Run<'_> {
    /// Takes as many commands as the queue has entries for.
    fn fill<'c>(
        &mut self,
        association: &Association,
        commands: &mut Peekable<impl Commands<'c>>,
    ) -> Result<(), ConnectionLost> {
        while self.failed.is_none() && self.pipeline.len() < association.io.depth() {
            let mut submission = match self.stalled.pop_front() {
                Some(submission) => submission,
                None => match self.next_submission(association, commands) {
                    Ok(Some(submission)) => submission,
                    Ok(None) => break,
                    Err(Failure::Lost(lost)) => return Err(lost),
                    Err(Failure::Final(error)) => {
                        self.failed = Some(error);
                        break;
                    }
                },
            };
            if self.prepare(association, &mut submission) == Clearance::Send {
                self.pipeline.pending.push_back(submission);
                continue;
            }
            self.stalled.push_front(submission);
            if self.pipeline.len() > 0 {
                // The older changes may be this thread's.
                break;
            }
            if self.deadline.is_over() {
                self.failed = Some(self.link.unreachable("it does not answer older changes"));
            }
            self.link.serials.wait(RETRY_DELAY);
        }
        Ok(())
    }

    fn prepare(&self, association: &Association, submission: &mut Submission<Tag>) -> Clearance {
        let Submission { entry, tag, .. } = submission;
        tag.retransmission.prepare(association.recognition, &self.link.serials, entry)
    }

    /// The next command. It stays in `commands` if the connection is lost before the limits of its namespace are known.
    fn next_submission<'c>(
        &self,
        association: &Association,
        commands: &mut Peekable<impl Commands<'c>>,
    ) -> Result<Option<Submission<Tag>>, Failure> {
        let Some((_, (namespace, _))) = commands.peek() else { return Ok(None) };
        let limits = association.limits(*namespace, &self.deadline)?;
        let Some((index, (namespace, command))) = commands.next() else { return Ok(None) };
        if self.link.is_read_only && command.is_change() {
            return Err(Error::ReadOnly.into());
        }
        let retransmission = Retransmission::new(&command);
        let Request { entry, payload, operation } = Request::new(command, limits)?;
        Ok(Some(Submission { entry, payload, tag: Tag { index, namespace, operation, retransmission } }))
    }

    /// Prepares what was lost for another association.
    fn prepare_again(&mut self, association: &Association) -> Result<(), Error> {
        for mut submission in std::mem::take(&mut self.pipeline.pending) {
            if let Err(error) = self.link.meant.check(submission.tag.namespace) {
                return Err(submission.tag.retransmission.doubt(&self.link.url, error));
            }
            match self.prepare(association, &mut submission) {
                Clearance::Send => self.pipeline.pending.push_back(submission),
                Clearance::Wait => self.stalled.push_back(submission),
                Clearance::Never => {
                    let error = self.link.unreachable("it was lost for good");
                    return Err(submission.tag.retransmission.doubt(&self.link.url, error));
                }
            }
        }
        Ok(())
    }

    /// Interprets a completion.
    fn complete(
        &mut self,
        association: &Arc<Association>,
        submission: Submission<Tag>,
        completion: Completion,
        completed: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        let is_late = self.deadline.is_over_in(RETRY_DELAY);
        let Tag { index, namespace, operation, retransmission } = &submission.tag;
        let doubt = |status| retransmission.doubt(&self.link.url, self.link.unreachable_for(status));
        match outcome(*operation, completion, *namespace) {
            Outcome::Done(result) => {
                self.deadline.renew(self.link.url.timeout);
                match result {
                    Ok(reply) => completed(*index, reply),
                    Err(error) => {
                        let error = self.link.explain(*namespace, retransmission, error);
                        self.fail(error);
                    }
                }
                return Ok(());
            }
            Outcome::RetryLater(status) if is_late => {
                let error = doubt(status);
                self.fail(error);
                return Ok(());
            }
            Outcome::RetryLater(_) => sleep(RETRY_DELAY),
            Outcome::Reconnect(status) => {
                self.link.lose(association, &says(status));
                let is_forgotten = status == Status::RequestForgotten && retransmission.may_be_executed();
                if is_late || is_forgotten {
                    return Err(doubt(status));
                }
            }
        }
        self.pipeline.pending.push_back(submission);
        Ok(())
    }

    /// Keeps the first error.
    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Handles the loss of the connection, with all outstanding commands.
    fn lose(&mut self, association: &Arc<Association>, lost: &ConnectionLost) -> Result<(), Error> {
        self.link.lose(association, &lost.why);
        let is_late = self.deadline.is_over();
        let mut given_up = None;
        for (_, mut submission) in self.pipeline.outstanding.drain(..) {
            let retransmission = &mut submission.tag.retransmission;
            retransmission.completion_lost(association.recognition);
            if is_late || !retransmission.is_allowed() {
                let error = given_up.take().unwrap_or_else(|| self.link.unreachable(&lost.why));
                given_up = Some(retransmission.doubt(&self.link.url, error));
            }
            self.pipeline.pending.push_back(submission);
        }
        given_up.map_or(Ok(()), Err)
    }

    /// The error of the call when the drive is not reached any more.
    fn doubt(&mut self, error: Error) -> Error {
        let Pipeline { pending, outstanding } = &mut self.pipeline;
        if let Some(association) = &self.association {
            // Another thread has lost it, before this one saw that.
            for (_, submission) in outstanding.iter_mut() {
                submission.tag.retransmission.completion_lost(association.recognition);
            }
        }
        let sent = outstanding.iter().map(|(_, submission)| submission);
        pending.iter().chain(sent).fold(error, |error, lost| lost.tag.retransmission.doubt(&self.link.url, error))
    }
}
