//! Batches over several partitions: all or nothing, also when the process ends in between.
//!
//! ```text
//!   each    prepare    looked up, room is there, new keys are in       one refuses: all are abandoned, and nothing is changed
//!   others  finish     the rest; on the disk, and counts if the first partition has decided this batch
//!   first   decide     its own share, and the number of the batch         <- the commit point
//!   others  end        they may do other things again
//! ```
//!
//! The caller has exclusive access to all partitions, so that nobody sees a part of the batch, and one number is enough: a later batch has a
//! higher number, and a mount ignores what it finds of a batch higher than the last one that the first partition has decided.

use super::{Partitions, partition_of};
use kvssd_types::{BatchChange, KvError, Reply};

impl Partitions<'_> {
    pub(super) fn batch(&mut self, changes: &[BatchChange<'_>]) -> Result<Reply, KvError> {
        let partitions = self.all.len();
        // Whether a batch is too large does not depend on where its keys are.
        self.all[0].check_batch(changes)?;
        let mut shares: Vec<Vec<BatchChange<'_>>> = vec![Vec::new(); partitions];
        for change in changes {
            shares[partition_of(change.namespace, change.key, partitions)].push(change.clone());
        }
        let taking: Vec<usize> = (0..partitions).filter(|number| !shares[*number].is_empty()).collect();
        for (position, &number) in taking.iter().enumerate() {
            if let Err(error) = self.all[number].prepare_batch(&shares[number]) {
                let abandon = |&before: &usize| self.all[before].abandon_batch(&shares[before], &error);
                // Abandon each, whether or not one before it could be.
                let abandoned: Vec<Result<(), KvError>> = taking[..position].iter().map(abandon).collect();
                abandoned.into_iter().collect::<Result<(), _>>().map_err(half_made)?;
                return Err(error);
            }
        }
        let sequence = self.all[0].next_batch();
        for &number in taking.iter().filter(|number| **number != 0) {
            self.all[number].finish_batch(sequence).map_err(half_made)?;
        }
        self.all[0].decide_batch(sequence).map_err(half_made)?;
        for &number in taking.iter().filter(|number| **number != 0) {
            self.all[number].end_batch().map_err(half_made)?;
        }
        taking.iter().try_for_each(|&number| self.all[number].leave_behind_batch())?;
        Ok(Reply::Batched)
    }
}

/// An error after which the outcome of a batch is unknown until the next mount. Until then the drive takes no commands.
fn half_made(error: KvError) -> KvError {
    if error.is_fatal() {
        error
    } else {
        KvError::Failed(format!("a batch over several partitions is half made: {error}"))
    }
}
