//! Keys of TLS: their texts, their files, and what is derived of them, against the answers of a Python script that knows
//! the specification's words and nothing of this program.

use crate::{HOST, SUBSYSTEM, parties};
use kvssd_nvme_auth::{Derivation, FileError, Hash, Parties, TlsKey, TlsKeyError, parties_of, read_tls_key};
use proptest::prelude::*;

/// Of the bytes 0 to 31 or 47: the hash and the rest of the text.
const SHORT: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const LONG: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:";

/// A text, a digest, and the secrets of versions 1 and 0, then the same as libnvme has it.
type Vector = (&'static str, &'static str, [&'static str; 3], [&'static str; 3]);

const VECTORS: [Vector; 4] = [
    (
        "00",
        SHORT,
        [
            "sv8b1bBmtdSG6IEjPhhJvvUXqu1EMP2VE+2q8Ja5hT8=",
            "ad3ed0b11bbb08d31df1756c6ac8c8785c67a920c38459b1b5637bb39d21cb90",
            "5bfd20a2a1b7863d77d8258be61027e1d5bde7e5b4f07eb6a3d1922607312c24",
        ],
        [
            "sv8b1bBmtdSG6IEjPhhJvvUXqu1EMP2VE+2q8Ja5hT8=",
            "ede4c7cdce8d60156ca70947a87b1970c3ad3933c03b1367422826aaea772a7a",
            "bad46040bd23c5d0c6ca710e4a63ca06c76efbecb375ce5b8fe56fccbccb1f87",
        ],
    ),
    (
        "01",
        SHORT,
        [
            "nhQ36biUPiF+foxJkwE4wbc/eqFhWh0SjYRgwr4a0DU=",
            "e9bc86a72aa940869b1311abcd049f8bdc94b5d5d9c03e0373a44a16f85d903b",
            "2f72e2f16e12286f13e24d91c42093e00dbf2529da8eff8ec4f3e175d7ab504b",
        ],
        [
            "bW3KhP8w2OjJ36vml80dAck9GVs3e17qW6qNtHlhmZ4=",
            "1a42da2dc86e394c3fd66b632535113073290454e2f6f0b6ab9387e5d52ae292",
            "1b1f707b9379ac1793844f457e0bc90365037b13435ff3acd55c2127f5ac6d3e",
        ],
    ),
    (
        "00",
        LONG,
        [
            "PmRKrbld0uknvQouNbEguz/E7YpktyxqfZvyYikpqcyz9gDGx5VTAa7xFJVq7Pjh",
            "ce357d466187b17ee0ad230911a9cf98dd6a7c00435fcc53873349efc2d065a3df2baafe5713536e07ed3f88b19e2d9a",
            "cf4fa0af6e9e2ee27d67044510cea85f53a032c7267822d670e292d77c22960c36713065663bfde5592370c974240689",
        ],
        [
            "PmRKrbld0uknvQouNbEguz/E7YpktyxqfZvyYikpqcyz9gDGx5VTAa7xFJVq7Pjh",
            "e4267d1b2824ca6bdf0b9221308ef6030f7ada20b06cde8e48c5ca69204d5519b2ffaab610f13696a87fbdafc072fed9",
            "d8542f7ec9dd200278e0a49d9b71ed4cc795ea950accb58a5e7b696eb198b711af91b5977d2ffcb5318670133660a5fd",
        ],
    ),
    (
        "02",
        LONG,
        [
            "+434xMgMH2mnuPvm8ehke3dQy6nLr71vCcpdzL/SQW8CYbipKIFBL4XFycsw1MNx",
            "f685923df91237e0fe9a1c162a209b2542926e9a38f06c60d3d686b2ef8e1d319b27335e4973d5d51c13d75696aa0fab",
            "e8962bac1278694cc030d094c8724a5db03f58ddb740e9d79f5bbf8062308a8fd827b5e1638fc9d8022db0ec3374bf02",
        ],
        [
            "LH+IpAKJ6XCvyqYg+O+0AlGkjDe6dN7ejILfrfFhG4z8zsM7LSXoL+Zah2AI/sjY",
            "57ba16e893118b5edbe3e22eec3c483ab804301c2ed0f8e8fb05130cecad0aa6decf29768ee9675e20b28251005d78dc",
            "3864893de3d67868315f4c9e6165aa32c24482b570fc913e021963ed140c5a43bc20c7532136d4c618533d7f7bc88a9e",
        ],
    ),
];

fn key(hash: &str, rest: &str) -> Result<TlsKey, TlsKeyError> {
    TlsKey::parse(&format!("NVMeTLSkey-1:{hash}:{rest}"))
}

#[test]
fn keys_and_identities_are_those_of_the_specification_and_of_older_hosts() {
    for (hash, rest, standard, libnvme) in VECTORS {
        let key = key(hash, rest).unwrap();
        for (derivation, [digest, first, second]) in [(Derivation::Standard, standard), (Derivation::Libnvme, libnvme)]
        {
            let digits = if rest == SHORT { "01" } else { "02" };
            let names =
                [format!("NVMe1R{digits} {HOST} {SUBSYSTEM} {digest}"), format!("NVMe0R{digits} {HOST} {SUBSYSTEM}")];
            let found = key.preshared_keys(&parties(), derivation);
            assert_eq!(found.len(), 2);
            for ((found, identity), secret) in found.iter().zip(&names).zip([first, second]) {
                let hex: String = found.secret.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!((&found.identity, hex.as_str()), (identity, secret), "{hash} {derivation:?}");
                assert_eq!(found.hash, if rest == SHORT { Hash::Sha256 } else { Hash::Sha384 });
                assert_eq!(parties_of(identity), Some(parties()));
            }
        }
    }
}

