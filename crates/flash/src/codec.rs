//! What lies in flash: the bytes of a page and of its out-of-band area (drawn in `docs/FORMAT.md`).
//!
//! ```text
//!   data area      page_bytes bytes
//!   out-of-band    [crc32c u32] [length u16] [the firmware's bytes: length] [zeros to oob_bytes]
//! ```
//!
//! Little endian; the CRC covers the page's address u32 and the erases of its block u32, which are not written, then everything
//! behind it and then the data area. So a page that lies elsewhere, or is of an earlier life of its block, is no page.

use crate::checksum::{crc32c, crc32c_append};
use crate::{BlockAddress, Geometry, PageAddress, PageView, UnitImage};

/// Bytes of the out-of-band area that the codec takes for itself.
pub const OOB_HEAD_BYTES: u32 = 6;

/// What is said of a page whose bytes are not those that were written there in this life of its block.
const CHECKSUM_DIFFERS: &str = "the checksum does not match";

/// So many earlier lives of a block a stale page is looked for in.
const EARLIER_LIVES: u32 = 1 << 16;

/// So many pages around its place a page that went astray is looked for in: all of a drive of 16 GiB with pages of 4 KiB. With more, a damaged page
/// would be taken for another one too often ([`origin`]).
const SUSPECTS_MAX: u64 = 1 << 22;

/// Which page bytes must be: the place where they are looked for, and how often that had been erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageIdentity {
    /// The page.
    pub page: PageAddress,
    /// The erases of its block.
    pub erases: u32,
}

/// The bytes of a page, its data area first.
///
/// # Panics
/// When the firmware's bytes do not fit the out-of-band area or the data is not just a page.
#[must_use]
pub fn encode(geometry: &Geometry, identity: PageIdentity, page: PageView<'_>) -> Vec<u8> {
    let mut bytes = vec![0; geometry.page_bytes as usize + geometry.oob_bytes as usize];
    encode_to(geometry, identity, page, &mut bytes);
    bytes
}

/// As [`encode`], to `bytes`, whatever is there.
///
/// # Panics
/// As [`encode`], and when `bytes` are not as many as a page has.
pub fn encode_to(geometry: &Geometry, identity: PageIdentity, page: PageView<'_>, bytes: &mut [u8]) {
    let (data_bytes, oob_bytes) = (geometry.page_bytes as usize, geometry.oob_bytes as usize);
    let payload_end = OOB_HEAD_BYTES as usize + page.oob.len();
    assert!(payload_end <= oob_bytes, "{} out-of-band bytes in an area of {oob_bytes}", page.oob.len());
    let (data, oob) = bytes.split_at_mut(data_bytes);
    assert_eq!(oob.len(), oob_bytes, "a page has so many");
    page.data.copy_to(0, data);
    oob[4..6].copy_from_slice(&(page.oob.len() as u16).to_le_bytes());
    oob[6..payload_end].copy_from_slice(page.oob);
    oob[payload_end..].fill(0);
    let crc = checksum(identity, data, oob);
    oob[..4].copy_from_slice(&crc.to_le_bytes());
}

/// The page that `bytes` hold, or why they hold none.
///
/// # Errors
/// What is wrong with the bytes, in words.
pub fn decode(geometry: &Geometry, identity: PageIdentity, bytes: &[u8]) -> Result<UnitImage, &'static str> {
    verify(geometry, identity, bytes).map(|(oob, data)| UnitImage::of_bytes(oob, data))
}

/// The firmware's out-of-band bytes and the data area of the page that `bytes` hold, or why they hold none.
///
/// # Errors
/// As [`decode`].
pub fn verify<'a>(
    geometry: &Geometry,
    identity: PageIdentity,
    bytes: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), &'static str> {
    let (data_bytes, oob_bytes) = (geometry.page_bytes as usize, geometry.oob_bytes as usize);
    if bytes.len() != data_bytes + oob_bytes || oob_bytes < OOB_HEAD_BYTES as usize {
        return Err("not the length of a page");
    }
    let (data, oob) = bytes.split_at(data_bytes);
    Ok((verify_areas(identity, data, oob)?, data))
}

/// As [`verify`], of areas that lie apart, each as long as the geometry says: gives the firmware's out-of-band bytes.
pub(crate) fn verify_areas<'a>(identity: PageIdentity, data: &[u8], oob: &'a [u8]) -> Result<&'a [u8], &'static str> {
    if u32::from_le_bytes([oob[0], oob[1], oob[2], oob[3]]) != checksum(identity, data, oob) {
        return Err(CHECKSUM_DIFFERS);
    }
    let length = usize::from(u16::from_le_bytes([oob[4], oob[5]]));
    oob[OOB_HEAD_BYTES as usize..].get(..length).ok_or("the out-of-band length is too large")
}

