//! Prefixes: the blocks that a request of an LLM asks for, one behind the other. They are of use up to the first that is missing: what
//! lies behind it is computed anew, and not retrieved.
//!
//! ```text
//!   hash_ids   1 2 3 4 5        1, 2 and 4 are there
//!              + + - . -        1 and 2 are loaded, side by side; 3 and 5 are stored, 4 is left alone
//! ```

use crate::report::PrefixReport;
use crate::trace::Block;
use kvssd_measure::Latencies;
use kvssd_types::Nanos;
use std::collections::HashMap;

/// The prefixes that are loaded, and those that were.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// The one whose blocks come now.
    number: u64,
    is_broken: bool,
    loads: HashMap<u64, Load>,
    report: PrefixReport,
    took: Latencies,
}

/// A prefix whose blocks are not all there.
#[derive(Clone, Copy, Debug)]
struct Load {
    begun: Nanos,
    done: Nanos,
    /// Blocks that did not come yet, and those that are under way.
    blocks_left: u32,
    waiting: u32,
    loaded: u32,
    blocks: u32,
}

impl Prefixes {
    /// A block comes at `at`. Gives the number of its prefix, if it is to be loaded.
    pub(super) fn block(&mut self, block: Block, is_there: bool, at: Nanos) -> Option<u64> {
        if block.number == 0 {
            self.number += 1;
            self.is_broken = false;
            let load = Load { begun: at, done: at, blocks_left: block.of, waiting: 0, loaded: 0, blocks: block.of };
            self.loads.insert(self.number, load);
        }
        self.is_broken |= !is_there;
        let (number, is_loaded) = (self.number, !self.is_broken);
        let load = self.loads.get_mut(&number)?;
        load.blocks_left -= 1;
        load.waiting += u32::from(is_loaded);
        load.loaded += u32::from(is_loaded);
        self.end(number);
        is_loaded.then_some(number)
    }

    /// Whether the block that comes now would be of use.
    pub(super) fn is_whole(&self, block: Block) -> bool {
        block.number == 0 || !self.is_broken
    }

    /// A block was retrieved, if nothing has come for which it had to leave.
    pub(super) fn loaded(&mut self, number: u64, is_there: bool, done: Nanos) {
        if let Some(load) = self.loads.get_mut(&number) {
            load.waiting -= 1;
            load.loaded -= u32::from(!is_there);
            load.done = load.done.max(done);
            self.end(number);
        }
    }

    /// Counts a prefix whose blocks have all come.
    fn end(&mut self, number: u64) {
        let is_done = |load: &Load| load.blocks_left == 0 && load.waiting == 0;
        let Some(load) = self.loads.get(&number).copied().filter(is_done) else { return };
        self.loads.remove(&number);
        self.report.requests += 1;
        self.report.blocks += u64::from(load.blocks);
        self.report.loaded_blocks += u64::from(load.loaded);
        self.report.whole += u64::from(load.loaded == load.blocks);
        self.report.none += u64::from(load.loaded == 0);
        if load.loaded > 0 {
            self.took.add(load.done - load.begun);
        }
    }

    /// The figures begin here, those of prefixes that are under way with them.
    pub(super) fn begin_measuring(&mut self) {
        (self.report, self.took) = (PrefixReport::default(), Latencies::new());
    }

    /// What was loaded, and how long that took from the first block on; none where nobody asked for blocks.
    pub(super) fn result(self) -> Option<(PrefixReport, Latencies)> {
        (self.report.requests > 0).then_some((self.report, self.took))
    }
}
