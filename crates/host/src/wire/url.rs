//! Where a drive on the wire is, and how it is talked to.
//!
//! ```text
//!   nvme+tcp://127.0.0.1:4420/nqn.2024-01.org.example:kv?ns=2&depth=32&timeout=5&digest=header,data&host=nqn.2024-01.org.example:me
//!              |         |    |                          |    |        |         |                  |
//!              |         |    |                          |    |        |         |                  who asks; default a new one
//!              |         |    |                          |    |        |         checked both ways; default none
//!              |         |    |                          |    |        seconds that a command may take; default 30
//!              |         |    |                          |    commands under way at a time, 1 to 1024; default 128
//!              |         |    |                          namespace; default 1
//!              |         |    subsystem; by default the only one of keys that discovery knows
//!              |         port; default 4420
//!              name, IPv4 address, or IPv6 address in [ ]
//! ```

use crate::Error;
use kvssd_types::NamespaceId;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const SCHEME: &str = "nvme+tcp://";
/// Where NVMe/TCP listens, says the register of ports.
const PORT: u16 = 4420;
const QUEUE_DEPTH: u16 = 128;
/// As many as common targets give.
const QUEUE_DEPTH_MAX: u16 = 1024;
const TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT_SECONDS_MAX: u64 = 3600;
/// The longest name of a subsystem (NVMe base, NVMe Qualified Names).
const NQN_BYTES_MAX: usize = 223;

/// What is covered by a CRC32C on the wire, beside the checksum that TCP has. A target may decline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Heads of PDUs.
    pub header: bool,
    /// Values, and other data.
    pub data: bool,
}

/// Where a drive on the wire is, and how it is talked to; reads and prints as
/// `nvme+tcp://host:port/nqn?ns=1&depth=128&timeout=30&digest=header,data`, of which only the host must be there.
///
/// ```
/// let url: kvssd_host::DriveUrl = "nvme+tcp://[::1]:4421/nqn.2024-01.org.example:kv?ns=2&depth=32".parse()?;
/// assert_eq!((url.host.as_str(), url.port, url.namespace.0, url.queue_depth), ("::1", 4421, 2, 32));
/// # Ok::<(), kvssd_host::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveUrl {
    /// A name or an address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The subsystem; none for the only one of keys that discovery knows there.
    pub nqn: Option<String>,
    /// The namespace that calls without one are on.
    pub namespace: NamespaceId,
    /// Commands under way at a time, at most; the target may take less.
    pub queue_depth: u16,
    /// How long a command may take, with what is done to reach the drive again.
    pub timeout: Duration,
    /// What is asked for; the target decides.
    pub digests: Digests,
    /// The NQN of the host that asks, where the target lets in only some; none for one of its own each time.
    pub host_nqn: Option<String>,
}

impl DriveUrl {
    /// The URL in `text`, or what is wrong with it; none when it is no URL at all, but a path.
    #[must_use]
    pub fn of(text: &str) -> Option<Result<DriveUrl, Error>> {
        text.contains("://").then(|| text.parse())
    }
}

impl FromStr for DriveUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|why| Error::InvalidOptions { why: format!("{text}: {why}") })
    }
}

fn parse(text: &str) -> Result<DriveUrl, String> {
    let rest = text.strip_prefix(SCHEME).ok_or("a drive on the wire is at nvme+tcp://host:port/nqn?ns=1")?;
    if let Some(letter) = rest.chars().find(|letter| letter.is_control() || letter.is_whitespace()) {
        return Err(format!("{letter:?} is in no URL"));
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, nqn) = place.split_once('/').unwrap_or((place, ""));
    let (host, port) = host_and_port(authority)?;
    check_nqn("subsystem", nqn)?;
    let mut url = DriveUrl {
        host: host.to_owned(),
        port,
        nqn: (!nqn.is_empty()).then(|| nqn.to_owned()),
        namespace: NamespaceId::FIRST,
        queue_depth: QUEUE_DEPTH,
        timeout: TIMEOUT,
        digests: Digests::default(),
        host_nqn: None,
    };
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        url.set(key, value)?;
    }
    Ok(url)
}

impl DriveUrl {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ns" => self.namespace = NamespaceId(number(key, value, 1, u64::from(u32::MAX) - 1)? as u32),
            "depth" => self.queue_depth = number(key, value, 1, u64::from(QUEUE_DEPTH_MAX))? as u16,
            "timeout" => self.timeout = Duration::from_secs(number(key, value, 1, TIMEOUT_SECONDS_MAX)?),
            "digest" => {
                self.digests = Digests::default();
                for which in value.split(',') {
                    match which {
                        "header" => self.digests.header = true,
                        "data" => self.digests.data = true,
                        "none" => {}
                        other => return Err(format!("digest={other}: digests are header, data, or none")),
                    }
                }
            }
            "host" => {
                check_nqn("host", value)?;
                self.host_nqn = Some(value.to_owned());
            }
            other => return Err(format!("there is no parameter {other:?}, but ns, depth, timeout, digest and host")),
        }
        Ok(())
    }
}

