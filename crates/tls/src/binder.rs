//! Which of several keys with one identity a client has: the one by which its binder is right (RFC 8446, 4.2.11.2).
//!
//! The library knows one key for an identity. Its own check of the binder follows in any case, so that a mistake here picks
//! the wrong key, and lets nobody in.

use crate::key::{Key, KeyHash};
use hmac::{Hmac, KeyInit, Mac};
use sha2::digest::Digest;
use sha2::{Sha256, Sha384};
use subtle::ConstantTimeEq;

/// Whether `binder` is that of the key, over a ClientHello up to its binders.
pub(crate) fn is_of(key: Key<'_>, truncated: &[u8], binder: &[u8]) -> bool {
    match key.hash {
        KeyHash::Sha256 => reckon::<Hmac<Sha256>, Sha256>(key.secret, truncated),
        KeyHash::Sha384 => reckon::<Hmac<Sha384>, Sha384>(key.secret, truncated),
    }
    .ct_eq(binder)
    .into()
}

fn reckon<M: Mac + KeyInit, H: Digest>(secret: &[u8], truncated: &[u8]) -> Vec<u8> {
    let empty = H::digest([]);
    let early_secret = hmac::<M>(&vec![0; empty.len()], &[secret]);
    let binder_key = expand_label::<M>(&early_secret, b"tls13 ext binder", &empty);
    let finished_key = expand_label::<M>(&binder_key, b"tls13 finished", &[]);
    hmac::<M>(&finished_key, &[&H::digest(truncated)])
}

/// HKDF-Expand-Label of as many bytes as the hash has, which is one block.
fn expand_label<M: Mac + KeyInit>(secret: &[u8], label: &[u8], context: &[u8]) -> Vec<u8> {
    let length = secret.len() as u16;
    hmac::<M>(secret, &[&length.to_be_bytes(), &[label.len() as u8], label, &[context.len() as u8], context, &[1]])
}

fn hmac<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("an HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}