/// Which page the bytes are of, if they are whole and of one of `candidates`: what the checksum must have begun with follows from the
/// bytes, so that each candidate is a look at eight bytes. Of bytes that are damaged one fits by chance in candidates / 2^32 of the cases: with the
/// most that there are, in one of a thousand.
#[must_use]
pub fn origin(
    geometry: &Geometry,
    bytes: &[u8],
    mut candidates: impl Iterator<Item = PageIdentity>,
) -> Option<PageIdentity> {
    let (data_bytes, oob_bytes) = (geometry.page_bytes as usize, geometry.oob_bytes as usize);
    if bytes.len() != data_bytes + oob_bytes || oob_bytes < OOB_HEAD_BYTES as usize {
        return None;
    }
    let (data, oob) = bytes.split_at(data_bytes);
    let behind = |seed: u32| crc32c_append(crc32c_append(seed, &oob[4..]), data);
    // The checksum is a sum of what each bit of the seed makes of it, and of what the bytes do.
    let of_bytes = behind(0);
    let mut rest = u32::from_le_bytes([oob[0], oob[1], oob[2], oob[3]]) ^ of_bytes;
    let mut columns: Vec<(u32, u32)> = (0..32).map(|bit| (behind(1 << bit) ^ of_bytes, 1 << bit)).collect();
    let mut wanted = 0;
    for bit in 0..32 {
        let pivot = columns.iter().position(|(column, _)| column >> bit & 1 == 1)?;
        let (column, bits) = columns.swap_remove(pivot);
        let has_bit = |(other, _): &&mut (u32, u32)| *other >> bit & 1 == 1;
        columns.iter_mut().filter(has_bit).for_each(|other| *other = (other.0 ^ column, other.1 ^ bits));
        if rest >> bit & 1 == 1 {
            (rest, wanted) = (rest ^ column, wanted ^ bits);
        }
    }
    candidates.find(|&candidate| crc32c(&seed(candidate)) == wanted)
}

/// Whose page this may be that is not the one that was looked for: an earlier life of its block, or one of the pages around it, whose blocks
/// `erases` knows.
pub(crate) fn suspects<'e>(
    geometry: &'e Geometry,
    page: PageAddress,
    erases: impl Fn(BlockAddress) -> u32 + 'e,
) -> impl Iterator<Item = PageIdentity> + 'e {
    let of =
        move |page: PageAddress| PageIdentity { page, erases: erases(geometry.block_of(geometry.unit_of(page)).0) };
    let known = of(page).erases;
    let earlier = (known.saturating_sub(EARLIER_LIVES)..known).rev().map(move |erases| PageIdentity { page, erases });
    let first = u64::from(page.0).saturating_sub(SUSPECTS_MAX / 2);
    let around = first..geometry.pages().min(first + SUSPECTS_MAX);
    earlier.chain(around.map(|other| PageAddress(other as u32)).filter(move |other| *other != page).map(of))
}

fn seed(identity: PageIdentity) -> [u8; 8] {
    let mut seed = [0; 8];
    seed[..4].copy_from_slice(&identity.page.0.to_le_bytes());
    seed[4..].copy_from_slice(&identity.erases.to_le_bytes());
    seed
}

fn checksum(identity: PageIdentity, data: &[u8], oob: &[u8]) -> u32 {
    crc32c_append(crc32c_append(crc32c(&seed(identity)), &oob[4..]), data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GEOMETRY: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 1,
        pages_per_block: 1,
        pages_per_program: 1,
        page_bytes: 512,
        oob_bytes: 64,
        superblock_dies: 0,
        read_bytes_min: 0,
    };

    proptest! {
        #[test]
        fn a_page_survives_its_bytes_and_no_flipped_bit_does(
            oob in prop::collection::vec(any::<u8>(), 0..58),
            data in prop::collection::vec(any::<u8>(), 512),
            bit in 0usize..(512 + 64) * 8,
            (page, erases) in any::<(u32, u32)>(),
        ) {
            let identity = PageIdentity { page: PageAddress(page), erases };
            let unit = UnitImage::of_bytes(&oob, &data);
            let mut bytes = encode(&GEOMETRY, identity, unit.page(0));
            let back = decode(&GEOMETRY, identity, &bytes).unwrap();
            prop_assert_eq!(back.page(0).oob, &oob[..]);
            prop_assert_eq!(&*back.page(0).data.blob(0..512), &data[..]);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&GEOMETRY, identity, &bytes).is_err());
        }

        #[test]
        fn a_page_is_none_in_another_place_or_in_another_life_of_its_block(
            data in prop::collection::vec(any::<u8>(), 512), (page, erases) in any::<(u32, u32)>(), other in 1u32..,
        ) {
            let identity = PageIdentity { page: PageAddress(page), erases };
            let bytes = encode(&GEOMETRY, identity, UnitImage::of_bytes(b"oob", &data).page(0));
            let elsewhere = PageIdentity { page: PageAddress(page.wrapping_add(other)), ..identity };
            let later = PageIdentity { erases: erases.wrapping_add(other), ..identity };
            for wrong in [elsewhere, later] {
                prop_assert_eq!(decode(&GEOMETRY, wrong, &bytes).unwrap_err(), CHECKSUM_DIFFERS);
                prop_assert_eq!(origin(&GEOMETRY, &bytes, [wrong].into_iter()), None);
                prop_assert_eq!(origin(&GEOMETRY, &bytes, [wrong, identity].into_iter()), Some(identity));
            }
        }

        #[test]
        fn any_bytes_are_a_page_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            let identity = PageIdentity { page: PageAddress(1), erases: 2 };
            let _ = (decode(&GEOMETRY, identity, &bytes), origin(&GEOMETRY, &bytes, [identity].into_iter()));
        }
    }

    #[test]
    fn a_page_of_a_large_drive_has_few_suspects() {
        let geometry = Geometry { blocks_per_die: 1 << 20, pages_per_block: 1 << 10, ..GEOMETRY };
        for page in [0, 1 << 29, (1 << 30) - 1].map(PageAddress) {
            let near = PageAddress(page.0 ^ 1000);
            let (mut count, mut is_near) = (0, false);
            for suspect in suspects(&geometry, page, |_| u32::MAX) {
                assert!(suspect != PageIdentity { page, erases: u32::MAX });
                (count, is_near) = (count + 1, is_near || suspect.page == near);
            }
            assert!(is_near && count < 1 << 23, "{count}");
        }
    }
}
