//! How a connection begins: TCP, then the ICReq and ICResp of NVMe/TCP.

use crate::connection_lost::ConnectionLost;
use crate::queue_pair::ProtocolError;
use crate::url::Digests;
use kvssd_nvme_spec::pdu::{Decoded, Framing, IC_BYTES, IcRequest, IcResponse, Pdu, Sender};
use kvssd_runtime::net::{SocketAddr, TcpStream};
use kvssd_runtime::time::{Duration, Instant};
use std::io::{ErrorKind, Read, Write};

/// Timeout of one read or write. In between the thread checks its deadline and what others submitted.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Connects to the first of those addresses that answers.
pub(crate) fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, ConnectionLost> {
    let mut failed = ConnectionLost::new("the name of the host has no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, remaining(deadline)) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}

/// Exchanges ICReq and ICResp, and sets the socket's timeouts to [`POLL_INTERVAL`].
pub(crate) fn initialize(
    socket: &mut TcpStream,
    digests: Digests,
    deadline: Instant,
) -> Result<IcResponse, ConnectionLost> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(remaining(deadline)))?;
    socket.set_write_timeout(Some(POLL_INTERVAL))?;
    let mut request = Vec::new();
    Pdu::IcRequest(IcRequest::new(digests.header, digests.data, 1)).encode(&Framing::INITIAL, &mut request);
    socket.write_all(&request)?;
    let mut response = [0; IC_BYTES];
    socket.read_exact(&mut response).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ConnectionLost::new("it does not answer"),
        ErrorKind::UnexpectedEof => ConnectionLost::new("it ended the connection at once"),
        _ => error.into(),
    })?;
    let decoded = Pdu::decode(&response, Sender::Controller, &Framing::INITIAL).map_err(ProtocolError::from)?;
    let Decoded::Pdu { pdu: Pdu::IcResponse(response), .. } = decoded else {
        return Err(ConnectionLost::new("what answers there is no NVMe/TCP controller"));
    };
    let (header, data) = response.digests();
    if (header && !digests.header) || (data && !digests.data) {
        return Err(ConnectionLost::new("it insists on digests; add ?digest=header,data to the URL"));
    }
    socket.set_read_timeout(Some(POLL_INTERVAL))?;
    Ok(response)
}

pub(crate) fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
