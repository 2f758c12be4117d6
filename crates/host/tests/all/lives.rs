//! Many lives of one image, each with thousands of synced puts and an orderly close: everything that was acknowledged is there in the next.
//!
//! ```sh
//! cargo test -p kvssd-host --test all lives                        # 12 lives of each design
//! cargo test -p kvssd-host --test all lives -- --ignored           # 200 lives of each design
//! ```

use crate::synced_pairs::{LIVES_LONG, Life, of_every_design, outlive};
use kvssd_host::{Options, Store};
use std::path::{Path, PathBuf};

const LIVES: u32 = 12;

/// A folder in memory where there is one: what is tried is the order of what is written, and not how long a disk takes.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// A program that opens an image, and closes it in order.
struct Program {
    path: PathBuf,
    design: &'static str,
}

impl Life for Program {
    fn begin(&mut self) -> Store {
        let design = self.design.to_owned();
        let options = Options { create_bytes: 64 << 20, design, sync: true, ..Options::default() };
        Store::open(&self.path, options).unwrap()
    }

    fn end(&mut self, store: Store) {
        store.close().unwrap();
    }
}

fn live(design: &'static str, lives: u32) {
    let folder = folder();
    outlive(lives, &mut Program { path: folder.path().join("drive.kv"), design });
}

#[test]
fn synced_pairs_outlive_orderly_closes() {
    of_every_design(|design| live(design, LIVES));
}

#[test]
#[ignore = "takes minutes"]
fn synced_pairs_outlive_many_orderly_closes() {
    of_every_design(|design| live(design, LIVES_LONG));
}
