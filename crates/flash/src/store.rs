//! What keeps the pages: memory that holds ropes, or memory that holds nothing but bytes.

use crate::Blob;
use crate::{BlockAddress, Geometry, PageAddress, PageView, UnitAddress, UnitImage, codec};
use thiserror::Error;

/// The medium gave back something that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MediaError {
    /// A page's bytes are damaged.
    #[error("page {} is damaged: {why}", page.0)]
    Damaged {
        /// The page.
        page: PageAddress,
        /// What is wrong with its bytes.
        why: &'static str,
    },
}

/// Keeps the content of programmed units until their block is erased. Knows no rules of NAND: [`Nand`](crate::Nand) has
/// checked them before.
pub trait Backing: Send {
    /// Keeps `content` as unit `unit`.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed to take it.
    fn program(&mut self, unit: UnitAddress, content: UnitImage) -> Result<(), MediaError>;

    /// A page that was programmed.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] when its bytes are not what was written.
    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError>;

    /// Drops the content of a block.
    fn erase(&mut self, block: BlockAddress);

    /// The bytes from these on, of these pages, will be looked at soon: memory may begin to bring them closer.
    fn warm(&self, places: &[(PageAddress, usize)]) {
        let _ = places;
    }

    /// The bytes from `start` of `page` on that were written as one blob, if memory has them at hand: a hint for
    /// [`Backing::warm`]'s sake, which is not reading.
    fn peek(&self, page: PageAddress, start: usize) -> Option<&Blob> {
        let _ = (page, start);
        None
    }

    /// The firmware will never again read the bytes from `start` of `page` on that were written as one blob: memory may let
    /// go of them, and gives them. Flash itself knows no such thing, and a backing may ignore it.
    fn take(&mut self, page: PageAddress, start: usize) -> Option<Blob> {
        let _ = (page, start);
        None
    }
}

/// Keeps ropes: a drive full of generated values costs a few per cent of its capacity in memory.
#[derive(Debug)]
pub struct RopeBacking {
    geometry: Geometry,
    units: Vec<Option<UnitImage>>,
}

impl RopeBacking {
    /// An erased drive.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        RopeBacking { geometry, units: (0..geometry.units()).map(|_| None).collect() }
    }
}

impl Backing for RopeBacking {
    fn program(&mut self, unit: UnitAddress, content: UnitImage) -> Result<(), MediaError> {
        self.units[unit.0 as usize] = Some(content);
        Ok(())
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        let unit = &self.units[self.geometry.unit_of(page).0 as usize];
        let index = page.0 % self.geometry.pages_per_program;
        Ok(unit.as_ref().expect("the array lets only programmed pages through").page(index as usize))
    }

    /// Each pass goes one pointer further for all places. The loads of a pass do not depend on each other, so that the processor
    /// waits for many at once and not for one after the other.
    fn warm(&self, places: &[(PageAddress, usize)]) {
        let mut touched = 0;
        let in_units: Vec<(&UnitImage, usize, usize)> = places
            .iter()
            .filter_map(|&(page, start)| {
                let unit = self.units[self.geometry.unit_of(page).0 as usize].as_ref()?;
                Some((unit, (page.0 % self.geometry.pages_per_program) as usize, start))
            })
            .collect();
        in_units.iter().for_each(|(unit, ..)| touched ^= unit.touch_head());
        in_units.iter().for_each(|&(unit, index, _)| touched ^= unit.touch_page(index));
        let slots: Vec<&Option<Blob>> =
            in_units.iter().filter_map(|&(unit, index, start)| unit.page(index).data.blob_slot(start)).collect();
        let blobs: Vec<&Blob> = slots.into_iter().flatten().collect();
        blobs.iter().for_each(|blob| touched ^= blob.touch());
        std::hint::black_box(touched);
    }

    fn erase(&mut self, block: BlockAddress) {
        for row in 0..self.geometry.units_per_block() {
            self.units[self.geometry.unit_at(block, row).0 as usize] = None;
        }
    }

    fn peek(&self, page: PageAddress, start: usize) -> Option<&Blob> {
        let unit = self.units[self.geometry.unit_of(page).0 as usize].as_ref()?;
        unit.page((page.0 % self.geometry.pages_per_program) as usize).data.blob_slot(start)?.as_ref()
    }

    fn take(&mut self, page: PageAddress, start: usize) -> Option<Blob> {
        let unit = self.units[self.geometry.unit_of(page).0 as usize].as_mut()?;
        unit.take((page.0 % self.geometry.pages_per_program) as usize, start)
    }
}

/// Keeps the bytes of every page as they lie in flash, and believes nothing that the checksum does not confirm. Slow and
/// large; it proves that the format carries everything the firmware needs.
#[derive(Debug)]
pub struct ByteBacking {
    geometry: Geometry,
    pages: Vec<Option<Box<[u8]>>>,
    opened: UnitImage,
}

impl ByteBacking {
    /// An erased drive.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        ByteBacking {
            geometry,
            pages: (0..geometry.pages()).map(|_| None).collect(),
            opened: UnitImage::of_bytes(&[], &[]),
        }
    }

    /// The bytes of a programmed page, to damage them.
    #[must_use]
    pub fn bytes_mut(&mut self, page: PageAddress) -> Option<&mut [u8]> {
        self.pages[page.0 as usize].as_deref_mut()
    }
}

impl Backing for ByteBacking {
    fn program(&mut self, unit: UnitAddress, content: UnitImage) -> Result<(), MediaError> {
        let first = unit.0 as usize * self.geometry.pages_per_program as usize;
        for index in 0..content.pages() {
            self.pages[first + index] = Some(codec::encode(&self.geometry, content.page(index)).into());
        }
        Ok(())
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        let bytes = self.pages[page.0 as usize].as_ref().expect("the array lets only programmed pages through");
        self.opened = codec::decode(&self.geometry, bytes).map_err(|why| MediaError::Damaged { page, why })?;
        Ok(self.opened.page(0))
    }

    fn erase(&mut self, block: BlockAddress) {
        let pages = self.geometry.pages_per_program as usize;
        for row in 0..self.geometry.units_per_block() {
            let first = self.geometry.unit_at(block, row).0 as usize * pages;
            self.pages[first..first + pages].fill(None);
        }
    }
}
