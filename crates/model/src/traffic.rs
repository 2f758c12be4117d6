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

    /// With so much of another one's collection beside its own.
    pub(crate) fn beside(mut self, mut other: Traffic, share: f64) -> Self {
        let parts = self.of_collection().into_iter().zip(other.of_collection());
        parts.for_each(|(part, other)| *part += share * *other);
        self.index_pages += share * other.index_pages;
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
