//! Which program this is.

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_128;

/// A program, as its reports name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Of the release.
    pub version: String,
    /// The commit that it was built from, `+changes` when the sources differed from it; none if it was built without git.
    pub commit: Option<String>,
    /// The compiler that built it.
    pub compiler: String,
    /// A hash of all that it was built from: another build may find something else. With designs of one's own, of the program itself.
    pub build: String,
}

impl Program {
    /// The one that runs.
    pub fn this() -> &'static Program {
        static THIS: LazyLock<Program> = LazyLock::new(|| Program {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: Some(env!("KVSSD_COMMIT").to_owned()).filter(|commit| !commit.is_empty()),
            compiler: env!("KVSSD_COMPILER").to_owned(),
            build: if kvssd_designs::added().is_empty() { env!("KVSSD_BUILD").to_owned() } else { hash_of_program() },
        });
        &THIS
    }

    /// For people.
    pub fn name(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("unknown commit");
        format!("kvssd {}, {commit}, {}, build {:.8}", self.version, self.compiler, self.build)
    }
}

/// The hash of what a program is asked: the same for the same program and question, whatever folder or machine it is on.
pub fn content_hash(question: &impl Serialize) -> String {
    hash_of(&serde_json::to_vec(&(Program::this(), question)).expect("what reports say can be written"))
}

/// Where designs are that this crate's sources do not have.
fn hash_of_program() -> String {
    std::env::current_exe().and_then(std::fs::read).map_or(String::new(), |bytes| hash_of(&bytes))
}

fn hash_of(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}
