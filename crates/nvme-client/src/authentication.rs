//! Proves to a controller who this host is, and has the controller prove who it is, where there are secrets.

use crate::Error;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::host_identity::HostIdentity;
use crate::queue_pair::Payload;
use crate::time_left::Deadline;
use kvssd_nvme_auth::{HostSide, MESSAGE_BYTES_MAX, Offer, Parties, Progress, Randomness};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::fabrics::{AUTHENTICATION_IN_BAND, AUTHENTICATION_REQUIRED, FabricsCommand, Security};
use kvssd_runtime::random_u64;

/// Does what the result of a Connect asks for. A drive that should prove itself and does not want to is refused.
pub(crate) fn authenticate(
    connection: &Connection,
    host: &HostIdentity,
    nqn: &str,
    connected: u64,
    deadline: &Deadline,
) -> Result<(), Failure> {
    let refused = |why: &str| Err(Error::Refused(why.to_owned()).into());
    let is_asked_for = connected & AUTHENTICATION_REQUIRED != 0;
    let Some(credentials) = &host.credentials else {
        return match is_asked_for {
            true => refused("the drive wants a proof of who this host is: add secret-file=PATH to the URL"),
            false => Ok(()),
        };
    };
    if !is_asked_for {
        return match credentials.controller {
            Some(_) => refused("the drive does not prove who it is, as controller-secret-file of the URL wants it to"),
            None => Ok(()),
        };
    }
    if connected & AUTHENTICATION_REQUIRED != AUTHENTICATION_IN_BAND {
        return refused("the drive wants a secure channel (TLS), which there is not");
    }
    let no_randomness = |error: std::io::Error| Error::Io(format!("there are no random numbers: {error}"));
    let randomness = Randomness::draw(random_u64).map_err(no_randomness)?;
    let transaction = random_u64().map_err(no_randomness)? as u16;
    let parties = Parties { host: host.nqn.clone(), subsystem: nqn.to_owned() };
    let side = HostSide::new(credentials.clone(), parties, randomness, Offer::default(), transaction);
    exchange(connection, side, deadline)
}

fn exchange(connection: &Connection, mut side: HostSide, deadline: &Deadline) -> Result<(), Failure> {
    loop {
        if let Some(message) = side.message() {
            let entry = FabricsCommand::AuthenticationSend(Security::authentication(message.len() as u32));
            let sent = connection.call(&entry.into(), &Payload::Out(message.into()), deadline);
            // What the drive says to the news that it failed is of no interest.
            if let Progress::Failed(why) = side.progress() {
                return Err(failed(&why.to_string()));
            }
            check(sent?.entry.status())?;
        }
        match side.progress() {
            Progress::Authenticated => return Ok(()),
            Progress::Failed(why) => return Err(failed(&why.to_string())),
            Progress::UnderWay => {}
        }
        let entry = FabricsCommand::AuthenticationReceive(Security::authentication(MESSAGE_BYTES_MAX as u32));
        let got = connection.call(&entry.into(), &Payload::In(MESSAGE_BYTES_MAX as u32), deadline)?;
        check(got.entry.status())?;
        side.receive(&got.data);
    }
}

fn check(status: Result<Status, u16>) -> Result<(), Failure> {
    match status {
        Ok(Status::Success) => Ok(()),
        Ok(status) => Err(failed(&format!("the drive says: {status}"))),
        Err(code) => Err(failed(&format!("the drive answers with status {code:03x}h"))),
    }
}

fn failed(why: &str) -> Failure {
    Error::Refused(format!("the drive and this host did not prove to each other who they are: {why}")).into()
}
