//! The keys that a client offers, out of its ClientHello (RFC 8446, 4.1.2 and 4.2.11).
//!
//! ```text
//!   version 2, random 32, session id <1>, cipher suites <2>, compression <1>, extensions <2>: { type 2, data <2> }
//!   pre_shared_key (29h), the last: identities <2>: { identity <2>, age 4 }, binders <2>: { binder <1> }
//! ```
//!
//! `<n>` is a length of n bytes and what follows it.

/// The type of the extension.
const PRE_SHARED_KEY: u16 = 41;
/// More identities are not looked at. A client that has several keys for a server has two: one for each version.
const IDENTITIES_MAX: usize = 16;

/// An identity, and the proof that its client has the key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offer<'a> {
    pub(crate) identity: &'a [u8],
    pub(crate) binder: &'a [u8],
}

/// The offers in the body of a ClientHello, in its order, and how much of the body the binders are computed over. None where it
/// has none, or is none.
pub(crate) fn offers(hello: &[u8]) -> (Vec<Offer<'_>>, usize) {
    extension(hello).and_then(|data| split(hello, data)).unwrap_or_default()
}

/// The data of the extension, which is the last one.
fn extension(hello: &[u8]) -> Option<&[u8]> {
    let mut rest = hello.get(34..)?;
    take(&mut rest, 1)?;
    take(&mut rest, 2)?;
    take(&mut rest, 1)?;
    let mut extensions = take(&mut rest, 2)?;
    while !extensions.is_empty() {
        let kind = number(&mut extensions, 2)?;
        let data = take(&mut extensions, 2)?;
        if kind == usize::from(PRE_SHARED_KEY) {
            return (extensions.is_empty() && rest.is_empty()).then_some(data);
        }
    }
    None
}

fn split<'a>(hello: &[u8], mut data: &'a [u8]) -> Option<(Vec<Offer<'a>>, usize)> {
    let mut list = take(&mut data, 2)?;
    let bound_bytes = hello.len() - data.len();
    let mut binders = take(&mut data, 2)?;
    let mut found = Vec::new();
    while !list.is_empty() && found.len() < IDENTITIES_MAX {
        let identity = take(&mut list, 2)?;
        // Its age is of no use: it is no ticket.
        number(&mut list, 4)?;
        found.push(Offer { identity, binder: take(&mut binders, 1)? });
    }
    Some((found, bound_bytes))
}

/// A number of so many bytes, off the front.
fn number(bytes: &mut &[u8], length: usize) -> Option<usize> {
    let (number, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(number.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// What a length of so many bytes announces, off the front.
fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let count = number(bytes, length)?;
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixed(length: usize, data: &[u8]) -> Vec<u8> {
        let mut bytes = (data.len() as u32).to_be_bytes()[4 - length..].to_vec();
        bytes.extend_from_slice(data);
        bytes
    }

    fn hello(offered: &[&[u8]]) -> Vec<u8> {
        let list: Vec<u8> = offered.iter().flat_map(|name| [prefixed(2, name), vec![0; 4]].concat()).collect();
        let binders: Vec<u8> = offered.iter().flat_map(|name| prefixed(1, &[name.len() as u8; 32])).collect();
        let offer = [&[0, 41][..], &prefixed(2, &[prefixed(2, &list), prefixed(2, &binders)].concat())].concat();
        let other = [&[0, 43][..], &prefixed(2, &[2, 3, 4])].concat();
        let extensions = prefixed(2, &[other, offer].concat());
        [vec![3; 34], prefixed(1, &[7; 32]), prefixed(2, &[19, 1]), prefixed(1, &[0]), extensions].concat()
    }

    #[test]
    fn offers_are_found_in_order_and_cut_off_ones_are_none() {
        let whole = hello(&[b"first", b"", b"third"]);
        let (found, bound_bytes) = offers(&whole);
        let wanted = [(&b"first"[..], [5; 32]), (b"", [0; 32]), (b"third", [5; 32])];
        assert!(found.iter().map(|offer| (offer.identity, offer.binder)).eq(wanted.iter().map(|(a, b)| (*a, &b[..]))));
        assert_eq!(whole.len() - bound_bytes, 2 + 3 * 33);
        for length in 0..whole.len() {
            assert!(offers(&whole[..length]).0.is_empty(), "{length}");
        }
        assert_eq!(offers(&hello(&[&[1; 9][..]; 40])).0.len(), IDENTITIES_MAX);
    }

    proptest! {
        #[test]
        fn no_bytes_stop_it(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..90, byte: u8) {
            let _ = offers(&bytes);
            let mut changed = hello(&[b"first", b"second"]);
            changed[at] = byte;
            let _ = offers(&changed);
        }
    }
}
