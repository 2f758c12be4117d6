//! The options of `kvssd serve`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// `kvssd serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd serve drive.kv                                     for hosts on this machine, port 4420
  kvssd serve drive.kv --listen 127.0.0.1:0                a port that the system chooses, and the first line says
  kvssd serve drive.kv --timed pm983                       answers come when that hardware would give them
  kvssd serve drive.kv --listen 192.0.2.7:4420 --config target.toml
  kvssd serve drive.kv --allow-host nqn.2024-01.org.example:build7
  kvssd serve drive.kv --config target.toml                who may do what with which namespace, and how much
  kvssd serve drive.kv --metrics 127.0.0.1:9420            for Prometheus
  nvme connect -t tcp -a 127.0.0.1 -s 4420 -n nqn.2025-01.org.kvssd:drive

Hosts prove who they are where the file of --config names secrets or keys; without that a host is whoever it says it is. What they say
is encrypted where it names keys for TLS; else listen wider than this machine in networks that you trust only. An
interrupt or SIGTERM ends the service in order. What hosts can do is in docs/NVME.md.")]
pub struct ServeOptions {
    /// The image
    pub image: PathBuf,
    /// Where hosts connect
    #[arg(long, default_value = "127.0.0.1:4420", value_name = "ADDRESS:PORT", value_parser = address)]
    pub listen: SocketAddr,
    /// The name of the subsystem
    #[arg(long, default_value = "nqn.2025-01.org.kvssd:drive", value_name = "NQN", value_parser = subsystem)]
    pub nqn: String,
    /// A host that may connect and do everything, by its NQN; others may not then. Can be given more than once
    #[arg(long = "allow-host", value_name = "NQN", value_parser = nqn)]
    pub allow_hosts: Vec<String>,
    /// A file that says which host may do what. SIGHUP has it read anew
    #[arg(long, value_name = "FILE", conflicts_with = "allow_hosts")]
    pub config: Option<PathBuf>,
    /// Listens wider than this machine although hosts need not prove who they are
    #[arg(long)]
    pub insecure: bool,
    /// Holds each answer back until the hardware of a profile would have given it (see `kvssd profiles`); else they go out at once
    #[arg(long, value_name = "PROFILE")]
    pub timed: Option<String>,
    /// Waits until the disk has what is stored: an answer then outlives the machine, not only the process
    #[arg(long)]
    pub sync: bool,
    /// Memory for pages of the image that were read or written
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = super::units::size)]
    pub cache: u64,
    /// Grants data digests to hosts that ask for them. SPDK's cover bytes that are not sent: leave them off there
    #[arg(long)]
    pub data_digest: bool,
    /// Gives metrics to Prometheus, over HTTP
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// What is logged, on the standard error: error, warn, info, debug or trace, or filters such as kvssd_nvme_target=debug
    #[arg(long, default_value = "warn", value_name = "FILTER")]
    pub log: String,
}

/// Where somebody listens. What a name means is for somebody else to say, and could change.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write it as 127.0.0.1:4420 or [::1]:4420, with an address and no name".to_owned())
}

/// The name of a subsystem. That of discovery leads to no drive, whoever has it.
fn subsystem(text: &str) -> Result<String, String> {
    match nqn(text)? {
        name if name == kvssd_nvme_target::DISCOVERY_NQN => {
            Err("that is the name of discovery: no host would come to the drive".to_owned())
        }
        name => Ok(name),
    }
}

/// An NVMe qualified name.
pub fn nqn(text: &str) -> Result<String, String> {
    const BYTES_MAX: usize = 223;
    if !text.starts_with("nqn.") || text.len() > BYTES_MAX || text.contains(char::is_control) {
        return Err(format!(
            "a name begins with nqn. and has at most {BYTES_MAX} bytes, as nqn.2025-01.org.example:drive"
        ));
    }
    Ok(text.to_owned())
}
