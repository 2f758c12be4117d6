//! What of the machine may be taken.

use std::fs::read_to_string;
use std::path::Path;
use std::thread::available_parallelism;

/// How much may be taken at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs at a time.
    pub cores: usize,
    /// Memory of all of them.
    pub memory_bytes: u64,
}

impl Limits {
    /// All cores, and the memory that is free now, in this group of processes.
    pub fn of_machine() -> Limits {
        let cores = available_parallelism().map_or(1, usize::from);
        Limits { cores, memory_bytes: machine_bytes().min(group_bytes()) }
    }
}

/// What the machine has to give; without end where the system does not tell.
fn machine_bytes() -> u64 {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kibibytes.map_or(u64::MAX, |kibibytes| kibibytes * 1024)
}

/// What a batch system or a container leaves to the group that this process is in (cgroup v2), or to one above.
fn group_bytes() -> u64 {
    let text = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(group) = text.lines().find_map(|line| line.strip_prefix("0::/")) else { return u64::MAX };
    let folder = Path::new("/sys/fs/cgroup").join(group);
    let bytes = |text: &str| text.trim().parse::<u64>().ok();
    let left = folder.ancestors().take_while(|folder| folder.starts_with("/sys/fs/cgroup")).filter_map(|folder| {
        let read = |file| read_to_string(folder.join(file)).unwrap_or_default();
        // Pages of files are given up when others want memory.
        let of_files = read("memory.stat").lines().find_map(|line| bytes(line.strip_prefix("file ")?)).unwrap_or(0);
        let taken = bytes(&read("memory.current")).unwrap_or(0).saturating_sub(of_files);
        Some(bytes(&read("memory.max"))?.saturating_sub(taken))
    });
    left.min().unwrap_or(u64::MAX)
}
