//! The controller's side: it challenges, checks, and proves itself where it is asked to.

use crate::failure::Failure;
use crate::group::Group;
use crate::hash::Hash;
use crate::message::{Body, Message};
use crate::parties::{Credentials, Parties};
use crate::proof::{NO_CONCATENATION, Transcript, is_proved};
use crate::randomness::Randomness;
use crate::state::{Progress, State};
use zeroize::Zeroizing;

/// One authentication of a host by a controller.
pub struct ControllerSide {
    credentials: Credentials,
    parties: Parties,
    randomness: Randomness,
    transaction: u16,
    state: State<Step>,
}

enum Step {
    AwaitingNegotiate,
    /// The next message to the host is a Challenge.
    Challenging(Hash, Group),
    AwaitingReply(Hash, Group),
    /// The next message is a Success1, perhaps with a response.
    Succeeding(Hash, Option<Zeroizing<Vec<u8>>>),
    AwaitingSuccess2,
}

impl ControllerSide {
    /// A host with these credentials is to prove itself.
    #[must_use]
    pub fn new(credentials: Credentials, parties: Parties, randomness: Randomness) -> Self {
        ControllerSide { credentials, parties, randomness, transaction: 0, state: Step::AwaitingNegotiate.into() }
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.state.progress()
    }

    /// Takes a message of the host (Authentication Send). What is wrong with it, [`ControllerSide::message`] says.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.state = self.state.take().followed(|step| self.follow(step, bytes));
    }

    fn follow(&mut self, step: Step, bytes: &[u8]) -> Result<State<Step>, Failure> {
        let Message { transaction, body } = Message::decode(bytes)?;
        if matches!(step, Step::AwaitingNegotiate) {
            self.transaction = transaction;
        } else if transaction != self.transaction {
            return Err(Failure::IncorrectMessage);
        }
        match (step, body) {
            (Step::AwaitingNegotiate, Body::Negotiate { concatenation, hashes, groups }) => {
                if concatenation != NO_CONCATENATION {
                    return Err(Failure::Concatenation);
                }
                let hash = Hash::ALL.into_iter().find(|hash| hashes.contains(hash)).ok_or(Failure::HashNotUsable)?;
                let group = Group::ALL.into_iter().find(|group| groups.contains(group));
                Ok(Step::Challenging(hash, group.ok_or(Failure::GroupNotUsable)?).into())
            }
            (Step::AwaitingReply(hash, group), Body::Reply { response, sequence, challenge, public }) => {
                if response.len() != hash.bytes() {
                    return Err(Failure::IncorrectPayload);
                }
                let shared = group.shared(&public, &self.randomness.exponent)?;
                let parties = &self.parties;
                let transcript = Transcript { hash, transaction, parties, shared: &shared };
                let own = &self.randomness.challenge[..hash.bytes()];
                let wanted = transcript.of_host(&self.credentials.host, own, self.randomness.sequence);
                if !is_proved(&wanted, &response) {
                    return Err(Failure::WrongResponse);
                }
                // S2 of 0: a challenge for a secure channel alone.
                let Some(challenge) = challenge.filter(|_| sequence != 0) else {
                    return Ok(Step::Succeeding(hash, None).into());
                };
                let secret = self.credentials.controller.as_ref().ok_or(Failure::NoControllerSecret)?;
                if challenge == own {
                    return Err(Failure::WrongResponse);
                }
                Ok(Step::Succeeding(hash, Some(transcript.of_controller(secret, &challenge, sequence))).into())
            }
            (Step::AwaitingSuccess2, Body::Success2) => Ok(State::Authenticated),
            (_, Body::Failure2(failure)) => Ok(State::Failed(failure)),
            _ => Err(Failure::IncorrectMessage),
        }
    }

    /// The next message to the host (Authentication Receive); `None` when it is the host's turn.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        let (state, body) = match self.state.take() {
            State::UnderWay(Step::Challenging(hash, group)) => {
                let challenge = self.randomness.challenge[..hash.bytes()].to_vec();
                let (sequence, public) = (self.randomness.sequence, group.public(&self.randomness.exponent));
                let body = Body::Challenge { hash, group, sequence, challenge, public };
                (Step::AwaitingReply(hash, group).into(), Some(body))
            }
            State::UnderWay(Step::Succeeding(hash, response)) => {
                let next = if response.is_some() { Step::AwaitingSuccess2.into() } else { State::Authenticated };
                let response = response.map(|response| response.to_vec());
                (next, Some(Body::Success1 { hash_bytes: hash.bytes() as u8, response }))
            }
            State::Failing(failure) => (State::Failed(failure), Some(Body::Failure1(failure))),
            other => (other, None),
        };
        self.state = state;
        body.map(|body| Message { transaction: self.transaction, body }.encode())
    }
}
