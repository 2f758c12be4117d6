//! A session of both sides, between which somebody without the secrets changes, drops and adds messages as a string of
//! bytes says. Whatever the string: nothing panics, and who took a changed message is not authenticated.
//!
//! ```text
//!   hash and group | step | step | ...    a step: to which side, and
//!                                         deliver | a byte changed | cut off | any bytes | a message of before again
//! ```

use kvssd_nvme_auth::{
    ControllerSide, Credentials, Group, Hash, HostSide, Offer, Parties, Progress, RANDOMNESS_BYTES, Randomness, Secret,
};

const HOST_SECRET: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const CONTROLLER_SECRET: &str = "DHHC-1:02:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:";

/// Runs the session that `script` describes.
pub fn run(script: &[u8]) {
    let mut script = script.iter().copied();
    let first = script.next().unwrap_or_default();
    // Large groups take long, and have the same code.
    let group = if first & 0x80 != 0 { Group::Ffdhe2048 } else { Group::Null };
    let offer = Offer { hashes: vec![Hash::ALL[usize::from(first) % 3]], groups: vec![group] };
    let secret = |text| Secret::parse(text).expect("a secret");
    let credentials = Credentials { host: secret(HOST_SECRET), controller: Some(secret(CONTROLLER_SECRET)) };
    let parties = Parties { host: "nqn.host".to_owned(), subsystem: "nqn.drive".to_owned() };
    let randomness = |byte: u8| Randomness::new(&[byte; RANDOMNESS_BYTES].into());
    let mut controller = ControllerSide::new(credentials.clone(), parties.clone(), randomness(3));
    let mut host = HostSide::new(credentials, parties, randomness(5), offer, 7);
    let (mut said, mut is_honest) = (Vec::new(), true);
    while let Some(step) = script.next() {
        let is_to_controller = step & 1 == 0;
        let message = if is_to_controller { host.message() } else { controller.message() };
        let sent = message.clone().unwrap_or_default();
        let mut bytes = sent.clone();
        match step >> 1 & 7 {
            0..=3 => {}
            4 if !bytes.is_empty() => {
                let at = usize::from(script.next().unwrap_or_default()) * 5 % bytes.len();
                bytes[at] ^= script.next().unwrap_or(1);
            }
            5 => bytes.truncate(script.next().unwrap_or_default().into()),
            6 => bytes = script.by_ref().take(40).collect(),
            _ => bytes = said.get(usize::from(step >> 4)).cloned().unwrap_or_default(),
        }
        is_honest &= bytes == sent;
        if message.is_some() {
            said.push(sent);
        }
        if !bytes.is_empty() {
            if is_to_controller { controller.receive(&bytes) } else { host.receive(&bytes) }
        }
    }
    let both = [host.progress(), controller.progress()];
    // Reserved bytes, and bytes behind the end, may differ; but a side that failed stays failed, and without the
    // other's messages there is no proof.
    if said.len() < 3 && !is_honest {
        assert!(both.iter().all(|progress| *progress != Progress::Authenticated), "{both:?}");
    }
}
