//! Signals that end the work in order.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Has Ctrl-C, SIGTERM and SIGHUP set `end`.
pub fn end_on_signals(end: &Arc<AtomicBool>) {
    end_on_orders(end);
    // Work that was begun with `nohup` outlives its terminal.
    if !is_hangup_ignored() {
        set_on(SIGHUP, end);
    }
}

/// Has Ctrl-C and SIGTERM set `end`.
pub fn end_on_orders(end: &Arc<AtomicBool>) {
    set_on(SIGINT, end);
    set_on(SIGTERM, end);
}

/// Has SIGHUP set `reload`: something is to be read anew.
pub fn reload_on_hangup(reload: &Arc<AtomicBool>) {
    set_on(SIGHUP, reload);
}

fn set_on(signal: i32, flag: &Arc<AtomicBool>) {
    // Without a handler the program ends as kill -9 ends it, which is safe as well.
    let _ = signal_hook::flag::register(signal, Arc::clone(flag));
}

/// Whether whoever started the program had it ignore SIGHUP, where the system tells.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("SigIgn:")).is_some_and(|signals| {
        let signals = u64::from_str_radix(signals.trim(), 16).unwrap_or_default();
        signals >> (SIGHUP - 1) & 1 == 1
    })
}
