//! CRC-32C, as iSCSI has it: what pages, the write buffer's memory and the parts of images are checked by.

use crc_fast::{CrcAlgorithm, Digest};

/// The CRC of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The CRC of what `crc` is of, and of `bytes` behind it. That of nothing is 0.
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_the_one_that_was_written_down() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!((crc32c(b"123456789"), crc32c(b"")), (0xe306_9283, 0));
    }

    proptest! {
        /// Another program reckons the same, wherever the bytes lie and however many they are.
        #[test]
        fn it_is_the_same_in_one_piece_and_in_several(
            bytes in prop::collection::vec(any::<u8>(), 0..9000), begin in 0usize..70, cut in 0usize..9000,
        ) {
            let bytes = &bytes[begin.min(bytes.len())..];
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(crc32c(bytes), ::crc32c::crc32c(bytes));
            prop_assert_eq!(crc32c_append(crc32c(first), second), crc32c(bytes));
            prop_assert_eq!(crc32c_append(crc32c_append(0, first), second), crc32c(bytes));
        }
    }
}
