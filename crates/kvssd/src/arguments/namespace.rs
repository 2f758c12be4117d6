//! The options of `kvssd namespace`, and which namespace of an image a command is on.

use super::units::size;
use super::{Assignment, assignment};
use clap::{Args, Subcommand};
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
    /// Print the namespaces and how full they are
    List(ListNamespacesOptions),
}

/// `kvssd namespace create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd namespace create drive.kv --name accounts              the index of the image's design
  kvssd namespace create drive.kv --name events --ordered      keys in order: a tree
  kvssd namespace create drive.kv --name log --index lsm --set bloom_bits=10 --quota 100MiB
  kvssd namespace create nvme+tcp://127.0.0.1:4420 --name accounts    of a drive on the wire: with a name, without --set

An image has up to 16 namespaces; number 1 is there from the beginning.
The image's design says which indexes they can have (docs/FORMAT.md):
  plus                                hash-compact, hash-fixed, lsm
  pink, iter                          lsm, rhik, multilevel, dram-hash
  multilevel                          all but lsm
  original, rhik, kaml                any")]
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
    /// The most bytes of flash that it may take, as 100MiB [default: as many as the image has]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub quota: Option<u64>,
    /// Keeps its keys in order
    #[arg(long)]
    pub ordered: bool,
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
