//! C programs over an image, as others would write them.

use crate::compiler::{compile, desk_or_skip, has, output_of};
use kvssd_device::Drive;
use kvssd_flash::OpenOptions;
use kvssd_host::{Missing, Options, Store};
use kvssd_nvme_target::{Server, Subsystem, SubsystemOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

/// An image that was just made.
fn image(desk: &TempDir) -> String {
    image_at(&desk.path().join("drive.kv"))
}

pub fn image_at(path: &Path) -> String {
    let options = Options { missing: Missing::CreateNew, create_bytes: 128 << 20, ..Options::default() };
    Store::open(path, options).unwrap().close().unwrap();
    text(path)
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_call_does_what_the_header_says() {
    let Some(desk) = desk_or_skip() else { return };
    let (program, nothing) = (compile(&desk, "calls.c", &["-std=gnu11"]), text(&desk.path().join("nothing.kv")));
    assert_eq!(output_of(&program, &[&image(&desk), &nothing]), "all calls do what they say\n");
}

#[test]
fn a_simulated_drive_is_asked_and_forked() {
    let Some(desk) = desk_or_skip() else { return };
    let program = compile(&desk, "device.c", &["-std=gnu11"]);
    assert_eq!(output_of(&program, &[]), "a device answers what it must\n");
}

#[test]
fn iterators_meet_the_keys_of_a_group_in_the_order_of_the_key_space() {
    says_on_an_image_and_over_the_wire("iterators.c", "iterators meet what they must\n");
}

#[test]
fn an_asynchronous_call_calls_back_once_whatever_other_threads_do() {
    says_on_an_image_and_over_the_wire("asynchronous.c", "every call calls back once\n");
}

#[test]
fn a_program_written_for_the_api_runs_as_it_is() {
    let Some(desk) = desk_or_skip() else { return };
    let (program, image) = (compile(&desk, "sample.c", &["-std=gnu99"]), image(&desk));
    for _ in 0..2 {
        let message = output_of(&program, &["-d", &image, "-n", "2000"]);
        assert_eq!(message, "stored 2000, retrieved 2000, iterated 2000, used some\n");
    }
    served(&desk, |url| {
        let message = output_of(&program, &["-d", url, "-n", "2000"]);
        assert_eq!(message, "stored 2000, retrieved 2000, iterated 2000, used some\n");
    });
}

#[test]
fn a_device_is_refused_to_a_forked_child() {
    says_on_an_image_and_over_the_wire("forked.c", "a device has one process\n");
}

#[test]
fn a_drive_on_the_wire_is_a_device_like_another() {
    let Some(desk) = desk_or_skip() else { return };
    let program = compile(&desk, "wire.c", &["-std=gnu11"]);
    assert_eq!(said_over_the_wire(&desk, &program), "the wire makes no difference\n");
}

fn says_on_an_image_and_over_the_wire(source: &str, what: &str) {
    let Some(desk) = desk_or_skip() else { return };
    let program = compile(&desk, source, &["-std=gnu11"]);
    assert_eq!(output_of(&program, &[&image(&desk)]), what);
    assert_eq!(said_over_the_wire(&desk, &program), what);
}

/// What a program prints that is given the URL of a drive.
fn said_over_the_wire(desk: &TempDir, program: &Path) -> String {
    let mut message = String::new();
    served(desk, |url| message = output_of(program, &[url]));
    message
}

/// Serves a new image while somebody works with its URL; gives the image's path.
pub fn served(desk: &TempDir, work: impl FnOnce(&str)) -> PathBuf {
    let path = desk.path().join("served.kv");
    let _ = std::fs::remove_file(&path);
    served_at(Path::new(&image_at(&path)), "127.0.0.1:0", work);
    path
}

/// Serves an image at that address while somebody works with its URL.
pub fn served_at(path: &Path, address: &str, work: impl FnOnce(&str)) {
    let open = OpenOptions { sync: false, read_only: false, cache_bytes: 0 };
    let drive = Drive::open(path, open).unwrap();
    let subsystem = Arc::new(Subsystem::new(drive, SubsystemOptions::new("nqn.2025-01.org.kvssd:test")));
    let server = Server::bind(Arc::clone(&subsystem), address.parse().unwrap()).unwrap();
    let (url, stop) = (format!("nvme+tcp://{}", server.address()), Arc::new(AtomicBool::new(false)));
    let until = Arc::clone(&stop);
    let service = thread::spawn(move || server.serve(&until));
    let worked = catch_unwind(AssertUnwindSafe(|| work(&url)));
    stop.store(true, Ordering::Relaxed);
    service.join().unwrap();
    subsystem.close().unwrap();
    worked.unwrap();
}

#[test]
fn cpp_takes_the_header() {
    let Some(desk) = desk_or_skip() else { return };
    if !has("c++") {
        eprintln!("SKIPPED: there is no C++ compiler `c++` on this machine");
        return;
    }
    let source = desk.path().join("header.cpp");
    std::fs::write(&source, "#include <kvs_api.h>\nint main() { return kvs_close_device(nullptr) == KVS_SUCCESS; }\n")
        .unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let status =
        Command::new("c++").args(["-Wall", "-Werror", "-fsyntax-only", "-I"]).arg(include).arg(&source).status();
    assert!(status.unwrap().success());
}
