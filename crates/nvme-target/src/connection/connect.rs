//! Connect: a connection becomes an admin queue or an I/O queue.

use super::Phase;
use crate::completion::{Failure, Success};
use crate::controller::{ControllerKind, Host};
use crate::hosts::{Member, Place, Refusal};
use crate::limits::QUEUE_ENTRIES_MAX;
use crate::lock::lock;
use crate::rights::HostRights;
use crate::secured::{Proofs, Secured};
use crate::subsystem::Subsystem;
use crate::view::View;
use kvssd_nvme_auth::{ControllerSide, Parties, Randomness};
use kvssd_nvme_spec::fabrics::{
    AUTHENTICATION_IN_BAND, CONTROLLER_ANY, Connect, ConnectData, DISCOVERY_NQN, NQN_BYTES_MAX,
};
use kvssd_nvme_spec::{Status, read_text};
use kvssd_runtime::random_u64;
use kvssd_types::Nanos;
use std::sync::Arc;

/// Byte offsets in a Connect command and its data, for [`invalid`].
const AT_QUEUE_ID: u64 = 42;
const AT_QUEUE_SIZE: u64 = 44;
const AT_CONTROLLER: u64 = 16;
const AT_SUBSYSTEM_NQN: u64 = 256;
const AT_HOST_NQN: u64 = 512;

/// A connected queue.
pub(super) struct Connected {
    pub(super) phase: Phase,
    pub(super) entries: u16,
    pub(super) done: Success,
    /// What the host is to prove itself by; `None` of a discovery controller in the clear, which asks for no proof.
    pub(super) held_to: Option<Proofs>,
}

pub(super) fn connect(
    subsystem: &Subsystem,
    place: &mut Place,
    secured: Option<&Secured>,
    command: &Connect,
    data: &[u8],
    now: Nanos,
) -> Result<Connected, Failure> {
    let data =
        data.first_chunk::<{ kvssd_nvme_spec::fabrics::CONNECT_DATA_BYTES }>().ok_or(Status::SglLengthInvalid)?;
    let data = ConnectData::from_data(data).ok_or(Status::SglLengthInvalid)?;
    if command.format != 0 {
        return Err(Status::ConnectIncompatibleFormat.into());
    }
    if command.queue_size == 0 || command.queue_size >= QUEUE_ENTRIES_MAX {
        return Err(invalid(AT_QUEUE_SIZE, false));
    }
    let name = |field: &[u8; 256], at| {
        let text = read_text(&field[..]).filter(|text| text.len() <= NQN_BYTES_MAX);
        text.map(str::to_owned).ok_or_else(|| {
            tracing::warn!(at, "a host was refused: a name in its Connect is too long, or no text");
            invalid(at, true)
        })
    };
    let host = Host { nqn: name(&data.host_nqn, AT_HOST_NQN)?, id: data.host_id };
    if host.nqn.is_empty() {
        // `spdk_nvme_perf` sends an empty one, and SPDK's own target accepts it.
        tracing::warn!(queue = command.queue_id, "a host says no name of its own (HOSTNQN)");
    }
    let subsystem_nqn = name(&data.subsystem_nqn, AT_SUBSYSTEM_NQN)?;
    let kind = match subsystem_nqn.as_str() {
        DISCOVERY_NQN => ControllerKind::Discovery,
        nqn if nqn == subsystem.options.nqn => ControllerKind::Io,
        _ => {
            tracing::warn!(host = host.nqn, wanted = subsystem_nqn, "a host asked for another subsystem");
            return Err(invalid(AT_SUBSYSTEM_NQN, true));
        }
    };
    let parties = Parties { host: host.nqn.clone(), subsystem: subsystem_nqn };
    let proves = kind == ControllerKind::Io || secured.is_some();
    let (member, rights) = claim(place, &host.nqn, proves)?;
    check_secured(&rights, kind, &parties, secured).inspect_err(|_| place.leave())?;
    // Nothing fails behind the new controller.
    let side = authentication(&rights, kind, parties).inspect_err(|_| place.leave())?;
    // A new controller has all that its host may see.
    let view = View { subsystem, rights: &rights, controller: 0 };
    let entries = command.queue_size + 1;
    let connected = match command.queue_id {
        0 => {
            let asked = (kind, data.controller.get(), command.keep_alive_ms);
            admin_queue(view, &member, asked, host, place.discovered(), now)
        }
        queue => io_queue(subsystem, kind, &host, data.controller.get(), queue),
    };
    let (phase, id) = connected.inspect_err(|_| place.leave())?;
    let done = Success::with_result(id.into());
    let held_to = proves.then(|| Proofs::of(&rights));
    let Some(side) = side else {
        place.settle();
        return Ok(Connected { phase, entries, done, held_to });
    };
    let phase = Phase::Authenticating { connected: Box::new(phase), side };
    Ok(Connected { phase, entries, done: Success::with_result(done.result | AUTHENTICATION_IN_BAND), held_to })
}

