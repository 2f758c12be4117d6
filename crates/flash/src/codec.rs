//! What lies in flash: the bytes of a page and of its out-of-band area (drawn in `docs/FORMAT.md`).
//!
//! ```text
//!   data area      page_bytes bytes
//!   out-of-band    [crc32c u32] [length u16] [the firmware's bytes: length] [zeros to oob_bytes]
//! ```
//!
//! Little endian; the CRC covers everything behind it and then the data area.

use crate::{Geometry, PageView, UnitImage};

/// Bytes of the out-of-band area that the codec takes for itself.
pub const OOB_HEAD_BYTES: u32 = 6;

/// The bytes of a page, its data area first.
///
/// # Panics
/// When the firmware's bytes do not fit the out-of-band area or the data is not just a page.
#[must_use]
pub fn encode(geometry: &Geometry, page: PageView<'_>) -> Vec<u8> {
    let (data_bytes, oob_bytes) = (geometry.page_bytes as usize, geometry.oob_bytes as usize);
    let payload_end = OOB_HEAD_BYTES as usize + page.oob.len();
    assert!(payload_end <= oob_bytes, "{} out-of-band bytes in an area of {oob_bytes}", page.oob.len());
    let mut bytes = vec![0; data_bytes + oob_bytes];
    let (data, oob) = bytes.split_at_mut(data_bytes);
    page.data.copy_to(0, data);
    oob[4..6].copy_from_slice(&(page.oob.len() as u16).to_le_bytes());
    oob[6..payload_end].copy_from_slice(page.oob);
    let crc = checksum(data, oob);
    oob[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The page that `bytes` hold, or why they hold none.
///
/// # Errors
/// What is wrong with the bytes, in words.
pub fn decode(geometry: &Geometry, bytes: &[u8]) -> Result<UnitImage, &'static str> {
    verify(geometry, bytes).map(|(oob, data)| UnitImage::of_bytes(oob, data))
}

/// The firmware's out-of-band bytes and the data area of the page that `bytes` hold, or why they hold none.
///
/// # Errors
/// As [`decode`].
pub fn verify<'a>(geometry: &Geometry, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), &'static str> {
    let (data_bytes, oob_bytes) = (geometry.page_bytes as usize, geometry.oob_bytes as usize);
    if bytes.len() != data_bytes + oob_bytes || oob_bytes < OOB_HEAD_BYTES as usize {
        return Err("not the length of a page");
    }
    let (data, oob) = bytes.split_at(data_bytes);
    if u32::from_le_bytes([oob[0], oob[1], oob[2], oob[3]]) != checksum(data, oob) {
        return Err("the checksum does not match");
    }
    let length = usize::from(u16::from_le_bytes([oob[4], oob[5]]));
    let payload = oob[OOB_HEAD_BYTES as usize..].get(..length).ok_or("the out-of-band length is too large")?;
    Ok((payload, data))
}

fn checksum(data: &[u8], oob: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&oob[4..]), data)
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
    };

    proptest! {
        #[test]
        fn a_page_survives_its_bytes_and_no_flipped_bit_does(
            oob in prop::collection::vec(any::<u8>(), 0..58),
            data in prop::collection::vec(any::<u8>(), 512),
            bit in 0usize..(512 + 64) * 8,
        ) {
            let unit = UnitImage::of_bytes(&oob, &data);
            let mut bytes = encode(&GEOMETRY, unit.page(0));
            let back = decode(&GEOMETRY, &bytes).unwrap();
            prop_assert_eq!(back.page(0).oob, &oob[..]);
            prop_assert_eq!(&*back.page(0).data.blob(0..512), &data[..]);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&GEOMETRY, &bytes).is_err());
        }

        #[test]
        fn any_bytes_are_a_page_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            let _ = decode(&GEOMETRY, &bytes);
        }
    }
}
