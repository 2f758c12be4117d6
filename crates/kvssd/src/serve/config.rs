//! The file that says who may do what with a drive that is served.
//!
//! ```toml
//!   connections_max = 512
//!   [hosts."nqn.2024-01.org.example:build7"]
//!   read_write = ["accounts", 3]          # "all", or names and numbers of namespaces
//!   read_only = ["log"]
//!   pairs_max = "1e6"                     # that its read_write namespaces hold together, and bytes_max = "10GiB"
//!   operations_per_second = 20000         # and bytes_per_second = "200MiB"
//!   connections_max = 16
//!   secret_file = "build7.secret"         # by which it proves who it is; controller_secret_file, by which the drive does
//!   tls_key_file = "build7.key"           # by which all that is said is encrypted; in the clear it is refused then
//!   [others]                              # hosts that are not named; without it they are refused
//!   read_only = "all"
//! ```

use crate::arguments::units::{count, size};
use crate::fail::Failure;
use crate::text::refuse_pipe;
use kvssd_nvme_auth::{Credentials, Secret, TlsKey, has_secret, read_secret, read_tls_key};
use kvssd_nvme_target::{HostRights, Namespaces, Quota, Rate, Rights};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Value;

/// As many as a machine has threads for.
const CONNECTIONS_MAX: usize = 65_536;

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub rights: Rights,
    /// The most connections of all hosts; `None` for the target's own bound.
    pub connections_max: Option<usize>,
}

