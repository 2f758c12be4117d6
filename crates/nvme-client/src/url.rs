//! The URL of a drive on the wire: where it is, and how it is talked to.
//!
//! ```text
//!   nvme+tcp://127.0.0.1:4420/nqn.2024-01.org.example:kv?ns=2&depth=32&timeout=5&digest=header,data&host=nqn.2024-01.org.example:me
//!              |         |    |                          |    |        |         |                  |
//!              |         |    |                          |    |        |         |                  NQN of the host; default a new one
//!              |         |    |                          |    |        |         digests, both ways; default none
//!              |         |    |                          |    |        seconds that a command may take; default 30
//!              |         |    |                          |    outstanding commands, 1 to 1024; default 128
//!              |         |    |                          namespace; default 1
//!              |         |    NQN of the subsystem; default the only one that discovery finds
//!              |         port; default 4420
//!              name, IPv4 address, or IPv6 address in [ ]
//! ```
//!
//! `secret-file=PATH`, `controller-secret-file=PATH` and `tls-key-file=PATH` name the files of secrets and of a key
//! (docs/NVME.md, *Who may*).
//!
//! `fluent-uri` takes the text apart by RFC 3986 and 3987. What the parameters mean is said here.

use crate::Error;
use fluent_uri::component::IAuthority;
use fluent_uri::pct_enc::encoder::{IPath, IQuery};
use fluent_uri::pct_enc::{EStr, EString, Encoder};
use fluent_uri::{Iri, ParseError};
use kvssd_nvme_auth::{Credentials, TlsKey, has_secret, masked, read_secret, read_tls_key};
use kvssd_nvme_spec::fabrics::NQN_BYTES_MAX;
use kvssd_types::NamespaceId;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

const SCHEME: &str = "nvme+tcp";
const SLASHES: &str = "//";
/// The port that IANA assigns to NVMe/TCP.
const PORT: u16 = 4420;
const QUEUE_DEPTH: u16 = 128;
/// As many as common targets grant.
const QUEUE_DEPTH_MAX: u16 = 1024;
const TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT_SECONDS_MAX: u64 = 3600;

/// What a CRC32C covers on the wire, beside TCP's own checksum. A target may decline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// HDGST: headers of PDUs.
    pub header: bool,
    /// DDGST: data of PDUs.
    pub data: bool,
}

/// Where a drive on the wire is, and how it is talked to. It reads and prints as
/// `nvme+tcp://host:port/nqn?ns=1&depth=128&timeout=30&digest=header,data`; only the host must be there.
///
/// ```
/// let url: kvssd_nvme_client::DriveUrl = "nvme+tcp://[::1]:4421/nqn.2024-01.org.example:kv?ns=2&depth=32".parse()?;
/// assert_eq!((url.host.as_str(), url.port, url.namespace.0, url.queue_depth), ("::1", 4421, 2, 32));
/// # Ok::<(), kvssd_nvme_client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveUrl {
    /// A name or an address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// NQN of the subsystem; `None` for the only one that discovery finds.
    pub nqn: Option<String>,
    /// The namespace of calls that name none.
    pub namespace: NamespaceId,
    /// The most outstanding commands; the target may grant fewer.
    pub queue_depth: u16,
    /// How long a command may take, with the time to reach the drive again.
    pub timeout: Duration,
    /// The digests that are requested; the target decides.
    pub digests: Digests,
    /// NQN of the host, for targets that admit only some; `None` for a new one of each client.
    pub host_nqn: Option<String>,
    /// The file of the secret by which the host proves who it is, where a target asks for that.
    pub secret_file: Option<String>,
    /// The file of the secret by which the target must prove who it is.
    pub controller_secret_file: Option<String>,
    /// The file of the key of TLS, which then carries all that is said; it goes with `host_nqn`.
    pub tls_key_file: Option<String>,
}

impl DriveUrl {
    /// Parses `text` if it is a URL, or begins as one of ours. `None` means that it is a path.
    #[must_use]
    pub fn of(text: &str) -> Option<Result<DriveUrl, Error>> {
        (text.contains("://") || behind_scheme(text).is_some()).then(|| text.parse())
    }
}

