//! Power: what a drive does for the day when it goes, and the day itself.
//!
//! ```text
//!   issued                cut                                    the fault model of [`PowerCut`]
//!     |---- program ----|  |                                     has ended: whole
//!          |------- program +-----|                              protected: whole; volatile: whole, torn or not begun
//!          |------- erase --+-----|                              erased, half erased or not begun
//!     staged ...............|  staged                            protected: kept; volatile: lost
//!                           |  program                           refused: the firmware is dead
//! ```
//!
//! A torn unit has pages that are whole, damaged and never written; a half-erased block has pages that are as before, damaged
//! and erased. A die does one thing after the other: behind a unit that did not become whole nothing in its block began.

use crate::codec::PageIdentity;
use crate::spare::{HEADS_BYTES, Spare};
use crate::{
    Backing, BlockAddress, BlockState, ByteBacking, Geometry, MediaError, PageAddress, PageBytes, PageView, RawMedium,
    Span, UnitAddress, UnitImage,
};
use kvssd_types::{Nanos, Random, named_enum};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

named_enum! {
    /// What a drive does for the day when the power goes.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum PowerLoss: "power loss" {
        /// Nothing: it writes nothing that only a mount would read, as the papers' emulators do, and cannot be mounted.
        Ignored = "ignored",
        /// It comes back in the state of some moment since the last flush: the write buffer is lost.
        Volatile = "volatile",
        /// It comes back as it was: capacitors feed the programs under way to their end and keep the write buffer.
        Protected = "protected",
    }
}

/// Memory that it gives up, in two pieces: so little that a firmware lets go of some of it within a life between two cuts, which is short.
const SPARE_BYTES: u64 = 8192;

/// A medium of bytes whose power goes at a moment that is given. Who shares the medium finds on it what is left.
pub struct PowerCut<M: RawMedium = ByteBacking> {
    medium: Arc<Mutex<M>>,
    geometry: Geometry,
    semantics: PowerLoss,
    cut_at: Arc<AtomicU64>,
    is_cut: Arc<AtomicBool>,
    random: Random,
    programs: Vec<(UnitAddress, Span)>,
    /// What was erased, when, and what it was before.
    erases: Vec<(BlockAddress, Span, Before)>,
    broken: Arc<AtomicU64>,
    opened: UnitImage,
    spare: Spare,
}

impl<M: RawMedium> PowerCut<M> {
    /// `medium`, until the first operation that is issued at `cut_at` or later.
    #[must_use]
    pub fn new(medium: Arc<Mutex<M>>, geometry: Geometry, semantics: PowerLoss, cut_at: Nanos, random: Random) -> Self {
        let cut_at = Arc::new(AtomicU64::new(cut_at.0));
        let opened = UnitImage::of_bytes(&[], &[]);
        let (programs, erases, broken) = (Vec::new(), Vec::new(), Arc::default());
        PowerCut {
            medium,
            geometry,
            semantics,
            cut_at,
            is_cut: Arc::default(),
            random,
            programs,
            erases,
            broken,
            opened,
            spare: Spare::new(SPARE_BYTES),
        }
    }