/// The answers that libnvme's own tests expect, by both derivations.
#[test]
fn identities_are_those_that_libnvme_expects() {
    let parties = Parties { host: "nqn.psk-test-host".to_owned(), subsystem: "nqn.psk-test-subsys".to_owned() };
    for (hash, rest, standard, libnvme) in [
        (
            "01",
            "VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:",
            "iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU=",
            "66GuqV08TsAGII39teWUfwQwizjv06Jy8jOcX3NAAzM=",
        ),
        (
            "02",
            "VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:",
            "QhW2+Rp6RzHlNtCslyRxMnwJ11tKKhz8JCAQpQ+XUD8f9td1VeH5h53yz2wKJG1a",
            "RsKmYJ3nAn1ApjjMloJFbAkLPivONDAX/xW327YBUsn2eGShXSjCZvBaOxscLqmz",
        ),
    ] {
        for (derivation, digest) in [(Derivation::Standard, standard), (Derivation::Libnvme, libnvme)] {
            let found = key(hash, rest).unwrap().preshared_keys(&parties, derivation);
            let wanted = format!("NVMe1R{hash} nqn.psk-test-host nqn.psk-test-subsys {digest}");
            assert_eq!(found[0].identity, wanted);
        }
    }
}

#[test]
fn names_too_long_for_an_identity_of_version_0_have_one_of_version_1() {
    let long = |letter: &str| format!("nqn.2025-01.org.kvssd:{}", letter.repeat(200));
    let parties = Parties { host: long("h"), subsystem: long("s") };
    for (hash, count) in [("00", 1), ("01", 1)] {
        let found = key(hash, SHORT).unwrap().preshared_keys(&parties, Derivation::Standard);
        assert_eq!(found.len(), count);
        assert!(found[0].identity.starts_with("NVMe1R01 "));
    }
    let parties = Parties { host: long("h") + &"x".repeat(100), ..parties };
    assert!(key("01", SHORT).unwrap().preshared_keys(&parties, Derivation::Standard).is_empty());
}

#[test]
fn what_is_no_key_is_said_and_not_shown() {
    let form = Err(TlsKeyError::Form);
    let text = format!("NVMeTLSkey-1:01:{SHORT}");
    for (text, wanted) in [
        ("", form.clone()),
        ("DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:", form.clone()),
        ("NVMeTLSkey-2:01:AAAA:", form.clone()),
        ("NVMeTLSkey-1:01", form.clone()),
        ("NVMeTLSkey-1:01:not base64:", form.clone()),
        (&text[..text.len() - 1], form),
        (&text.replace(":01:", ":03:"), Err(TlsKeyError::Hash("03".to_owned()))),
        (&text.replace(":01:", ":1:"), Err(TlsKeyError::Hash("1".to_owned()))),
        (&text.replace(":01:", ":02:"), Err(TlsKeyError::Length(32))),
        (&format!("NVMeTLSkey-1:01:{LONG}"), Err(TlsKeyError::Length(48))),
        ("NVMeTLSkey-1:00:AAAA:", Err(TlsKeyError::Length(0))),
        (&text.replace("AAEC", "AAED"), Err(TlsKeyError::Checksum)),
    ] {
        let found = TlsKey::parse(text);
        let why = found.as_ref().unwrap_err().to_string();
        assert!(!why.contains("AwQF") && !why.contains('\n'));
        assert_eq!(found, wanted, "{text}");
    }
    let own = key("01", SHORT).unwrap();
    assert_eq!(own, TlsKey::parse(&format!("  {text}\n")).unwrap());
    assert_ne!(own, key("00", SHORT).unwrap());
    let shown = format!("{own:?} {:?}", own.preshared_keys(&parties(), Derivation::Standard));
    assert!(!shown.contains("AAEC") && !shown.contains("e9bc86"));
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, format!("NVMeTLSkey-1:02:{LONG}\n")).unwrap();
    for (mode, wanted) in [(0o600, Ok(key("02", LONG).unwrap())), (0o640, Err(TlsKeyError::File(FileError::Exposed)))] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(read_tls_key(&path), wanted);
    }
}

proptest! {
    /// The bounded twin of the fuzzer (`fuzz/fuzz_targets/tls_key.rs`).
    #[test]
    fn no_text_stops_the_reader(hash in "[0-9]{0,3}", rest in "[A-Za-z0-9+/=: ]{0,90}", any in ".{0,40}") {
        for text in [format!("NVMeTLSkey-1:{hash}:{rest}:"), any] {
            if let Ok(key) = TlsKey::parse(&text) {
                prop_assert_eq!(key.preshared_keys(&parties(), Derivation::Standard).len(), 2);
            }
            let _ = parties_of(&text);
        }
    }
}
