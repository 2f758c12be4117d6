//! Hosts and controllers with right and wrong secrets, names and messages.

use crate::{HOST, OTHER_SECRET, SUBSYSTEM, TRANSACTION, controller, credentials, host, parties, randomness, secret};
use kvssd_nvme_auth::{ControllerSide, Credentials, Failure, Group, Hash, HostSide, Offer, Parties, Progress};
use sha2::{Digest, Sha256};

/// Exchanges messages until both are silent; gives all of them.
fn exchange(host: &mut HostSide, controller: &mut ControllerSide) -> Vec<Vec<u8>> {
    let mut said = Vec::new();
    loop {
        let before = said.len();
        if let Some(message) = host.message() {
            controller.receive(&message);
            said.push(message);
        }
        if let Some(message) = controller.message() {
            host.receive(&message);
            said.push(message);
        }
        if said.len() == before {
            return said;
        }
    }
}

fn offer(hash: Hash, group: Group) -> Offer {
    Offer { hashes: vec![hash], groups: vec![group] }
}

const GROUPS: [Group; 6] =
    [Group::Null, Group::Ffdhe2048, Group::Ffdhe3072, Group::Ffdhe4096, Group::Ffdhe6144, Group::Ffdhe8192];

#[test]
fn every_hash_and_group_authenticates_one_way_and_both_ways() {
    for hash in Hash::ALL {
        for group in GROUPS {
            for is_mutual in [false, true] {
                let mut controller = controller(credentials(true));
                let mut host = host(credentials(is_mutual), offer(hash, group));
                let said = exchange(&mut host, &mut controller);
                let both = (host.progress(), controller.progress());
                assert_eq!(both, (Progress::Authenticated, Progress::Authenticated), "{hash:?} {group:?}");
                assert_eq!(said.len(), if is_mutual { 5 } else { 4 });
            }
        }
    }
}

/// SHA-256 of all messages of a mutual authentication, computed by a Python script from the specification's formulas
/// (hashlib, hmac, pow).
const KNOWN: [(Hash, Group, &str); 10] = [
    (Hash::Sha256, Group::Null, "123f20a7e0c860cfb4017770b94aec8c8df75296fc8598c28439979fdeaaf33c"),
    (Hash::Sha384, Group::Null, "6793fbd32ea33cb8eca1847d57e172c8ac0529618f6e4346fa1d71dda9ef4df8"),
    (Hash::Sha512, Group::Null, "76fdb6fea1c0a979db912855780079295a397e129676ad4290d48de03c9b234c"),
    (Hash::Sha256, Group::Ffdhe2048, "c60c293a63004fba823df725aad2c4d5c8fba9e3c6b628844cbf1ba3df48dd72"),
    (Hash::Sha384, Group::Ffdhe2048, "7aa6e933c2c60eb612714b224d189c0b939fc69f19b551a44eff7288c2d62185"),
    (Hash::Sha512, Group::Ffdhe2048, "ba17144bff15c8e53d05697afc66c0a4484841123d90d291f602eb4c3025c78f"),
    (Hash::Sha512, Group::Ffdhe3072, "b26a8b167f57c4df09cb91b000f84a0c47e758ac344a7a9df31faedb327d6591"),
    (Hash::Sha256, Group::Ffdhe4096, "c2a54f79aa2aa5ea3f5c3007efa1ba984fc27d74bc29b5abbf57c0f344b4549f"),
    (Hash::Sha384, Group::Ffdhe6144, "67341cb68cdef3f05b77e015475fab7d5ba58af00c13852a2aaca33ebfeec14e"),
    (Hash::Sha512, Group::Ffdhe8192, "85c6553e11e79442120f925b4fd6e0b84854c2ce8d480aa073c54b26fe7ca08c"),
];

#[test]
fn all_messages_are_those_that_another_program_computes() {
    for (hash, group, wanted) in KNOWN {
        let (mut controller, mut host) = (controller(credentials(true)), host(credentials(true), offer(hash, group)));
        let said = exchange(&mut host, &mut controller).concat();
        let digest: String = Sha256::digest(said).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, wanted, "{hash:?} {group:?}");
    }
}

