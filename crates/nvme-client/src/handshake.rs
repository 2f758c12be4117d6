//! How a connection begins: TCP, TLS where there is a key (`channel.rs`), then the ICReq and ICResp of NVMe/TCP.

use crate::channel::Channel;
use crate::connection_lost::ConnectionLost;
use crate::queue_pair::ProtocolError;
use crate::time_left::{Deadline, POLL_INTERVAL, is_timeout};
use crate::url::Digests;
use kvssd_nvme_spec::pdu::{Decoded, Framing, IC_BYTES, IcRequest, IcResponse, Pdu, Sender};
use kvssd_runtime::net::{SocketAddr, TcpStream};
use std::io::Read;

/// Connects to the first of those addresses that answers.
pub(crate) fn connect(addresses: &[SocketAddr], deadline: &Deadline) -> Result<TcpStream, ConnectionLost> {
    let mut failed = ConnectionLost::new("the name of the host has no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, deadline.left()) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_write_timeout(Some(POLL_INTERVAL))?;
                return Ok(socket);
            }
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}

/// Exchanges ICReq and ICResp, and sets the socket's timeouts to [`POLL_INTERVAL`].
pub(crate) fn initialize(
    channel: &Channel,
    digests: Digests,
    deadline: &Deadline,
) -> Result<IcResponse, ConnectionLost> {
    channel.socket().set_read_timeout(Some(POLL_INTERVAL))?;
    let mut request = Vec::new();
    Pdu::IcRequest(IcRequest::new(digests.header, digests.data, 1)).encode(&Framing::INITIAL, &mut request);
    let mut request = &request[..];
    while !channel.write(&mut request)? {}
    let mut response = [0; IC_BYTES];
    let mut count = 0;
    while count < IC_BYTES {
        match (&mut &*channel).read(&mut response[count..]) {
            Ok(0) => return Err(ConnectionLost::turned_away("at once")),
            Ok(more) => count += more,
            // A drive that does not read a request before it ends the connection resets it.
            Err(error) if count == 0 && !is_timeout(&error) => {
                let ConnectionLost { why, .. } = ConnectionLost::turned_away("at once");
                return Err(ConnectionLost { why, ..error.into() });
            }
            Err(error) if !is_timeout(&error) => return Err(error.into()),
            Err(_) if deadline.is_over() => return Err(ConnectionLost::new("it does not answer")),
            Err(_) => deadline.ask(),
        }
    }
    let decoded = Pdu::decode(&response, Sender::Controller, &Framing::INITIAL).map_err(ProtocolError::from)?;
    let Decoded::Pdu { pdu: Pdu::IcResponse(response), .. } = decoded else {
        return Err(ConnectionLost::new("what answers there is no NVMe/TCP controller"));
    };
    let (header, data) = response.digests();
    if (header && !digests.header) || (data && !digests.data) {
        return Err(ConnectionLost::new("it insists on digests; add ?digest=header,data to the URL"));
    }
    Ok(response)
}
