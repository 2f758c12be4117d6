//! How wide texts are, and those that fit: an SVG names a family of fonts, and its reader chooses one.

/// How wide a text in letters of a size is, about: as wide as in a wide font (DejaVu Sans).
pub fn width(text: &str, size: u32) -> u32 {
    let percent: u32 = text.chars().map(letter_percent).sum();
    (percent * size).div_ceil(100)
}

/// Of the size of letters.
fn letter_percent(letter: char) -> u32 {
    match letter {
        'i' | 'j' | 'l' | '\'' | '|' => 30,
        ' ' | ',' | '.' | ':' | ';' | 'f' | 'r' | 't' | 'I' | '-' | '/' | '(' | ')' | '[' | ']' => 40,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' => 58,
        'w' | 'W' => 90,
        'm' | 'M' | '%' | '@' | '…' => 98,
        'A'..='Z' | '_' | '=' | '+' => 74,
        letter if letter.is_ascii() => 64,
        // Of other scripts many are as wide as they are high.
        _ => 100,
    }
}

/// A text no wider than `most`, and the size of its letters. One that is too long gets smaller letters. If the smallest are too large still, it
/// is cut in its middle: names that are alike differ at their ends.
pub fn fitted(text: &str, size: u32, size_min: u32, most: u32) -> (u32, String) {
    let fits = |size: &u32| width(text, *size) <= most;
    if let Some(size) = (size_min..=size).rev().find(fits) {
        return (size, text.to_owned());
    }
    let letters: Vec<char> = text.chars().collect();
    let cut = |kept: usize| -> String {
        let (head, tail) = (kept.div_ceil(2), letters.len() - kept / 2);
        letters[..head].iter().chain(&['…']).chain(&letters[tail..]).collect()
    };
    let kept = (0..letters.len()).rev().find(|kept| width(&cut(*kept), size_min) <= most);
    (size_min, cut(kept.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_smaller_and_is_cut_then() {
        let long = "ycsb-a uniform, value-bytes 1000, original";
        let most = width(long, 30);
        assert_eq!(fitted("plus", 38, 26, most), (38, "plus".to_owned()));
        assert_eq!(fitted(long, 38, 26, most), (30, long.to_owned()));
        let (size, cut) = fitted(long, 38, 26, most / 2);
        assert!(size == 26 && cut.starts_with("ycsb-a") && cut.ends_with("original") && cut.contains('…'), "{cut}");
        assert!(width(&cut, size) <= most / 2);
        assert_eq!(fitted(long, 38, 26, 0).1, "…", "there is no room at all");
    }
}
