//! The header of an image, and where its regions lie. The bytes are drawn in `image.rs`.

use super::error::{ImageFault, damaged};
use super::versions::{FORMAT_VERSION, PARTS_VERSION};
use crate::checksum::{crc32c, crc32c_append};
use crate::{Geometry, PageAddress, codec};

/// What a finished image begins with.
pub(super) const MAGIC: [u8; 8] = *b"KVSSDimg";
/// What an image begins with while it is created.
pub(super) const MAGIC_UNFINISHED: [u8; 8] = *b"KVSSDnew";

/// Whether a file that begins with these bytes is an image, finished or not, which must not be overwritten.
#[must_use]
pub fn is_image(begin: &[u8]) -> bool {
    begin.starts_with(&MAGIC) || begin.starts_with(&MAGIC_UNFINISHED)
}

/// Where the note of the holder lies, which the CRC leaves out.
pub(super) const HOLDER_AT: u64 = 20;
/// Bytes of the note of the holder.
pub(super) const HOLDER_BYTES: usize = 44;
/// Bytes of a table entry.
pub(super) const ENTRY_BYTES: u64 = 16;
/// Bytes of the header before its description, of an image of one part.
pub(super) const FIXED_BYTES: usize = 148;
/// Bytes behind those in the header of a part: its number u32, parts u32, image u64.
const PART_BYTES: usize = 16;
/// So many parts an image can have.
pub(super) const PARTS_MAX: u32 = 256;

const CRC_AT: usize = 16;
const CRC_GOES_ON_AT: usize = HOLDER_AT as usize + HOLDER_BYTES;
/// Regions begin at multiples of this.
const ALIGNMENT_BYTES: u64 = 4096;
/// Parts begin at multiples of this, so that large pages of memory and large extents of a file system belong to one part.
const PART_ALIGNMENT_BYTES: u64 = 2 << 20;
const DESCRIPTION_BYTES_MAX: usize = 1 << 20;
const STAGING_BYTES_MAX: u64 = 1 << 30;
const PAGE_BYTES_MAX: u32 = 1 << 20;
const PAGES_PER_PROGRAM_MAX: u32 = 256;

/// Which part of which image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) number: u32,
    /// Parts of the image.
    pub(super) parts: u32,
    /// The number that tells the image from others, if it has several parts.
    pub(super) image: u64,
}

impl Part {
    /// The part that is an image by itself.
    pub(super) const ONLY: Part = Part { number: 0, parts: 1, image: 0 };

    fn has_own_bytes(self) -> bool {
        self.parts > 1
    }

    /// Bytes of the header before the description.
    fn fixed_bytes(self) -> usize {
        FIXED_BYTES + if self.has_own_bytes() { PART_BYTES } else { 0 }
    }

    fn check(self) -> Result<(), String> {
        let Part { number, parts, .. } = self;
        if parts == 0 || parts > PARTS_MAX || number >= parts {
            return Err(format!("{parts} parts are not 1 to {PARTS_MAX}, or {number} is none of them"));
        }
        Ok(())
    }
}

/// Where the regions of an image lie, or those of one of its parts: from its first byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) part: Part,
    pub(super) geometry: Geometry,
    /// Staged bytes that fit.
    pub(super) staging_bytes: u64,
    pub(super) header_bytes: u64,
    pub(super) table_offset: u64,
    pub(super) staging_offset: u64,
    /// Bytes of each of the two staging halves.
    pub(super) half_bytes: u64,
    pub(super) pages_offset: u64,
    /// Bytes of the part: of the file, where it is the only one.
    pub(super) file_bytes: u64,
}

impl Layout {
    /// The layout of an image, or which number makes it impossible.
    pub(super) fn new(
        geometry: Geometry,
        description_bytes: usize,
        staging_bytes: u64,
        part: Part,
    ) -> Result<Layout, String> {
        part.check()?;
        check(&geometry)?;
        if description_bytes > DESCRIPTION_BYTES_MAX {
            return Err(format!("a description of {description_bytes} bytes is longer than {DESCRIPTION_BYTES_MAX}"));
        }
        if staging_bytes > STAGING_BYTES_MAX {
            return Err(format!("a staging area of {staging_bytes} bytes is larger than {STAGING_BYTES_MAX}"));
        }
        // Every number below is far from 2^64: at most 2^32 pages of less than 2^22 bytes, in 2^8 parts.
        let aligned = |bytes: u64| bytes.next_multiple_of(ALIGNMENT_BYTES);
        let blocks = geometry.blocks();
        let header_bytes = aligned((part.fixed_bytes() + description_bytes) as u64);
        let staging_offset = aligned(header_bytes + blocks * ENTRY_BYTES);
        // A quarter more for the heads of chunks, so that many small commits seldom make the area be written anew.
        let half_bytes = aligned(staging_bytes + staging_bytes / 4) + ALIGNMENT_BYTES;
        let pages_offset = staging_offset + 2 * half_bytes;
        let end = pages_offset + geometry.pages() * page_stride(&geometry);
        let file_bytes = if part.has_own_bytes() { end.next_multiple_of(PART_ALIGNMENT_BYTES) } else { end };
        Ok(Layout {
            part,
            geometry,
            staging_bytes,
            header_bytes,
            table_offset: header_bytes,
            staging_offset,
            half_bytes,
            pages_offset,
            file_bytes,
        })
    }

