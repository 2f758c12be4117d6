//! Namespaces that are made and deleted over a connection that loses answers: nothing is made twice, and what is not
//! known is said.

use crate::handles::{named, open};
use crate::programs::served;
use crate::proxy::Cutter;
use kvssd_host::Error;
use std::sync::atomic::Ordering;

/// The opcodes of the commands that make and delete a namespace.
const CREATE: u8 = 0xc1;
const DELETE: u8 = 0xc5;

#[test]
fn a_namespace_whose_answer_is_lost_is_made_once_or_in_doubt() {
    let desk = tempfile::tempdir().unwrap();
    served(&desk, |url| {
        let cutter = Cutter::new(url.trim_start_matches("nvme+tcp://"));
        // With its name: discovery would tell the drive's own address.
        let (store, other) = (open(&format!("nvme+tcp://{}/nqn.2025-01.org.kvssd:test", cutter.address)), open(url));
        let names = || -> Vec<Option<String>> {
            other.namespaces().unwrap().into_iter().map(|info| info.attributes.name).collect()
        };
        // It never came to the drive: it is sent again.
        cutter.arm(CREATE, false);
        assert!(store.create_namespace(named("first")).is_ok());
        assert_eq!(names(), [None, Some("first".to_owned())]);
        // It was made, or another host has made it: nobody can tell.
        cutter.arm(CREATE, true);
        let error = store.create_namespace(named("second")).err().unwrap();
        assert!(matches!(&error, Error::InDoubt { why } if why.contains("creation")), "{error}");
        assert_eq!(names().len(), 3);
        assert!(store.namespace("second").unwrap().store(b"key", b"value").is_ok());
        // It is gone: that is what was asked for.
        cutter.arm(DELETE, true);
        assert_eq!(store.delete_namespace("second"), Ok(()));
        // It is there: it may be another one by now.
        cutter.arm(DELETE, false);
        let error = store.delete_namespace("first").unwrap_err();
        assert!(matches!(&error, Error::InDoubt { why } if why.contains("deletion")), "{error}");
        assert_eq!(names(), [None, Some("first".to_owned())]);
        assert_eq!(cutter.cuts.load(Ordering::SeqCst), 4);
        assert_eq!(store.delete_namespace("first"), Ok(()));
    });
}
