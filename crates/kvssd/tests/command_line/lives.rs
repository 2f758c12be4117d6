//! Many lives of a service, each with thousands of synced puts of a host and SIGTERM: everything that was acknowledged is there in the next.
//!
//! ```sh
//! cargo test -p kvssd --test command_line lives                        # 6 lives of each design
//! cargo test -p kvssd --test command_line lives -- --ignored           # 200 lives of each design
//! ```

use crate::desk::Desk;
use crate::serve::Service;
use crate::synced_pairs::{LIVES_LONG, Life, of_every_design, outlive};
use kvssd_host::Store;

const LIVES: u32 = 6;

/// A service that is started, and told to end.
struct Served<'a> {
    desk: &'a Desk,
    service: Option<Service>,
}

impl Life for Served<'_> {
    fn begin(&mut self) -> Store {
        let service = self.service.insert(Service::start(self.desk, "--sync"));
        kvssd_host::connect(&format!("nvme+tcp://{}", service.address)).unwrap()
    }

    fn end(&mut self, store: Store) {
        drop(store);
        assert_eq!(self.service.take().expect("it has begun").end("-TERM"), Some(0));
    }
}

fn live(design: &str, lives: u32) {
    let desk = Desk::in_memory();
    desk.prints(&format!("create drive.kv --size 64MiB --design {design}"));
    outlive(lives, &mut Served { desk: &desk, service: None });
    desk.prints("check drive.kv");
}

#[test]
fn synced_pairs_outlive_sigterm() {
    of_every_design(|design| live(design, LIVES));
}

#[test]
#[ignore = "takes minutes"]
fn synced_pairs_outlive_many_sigterms() {
    of_every_design(|design| live(design, LIVES_LONG));
}
