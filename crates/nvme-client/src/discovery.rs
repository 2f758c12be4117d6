//! Where a URL leads: addresses by name, and the subsystem by the discovery log page (70h) if the URL names none.

use crate::Error;
use crate::admin_queue::AdminQueue;
use crate::failure::Failure;
use crate::host_identity::HostIdentity;
use crate::time_left::Deadline;
use crate::url::DriveUrl;
use kvssd_nvme_spec::fabrics::DISCOVERY_NQN;
use kvssd_nvme_spec::log_page::{DISCOVERY_RECORD_BYTES, DiscoveryHeader, page, read_discovery_page};
use kvssd_runtime::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The most records of a discovery log page that are read.
const RECORDS_MAX: u64 = 32;

/// A subsystem, and the addresses at which it may be reached.
pub(crate) struct Subsystem {
    pub(crate) nqn: String,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Resolves a URL.
pub(crate) fn resolve(url: &DriveUrl, host: &HostIdentity, deadline: &Deadline) -> Result<Subsystem, Failure> {
    let found = (url.host.as_str(), url.port).to_socket_addrs();
    let addresses = found.map_err(|error| Error::Unreachable(format!("{url}: {error}")))?.collect();
    match &url.nqn {
        Some(nqn) => Ok(Subsystem { nqn: nqn.clone(), addresses }),
        None => discover(url, host, addresses, deadline),
    }
}

/// The only subsystem that the discovery controller at those addresses knows.
fn discover(
    url: &DriveUrl,
    host: &HostIdentity,
    addresses: Vec<SocketAddr>,
    deadline: &Deadline,
) -> Result<Subsystem, Failure> {
    let admin = AdminQueue::connect(url, host, &addresses, DISCOVERY_NQN, deadline)?;
    let header = admin.log_page(page::DISCOVERY, DISCOVERY_RECORD_BYTES as u32, deadline)?;
    let records = DiscoveryHeader::from_data(&header).map_or(0, |header| header.entries.get()).min(RECORDS_MAX);
    let length_bytes = DISCOVERY_RECORD_BYTES as u32 * (records as u32 + 1);
    let log = admin.log_page(page::DISCOVERY, length_bytes, deadline)?;
    let mut found: Vec<_> = read_discovery_page(&log).collect();
    found.sort_by_key(|record| record.subsystem_nqn);
    found.dedup_by_key(|record| record.subsystem_nqn);
    match found[..] {
        [only] if only.is_secured && !host.has_tls_key() => {
            Err(Error::Refused("the drive wants TLS: add tls-key-file=PATH to the URL".to_owned()).into())
        }
        [only] => {
            let address = only.address.parse::<IpAddr>().ok().zip(only.service.parse::<u16>().ok());
            let addresses = address.map_or(addresses, |address| vec![address.into()]);
            Ok(Subsystem { nqn: only.subsystem_nqn.to_owned(), addresses })
        }
        [] => Err(Error::Refused("no subsystem is known there".to_owned()).into()),
        _ => {
            let names: Vec<&str> = found.iter().map(|record| record.subsystem_nqn).collect();
            let names = names.join(", ");
            let why = format!("{url}: there are several subsystems; add the name of one to the URL: {names}");
            Err(Error::InvalidUrl(why).into())
        }
    }
}
