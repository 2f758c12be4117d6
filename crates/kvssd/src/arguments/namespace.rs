//! The options of `kvssd namespace`, and which namespace of an image a command is on.

use super::units::{named, size};
use super::{Assignment, assignment};
use clap::{Args, Subcommand};
use kvssd_cache::{AdmissionRule, CacheAttributes, CachePlan, EvictionPolicy};
use std::path::PathBuf;

/// Which of an image's namespaces.
#[derive(Debug, Args)]
pub struct InNamespace {
    /// The namespace, by its name or number (see `kvssd namespace list`) [default: that of the URL, else 1]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
}

/// `kvssd namespace`.
#[derive(Debug, Subcommand)]
pub enum NamespaceAction {
    /// Make an empty namespace; prints its number
    Create(CreateNamespaceOptions),
    /// Delete a namespace and all that is in it; its space comes back
    Delete(DeleteNamespaceOptions),
    /// Make a namespace another cache, or an empty one a cache, or none any more
    Cache(SetCacheOptions),
    /// Print the namespaces and how full they are
    List(ListNamespacesOptions),
}

/// `kvssd namespace create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd namespace create drive.kv --name accounts              the index of the image's design
  kvssd namespace create drive.kv --name events --ordered      keys in order: a tree
  kvssd namespace create drive.kv --name log --index lsm --set bloom_bits=10 --quota 100MiB
  kvssd namespace create drive.kv --name prompts --cache lru --budget 10GiB      never full: others leave
  kvssd namespace create nvme+tcp://127.0.0.1:4420 --name accounts    of a drive on the wire: with a name, without --set

An image has up to 16 namespaces; number 1 is there from the beginning.
The image's design says which indexes they can have (docs/FORMAT.md):
  plus                    hash-compact, hash-fixed, lsm, tessera
  pink, iter, tessera     lsm, rhik, multilevel, dram-hash, tessera
  multilevel              all but lsm
  original, rhik, kaml    any

An image of plus takes rhik with --set signature_bits=32.")]
pub struct CreateNamespaceOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// What it is to be called beside its number, up to 64 bytes
    #[arg(long)]
    pub name: Option<String>,
    /// Its index, such as hash-compact or lsm (see `kvssd designs`) [default: that of the image's design]
    #[arg(long, value_name = "NAME")]
    pub index: Option<String>,
    /// Sets a parameter of the index (see `kvssd designs`, without the design.)
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub set: Vec<Assignment>,
    /// The most bytes of flash that its pairs may take, without their index, as 100MiB [default: 0, as
    /// many as the image has]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub quota: Option<u64>,
    /// Keeps its keys in order
    #[arg(long)]
    pub ordered: bool,
    #[command(flatten)]
    pub cache: CacheOptions,
}

/// What cache a namespace is to be.
#[derive(Clone, Debug, Args)]
pub struct CacheOptions {
    /// Makes it a cache, from which so many pairs leave that others have room: fifo, lru, s3-fifo, ttl (who is too old first)
    #[arg(long, value_name = "POLICY", value_parser = named(EvictionPolicy::known(), |policy| policy.name), requires = "budget")]
    pub cache: Option<EvictionPolicy>,
    /// Bytes of keys and values that the cache holds, as 10GiB
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "cache")]
    pub budget: Option<u64>,
    /// Who comes in: asked=2 (at the second store), at-most=65536 (bytes), a-day=100000000000 (bytes written); all must agree
    #[arg(long, value_name = "RULE", requires = "cache")]
    pub admit: Vec<AdmissionRule>,
    /// Seconds behind which a pair is too old, counted from when it was stored [default: never]
    #[arg(long, value_name = "SECONDS", requires = "cache", value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    pub ttl: Option<u64>,
}

impl CacheOptions {
    /// The cache that is asked for; none where none is.
    #[must_use]
    pub fn attributes(&self) -> Option<CacheAttributes> {
        let (eviction, budget_bytes) = self.cache.zip(self.budget)?;
        let plan = CachePlan { budget_bytes, eviction, admission: self.admit.clone() };
        Some(CacheAttributes { plan, time_to_live_ms: self.ttl.map(|seconds| seconds * 1000) })
    }
}

/// `kvssd namespace cache`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd namespace cache drive.kv prompts --cache s3-fifo --budget 20GiB --admit asked=2
  kvssd namespace cache drive.kv prompts                    none any more, if it is empty")]
pub struct SetCacheOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// The namespace, by its name or number
    #[arg(value_name = "NAME")]
    pub namespace: String,
    #[command(flatten)]
    pub cache: CacheOptions,
}

/// `kvssd namespace delete`.
#[derive(Debug, Args)]
pub struct DeleteNamespaceOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// The namespace, by its name or number
    #[arg(value_name = "NAME")]
    pub namespace: String,
}

/// `kvssd namespace list`.
#[derive(Debug, Args)]
pub struct ListNamespacesOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
}
