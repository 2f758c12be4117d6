//! Any bytes are a PDU, the begin of one, or a fault; and what is a PDU is written as it was read.
#![no_main]

use kvssd_nvme_spec::pdu::{Decoded, Framing, Pdu, Sender};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let framing = Framing {
        header_digest: choice & 1 != 0,
        data_digest: choice & 2 != 0,
        data_alignment_bytes: 4,
        capsule_data_bytes_max: 8192,
        data_bytes_max: 8192,
    };
    for sender in [Sender::Host, Sender::Controller] {
        match Pdu::decode(bytes, sender, &framing) {
            Ok(Decoded::Needs(needs)) => assert!(needs > bytes.len() && needs <= 8192 + 260),
            Ok(Decoded::Pdu { pdu, bytes: length, is_data_intact }) => {
                assert!(length <= bytes.len());
                let mut written = Vec::new();
                pdu.encode(&framing, &mut written);
                let again = Pdu::decode(&written, sender, &framing);
                let whole = Decoded::Pdu { pdu, bytes: written.len(), is_data_intact: true };
                assert_eq!(again, Ok(whole), "{is_data_intact}");
                for cut in 0..length {
                    assert!(matches!(Pdu::decode(&bytes[..cut], sender, &framing), Ok(Decoded::Needs(_))));
                }
            }
            Err(_) => {}
        }
    }
});
