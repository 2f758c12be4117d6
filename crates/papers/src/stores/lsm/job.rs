//! A flush or a compaction, done a piece at a time.
//!
//! ```text
//!   read    piece 1   piece 2   piece 3                 the next piece is read while one is merged
//!   merge             piece 1   piece 2   piece 3       processor
//!   write                       ....      ....    rest  through the page cache, which nobody waits for but at the end
//! ```
//!
//! What comes of it is known when it begins; when each part of it is there is not.

use super::options::PIECE_BYTES;
use super::table::Table;
use crate::stores::blocks::Blocks;
use crate::stores::costs;
use kvssd_sim::SimError;
use kvssd_types::Nanos;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A part of what is merged.
#[derive(Debug)]
struct Piece {
    /// Where it is read; a MemTable is not.
    from: Option<(Arc<Table>, Range<u64>)>,
    bytes: u64,
    pairs: u64,
}

/// The work.
#[derive(Debug)]
pub(super) struct Job {
    pieces: VecDeque<Piece>,
    /// When the next piece is there, if it is being read.
    next_ready: Option<Nanos>,
    pub(super) outputs: Vec<Arc<Table>>,
    /// The table and byte up to which outputs are written.
    written: (usize, u64),
    merged_bytes: u64,
    bytes: u64,
    /// When the drive has all that was written.
    kept: Nanos,
    is_written: bool,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its clock has moved to there.
    Until(Nanos),
    /// Its outputs are on the drive.
    Done,
}

impl Job {
    /// The flush of a MemTable.
    pub(super) fn flush(output: Table) -> Self {
        let pieces = pieces(&output).map(|(bytes, pairs)| Piece { from: None, bytes: bytes.end - bytes.start, pairs });
        let pieces = pieces.collect();
        Job::new(pieces, vec![Arc::new(output)])
    }

    /// The compaction of tables.
    pub(super) fn compaction(inputs: &[Arc<Table>], outputs: Vec<Arc<Table>>) -> Self {
        let mut parts: Vec<(&[u8], Piece)> = Vec::new();
        for table in inputs {
            let mut first = 0;
            for (bytes, pairs) in pieces(table) {
                let key = &*table.pairs[first].key;
                first += pairs as usize;
                let length = bytes.end - bytes.start;
                parts.push((key, Piece { from: Some((Arc::clone(table), bytes)), bytes: length, pairs }));
            }
        }
        // A merge comes to them in the order of their first keys.
        parts.sort_by(|left, right| left.0.cmp(right.0));
        Job::new(parts.into_iter().map(|(_, piece)| piece).collect(), outputs)
    }

    fn new(pieces: VecDeque<Piece>, outputs: Vec<Arc<Table>>) -> Self {
        let bytes = pieces.iter().map(|piece| piece.bytes).sum();
        Job {
            pieces,
            next_ready: None,
            outputs,
            written: (0, 0),
            merged_bytes: 0,
            bytes,
            kept: Nanos::ZERO,
            is_written: false,
        }
    }

    /// One piece, or the end, begun at `at`.
    pub(super) fn step(&mut self, blocks: &mut Blocks, at: Nanos) -> Result<Progress, SimError> {
        let Some(piece) = self.pieces.pop_front() else {
            if self.is_written {
                return Ok(Progress::Done);
            }
            self.is_written = true;
            let spent = self.write(u64::MAX, blocks, at)?;
            return Ok(Progress::Until((at + spent).max(self.kept)));
        };
        let (ready, mut spent) = match self.next_ready.take() {
            Some(ready) => (ready, Nanos::ZERO),
            None => read(&piece, blocks, at)?,
        };
        if let Some(next) = self.pieces.front() {
            let (ready, cpu) = read(next, blocks, at)?;
            self.next_ready = Some(ready);
            spent += cpu;
        }
        let outputs_bytes: u64 = self.outputs.iter().map(|table| table.bytes()).sum();
        let due = (u128::from(outputs_bytes) * u128::from(self.merged_bytes) / u128::from(self.bytes)) as u64;
        spent += self.write(due, blocks, at)?;
        self.merged_bytes += piece.bytes;
        // Out of the page cache, checksum, into a block, into a file's buffer, checksum.
        let merging = Nanos(piece.pairs * costs::MERGE_PAIR_NS) + costs::passes(piece.bytes, 5);
        let spent = spent + blocks.work(merging);
        Ok(Progress::Until(at.max(ready) + spent))
    }

    /// Writes the outputs up to `due` bytes of them all; gives the time of the processor.
    fn write(&mut self, due: u64, blocks: &mut Blocks, at: Nanos) -> Result<Nanos, SimError> {
        let mut spent = Nanos::ZERO;
        let before: u64 = self.outputs[..self.written.0].iter().map(|table| table.bytes()).sum();
        let mut missing = due.saturating_sub(before + self.written.1);
        while let Some(table) = self.outputs.get(self.written.0) {
            let left = table.bytes() - self.written.1;
            let bytes = if missing >= left { left } else { missing / PIECE_BYTES * PIECE_BYTES };
            if bytes == 0 {
                break;
            }
            let end = self.written.1 + bytes;
            self.kept = self.kept.max(table.file.write(self.written.1..end, blocks, at)?);
            let calls = bytes.div_ceil(PIECE_BYTES) * (costs::SYSTEM_CALL_NS + costs::COMMAND_NS);
            spent += blocks.work(costs::pages(bytes, costs::PAGE_WRITE_NS) + Nanos(calls));
            missing -= bytes;
            self.written = if bytes == left { (self.written.0 + 1, 0) } else { (self.written.0, end) };
        }
        Ok(spent)
    }
}

/// Sends for a piece: when it is there, and the time of the processor.
fn read(piece: &Piece, blocks: &mut Blocks, at: Nanos) -> Result<(Nanos, Nanos), SimError> {
    let Some((table, bytes)) = &piece.from else { return Ok((at, Nanos::ZERO)) };
    let ready = table.file.read(bytes.clone(), blocks, at)?;
    let call = Nanos(costs::SYSTEM_CALL_NS + costs::COMMAND_NS);
    Ok((ready, blocks.work(call + costs::pages(piece.bytes, costs::PAGE_READ_NS))))
}

/// The data blocks of a table in pieces: bytes, and pairs.
fn pieces(table: &Table) -> impl Iterator<Item = (Range<u64>, u64)> {
    let groups = table.blocks.chunk_by(|left, right| left.bytes.start / PIECE_BYTES == right.bytes.start / PIECE_BYTES);
    groups.map(|group| {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        (first.bytes.start..last.bytes.end, (last.pairs.end - first.pairs.start) as u64)
    })
}
