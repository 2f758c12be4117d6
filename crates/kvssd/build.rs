//! Which commit and compiler a program is of, for its reports. Without git, as in an unpacked archive, there is no commit.

use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let changes = said(Command::new("git").args(["status", "--porcelain", "--untracked-files=no", ".."]));
    let commit = said(Command::new("git").args(["rev-parse", "--short=12", "HEAD"])).unwrap_or_default();
    let changed = if changes.is_some_and(|changes| !changes.is_empty()) { "+changes" } else { "" };
    println!("cargo::rustc-env=KVSSD_COMMIT={commit}{changed}");
    println!("cargo::rustc-env=KVSSD_COMPILER={}", said(Command::new(compiler).arg("--version")).unwrap_or_default());
    // All crates: that there are changes must be known of each.
    println!("cargo::rerun-if-changed=..");
    if let Some(head) = said(Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"])) {
        println!("cargo::rerun-if-changed={head}");
    }
}

/// What a command says when it succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