impl DriveUrl {
    /// The secrets of the files that it names.
    pub(crate) fn credentials(&self) -> Result<Option<Credentials>, Error> {
        let read = |file: &String| {
            let wrong = |why| Error::InvalidUrl(format!("{self}: {file}: {why}"));
            read_secret(Path::new(file)).map_err(wrong)
        };
        let controller = self.controller_secret_file.as_ref().map(read).transpose()?;
        match (&self.secret_file, controller) {
            (Some(file), controller) => Ok(Some(Credentials { host: read(file)?, controller })),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(Error::InvalidUrl(format!("{self}: controller-secret-file is of use with secret-file only")))
            }
        }
    }
}

impl DriveUrl {
    /// The key of the file that it names.
    pub(crate) fn tls_key(&self) -> Result<Option<TlsKey>, Error> {
        let wrong = |why: String| Error::InvalidUrl(format!("{self}: {why}"));
        let Some(file) = &self.tls_key_file else { return Ok(None) };
        if cfg!(not(feature = "tls")) {
            return Err(wrong("this program was built without TLS: build it with --features tls".to_owned()));
        }
        if self.host_nqn.is_none() {
            return Err(wrong("tls-key-file goes with a name of the host: add host=NQN".to_owned()));
        }
        read_tls_key(Path::new(file)).map(Some).map_err(|why| wrong(format!("{file}: {why}")))
    }
}

impl FromStr for DriveUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // One who pastes a secret where it does not belong finds it in no log.
        parse(text).map_err(|why| Error::InvalidUrl(masked(&format!("{text}: {why}"))))
    }
}

fn parse(text: &str) -> Result<DriveUrl, String> {
    let behind = behind_scheme(text).ok_or("a drive on the wire is at nvme+tcp://host:port/nqn?ns=1")?;
    let rest = behind.strip_prefix(SLASHES).ok_or_else(|| {
        let rest = behind.trim_start_matches('/');
        format!("two slashes are behind the colon: {SCHEME}:{SLASHES}{rest} (a file of that name is ./{text})")
    })?;
    let iri = Iri::parse(text).map_err(|error| explain(text, rest, error))?;
    if iri.has_fragment() {
        return Err("nothing follows a #".to_owned());
    }
    let (host, port) = host_and_port(&iri.authority().ok_or("it names no host")?)?;
    let nqn = iri.path().as_str().strip_prefix('/').and_then(EStr::<IPath>::new).map(decoded).transpose()?;
    let mut url = DriveUrl {
        host,
        port,
        nqn: nqn.filter(|nqn| !nqn.is_empty()),
        namespace: NamespaceId::FIRST,
        queue_depth: QUEUE_DEPTH,
        timeout: TIMEOUT,
        digests: Digests::default(),
        host_nqn: None,
        secret_file: None,
        controller_secret_file: None,
        tls_key_file: None,
    };
    check_nqn("subsystem", url.nqn.as_deref().unwrap_or_default())?;
    let mut set = BTreeSet::new();
    for part in iri.query().iter().flat_map(|query| query.split('&')).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, EStr::EMPTY));
        url.set(key.as_str(), decoded(value)?)?;
        if !set.insert(key.as_str()) {
            return Err(format!("{key} is there twice"));
        }
    }
    Ok(url)
}

/// What is behind the colon of our scheme, whose letters may be large (RFC 3986, section 3.1).
fn behind_scheme(text: &str) -> Option<&str> {
    let (scheme, behind) = text.split_once(':')?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(behind)
}

/// What is wrong with `text`, whose part behind the scheme is `rest`.
fn explain(text: &str, rest: &str, error: ParseError) -> String {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
    if !authority.starts_with('[') && host.contains(':') {
        return format!("an IPv6 address stands in brackets: nvme+tcp://[{authority}]");
    }
    let begin = text.len() - rest.len();
    let in_port = begin + host.len() + 1..begin + authority.len();
    if in_port.contains(&error.index()) && host.starts_with('[') == host.ends_with(']') {
        return port_of(port).err().unwrap_or_else(|| error.to_string());
    }
    match text.get(error.index()..).and_then(|rest| rest.chars().next()) {
        Some(letter) => format!("{error}, {letter:?}"),
        None => format!("it ends too early, at index {}", error.index()),
    }
}

