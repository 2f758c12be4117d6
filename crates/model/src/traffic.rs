//! What garbage collection, the index and commands read and write for an operation.

/// Pages and pairs for each operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// Pages of the index that look-ups of commands read.
    pub(crate) look_up_reads: f64,
    /// Pages of the index that merging reads.
    pub(crate) merge_reads: f64,
    /// Pages of victims that are read, of pairs and of the map.
    pub(crate) victim_reads: f64,
    pub(crate) map_victim_reads: f64,
    /// Pages of the index that garbage collection reads to ask and to change.
    pub(crate) ask_reads: f64,
    /// Of these, what is read to change, behind what is read to ask.
    pub(crate) again_reads: f64,
    /// Pages that are programmed for users, by the index, for pairs and for the map that were moved.
    pub(crate) user_pages: f64,
    pub(crate) index_pages: f64,
    pub(crate) moved_pages: f64,
    pub(crate) map_moved_pages: f64,
    /// Pairs that collection asks the index about, and moves.
    pub(crate) asked: f64,
    pub(crate) moved: f64,
    pub(crate) erases: f64,
    /// Superblocks of pairs that are collected.
    pub(crate) victims: f64,
}

impl Traffic {
    pub(crate) fn reads(&self) -> f64 {
        self.look_up_reads + self.merge_reads + self.victim_reads + self.map_victim_reads + self.ask_reads
    }

    pub(crate) fn programs(&self) -> f64 {
        self.user_pages + self.index_pages + self.moved_pages + self.map_moved_pages
    }

    /// What collection reads, writes and does.
    fn of_collection(&mut self) -> [&mut f64; 10] {
        [
            &mut self.victim_reads,
            &mut self.map_victim_reads,
            &mut self.ask_reads,
            &mut self.again_reads,
            &mut self.moved_pages,
            &mut self.map_moved_pages,
            &mut self.asked,
            &mut self.moved,
            &mut self.erases,
            &mut self.victims,
        ]
    }

    /// With so many times as much collection.
    pub(crate) fn paced(mut self, times: f64) -> Self {
        self.of_collection().into_iter().for_each(|part| *part *= times);
        self
    }

    /// With a share of what collection alone takes beside it: of its reads and programs, and those of the index that it causes.
    pub(crate) fn beside(mut self, mut collection: Traffic, share: f64) -> Self {
        let parts = self.of_collection().into_iter().zip(collection.of_collection());
        parts.for_each(|(part, other)| *part += share * *other);
        self.index_pages += share * collection.index_pages;
        self.merge_reads += share * collection.merge_reads;
        self
    }

    pub(crate) fn for_each_of(mut self, operations: f64) -> Self {
        self.of_collection().into_iter().for_each(|sum| *sum /= operations);
        for sum in [&mut self.look_up_reads, &mut self.merge_reads, &mut self.user_pages, &mut self.index_pages] {
            *sum /= operations;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What collection reads and programs is all there, and what commands do is not taken from the other.
    #[test]
    fn collection_beside_loses_nothing() {
        let all = Traffic {
            look_up_reads: 1.0,
            merge_reads: 2.0,
            victim_reads: 4.0,
            map_victim_reads: 8.0,
            ask_reads: 16.0,
            again_reads: 3.0,
            user_pages: 32.0,
            index_pages: 64.0,
            moved_pages: 128.0,
            map_moved_pages: 256.0,
            asked: 5.0,
            moved: 6.0,
            erases: 7.0,
            victims: 9.0,
        };
        let sum = all.beside(all, 0.5);
        assert_eq!((sum.reads(), sum.programs()), (1.5 * 31.0 - 0.5, 1.5 * 480.0 - 16.0));
        assert_eq!([sum.again_reads, sum.asked, sum.moved, sum.erases, sum.victims], [4.5, 7.5, 9.0, 10.5, 13.5]);
    }
}
