//! Where traces come from: readers of plain, gzip and zstd bytes, and how far the file was read.

pub use kvssd_text::InputBytes;

use kvssd_text::Counted;
use std::io::{self, BufRead, BufReader, Read};

/// What compressed files begin with (RFC 1952, RFC 8878; the second of zstd is a frame that is skipped, which may come first).
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_SKIPPED: (u8, &[u8]) = (0x50, &[0x2a, 0x4d, 0x18]);

/// The bytes of a trace, decompressed if they begin as gzip or zstd do, whatever the file is called. What is read of `input` is added to `bytes`.
/// Several compressed pieces one after the other are one.
///
/// # Errors
/// When `input` cannot be read.
pub fn decoded(input: impl Read + 'static, bytes: &InputBytes) -> io::Result<Box<dyn Read>> {
    let mut input = BufReader::with_capacity(1 << 17, Counted::new(input, bytes));
    let magic = input.fill_buf()?;
    let is_skipped = magic.first().is_some_and(|first| first & 0xf0 == ZSTD_SKIPPED.0)
        && magic.get(1..).is_some_and(|rest| rest.starts_with(ZSTD_SKIPPED.1));
    Ok(if magic.starts_with(GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(input))
    } else if magic.starts_with(ZSTD) || is_skipped {
        Box::new(zstd::stream::read::Decoder::with_buffer(input)?)
    } else {
        Box::new(input)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_bytes_are_told_by_what_they_begin_with() {
        let text = b"a line\n".repeat(1000);
        let zstd = zstd::encode_all(&text[..], 1).unwrap();
        let twice = [zstd.clone(), zstd.clone()].concat();
        let gzips = [gzip(&text), gzip(&text)].concat();
        for (packed, times) in [(text.clone(), 1), (gzip(&text), 1), (zstd, 1), (twice, 2), (gzips, 2), (vec![], 0)] {
            let length = packed.len() as u64;
            let bytes = InputBytes::default();
            let mut reader = decoded(io::Cursor::new(packed), &bytes).unwrap();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!((read, bytes.read()), (text.repeat(times), length));
        }
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let text = b"a line\n".repeat(1000);
        for packed in [gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            let cut = packed[..packed.len() - 3].to_vec();
            let mut reader = decoded(io::Cursor::new(cut), &InputBytes::default()).unwrap();
            assert!(reader.read_to_end(&mut Vec::new()).is_err());
        }
    }
}