/// The controller's side of an authentication, where the host must prove who it is.
fn authentication(
    rights: &HostRights,
    kind: ControllerKind,
    parties: Parties,
) -> Result<Option<Box<ControllerSide>>, Failure> {
    let Some(credentials) = rights.authentication.as_deref().filter(|_| kind == ControllerKind::Io) else {
        return Ok(None);
    };
    let randomness = Randomness::draw(random_u64).map_err(|error| {
        tracing::error!(%error, "there are no random numbers for an authentication");
        Status::InternalError
    })?;
    Ok(Some(Box::new(ControllerSide::new(credentials.clone(), parties, randomness))))
}

/// Whether the host comes as it is to come: by TLS with its key if it has one, under the names that the key was used for. To
/// a discovery controller it may come in the clear, to learn that TLS is required.
fn check_secured(
    rights: &HostRights,
    kind: ControllerKind,
    parties: &Parties,
    secured: Option<&Secured>,
) -> Result<(), Failure> {
    let why = match (&rights.tls_key, secured) {
        (None, None) => return Ok(()),
        (Some(_), None) if kind == ControllerKind::Discovery => return Ok(()),
        (Some(_), None) => "it has a key for TLS, and came in the clear",
        (_, Some(secured)) if secured.parties != *parties => "its TLS was for another host or subsystem",
        (Some(key), Some(secured)) if *key == secured.key => return Ok(()),
        (_, Some(_)) => "the key of its TLS is not its key any more",
    };
    tracing::warn!(host = parties.host, why, "a host was refused");
    Err(Status::AuthenticationRequired.into())
}

/// A place for one more connection of the host.
fn claim(place: &mut Place, nqn: &str, proves: bool) -> Result<(Arc<Member>, Arc<HostRights>), Failure> {
    let claimed = place.claim(nqn, proves).map(Arc::clone).and_then(|member| {
        let rights = member.rights().ok_or(Refusal::NoRights)?;
        Ok((member, rights))
    });
    claimed.map_err(|why| {
        tracing::warn!(host = nqn, %why, "a host was refused");
        match why {
            Refusal::NoRights => Status::ConnectInvalidHost.into(),
            Refusal::OwnMax(_) | Refusal::Kept | Refusal::AllInUse => Status::ConnectControllerBusy.into(),
        }
    })
}

fn admin_queue(
    view: View<'_>,
    member: &Arc<Member>,
    (kind, controller_id, keep_alive_ms): (ControllerKind, u16, u32),
    host: Host,
    discovered: u64,
    now: Nanos,
) -> Result<(Phase, u16), Failure> {
    if controller_id != CONTROLLER_ANY {
        return Err(invalid(AT_CONTROLLER, true));
    }
    let controller = view.subsystem.add_controller(kind, host, member, keep_alive_ms, now)?;
    let mut locked = lock(&controller);
    locked.begin_with(view.accesses(), discovered);
    let id = locked.id;
    drop(locked);
    let (host, rights) = (&member.nqn, view.rights);
    tracing::info!(controller = id, host, %rights, ?kind, keep_alive_ms, "a host has connected");
    Ok((Phase::Admin { controller, id }, id))
}

fn io_queue(
    subsystem: &Subsystem,
    kind: ControllerKind,
    host: &Host,
    id: u16,
    queue: u16,
) -> Result<(Phase, u16), Failure> {
    let found = subsystem.controller(id).ok_or(invalid(AT_CONTROLLER, true))?;
    let mut controller = lock(&found);
    if controller.kind != kind || controller.host != *host {
        return Err(invalid(AT_CONTROLLER, true));
    }
    if kind == ControllerKind::Discovery || queue > controller.features.queues {
        return Err(invalid(AT_QUEUE_ID, false));
    }
    if !controller.is_ready() {
        return Err(Status::CommandSequenceError.into());
    }
    if !controller.queues.insert(queue) {
        return Err(invalid(AT_QUEUE_ID, false));
    }
    tracing::info!(controller = id, queue, "an I/O queue has connected");
    let resets = controller.resets;
    drop(controller);
    Ok((Phase::Io { controller: Arc::clone(&found), id, queue, resets }, id))
}

/// The failure that names an invalid parameter: its offset in the command or in its data (IPO and IATTR).
fn invalid(offset: u64, is_in_data: bool) -> Failure {
    Failure { status: Status::ConnectInvalidParameters, result: offset | u64::from(is_in_data) << 16 }
}
