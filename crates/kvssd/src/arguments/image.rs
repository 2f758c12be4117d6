//! The options of the commands that work on an image, or on a drive on the wire.

use super::Assignment;
use super::namespace::InNamespace;
use crate::format::Format;
use clap::Args;
use kvssd_device::PARTITIONS_MAX;
use kvssd_text::Bytes;
use std::path::PathBuf;
use std::str::FromStr;

/// `kvssd create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd create drive.kv                         1 GiB of flash, design plus
  kvssd create drive.kv --size 4GiB --design original --preallocate
  kvssd create drive.kv --size 16GiB --value-bytes-max 256MiB
  kvssd create drive.kv --size 16GiB --partitions 8                for as many cores")]
pub struct CreateOptions {
    /// The image, a new file
    pub image: PathBuf,
    /// Bytes of flash, as 4GiB, 500MB or 67108864, from 64MiB on; pairs get most of them (see `kvssd info`)
    #[arg(long, default_value = "1GiB", value_parser = super::units::size, value_name = "SIZE")]
    pub size: u64,
    /// The firmware (see `kvssd designs`)
    #[arg(long, default_value = "plus", value_name = "NAME")]
    pub design: String,
    /// Sets a parameter of the firmware (see `kvssd designs`), which the image keeps: design.victims=cost-benefit
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::of_design)]
    pub set: Vec<Assignment>,
    /// The largest value, as 256MiB, which is the most. Where it is more than a record holds (2 MiB, in an image of less than 512 MiB a
    /// superblock; see `kvssd info`) values of more than half of that are kept in segments, every value takes a byte more, and there are 8
    /// namespaces at the most. Less changes nothing
    #[arg(long, value_parser = super::units::value_bytes, value_name = "SIZE")]
    pub value_bytes_max: Option<u32>,
    /// As many threads change the drive side by side. Each partition has its part of the flash, of quotas and of caches' budgets, and the drive is
    /// full when one of them is; without --value-bytes-max the largest value is that of an image of a partition's size
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(PARTITIONS_MAX)), value_name = "COUNT")]
    pub partitions: u32,
    /// Takes all room on the disk at once, so that no store finds it full later
    #[arg(long)]
    pub preallocate: bool,
}

/// `kvssd info` and `kvssd check`.
#[derive(Debug, Args)]
pub struct ImageOptions {
    /// The image
    pub image: PathBuf,
}

/// `kvssd stat`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd stat drive.kv
  kvssd stat nvme+tcp://127.0.0.1:4420 --watch          a line a second, with what was done since the last
  kvssd stat nvme+tcp://127.0.0.1:4420 --watch 10 --json

What hosts did is known of a drive on the wire only.")]
pub struct StatOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// Looks again and again, after so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub watch: Option<u64>,
    /// Prints JSON, an object a line
    #[arg(long)]
    pub json: bool,
}

/// `kvssd put`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd put drive.kv city/oslo 59.91N           makes drive.kv when there is none
  kvssd put drive.kv photo --file oslo.jpg
  date | kvssd put drive.kv today -
  kvssd put drive.kv hex:00ff hex:c0ffee        bytes that are no text
  kvssd put drive.kv alice 70 --namespace accounts
  kvssd put nvme+tcp://127.0.0.1:4420 city/oslo 59.91N          a drive on the wire (see `kvssd serve`); ?ns=2 is another namespace

When it returns the pair outlives the end of any process; with --sync that of the machine.")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["value", "file"]))]
pub struct PutOptions {
    /// The image, made with 1 GiB of flash and the design plus when there is none; or the URL of a drive on the wire
    pub image: PathBuf,
    /// The key, 1 to 255 bytes: text, or hex: and its bytes
    #[arg(value_parser = super::units::key)]
    pub key: Bytes,
    /// The value: text, hex: and its bytes, or - for the standard input
    pub value: Option<GivenValue>,
    /// Takes the value from a file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Waits until the disk has it
    #[arg(long)]
    pub sync: bool,
    /// Which keys are meant
    #[command(flatten)]
    pub within: InNamespace,
}

/// The value of a pair, and where it is if it is not given.
#[derive(Clone, Debug)]
pub enum GivenValue {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// The standard input has it.
    Input,
}