    /// The number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.geometry.blocks() as usize
    }

    /// The same of another part.
    pub(super) fn of_part(&self, number: u32) -> Layout {
        Layout { part: Part { number, ..self.part }, ..*self }
    }

    /// Where the part begins in the file.
    pub(super) fn begin(&self) -> u64 {
        self.file_bytes * u64::from(self.part.number)
    }

    /// Bytes of the file.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.file_bytes * u64::from(self.part.parts)
    }

    /// Where a page begins in the part.
    pub(super) fn page_at(&self, page: PageAddress) -> u64 {
        self.pages_offset + u64::from(page.0) * page_stride(&self.geometry)
    }

    /// The bytes of the header.
    pub(super) fn encode(&self, description: &str) -> Vec<u8> {
        let geometry = &self.geometry;
        let mut bytes = Vec::with_capacity(self.header_bytes as usize);
        bytes.extend(MAGIC);
        let version = if self.part.has_own_bytes() { PARTS_VERSION } else { FORMAT_VERSION };
        bytes.extend(version.to_le_bytes());
        bytes.extend((self.header_bytes as u32).to_le_bytes());
        bytes.resize(CRC_GOES_ON_AT, 0);
        for number in [
            geometry.channels,
            geometry.dies_per_channel,
            geometry.blocks_per_die,
            geometry.pages_per_block,
            geometry.pages_per_program,
            geometry.page_bytes,
            geometry.oob_bytes,
            geometry.superblock_dies,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        for number in [
            self.staging_bytes,
            self.table_offset,
            self.staging_offset,
            self.half_bytes,
            self.pages_offset,
            self.file_bytes,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((description.len() as u32).to_le_bytes());
        assert_eq!(bytes.len(), FIXED_BYTES);
        if self.part.has_own_bytes() {
            bytes.extend(self.part.number.to_le_bytes());
            bytes.extend(self.part.parts.to_le_bytes());
            bytes.extend(self.part.image.to_le_bytes());
        }
        bytes.extend(description.as_bytes());
        bytes.resize(self.header_bytes as usize, 0);
        let crc = checksum(&bytes);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The layout and the description that the whole header holds.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Layout, String), ImageFault> {
        if u32_at(bytes, CRC_AT) != checksum(bytes) {
            return Err(damaged("the checksum of its header does not match"));
        }
        let number = |index: usize| u32_at(bytes, CRC_GOES_ON_AT + index * 4);
        let geometry = Geometry {
            channels: number(0),
            dies_per_channel: number(1),
            blocks_per_die: number(2),
            pages_per_block: number(3),
            pages_per_program: number(4),
            page_bytes: number(5),
            oob_bytes: number(6),
            superblock_dies: number(7),
            read_bytes_min: 0,
        };
        let description_bytes = u32_at(bytes, FIXED_BYTES - 4) as usize;
        let staging_bytes = u64_at(bytes, CRC_GOES_ON_AT + 32);
        let part = match u32_at(bytes, 8) {
            PARTS_VERSION => Part {
                number: u32_at(bytes, FIXED_BYTES),
                parts: u32_at(bytes, FIXED_BYTES + 4),
                image: u64_at(bytes, FIXED_BYTES + 8),
            },
            _ => Part::ONLY,
        };
        let layout = Layout::new(geometry, description_bytes, staging_bytes, part)
            .map_err(|why| damaged(format!("its header is impossible: {why}")))?;
        let fixed_bytes = part.fixed_bytes();
        let description = bytes.get(fixed_bytes..fixed_bytes + description_bytes);
        let description = description.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default().to_owned();
        // Writing it again is the shortest way to compare every field.
        let again = layout.encode(&description);
        if again.len() != bytes.len() || again[CRC_GOES_ON_AT..] != bytes[CRC_GOES_ON_AT..] {
            return Err(damaged("its header contradicts itself"));
        }
        Ok((layout, description))
    }

    /// The length of the whole header whose first [`FIXED_BYTES`] are given, of a file of `file_bytes`.
    pub(super) fn header_length(first: &[u8], file_bytes: u64) -> Result<usize, ImageFault> {
        let magic = &first[..first.len().min(MAGIC.len())];
        if magic == MAGIC_UNFINISHED {
            return Err(ImageFault::Unfinished);
        }
        if magic.is_empty() {
            return Err(ImageFault::Empty);
        }
        if !MAGIC.starts_with(magic) {
            return Err(ImageFault::Foreign);
        }
        if first.len() < FIXED_BYTES {
            return Err(truncated(file_bytes, ALIGNMENT_BYTES));
        }
        let found = u32_at(first, 8);
        if found != FORMAT_VERSION && found != PARTS_VERSION {
            return Err(ImageFault::Version { found });
        }
        let header_bytes = u64::from(u32_at(first, 12));
        let longest = (FIXED_BYTES + PART_BYTES + DESCRIPTION_BYTES_MAX) as u64 + ALIGNMENT_BYTES;
        if header_bytes == 0 || header_bytes > longest || !header_bytes.is_multiple_of(ALIGNMENT_BYTES) {
            return Err(damaged("the length of its header is impossible"));
        }
        if file_bytes < header_bytes {
            return Err(truncated(file_bytes, header_bytes));
        }
        Ok(header_bytes as usize)
    }
}

/// The fault that a file is shorter than it must be.
pub(super) fn truncated(file_bytes: u64, bytes_needed: u64) -> ImageFault {
    ImageFault::Truncated { bytes_missing: bytes_needed.saturating_sub(file_bytes), bytes_needed }
}

/// The u32 at byte `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The u64 at byte `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

fn page_stride(geometry: &Geometry) -> u64 {
    u64::from(geometry.page_bytes) + u64::from(geometry.oob_bytes)
}

fn checksum(header: &[u8]) -> u32 {
    crc32c_append(crc32c(&header[..CRC_AT]), &header[CRC_GOES_ON_AT..])
}

/// Whether addresses of such a drive are in range: a profile is checked more closely, but a header may say anything.
fn check(geometry: &Geometry) -> Result<(), String> {
    let least = [
        ("channels", geometry.channels, 1),
        ("dies_per_channel", geometry.dies_per_channel, 1),
        ("blocks_per_die", geometry.blocks_per_die, 1),
        ("pages_per_block", geometry.pages_per_block, 1),
        ("pages_per_program", geometry.pages_per_program, 1),
        ("page_bytes", geometry.page_bytes, 1),
        ("oob_bytes", geometry.oob_bytes, codec::OOB_HEAD_BYTES),
    ];
    if let Some((key, value, least)) = least.iter().find(|(_, value, least)| value < least) {
        return Err(format!("geometry.{key} = {value} must be at least {least}"));
    }
    let most = [
        ("pages_per_program", geometry.pages_per_program, PAGES_PER_PROGRAM_MAX),
        ("page_bytes", geometry.page_bytes, PAGE_BYTES_MAX),
        ("oob_bytes", geometry.oob_bytes, PAGE_BYTES_MAX),
    ];
    if let Some((key, value, most)) = most.iter().find(|(_, value, most)| value > most) {
        return Err(format!("geometry.{key} = {value} must be at most {most}"));
    }
    let dies = u64::from(geometry.channels) * u64::from(geometry.dies_per_channel);
    let width = u64::from(geometry.superblock_dies);
    if width > 0 && !dies.is_multiple_of(width) {
        return Err(format!("geometry.superblock_dies = {width} must divide the {dies} dies"));
    }
    if !geometry.pages_per_block.is_multiple_of(geometry.pages_per_program) {
        return Err(format!(
            "geometry.pages_per_block = {} must be a multiple of geometry.pages_per_program = {}",
            geometry.pages_per_block, geometry.pages_per_program
        ));
    }
    let pages = [geometry.channels, geometry.dies_per_channel, geometry.blocks_per_die, geometry.pages_per_block]
        .iter()
        .fold(1u64, |product, &factor| product.saturating_mul(factor.into()));
    if pages >= u64::from(u32::MAX) {
        return Err("geometry has more than 2^32 - 2 pages".to_owned());
    }
    Ok(())
}
