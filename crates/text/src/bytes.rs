//! Bytes as text and back: text stands for itself, anything else is `hex:` and its bytes.
//!
//! ```text
//!   city/oslo        <->  63 69 74 79 ...
//!   hex:00ff         <->  00 ff
//!   hex:6865783a61   <->  68 65 78 3a 61, the text "hex:a"
//! ```

use std::fmt::Write;
use std::str::FromStr;

const PREFIX: &str = "hex:";

/// Bytes that were given as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        decode(text.as_bytes()).map(Bytes)
    }
}

/// The bytes that a text stands for.
///
/// # Errors
/// When what follows `hex:` is none.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let Some(digits) = text.strip_prefix(PREFIX.as_bytes()) else { return Ok(text.to_vec()) };
    let wrong = || "hex: is followed by an even number of hexadecimal digits".to_owned();
    if !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8).ok_or_else(wrong);
    digits.chunks(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// The text that stands for bytes, without line breaks and other control characters.
#[must_use]
pub fn line(bytes: &[u8]) -> String {
    encode(bytes, |_| false)
}

/// The text that stands for bytes, in a field that may have tabs and line breaks.
#[must_use]
pub fn field(bytes: &[u8]) -> String {
    encode(bytes, |letter| letter == '\n' || letter == '\t')
}

fn encode(bytes: &[u8], may_be: impl Fn(char) -> bool) -> String {
    // A byte order mark at the start of a file is not taken for a part of it.
    let is_plain = |text: &str| {
        !text.starts_with(PREFIX)
            && !text.starts_with('\u{feff}')
            && !text.chars().any(|letter| (letter.is_control() && !may_be(letter)) || is_direction(letter))
    };
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(text) => text.to_owned(),
        _ => bytes.iter().fold(PREFIX.to_owned(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes everything");
            text
        }),
    }
}

/// Whether a letter is one of those that nobody sees, and that put the others into another order (Unicode's `Bidi_Control`), or break a line.
fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_text() {
        let cases: [(&[u8], &str); 10] = [
            (b"", ""),
            (b"city/oslo", "city/oslo"),
            ("\u{e9}t\u{e9}".as_bytes(), "\u{e9}t\u{e9}"),
            (b"hex", "hex"),
            (b"hex:a", "hex:6865783a61"),
            (b"\0\xff", "hex:00ff"),
            (b"a\xff", "hex:61ff"),
            (b"a\rb", "hex:610d62"),
            ("\u{feff}a".as_bytes(), "hex:efbbbf61"),
            ("a\u{202e}b".as_bytes(), "hex:61e280ae62"),
        ];
        for (bytes, text) in cases {
            assert_eq!((line(bytes).as_str(), field(bytes).as_str()), (text, text));
            assert_eq!(decode(text.as_bytes()).unwrap(), bytes);
        }
        assert_eq!((line(b"a\nb").as_str(), field(b"a\nb").as_str()), ("hex:610a62", "a\nb"));
        assert_eq!(decode(b"hex:C0fFeE").unwrap(), [0xc0, 0xff, 0xee]);
        assert_eq!(decode(b"hex:").unwrap(), b"");
        assert!(decode(b"hex:1").is_err() && decode(b"hex:+1").is_err() && decode(b"hex:zz").is_err());
    }

    #[test]
    fn every_byte_comes_back() {
        for byte in 0..=255u8 {
            for bytes in [vec![byte], vec![b'a', byte], vec![byte, b'a']] {
                assert_eq!(decode(line(&bytes).as_bytes()).unwrap(), bytes);
                assert_eq!(decode(field(&bytes).as_bytes()).unwrap(), bytes);
            }
        }
    }
}