#[test]
fn of_all_that_is_offered_the_longest_hash_and_a_group_of_128_bits_are_chosen() {
    let (mut controller, mut host) = (controller(credentials(true)), host(credentials(true), Offer::default()));
    let said = exchange(&mut host, &mut controller);
    assert_eq!((said[1][8], said[1][9]), (Hash::Sha512 as u8, Group::Ffdhe3072 as u8));
}

#[test]
fn a_wrong_secret_or_name_proves_nothing() {
    let wrong = || secret(OTHER_SECRET);
    let right = credentials(true);
    let other = |host: &str, subsystem: &str| Parties { host: host.to_owned(), subsystem: subsystem.to_owned() };
    let cases = [
        (Credentials { host: wrong(), ..right.clone() }, parties()),
        (Credentials { controller: Some(wrong()), ..right.clone() }, parties()),
        // A secret that goes through no hash is bound to names by the response alone.
        (right.clone(), other("nqn.somebody", SUBSYSTEM)),
        (right.clone(), other(HOST, "nqn.another")),
    ];
    for group in [Group::Null, Group::Ffdhe2048] {
        for (credentials, parties) in cases.clone() {
            let offer = offer(Hash::Sha256, group);
            let mut host = HostSide::new(credentials, parties, randomness(11, 5), offer, TRANSACTION);
            let mut controller = controller(right.clone());
            exchange(&mut host, &mut controller);
            let failed = Progress::Failed(Failure::WrongResponse);
            assert_eq!((host.progress(), controller.progress()), (failed, failed));
        }
    }
    // One that cannot prove itself is found out.
    let mut host = host(credentials(true), Offer::default());
    let mut controller = controller(credentials(false));
    exchange(&mut host, &mut controller);
    assert_eq!(host.progress(), Progress::Failed(Failure::WrongResponse));
    assert_ne!(controller.progress(), Progress::Authenticated);
}

#[test]
fn what_was_recorded_proves_nothing_later() {
    let (mut first, mut recorded) = (controller(credentials(true)), host(credentials(true), Offer::default()));
    let said = exchange(&mut recorded, &mut first);
    // To a controller that challenges anew the old messages are of no use.
    let mut second = ControllerSide::new(credentials(true), parties(), randomness(13, 1));
    second.receive(&said[0]);
    assert!(second.message().is_some());
    second.receive(&said[2]);
    assert_eq!(second.message().map(|message| message[1]), Some(0xf1));
    assert_eq!(second.progress(), Progress::Failed(Failure::WrongResponse));
    // Nor to a host in another transaction, or with another challenge of its own.
    let mut host = HostSide::new(credentials(true), parties(), randomness(11, 5), Offer::default(), TRANSACTION + 1);
    host.message().unwrap();
    host.receive(&said[1]);
    assert_eq!(
        (host.message().map(|message| message[1]), host.progress()),
        (Some(0xf0), Progress::Failed(Failure::IncorrectMessage))
    );
    let mut host = HostSide::new(credentials(true), parties(), randomness(17, 1), Offer::default(), TRANSACTION);
    host.message().unwrap();
    host.receive(&said[1]);
    host.message().unwrap();
    host.receive(&said[3]);
    assert_eq!(host.message().map(|message| message[1]), Some(0xf0));
    assert_eq!(host.progress(), Progress::Failed(Failure::WrongResponse));
}

#[test]
fn a_challenge_that_comes_back_is_not_answered() {
    let one = offer(Hash::Sha256, Group::Null);
    // The host is challenged with what it is about to challenge with.
    let mut host = host(credentials(true), one.clone());
    let mut mirror = ControllerSide::new(credentials(true), parties(), randomness(11, 5));
    exchange(&mut host, &mut mirror);
    assert_eq!(host.progress(), Progress::Failed(Failure::WrongResponse));
    // The host sends the controller's own challenge back.
    let mut mirror = HostSide::new(credentials(true), parties(), randomness(11, 5), one, TRANSACTION);
    let mut controller = controller(credentials(true));
    controller.receive(&mirror.message().unwrap());
    let challenge = controller.message().unwrap();
    mirror.receive(&challenge);
    let mut reply = mirror.message().unwrap();
    reply[16 + 32..16 + 64].copy_from_slice(&challenge[16..48]);
    controller.receive(&reply);
    controller.message().unwrap();
    assert_eq!(controller.progress(), Progress::Failed(Failure::WrongResponse));
}

