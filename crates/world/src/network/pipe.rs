//! One direction of a connection.

use std::collections::VecDeque;

/// Bytes that are under way, or that have arrived and are not read yet.
pub(crate) struct Pipe {
    bytes: VecDeque<u8>,
    /// When each of the pieces arrives, and how many bytes of it are not read yet.
    pieces: VecDeque<(u64, usize)>,
    room_bytes: usize,
    /// Nothing overtakes what was sent before.
    last_ns: u64,
    /// When the reader learns that no more comes.
    end_ns: Option<u64>,
    /// From when on nothing arrives.
    cut_ns: Option<u64>,
}

/// What a reader finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Bytes(usize),
    End,
    Broken,
    /// Nothing, before that moment.
    Nothing(Option<u64>),
}

impl Pipe {
    pub(crate) fn new(room_bytes: usize) -> Pipe {
        Pipe { bytes: VecDeque::new(), pieces: VecDeque::new(), room_bytes, last_ns: 0, end_ns: None, cut_ns: None }
    }

    /// How many more bytes it takes.
    pub(crate) fn room(&self) -> usize {
        self.room_bytes.saturating_sub(self.bytes.len())
    }

    /// Takes a piece that arrives at that time, or behind the one before.
    pub(crate) fn send(&mut self, bytes: &[u8], at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
        self.bytes.extend(bytes);
        self.pieces.push_back((self.last_ns, bytes.len()));
    }

    /// Tells the reader behind all pieces that no more comes.
    pub(crate) fn end(&mut self, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
        self.end_ns.get_or_insert(self.last_ns);
    }

    pub(crate) fn has_end(&self) -> bool {
        self.end_ns.is_some()
    }

    /// Lets nothing arrive from a moment on.
    pub(crate) fn cut(&mut self, at_ns: u64) {
        self.cut_ns = Some(self.cut_ns.map_or(at_ns, |before| before.min(at_ns)));
    }

    pub(crate) fn is_cut(&self, now_ns: u64) -> bool {
        self.cut_ns.is_some_and(|cut_ns| cut_ns <= now_ns)
    }

    pub(crate) fn look(&self, now_ns: u64) -> Found {
        let horizon = self.cut_ns.map_or(now_ns, |cut_ns| now_ns.min(cut_ns));
        let arrived = self.pieces.iter().take_while(|(at_ns, _)| *at_ns <= horizon).map(|(_, bytes)| bytes).sum();
        if arrived > 0 {
            return Found::Bytes(arrived);
        }
        let next = self.pieces.front().map(|(at_ns, _)| *at_ns).or(self.end_ns);
        match next {
            Some(at_ns) if at_ns <= horizon => Found::End,
            _ if self.is_cut(now_ns) => Found::Broken,
            next => Found::Nothing(next.into_iter().chain(self.cut_ns).min()),
        }
    }

    /// Moves bytes that have arrived to `buffer`, which is filled.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) {
        let (front, back) = self.bytes.as_slices();
        let from_front = front.len().min(buffer.len());
        let (first, second) = buffer.split_at_mut(from_front);
        first.copy_from_slice(&front[..from_front]);
        second.copy_from_slice(&back[..second.len()]);
        let mut left = buffer.len();
        self.bytes.drain(..left);
        while left > 0 {
            let piece = self.pieces.front_mut().expect("all bytes lie in pieces");
            let of_it = piece.1.min(left);
            piece.1 -= of_it;
            left -= of_it;
            if piece.1 == 0 {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_before_a_cut_is_read_and_the_rest_is_lost() {
        let mut pipe = Pipe::new(100);
        pipe.send(b"early", 10);
        pipe.send(b"late", 30);
        pipe.end(40);
        assert_eq!(pipe.look(9), Found::Nothing(Some(10)));
        pipe.cut(20);
        assert_eq!(pipe.look(50), Found::Bytes(5));
        let mut buffer = [0; 3];
        pipe.read(&mut buffer);
        assert_eq!((&buffer, pipe.look(50)), (b"ear", Found::Bytes(2)));
        pipe.read(&mut buffer[..2]);
        assert_eq!(pipe.look(19), Found::Nothing(Some(20)));
        assert_eq!(pipe.look(50), Found::Broken);
    }

    #[test]
    fn the_end_comes_behind_all_pieces() {
        let mut pipe = Pipe::new(4);
        pipe.send(b"all", 10);
        pipe.end(5);
        assert_eq!((pipe.room(), pipe.look(10)), (1, Found::Bytes(3)));
        pipe.read(&mut [0; 3]);
        assert_eq!(pipe.look(10), Found::End);
    }
}
