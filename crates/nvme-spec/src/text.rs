//! Text in fields of a fixed length.

/// Writes `text` to a field, padded with zeros. What does not fit is cut off.
pub fn write_text(field: &mut [u8], text: &str) {
    write(field, text, 0);
}

/// As [`write_text`], padded with spaces, as ASCII strings of Identify are.
pub fn write_padded(field: &mut [u8], text: &str) {
    write(field, text, b' ');
}

/// The text of a field, up to its first zero, without trailing spaces; `None` if it is no UTF-8.
#[must_use]
pub fn read_text(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    core::str::from_utf8(&field[..end]).ok().map(|text| text.trim_end_matches(' '))
}

fn write(field: &mut [u8], text: &str, padding: u8) {
    field.fill(padding);
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_written() {
        let mut field = [0xff; 8];
        write_text(&mut field, "abc");
        assert_eq!((field, read_text(&field)), (*b"abc\0\0\0\0\0", Some("abc")));
        write_padded(&mut field, "abc");
        assert_eq!((field, read_text(&field)), (*b"abc     ", Some("abc")));
        write_text(&mut field, "longer than that");
        assert_eq!(read_text(&field), Some("longer t"));
        assert_eq!(read_text(&[0xff, 0]), None);
    }
}
