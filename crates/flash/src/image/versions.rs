//! Versions of the format.

/// The version of the format of an image of one part.
pub(super) const FORMAT_VERSION: u32 = 3;
/// The version of the format of an image of several parts.
pub(super) const PARTS_VERSION: u32 = 4;
/// Every version that there was, and who reads it. When bytes change their meaning, a version is added here; none is ever changed.
const VERSIONS: [(u32, &str); 4] = [
    (1, "a kvssd from before drives had several logs"),
    (2, "a kvssd from before the checksums of pages had their address and generation in them"),
    (FORMAT_VERSION, "this kvssd"),
    (PARTS_VERSION, "this kvssd"),
];

/// The program that reads a version.
pub(super) fn reader_of(version: u32) -> &'static str {
    let known = VERSIONS.iter().find(|&&(known, _)| known == version).map(|&(_, reader)| reader);
    known.unwrap_or(if version > PARTS_VERSION { "a newer kvssd" } else { "no kvssd" })
}
