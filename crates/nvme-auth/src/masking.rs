//! Secrets that somebody gave in place of something else: nobody repeats them.

/// What secrets and keys of TLS begin with as they are written down, before a colon.
const KINDS: [&str; 2] = ["DHHC-1", "NVMeTLSkey-1"];

/// A colon, and how a URL may write it.
const COLONS: [&str; 3] = [":", "%3A", "%3a"];

/// Whether there is a secret or a key in a text that is something else: the name of a file, say.
#[must_use]
pub fn has_secret(text: &str) -> bool {
    KINDS.iter().any(|kind| text.match_indices(kind).any(|(at, _)| colon_at(&text[at + kind.len()..]).is_some()))
}

/// A text with three dots in place of what its secrets and keys have behind their beginnings.
#[must_use]
pub fn masked(text: &str) -> String {
    let mut shown = text.to_owned();
    for kind in KINDS {
        let mut at = 0;
        while let Some(found) = shown[at..].find(kind) {
            at += found + kind.len();
            let Some(colon) = colon_at(&shown[at..]) else { continue };
            at += colon.len();
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

fn colon_at(text: &str) -> Option<&'static str> {
    COLONS.into_iter().find(|colon| text.starts_with(colon))
}