/// A namespace of the drive: its number and its name.
pub type Known = (u32, Option<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    connections_max: Option<usize>,
    #[serde(default)]
    hosts: BTreeMap<String, WrittenRights>,
    others: Option<WrittenRights>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRights {
    read_write: Option<Value>,
    read_only: Option<Value>,
    manage: Option<bool>,
    pairs_max: Option<Value>,
    bytes_max: Option<Value>,
    operations_per_second: Option<Value>,
    bytes_per_second: Option<Value>,
    connections_max: Option<usize>,
    secret_file: Option<PathBuf>,
    controller_secret_file: Option<PathBuf>,
    tls_key_file: Option<PathBuf>,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// Why it says nothing about a drive with these namespaces, in a line with its name.
    pub fn load(path: &Path, known: &[Known]) -> Result<Self, Failure> {
        let wrong = Failure::of_input(path);
        // SIGHUP has it read while hosts are served.
        refuse_pipe(path).map_err(&wrong)?;
        let text = std::fs::read_to_string(path).map_err(|why| wrong(format!("cannot be read: {why}")))?;
        Config::parse(&text, known, path.parent().unwrap_or(Path::new(""))).map_err(wrong)
    }

    /// Files of secrets are in `folder`, where their names say nothing else.
    fn parse(text: &str, known: &[Known], folder: &Path) -> Result<Self, String> {
        let written: Written = toml::from_str(text).map_err(|why| without_text(text, &why))?;
        if let Some(max) = written.connections_max.filter(|max| !(2..=CONNECTIONS_MAX).contains(max)) {
            return Err(format!("connections_max = {max}: write a number from 2 to {CONNECTIONS_MAX}"));
        }
        if written.hosts.is_empty() && written.others.is_none() {
            return Err("it lets nobody in: write [hosts.\"nqn...\"], or [others] for all hosts".to_owned());
        }
        let mut hosts = BTreeMap::new();
        for (nqn, rights) in written.hosts {
            let nqn = crate::arguments::serve::nqn(&nqn).map_err(|why| format!("hosts.{nqn:?}: {why}"))?;
            let rights = rights.rights(known, folder).map_err(|why| format!("hosts.{nqn:?}: {why}"))?;
            hosts.insert(nqn, rights);
        }
        let others = written.others.map(|rights| rights.rights(known, folder).map_err(|why| format!("others: {why}")));
        Ok(Config { rights: Rights::new(hosts, others.transpose()?), connections_max: written.connections_max })
    }
}

impl WrittenRights {
    fn rights(self, known: &[Known], folder: &Path) -> Result<HostRights, String> {
        if self.read_write.is_none() && self.read_only.is_none() {
            return Err("it may see nothing: add read_write or read_only, or leave it out".to_owned());
        }
        if self.connections_max == Some(0) {
            return Err("connections_max = 0: leave the host out to refuse it".to_owned());
        }
        let chosen = |key: &str, value: &Option<Value>| {
            value.as_ref().map_or(Ok(Namespaces::NONE), |value| namespaces(key, value, known))
        };
        let rate =
            |key: &str, value: &Option<Value>, read: fn(&str) -> Result<u64, String>| match number(key, value, read)? {
                Some(0) => Err(format!("{key} = 0: leave the host out to refuse it")),
                rate => Ok(rate.and_then(NonZeroU64::new)),
            };
        let bound =
            |key: &str, value: &Option<Value>, read: fn(&str) -> Result<u64, String>| match number(key, value, read)? {
                Some(0) => {
                    Err(format!("{key} = 0: list its namespaces under read_only, or leave {key} out for no bound"))
                }
                bound => Ok(bound),
            };
        let manage = self.manage.unwrap_or(false);
        if manage && self.read_write.as_ref().and_then(Value::as_str) != Some("all") {
            return Err("manage = true: who makes and deletes namespaces sees all; add read_write = \"all\"".to_owned());
        }
        Ok(HostRights {
            manage,
            read_write: chosen("read_write", &self.read_write)?,
            read_only: chosen("read_only", &self.read_only)?,
            quota: Quota {
                pairs_max: bound("pairs_max", &self.pairs_max, count)?,
                bytes_max: bound("bytes_max", &self.bytes_max, size)?,
            },
            rate: Rate {
                operations_per_second: rate("operations_per_second", &self.operations_per_second, count)?,
                bytes_per_second: rate("bytes_per_second", &self.bytes_per_second, size)?,
            },
            connections_max: self.connections_max,
            authentication: self.credentials(folder)?.map(Arc::new),
            tls_key: self.tls_key(folder)?.map(Arc::new),
        })
    }

    /// The key of the file that it names.
    fn tls_key(&self, folder: &Path) -> Result<Option<TlsKey>, String> {
        let Some(file) = &self.tls_key_file else { return Ok(None) };
        refuse_secret("tls_key_file", file)?;
        if cfg!(not(feature = "tls")) {
            return Err("tls_key_file: this program was built without TLS: build it with --features tls".to_owned());
        }
        let path = folder.join(file);
        read_tls_key(&path).map(Some).map_err(|why| format!("tls_key_file = {}: {why}", path.display()))
    }

    /// The secrets of the files that it names.
    fn credentials(&self, folder: &Path) -> Result<Option<Credentials>, String> {
        let read = |key: &str, file: &Option<PathBuf>| -> Result<Option<Secret>, String> {
            let Some(file) = file else { return Ok(None) };
            refuse_secret(key, file)?;
            let path = folder.join(file);
            read_secret(&path).map(Some).map_err(|why| format!("{key} = {}: {why}", path.display()))
        };
        let controller = read("controller_secret_file", &self.controller_secret_file)?;
        match (read("secret_file", &self.secret_file)?, controller) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err("controller_secret_file is of use with secret_file only".to_owned()),
            (Some(host), Some(controller)) if host.has_bytes_of(&controller) => {
                Err("secret_file and controller_secret_file hold the same secret: make one for each".to_owned())
            }
            (Some(host), controller) => Ok(Some(Credentials { host, controller })),
        }
    }
}

/// What is wrong, and in which line. What else that line has is nobody's to read: it may be a secret, or the wrong file.
fn without_text(text: &str, why: &toml::de::Error) -> String {
    let before = why.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("TOML, line {}: {}", before.matches('\n').count() + 1, why.message().lines().collect::<Vec<_>>().join(" "))
}

/// Refuses a secret in place of the name of its file, without saying it.
fn refuse_secret(key: &str, file: &Path) -> Result<(), String> {
    match has_secret(&file.to_string_lossy()) {
        true => Err(format!("{key}: this is a secret itself: write it to a file, and here that file's name")),
        false => Ok(()),
    }
}

/// A number, or a text that `read` takes for one.
fn number(key: &str, value: &Option<Value>, read: fn(&str) -> Result<u64, String>) -> Result<Option<u64>, String> {
    let Some(value) = value else { return Ok(None) };
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    read(&text).map(Some).map_err(|why| format!("{key} = {value}: {why}"))
}

