//! VMware's traces of virtual disks, as libCacheSim reads them (`vscsi.h`): records of one of two versions, low end first.
//!
//! ```text
//!   version 1   u32 serial | u32 bytes | u32 pieces | u16 command | u16 version | u64 block | u64 time us
//!   version 2   u16 command | u16 version | u32 serial | u32 bytes | u32 pieces | u64 block | u64 time us | u64 response time
//! ```
//!
//! The high byte of the version tells which it is. As in libCacheSim, a block that a command begins at is an object of the command's
//! length. A read is a request that stores it when it is not there ([`Action::Fetch`]), a write stores it, and what is neither
//! asks for nothing.

use super::super::fields::BadRecord;
use super::super::{Action, Framing, Request, Requests, TraceFormat};

const RECORD_BYTES: [usize; 2] = [32, 40];

/// Read (6), (10), (12) and (16) of SCSI's block commands, and the same of Write.
const READS: [u64; 4] = [0x08, 0x28, 0xa8, 0x88];
const WRITES: [u64; 4] = [0x0a, 0x2a, 0xaa, 0x8a];

/// VMware's format.
#[derive(Clone, Debug, Default)]
pub(in crate::trace) struct Vscsi {
    version: Option<Version>,
}

#[derive(Clone, Debug)]
enum Version {
    One,
    Two,
    /// Of the first record only as much was read as one of version 1 has.
    TwoBegun([u8; RECORD_BYTES[0]]),
}

impl TraceFormat for Vscsi {
    fn framing(&self) -> Framing {
        Framing::Records(match self.version {
            None | Some(Version::One) => RECORD_BYTES[0],
            Some(Version::Two) => RECORD_BYTES[1],
            Some(Version::TwoBegun(_)) => RECORD_BYTES[1] - RECORD_BYTES[0],
        })
    }

    fn tick_ns(&self) -> u64 {
        1000
    }

    fn parse(&mut self, piece: &[u8], requests: &mut Requests) -> Result<(), BadRecord> {
        let cut = BadRecord::new("the record", "has too few bytes: the file is cut");
        match &self.version {
            None => {
                let first: [u8; RECORD_BYTES[0]] = piece.try_into().map_err(|_| cut)?;
                // The high byte of each version's version.
                self.version = Some(match (first[15], first[3]) {
                    (_, 2) => Version::TwoBegun(first),
                    (1, _) => Version::One,
                    _ => {
                        return Err(BadRecord {
                            is_fatal: true,
                            ..BadRecord::new("the first record", "is of no version of vscsi")
                        });
                    }
                });
                if matches!(self.version, Some(Version::One)) { one(&first, requests) } else { Ok(()) }
            }
            Some(Version::One) => one(piece.try_into().map_err(|_| cut)?, requests),
            Some(Version::Two) => two(piece.try_into().map_err(|_| cut)?, requests),
            Some(Version::TwoBegun(begun)) => {
                let mut whole = [0; RECORD_BYTES[1]];
                whole[..RECORD_BYTES[0]].copy_from_slice(begun);
                whole[RECORD_BYTES[0]..].copy_from_slice(piece.get(..RECORD_BYTES[1] - RECORD_BYTES[0]).ok_or(cut)?);
                self.version = Some(Version::Two);
                two(&whole, requests)
            }
        }
    }
}

fn number(record: &[u8], at: usize, bytes: usize) -> u64 {
    record[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn one(record: &[u8; RECORD_BYTES[0]], requests: &mut Requests) -> Result<(), BadRecord> {
    push([number(record, 12, 2), number(record, 4, 4), number(record, 16, 8), number(record, 24, 8)], requests)
}

fn two(record: &[u8; RECORD_BYTES[1]], requests: &mut Requests) -> Result<(), BadRecord> {
    push([number(record, 0, 2), number(record, 8, 4), number(record, 16, 8), number(record, 24, 8)], requests)
}

fn push([command, bytes, block, time_us]: [u64; 4], requests: &mut Requests) -> Result<(), BadRecord> {
    let action = match command {
        read if READS.contains(&read) => Action::Fetch,
        write if WRITES.contains(&write) => Action::Set,
        _ => return Ok(()),
    };
    let at_ns = Some(time_us.checked_mul(1000).ok_or(BadRecord::number("the time"))?);
    requests.push(&block.to_be_bytes(), 8, Request { at_ns, ..Request::new(action, bytes) });
    Ok(())
}
