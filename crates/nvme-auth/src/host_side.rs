//! The host's side: it answers the challenge, and may challenge the controller.

use crate::failure::Failure;
use crate::group::Group;
use crate::hash::Hash;
use crate::message::{Body, Message};
use crate::parties::{Credentials, Parties};
use crate::proof::{NO_CONCATENATION, Transcript, is_proved};
use crate::randomness::Randomness;
use crate::state::{Progress, State};
use zeroize::Zeroizing;

/// What a host lets the controller choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Hashes.
    pub hashes: Vec<Hash>,
    /// Groups.
    pub groups: Vec<Group>,
}

impl Default for Offer {
    /// Everything.
    fn default() -> Self {
        Offer { hashes: Hash::ALL.to_vec(), groups: Group::ALL.to_vec() }
    }
}

/// One authentication of a host to a controller.
pub struct HostSide {
    credentials: Credentials,
    parties: Parties,
    randomness: Randomness,
    offer: Offer,
    transaction: u16,
    state: State<Step>,
}

enum Step {
    /// The next message to the controller is a Negotiate.
    Negotiating,
    AwaitingChallenge,
    /// The next message is this Reply; then a Success1 has to come, with this response if there is one.
    Replying(Message, Hash, Option<Zeroizing<Vec<u8>>>),
    AwaitingSuccess1(Hash, Option<Zeroizing<Vec<u8>>>),
    /// The next message is a Success2.
    Succeeding,
}

impl HostSide {
    /// A host with these credentials proves itself. With a controller's secret it wants a proof of the controller, too.
    /// `transaction` is a number that this host's last authentications did not have.
    #[must_use]
    pub fn new(
        credentials: Credentials,
        parties: Parties,
        randomness: Randomness,
        offer: Offer,
        transaction: u16,
    ) -> Self {
        HostSide { credentials, parties, randomness, offer, transaction, state: Step::Negotiating.into() }
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.state.progress()
    }

    /// Takes a message of the controller (Authentication Receive).
    pub fn receive(&mut self, bytes: &[u8]) {
        self.state = self.state.take().followed(|step| self.follow(step, bytes));
    }

    fn follow(&mut self, step: Step, bytes: &[u8]) -> Result<State<Step>, Failure> {
        let Message { transaction, body } = Message::decode(bytes)?;
        // A failure ends it, whatever it is of: nothing is proved.
        if let Body::Failure1(failure) = body {
            return Ok(State::Failed(failure));
        }
        if transaction != self.transaction {
            return Err(Failure::IncorrectMessage);
        }
        match (step, body) {
            (Step::AwaitingChallenge, Body::Challenge { hash, group, sequence, challenge, public }) => {
                self.reply(hash, group, sequence, &challenge, &public)
            }
            (Step::AwaitingSuccess1(hash, wanted), Body::Success1 { hash_bytes, response }) => {
                if usize::from(hash_bytes) != hash.bytes() {
                    return Err(Failure::HashNotUsable);
                }
                match (wanted, response) {
                    (None, _) => Ok(State::Authenticated),
                    (Some(wanted), Some(response)) if is_proved(&wanted, &response) => Ok(Step::Succeeding.into()),
                    (Some(_), _) => Err(Failure::WrongResponse),
                }
            }
            _ => Err(Failure::IncorrectMessage),
        }
    }

    fn reply(
        &mut self,
        hash: Hash,
        group: Group,
        sequence: u32,
        challenge: &[u8],
        public: &[u8],
    ) -> Result<State<Step>, Failure> {
        if !self.offer.hashes.contains(&hash) {
            return Err(Failure::HashNotUsable);
        }
        if !self.offer.groups.contains(&group) {
            return Err(Failure::GroupNotUsable);
        }
        let own = &self.randomness.challenge[..hash.bytes()];
        // It would have its own challenge answered by who it asks.
        if challenge == own {
            return Err(Failure::WrongResponse);
        }
        let (transaction, parties) = (self.transaction, &self.parties);
        let shared = group.shared(public, &self.randomness.exponent)?;
        let transcript = Transcript { hash, transaction, parties, shared: &shared };
        let response = transcript.of_host(&self.credentials.host, challenge, sequence);
        let secret = self.credentials.controller.as_ref();
        let wanted = secret.map(|secret| transcript.of_controller(secret, own, self.randomness.sequence));
        let body = Body::Reply {
            response: response.to_vec(),
            sequence: if wanted.is_some() { self.randomness.sequence } else { 0 },
            challenge: wanted.is_some().then(|| own.to_vec()),
            public: group.public(&self.randomness.exponent),
        };
        Ok(Step::Replying(Message { transaction, body }, hash, wanted).into())
    }

    /// The next message to the controller (Authentication Send); `None` when it is the controller's turn.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        let state = self.state.take();
        let message = |body| Some(Message { transaction: self.transaction, body });
        let (state, message) = match state {
            State::UnderWay(Step::Negotiating) => {
                let Offer { hashes, groups } = self.offer.clone();
                let body = Body::Negotiate { concatenation: NO_CONCATENATION, hashes, groups };
                (Step::AwaitingChallenge.into(), message(body))
            }
            State::UnderWay(Step::Replying(reply, hash, wanted)) => {
                (Step::AwaitingSuccess1(hash, wanted).into(), Some(reply))
            }
            State::UnderWay(Step::Succeeding) => (State::Authenticated, message(Body::Success2)),
            State::Failing(failure) => (State::Failed(failure), message(Body::Failure2(failure))),
            other => (other, None),
        };
        self.state = state;
        message.map(|message| message.encode())
    }
}
