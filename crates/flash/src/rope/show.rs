//! The bytes of a rope, without a copy of those that it holds.

use super::{Piece, RopeRef};

/// Described bytes are made real so many at a time.
const MADE_BYTES: usize = 1024;

impl RopeRef<'_> {
    /// Shows all bytes in order, as they lie, and what is only described in short pieces.
    ///
    /// # Panics
    /// When bytes were forgotten.
    pub fn show(self, mut see: impl FnMut(&[u8])) {
        for piece in self.pieces() {
            match piece {
                Piece::Literal(bytes) => see(bytes),
                Piece::Blob(blob, part) => see(&blob[part]),
                described => {
                    let mut made = [0; MADE_BYTES];
                    for begin in (0..described.len()).step_by(MADE_BYTES) {
                        let end = described.len().min(begin + MADE_BYTES);
                        described.clone().cut(begin..end).copy_to(&mut made[..end - begin]);
                        see(&made[..end - begin]);
                    }
                }
            }
        }
    }
}