impl DriveUrl {
    fn set(&mut self, key: &str, value: String) -> Result<(), String> {
        if has_secret(&value) {
            return Err(format!("{key}: this is a secret itself: write it to a file, and here that file's name"));
        }
        match key {
            "ns" => self.namespace = NamespaceId(number(key, &value, 1, u64::from(u32::MAX) - 1)? as u32),
            "depth" => self.queue_depth = number(key, &value, 1, u64::from(QUEUE_DEPTH_MAX))? as u16,
            "timeout" => self.timeout = Duration::from_secs(number(key, &value, 1, TIMEOUT_SECONDS_MAX)?),
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
                check_nqn("host", &value)?;
                self.host_nqn = Some(value);
            }
            "secret-file" => self.secret_file = Some(value),
            "controller-secret-file" => self.controller_secret_file = Some(value),
            "tls-key-file" => self.tls_key_file = Some(value),
            other => {
                return Err(format!(
                    "there is no parameter {other:?}, but ns, depth, timeout, digest, host, secret-file, \
                     controller-secret-file and tls-key-file"
                ));
            }
        }
        Ok(())
    }
}

fn decoded<E: Encoder>(part: &EStr<E>) -> Result<String, String> {
    let text = part.decode().to_string();
    text.map(Into::into).map_err(|_| format!("{} is no text", part.as_str()))
}

fn check_nqn(of: &str, nqn: &str) -> Result<(), String> {
    if has_secret(nqn) {
        return Err(format!(
            "the name of a {of} is a secret: write that to a file, and its name to the URL's parameters"
        ));
    }
    if nqn.len() > NQN_BYTES_MAX {
        return Err(format!("the name of a {of} has {NQN_BYTES_MAX} bytes at the most, not {}", nqn.len()));
    }
    Ok(())
}

fn host_and_port(authority: &IAuthority<'_>) -> Result<(String, u16), String> {
    if authority.has_userinfo() {
        return Err("it names a user, and NVMe/TCP has none".to_owned());
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("it names no host".to_owned());
    }
    Ok((host.to_owned(), port_of(authority.port().map_or("", EStr::as_str))?))
}

fn port_of(text: &str) -> Result<u16, String> {
    if text.is_empty() { Ok(PORT) } else { Ok(number("port", text, 1, u64::from(u16::MAX))? as u16) }
}

fn number(key: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    let found = value.parse().ok().filter(|number| (min..=max).contains(number));
    found.ok_or_else(|| format!("{key}={value}: it is a number from {min} to {max}"))
}

impl fmt::Display for DriveUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let nqn = encoded::<IPath>(self.nqn.as_deref().unwrap_or_default());
        write!(f, "{SCHEME}:{SLASHES}{host}:{}/{nqn}?ns={}", self.port, self.namespace)?;
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
        // An & of the value's own must not end it.
        let texts = [
            ("host", &self.host_nqn),
            ("secret-file", &self.secret_file),
            ("controller-secret-file", &self.controller_secret_file),
            ("tls-key-file", &self.tls_key_file),
        ];
        for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?))) {
            write!(f, "&{key}={}", encoded::<IQuery>(text).replace('&', "%26"))?;
        }
        Ok(())
    }
}

