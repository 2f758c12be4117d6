//! Batches over several partitions: all or nothing, also when the process ends in between.
//!
//! ```text
//!   each    prepare    looked up, room is there, new keys are in       one refuses: all are abandoned, and nothing is changed
//!   others  finish     the rest; on the disk, and counts if the first partition has decided this batch
//!   first   decide     its own share, and the number of the batch         <- the commit point
//!   others  end        they may do other things again
//! ```
//!
//! Whoever does this holds all partitions, so that nobody sees a part of it, and one number is enough: a later batch has a higher one, and
//! what a mount finds of a batch with a higher one than the first partition has decided never was.

use super::{Partitions, partition_of};
use kvssd_types::{BatchChange, KvError, Reply};

impl Partitions<'_> {
    pub(super) fn batch(&mut self, changes: &[BatchChange<'_>]) -> Result<Reply, KvError> {
        let partitions = self.all.len();
        // Whether a batch is too large must not depend on where its keys are.
        self.all[0].check_batch(changes)?;
        let mut shares: Vec<Vec<BatchChange<'_>>> = vec![Vec::new(); partitions];
        for change in changes {
            shares[partition_of(change.namespace, change.key, partitions)].push(change.clone());
        }
        let taking: Vec<usize> = (0..partitions).filter(|number| !shares[*number].is_empty()).collect();
        for (position, &number) in taking.iter().enumerate() {
            if let Err(error) = self.all[number].prepare_batch(&shares[number]) {
                for &before in &taking[..position] {
                    self.all[before].abandon_batch(&shares[before], &error)?;
                }
                return Err(error);
            }
        }
        let sequence = self.all[0].next_batch();
        for &number in taking.iter().filter(|number| **number != 0) {
            self.all[number].finish_batch(sequence)?;
        }
        self.all[0].decide_batch(sequence)?;
        for &number in taking.iter().filter(|number| **number != 0) {
            self.all[number].end_batch()?;
        }
        Ok(Reply::Batched)
    }
}