/// `"all"`, or a list of names and numbers of namespaces that there are.
fn namespaces(key: &str, value: &Value, known: &[Known]) -> Result<Namespaces, String> {
    if value.as_str() == Some("all") {
        return Ok(Namespaces::All);
    }
    let list = value.as_array().ok_or_else(|| format!("{key} = {value}: write \"all\", or a list as [\"log\", 2]"))?;
    let find = |wanted: &Value| {
        let is_it = |(id, name): &&Known| match wanted {
            Value::String(text) => name.as_ref() == Some(text),
            other => other.as_integer() == Some(i64::from(*id)),
        };
        let found = known.iter().find(is_it).map(|(id, _)| *id);
        found.ok_or_else(|| format!("{key}: the drive has no namespace {wanted} (see kvssd namespace list)"))
    };
    Ok(Namespaces::Some(list.iter().map(find).collect::<Result<BTreeSet<u32>, String>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, &[(1, None), (2, Some("log".to_owned())), (3, Some("accounts".to_owned()))], Path::new(""))
    }

    #[test]
    fn a_file_says_what_each_host_may_do() {
        let text = "connections_max = 512\n[hosts.\"nqn.a\"]\nread_write = [\"accounts\", 1]\nread_only = [\"log\"]\n\
                    pairs_max = \"1e6\"\nbytes_max = \"10GiB\"\noperations_per_second = 20000\n\
                    bytes_per_second = \"200MiB\"\nconnections_max = 16\n[others]\nread_only = \"all\"";
        let some = |numbers: &[u32]| Namespaces::Some(numbers.iter().copied().collect());
        let named = HostRights {
            read_write: some(&[1, 3]),
            read_only: some(&[2]),
            quota: Quota { pairs_max: Some(1_000_000), bytes_max: Some(10 << 30) },
            rate: Rate { operations_per_second: NonZeroU64::new(20_000), bytes_per_second: NonZeroU64::new(200 << 20) },
            connections_max: Some(16),
            manage: false,
            authentication: None,
            tls_key: None,
        };
        let (read_write, read_only) = (Namespaces::NONE, Namespaces::All);
        let others = HostRights { read_write, read_only, manage: false, ..HostRights::EVERYTHING };
        let rights = Rights::new([("nqn.a".to_owned(), named)].into(), Some(others));
        assert_eq!(parse(text), Ok(Config { rights, connections_max: Some(512) }));
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line_that_names_it() {
        for (text, names) in [
            ("", &["nobody", "[others]"][..]),
            ("[hosts.\"nqn.a\"]", &["nqn.a", "read_write"]),
            ("[hosts.drive]\nread_only = \"all\"", &["drive", "begins with nqn."]),
            ("[others]\nread_only = \"none\"", &["others", "read_only", "all"]),
            ("[others]\nread_only = [\"nothing\"]", &["others", "\"nothing\"", "namespace list"]),
            ("[others]\nread_only = [4]", &["others", "no namespace 4"]),
            ("[others]\nread_only = [2.5]", &["others", "2.5"]),
            ("[others]\nread_write = \"all\"\nbytes_max = \"many\"", &["bytes_max", "many", "4GiB"]),
            ("[others]\nread_write = \"all\"\npairs_max = -1", &["pairs_max", "-1"]),
            ("[others]\nread_write = \"all\"\npairs_max = 0", &["pairs_max = 0", "read_only"]),
            ("[others]\nread_write = \"all\"\nbytes_max = \"0MiB\"", &["bytes_max = 0", "read_only"]),
            ("[others]\nread_write = \"all\"\noperations_per_second = 0", &["operations_per_second"]),
            ("[others]\nread_write = \"all\"\nconnections_max = 0", &["connections_max = 0"]),
            ("connections_max = 1\n[others]\nread_write = \"all\"", &["connections_max = 1", "65536"]),
            ("[others]\nread_only = 'all'\nsecret_file = 'no/such'", &["secret_file", "no/such", "cannot be read"]),
            ("[others]\nread_only = 'all'\ntls_key_file = 'no/such'", &["tls_key_file"]),
            ("[others]\nread_write = [1]\nmanage = true", &["others", "manage = true", "read_write = \"all\""]),
            ("[others]\nwrite = \"all\"", &["unknown field", "write"]),
            ("[hosts.\"nqn.a\"]\nread_only = 'all'\n[hosts.\"nqn.a\"]\nread_only = 'all'", &["duplicate"]),
            ("This is not TOML.", &["TOML"]),
        ] {
            let why = parse(text).unwrap_err();
            assert!(!why.contains('\n') && names.iter().all(|name| why.contains(name)), "{text}: {why}");
        }
    }
}