fn encoded<E: Encoder>(text: &str) -> String {
    let mut encoded = EString::<E>::new();
    encoded.encode_str::<E>(text);
    encoded.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
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
            "nvme+tcp://drive:4420/nqn.a:%3Fb%20%25c?ns=1&host=nqn.c:%23d%26e+f",
            "nvme+tcp://drive:4420/nqn.a:größe/b?ns=1",
            "nvme+tcp://drive:4420/?ns=1&host=nqn.a&secret-file=/etc/kvssd/a&controller-secret-file=drive",
        ] {
            assert_eq!(text.parse::<DriveUrl>().unwrap().to_string(), text);
        }
        let url: DriveUrl = "nvme+tcp://drive/nqn.a:%3Fb%20%25c?host=nqn.c:%23d%26e+f".parse().unwrap();
        assert_eq!(url.nqn.as_deref(), Some("nqn.a:?b %c"));
        assert_eq!(url.host_nqn.as_deref(), Some("nqn.c:#d&e+f"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("tcp://drive", "nvme+tcp://host:port/nqn"),
            ("nvme+tcp://", "names no host"),
            ("nvme+tcp:drive:4420/a", "nvme+tcp://drive:4420/a (a file of that name is ./nvme+tcp:drive:4420/a)"),
            ("NVMe+TCP:/drive", "nvme+tcp://drive (a file"),
            ("NVME+TCP://drive:port", "port=port"),
            ("nvme+tcp://:4420", "names no host"),
            ("nvme+tcp://me@drive", "names a user"),
            ("nvme+tcp://::1", "brackets"),
            ("nvme+tcp://[::1", "ends too early"),
            ("nvme+tcp://[::1]4420", "index 16, '4'"),
            ("nvme+tcp://drive:port", "port=port: it is a number from 1 to 65535"),
            ("nvme+tcp://[::1]:port", "port=port"),
            ("nvme+tcp://drive:0", "1 to 65535"),
            ("nvme+tcp://drive?ns=0", "ns=0"),
            ("nvme+tcp://drive?ns=4294967295", "ns=4294967295"),
            ("nvme+tcp://drive?depth=5000", "1 to 1024"),
            ("nvme+tcp://drive?digest=md5", "header, data, or none"),
            ("nvme+tcp://drive?name=x", "no parameter"),
            ("nvme+tcp://drive?ns=1&ns=2", "ns is there twice"),
            ("nvme+tcp://drive?digest=header&ns=2&digest=data", "digest is there twice"),
            ("nvme+tcp://drive/a b", "' '"),
            ("nvme+tcp://drive/a%2", "percent"),
            ("nvme+tcp://drive/a%ff", "no text"),
            ("nvme+tcp://drive/a#b", "#"),
        ] {
            assert!(error_of(text).contains(why), "{text}: {}", error_of(text));
        }
        assert!(error_of(&format!("nvme+tcp://drive/{}", "n".repeat(224))).contains("223"));
    }

    #[test]
    fn a_secret_in_the_wrong_place_is_not_repeated() {
        for key in ["secret-file", "controller-secret-file", "tls-key-file", "host", "secret"] {
            for (colon, equals) in [(":", "="), ("%3A", "%3D"), ("%3a", "=")] {
                let secret = format!("DHHC-1{colon}00{colon}c2VjcmV0LXNlY3JldA{equals}{equals}{colon}");
                let said = error_of(&format!("nvme+tcp://drive?{key}={secret}&ns=2"));
                assert!(said.contains("a secret itself: write it to a file") && said.contains("&ns=2"), "{said}");
                assert!(said.contains(&format!("{key}=DHHC-1{colon}...")) && !said.contains("c2Vj"), "{said}");
            }
        }
        let said = error_of("nvme+tcp://drive/NVMeTLSkey-1:01:c2VjcmV0:");
        assert!(said.contains("the name of a subsystem is a secret") && !said.contains("c2Vj"), "{said}");
    }

    #[test]
    fn a_path_is_no_url() {
        assert_eq!("NVMe+TCP://drive".parse::<DriveUrl>().unwrap(), "nvme+tcp://drive".parse().unwrap());
        assert!(DriveUrl::of("nvme+tcp:drive").is_some_and(|url| url.is_err()), "it is taken for no path");
        assert!(DriveUrl::of("drive.kv").is_none() && DriveUrl::of("/tmp/nvme+tcp:/x").is_none());
        assert!(DriveUrl::of("http://drive").unwrap().is_err());
    }
}
