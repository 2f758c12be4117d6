//! Secrets that somebody gave in place of something else: nobody repeats them.

/// What secrets and keys of TLS begin with as they are written down.
const BEGINNINGS: [&str; 2] = ["DHHC-1:", "NVMeTLSkey-1:"];

/// Whether there is a secret or a key in a text that is something else: the name of a file, say.
#[must_use]
pub fn has_secret(text: &str) -> bool {
    BEGINNINGS.iter().any(|begin| text.contains(begin))
}

/// A text with three dots in place of what its secrets and keys have behind their beginnings.
#[must_use]
pub fn masked(text: &str) -> String {
    let mut shown = text.to_owned();
    for begin in BEGINNINGS {
        let mut at = 0;
        while let Some(found) = shown[at..].find(begin) {
            at += found + begin.len();
            // How one is written down.
            if shown[at..].starts_with("hh:") {
                continue;
            }
            let is_other = |letter: char| !letter.is_ascii_alphanumeric() && !"+/=:%".contains(letter);
            let end = shown[at..].find(is_other).map_or(shown.len(), |length| at + length);
            shown.replace_range(at..end, "...");
        }
    }
    shown
}
