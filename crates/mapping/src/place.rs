//! Where a page that is in memory, has its blocks and was made writable once stays so, whatever happens to the disk.
//!
//! | file system | |
//! |---|---|
//! | ext4 | blocks stay where they are. A full disk, a journal that was given up and a device that fails were tried, with `delalloc` and without |
//! | ext4 with `data=journal`, `dax` | not: each page that is made writable again is a transaction, or no page of memory |
//! | tmpfs | nothing is written out |
//! | xfs, btrfs, zfs, overlay, NFS, FUSE, others | not: a page that is made writable again may need new blocks, or is refused when the file system has shut down |

use rustix::fs::{IFlags, fstat, ioctl_getflags, major, minor};
use std::fs::{self, File};
use std::io;

/// Whether the file lies in such a place; else why not.
pub(crate) fn check(file: &File) -> io::Result<()> {
    let device = fstat(file)?.st_dev;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let (kind, options) = super_of(&mounts, &format!("{}:{}", major(device), minor(device)))
        .ok_or_else(|| refused("the file system is not among those that are mounted"))?;
    if let Some(why) = refusal(kind, options) {
        return Err(refused(&why));
    }
    // tmpfs has no such flags.
    if ioctl_getflags(file).is_ok_and(|flags| flags.intersects(IFlags::JOURNALING | IFlags::IMMUTABLE)) {
        return Err(refused("the file is journaled, or may not be changed"));
    }
    Ok(())
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// The kind and the options of the file system on a device.
fn super_of<'a>(mounts: &'a str, device: &str) -> Option<(&'a str, &'a str)> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    // Optional fields end with a hyphen.
    let (_, rest) = line.split_once(" - ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?, fields.nth(1).unwrap_or_default()))
}

fn refusal(kind: &str, options: &str) -> Option<String> {
    let is_known = matches!(kind, "ext4" | "tmpfs");
    let option = options.split(',').find(|option| *option == "data=journal" || option.starts_with("dax"));
    match option {
        _ if !is_known => Some(format!("on {kind} a page that is written out may not be writable again")),
        Some(option) => Some(format!("on {kind} with {option} a page that is written out may not be writable again")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard,errors=remount-ro
31 28 254:1 / /journaled rw - ext4 /dev/vdb rw,data=journal
32 28 0:30 /a\\040b /shm rw shared:3 master:4 - tmpfs tmpfs rw,size=8m
33 28 8:1 / /x rw - xfs /dev/sda1 rw,attr2
34 28 8:2 / /p rw - ext4 /dev/pmem0 rw,dax=always
35 28 8:3 broken";

    #[test]
    fn file_systems_are_told_from_each_other() {
        let of = |device| super_of(MOUNTS, device).map(|(kind, options)| refusal(kind, options));
        assert_eq!((of("254:0"), of("0:30")), (Some(None), Some(None)));
        for (device, why) in [("254:1", "ext4 with data=journal"), ("8:1", "xfs"), ("8:2", "ext4 with dax=always")] {
            let said = of(device).flatten().unwrap();
            assert!(said.starts_with(&format!("on {why} a page")), "{said}");
        }
        assert_eq!((of("8:3"), of("9:9"), of("54:0")), (None, None, None));
    }

    #[test]
    fn what_is_no_file_of_a_disk_is_refused() {
        assert!(check(&File::open("/proc/self/stat").unwrap()).is_err());
    }
}