fn check_nqn(of: &str, nqn: &str) -> Result<(), String> {
    if nqn.len() > NQN_BYTES_MAX {
        return Err(format!("the name of a {of} has {NQN_BYTES_MAX} bytes at the most, not {}", nqn.len()));
    }
    Ok(())
}

fn host_and_port(authority: &str) -> Result<(&str, u16), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("the ] behind an IPv6 address is missing")?;
            (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or("only a :port follows a ]")?)
        }
        None if authority.matches(':').count() > 1 => {
            return Err(format!("an IPv6 address stands in brackets: nvme+tcp://[{authority}]"));
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    if host.is_empty() {
        return Err("it names no host".to_owned());
    }
    let port = if port.is_empty() { PORT } else { number("port", port, 1, u64::from(u16::MAX))? as u16 };
    Ok((host, port))
}

fn number(key: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    let found = value.parse().ok().filter(|number| (min..=max).contains(number));
    found.ok_or_else(|| format!("{key}={value}: it is a number from {min} to {max}"))
}

impl fmt::Display for DriveUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "{SCHEME}{host}:{}/{}", self.port, self.nqn.as_deref().unwrap_or_default())?;
        write!(f, "?ns={}", self.namespace)?;
        if self.queue_depth != QUEUE_DEPTH {
            write!(f, "&depth={}", self.queue_depth)?;
        }
        if self.timeout != TIMEOUT {
            write!(f, "&timeout={}", self.timeout.as_secs())?;
        }
        match self.digests {
            Digests { header: false, data: false } => {}
            Digests { header: true, data: false } => f.write_str("&digest=header")?,
            Digests { header: false, data: true } => f.write_str("&digest=data")?,
            Digests { header: true, data: true } => f.write_str("&digest=header,data")?,
        }
        self.host_nqn.as_ref().map_or(Ok(()), |nqn| write!(f, "&host={nqn}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        text.parse::<DriveUrl>().unwrap_err().to_string()
    }

    #[test]
    fn a_url_says_where_and_how() {
        let url: DriveUrl =
            "nvme+tcp://127.0.0.1:4421/nqn.2024-01.org.example:kv?ns=3&digest=data,header".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port, url.namespace.0), ("127.0.0.1", 4421, 3));
        assert_eq!(url.nqn.as_deref(), Some("nqn.2024-01.org.example:kv"));
        assert_eq!(url.digests, Digests { header: true, data: true });
        let url: DriveUrl = "nvme+tcp://drive".parse().unwrap();
        assert_eq!((url.port, url.nqn, url.namespace.0, url.queue_depth), (4420, None, 1, 128));
        let url: DriveUrl = "nvme+tcp://[fe80::1]/?timeout=2".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port, url.timeout), ("fe80::1", 4420, Duration::from_secs(2)));
    }

    #[test]
    fn what_is_printed_is_read_again() {
        for text in [
            "nvme+tcp://drive:4420/?ns=1",
            "nvme+tcp://[::1]:1/nqn.a:b?ns=7&depth=1&timeout=9&digest=header",
            "nvme+tcp://10.0.0.1:4420/nqn.a:b?ns=7&digest=header,data&host=nqn.c:d",
        ] {
            assert_eq!(text.parse::<DriveUrl>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("tcp://drive", "nvme+tcp://host:port/nqn"),
            ("nvme+tcp://", "names no host"),
            ("nvme+tcp://:4420", "names no host"),
            ("nvme+tcp://::1", "brackets"),
            ("nvme+tcp://[::1", "]"),
            ("nvme+tcp://[::1]4420", ":port"),
            ("nvme+tcp://drive:port", "port=port"),
            ("nvme+tcp://drive:0", "1 to 65535"),
            ("nvme+tcp://drive?ns=0", "ns=0"),
            ("nvme+tcp://drive?ns=4294967295", "ns=4294967295"),
            ("nvme+tcp://drive?depth=5000", "1 to 1024"),
            ("nvme+tcp://drive?digest=md5", "header, data, or none"),
            ("nvme+tcp://drive?name=x", "no parameter"),
            ("nvme+tcp://drive/a b", "' '"),
        ] {
            assert!(said(text).contains(why), "{text}: {}", said(text));
        }
        assert!(said(&format!("nvme+tcp://drive/{}", "n".repeat(224))).contains("223"));
    }

    #[test]
    fn a_path_is_no_url() {
        assert!(DriveUrl::of("drive.kv").is_none() && DriveUrl::of("/tmp/nvme+tcp:/x").is_none());
        assert!(DriveUrl::of("http://drive").unwrap().is_err());
    }
}