impl FromStr for GivenValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "-" => Ok(GivenValue::Input),
            _ => text.parse().map(|Bytes(bytes)| GivenValue::Bytes(bytes)),
        }
    }
}

/// `kvssd get`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd get drive.kv city/oslo                  the bytes of the value, nothing else
  kvssd get drive.kv photo --file oslo.jpg

The exit status is 1 when there is no such key.")]
pub struct GetOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// The key: text, or hex: and its bytes
    #[arg(value_parser = super::units::key)]
    pub key: Bytes,
    /// Writes the value to a file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Which keys are meant
    #[command(flatten)]
    pub within: InNamespace,
}

/// `kvssd delete`.
#[derive(Debug, Args)]
#[command(after_help = "The exit status is 1 when there is no such key.")]
pub struct DeleteOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// The key: text, or hex: and its bytes
    #[arg(value_parser = super::units::key)]
    pub key: Bytes,
    /// Waits until the disk knows
    #[arg(long)]
    pub sync: bool,
    /// Which keys are meant
    #[command(flatten)]
    pub within: InNamespace,
}

/// `kvssd exist`.
#[derive(Debug, Args)]
#[command(after_help = "The exit status is 0 when there is such a key, 1 when not.")]
pub struct ExistOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// The key: text, or hex: and its bytes
    #[arg(value_parser = super::units::key)]
    pub key: Bytes,
    /// Which keys are meant
    #[command(flatten)]
    pub within: InNamespace,
}

/// `kvssd list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd list drive.kv                           a key a line; hex: and bytes where it is no plain text
  kvssd list drive.kv --from city/oslo --count 10

The order is the keys' own where a namespace is ordered, else the index's own.
It stays while no key comes or goes.
Of all keys those that cannot be read are passed over: one line says how many, and the exit status is 1.")]
pub struct ListOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// The first key, or one next to where it would be
    #[arg(long, value_name = "KEY")]
    pub from: Option<Bytes>,
    /// The most keys to print [default: all]
    #[arg(long, value_name = "N", value_parser = super::units::count)]
    pub count: Option<u64>,
    /// Which keys are meant
    #[command(flatten)]
    pub within: InNamespace,
}

/// `kvssd load`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd load drive.kv pairs.csv                 lines of key,value, without a header
  kvssd load drive.kv pairs.jsonl               lines of {\"key\": \"...\", \"value\": \"...\"}
  kvssd load drive.kv pairs.csv.gz              gzip and zstd are told by their first bytes, and unpacked
  kvssd dump other.kv - | kvssd load drive.kv -

A text that begins with hex: stands for the bytes that follow. What was loaded before a wrong line stays.")]
pub struct LoadOptions {
    /// The image, made with 1 GiB of flash and the design plus when there is none; or the URL of a drive on the wire
    pub image: PathBuf,
    /// The pairs: a file, or - for the standard input
    pub file: PathBuf,
    /// csv or json [default: by the ending of the file, or json where it begins so; else csv for the standard input]
    #[arg(long, value_name = "NAME")]
    pub format: Option<Format>,
    /// Waits for the disk after each batch
    #[arg(long)]
    pub sync: bool,
    /// Which keys are meant
    #[command(flatten)]
    pub within: InNamespace,
}

/// `kvssd dump`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kvssd dump drive.kv                           key,value lines on the standard output
  kvssd dump drive.kv pairs.jsonl
  kvssd dump drive.kv - --format json | gzip > pairs.jsonl.gz
  kvssd dump drive.kv accounts.csv --namespace accounts

Loading a dump gives the same pairs: what is no plain text is written as hex: and its bytes.
Pairs that cannot be read are passed over: one line says how many, and the exit status is 1.
A value takes up to seven times its size in memory meanwhile.")]
pub struct DumpOptions {
    /// The image, or the URL of a drive on the wire
    pub image: PathBuf,
    /// The pairs: a file, or - for the standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// csv or json [default: by the ending of the file; csv for the standard output]
    #[arg(long, value_name = "NAME")]
    pub format: Option<Format>,
    /// Which keys are meant
    #[command(flatten)]
    pub within: InNamespace,
}
