//! A C compiler, for programs that use the library as others would.
//!
//! ```text
//!   tests/c/*.c  +  include/  +  libkvssd (built with the tests)  ->  a program in a folder of its own
//! ```

#![allow(dead_code, reason = "each test file uses some of it")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder for programs and images; none, with a word about it, where there is no C compiler.
pub fn desk_or_skip() -> Option<TempDir> {
    if has("cc") {
        return Some(TempDir::new().expect("a folder can be made"));
    }
    eprintln!("SKIPPED: there is no C compiler `cc` on this machine, so that the C library was not tried");
    None
}

/// Whether there is such a program.
pub fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Compiles a file of `tests/c`, and links it with the library. Every warning is an error.
pub fn compile(desk: &TempDir, source: &str, options: &[&str]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = libraries();
    let program = desk.path().join(source.replace('.', "_"));
    let mut cc = Command::new("cc");
    cc.args(options).args(["-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    cc.arg("-I").arg(here.join("include")).arg(here.join("tests/c").join(source));
    // Before the folders of LD_LIBRARY_PATH, which has one where `cargo build` may have left an older library.
    cc.arg("-Wl,--disable-new-dtags");
    cc.arg("-L").arg(&libraries).arg("-lkvssd").arg(format!("-Wl,-rpath,{}", libraries.display()));
    let output = cc.arg("-o").arg(&program).output().expect("the compiler can be called");
    assert!(output.status.success(), "{cc:?}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// What a program prints; it must succeed.
pub fn output_of(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("a program that was made can be called");
    let (message, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{} {arguments:?}: {}\n{message}\n{complained}", program.display(), output.status);
    message.into_owned()
}

/// Where the shared library lies: beside the test, where cargo puts what it builds.
fn libraries() -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    let folder = test.parent().expect("a test lies in a folder").to_owned();
    let library = folder.join(format!("libkvssd{}", env::consts::DLL_SUFFIX));
    assert!(library.exists(), "{}: there is no such library", library.display());
    folder
}