    /// The moment of the cut, in nanoseconds, to put it off or bring it forward.
    #[must_use]
    pub fn moment(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.cut_at)
    }

    /// Whether the power has gone. Background work may have come to the moment of the cut before a command that arrives earlier: that one
    /// is executed by firmware that is dead, and what it answers means nothing.
    #[must_use]
    pub fn is_cut(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_cut)
    }

    /// Counts the programs and erases that were under way when the power went and did not come to their end.
    #[must_use]
    pub fn broken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.broken)
    }

    fn has_gone(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// The medium, and the news that the power is there; forgets operations that have ended.
    fn powered(&mut self, at: Nanos) -> Result<MutexGuard<'_, M>, MediaError> {
        if !self.has_gone() && at.0 >= self.cut_at.load(Ordering::Relaxed) {
            self.cut();
        }
        if self.has_gone() {
            return Err(MediaError::PowerLost);
        }
        Ok(self.medium.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn cut(&mut self) {
        self.is_cut.store(true, Ordering::Relaxed);
        let at = Nanos(self.cut_at.load(Ordering::Relaxed));
        let mut medium = self.medium.lock().unwrap_or_else(PoisonError::into_inner);
        let random = &mut self.random;
        if self.semantics != PowerLoss::Protected {
            medium.staged_mut().clear();
            let mut broken = Vec::new();
            for (unit, _) in self.programs.drain(..).filter(|(_, span)| span.end > at) {
                let (block, _) = self.geometry.block_of(unit);
                let first = unit.0 * self.geometry.pages_per_program;
                let pages = (first..first + self.geometry.pages_per_program).map(PageAddress);
                if broken.contains(&block) {
                    pages.for_each(|page| *medium.page_mut(page) = None);
                    continue;
                }
                match random.below(3) {
                    0 => continue,
                    1 => pages.for_each(|page| *medium.page_mut(page) = None),
                    _ => pages.for_each(|page| damage(medium.page_mut(page), random)),
                }
                self.broken.fetch_add(1, Ordering::Relaxed);
                broken.push(block);
            }
        }
        for (block, _, before) in self.erases.drain(..).filter(|(_, span, _)| span.end > at) {
            let whole = random.below(3);
            self.broken.fetch_add(u64::from(whole > 0), Ordering::Relaxed);
            let pages = self.geometry.pages_of(block);
            if whole > 0 {
                // Whoever counts erases counts those that ended. So what is left of the old pages can be read.
                medium.set_erases(block, before.erases);
            }
            for (page, mut old) in pages.into_iter().zip(before.pages) {
                match whole {
                    0 => {}
                    1 => *medium.page_mut(page) = old,
                    _ => {
                        damage(&mut old, random);
                        *medium.page_mut(page) = old;
                    }
                }
            }
        }
    }
}

/// What a block was before it was erased.
#[derive(Debug)]
struct Before {
    pages: Vec<PageBytes>,
    erases: u32,
}

/// Leaves a page whole, damages it, or takes it away.
fn damage(page: &mut PageBytes, random: &mut Random) {
    match random.below(3) {
        0 => {}
        1 => *page = None,
        _ => {
            if let Some(bytes) = page {
                let from = random.below(bytes.len() as u64) as usize;
                bytes[from..].iter_mut().for_each(|byte| *byte ^= random.below(256) as u8);
            }
        }
    }
}

/// Who stops working before the moment comes finds the medium as if it had come.
impl<M: RawMedium> Drop for PowerCut<M> {
    fn drop(&mut self) {
        if !self.has_gone() {
            self.cut();
        }
    }
}

impl<M: RawMedium> Backing for PowerCut<M> {
    fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError> {
        self.powered(span.issued)?.program(unit, content, span)?;
        self.programs.retain(|(_, other)| other.end > span.issued);
        self.programs.push((unit, span));
        Ok(())
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        if self.has_gone() {
            return Err(MediaError::PowerLost);
        }
        self.opened = self.medium.lock().unwrap_or_else(PoisonError::into_inner).decode(page)?;
        Ok(self.opened.page(0))
    }

    fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        if self.has_gone() {
            return false;
        }
        let read = self.medium.lock().unwrap_or_else(PoisonError::into_inner).decode(page);
        read.is_ok_and(|unit| {
            see(unit.page(0));
            true
        })
    }

    fn heads_bytes(&self) -> u64 {
        HEADS_BYTES
    }

    fn give_up(&self) -> u64 {
        self.spare.give_up()
    }

    fn erase(&mut self, block: BlockAddress, span: Span) -> Result<(), MediaError> {
        let pages = self.geometry.pages_of(block);
        let mut medium = self.powered(span.issued)?;
        let pages = pages.into_iter().map(|page| medium.page_mut(page).clone()).collect();
        let before = Before { pages, erases: medium.block(block).erases };
        medium.erase(block, span)?;
        drop(medium);
        self.erases.retain(|(_, other, _)| other.end > span.issued);
        self.programs.retain(|(unit, _)| self.geometry.block_of(*unit).0 != block);
        self.erases.push((block, span, before));
        Ok(())
    }

    fn origin(&mut self, page: PageAddress) -> Option<PageIdentity> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner).origin(page)
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner).block(block)
    }

    fn stage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        self.powered(at)?.stage(bytes, at)
    }

    fn restage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        self.powered(at)?.restage(bytes, at)
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        self.powered(Nanos::ZERO)?.staged()
    }
}