#[test]
fn messages_that_are_cut_off_or_out_of_order_end_it() {
    let (mut first, mut second) = (controller(credentials(true)), host(credentials(true), Offer::default()));
    let said = exchange(&mut second, &mut first);
    // Cut off at any byte, to either side, at its time.
    for (number, message) in said.iter().enumerate().take(4) {
        // What comes before the later ones takes arithmetic.
        for length in (0..message.len()).step_by(if number == 0 { 1 } else { 29 }) {
            let (mut controller, mut host) = (controller(credentials(true)), host(credentials(true), Offer::default()));
            host.message().unwrap();
            for earlier in &said[..number] {
                match earlier[1] {
                    1 | 3 => host.receive(earlier),
                    _ => controller.receive(earlier),
                }
                if matches!(earlier[1], 0 | 2) {
                    controller.message()
                } else {
                    host.message()
                };
            }
            if number % 2 == 0 {
                controller.receive(&message[..length]);
                assert_eq!(controller.message().map(|message| message[1]), Some(0xf1), "{number}, {length} bytes");
                assert!(matches!(controller.progress(), Progress::Failed(_)));
            } else {
                host.receive(&message[..length]);
                assert_eq!(host.message().map(|message| message[1]), Some(0xf0), "{number}, {length} bytes");
                assert!(matches!(host.progress(), Progress::Failed(_)));
            }
        }
    }
    // Each message where another one is due.
    for (number, message) in said.iter().enumerate().filter(|(number, _)| *number != 0) {
        let mut controller = controller(credentials(true));
        controller.receive(message);
        controller.message();
        assert!(matches!(controller.progress(), Progress::Failed(_)), "message {number} first");
    }
    let mut twice = controller(credentials(true));
    twice.receive(&said[0]);
    twice.message().unwrap();
    twice.receive(&said[0]);
    twice.message().unwrap();
    assert_eq!(twice.progress(), Progress::Failed(Failure::IncorrectMessage));
    // After its end nothing changes it.
    first.receive(&said[0]);
    assert_eq!((first.message(), first.progress()), (None, Progress::Authenticated));
}

#[test]
fn values_that_give_the_secret_away_are_refused() {
    for group in [Group::Ffdhe2048, Group::Ffdhe3072] {
        let one = offer(Hash::Sha256, group);
        let with_public = |public: &[u8]| {
            let mut host = host(credentials(true), one.clone());
            let mut controller = controller(credentials(true));
            controller.receive(&host.message().unwrap());
            let mut challenge = controller.message().unwrap();
            challenge[16 + 32..].copy_from_slice(public);
            host.receive(&challenge);
            host.message().unwrap();
            host.progress()
        };
        let mut one_alone = vec![0; group.bytes()];
        assert_eq!(with_public(&one_alone), Progress::Failed(Failure::GroupNotUsable), "0");
        one_alone[group.bytes() - 1] = 1;
        assert_eq!(with_public(&one_alone), Progress::Failed(Failure::GroupNotUsable), "1");
        assert_eq!(with_public(&vec![0xff; group.bytes()]), Progress::Failed(Failure::GroupNotUsable), "above p");
    }
}

#[test]
fn what_is_not_known_is_said() {
    let mut negotiate = host(credentials(false), Offer::default()).message().unwrap();
    let mut answer = |at: usize, byte: u8| {
        let before = std::mem::replace(&mut negotiate[at], byte);
        let mut controller = controller(credentials(false));
        controller.receive(&negotiate);
        negotiate[at] = before;
        let failure = controller.message().unwrap();
        (failure[1], failure[7])
    };
    // As the specification numbers them.
    assert_eq!(answer(6, 1), (0xf1, 3));
    assert_eq!(answer(7, 0), (0xf1, 6));
    assert_eq!(answer(7, 2), (0xf1, 6), "one is missing");
    assert_eq!(answer(8, 9), (0xf1, 2));
    assert_eq!(answer(10, 0), (0xf1, 4));
    assert_eq!(answer(10, 31), (0xf1, 6));
    assert_eq!(answer(11, 0), (0xf1, 5));
    assert_eq!(answer(1, 0x77), (0xf1, 7));
}
