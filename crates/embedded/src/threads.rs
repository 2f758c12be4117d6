//! Threads that work at the same time, and the one that watches them.

use crate::EmbeddedError;
use kvssd_measure::{Latencies, Observer};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the observer is told and asked.
const LOOK: Duration = Duration::from_millis(100);
/// Operations of a thread between two looks at whether it is to end.
const STRIDE: u64 = 16;

/// What threads did.
pub(crate) struct Worked {
    pub(crate) latencies: Latencies,
    /// From the first operation's begin to the last one's end.
    pub(crate) wall: Duration,
}

/// Processor time of this process so far, of all its threads.
pub(crate) fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What the threads and their watcher tell each other.
#[derive(Default)]
pub(crate) struct Watch {
    done: AtomicU64,
    is_over: AtomicBool,
}

impl Watch {
    /// Before the operation of that number: whether the thread is to go on.
    pub(crate) fn goes_on(&self, number: u64) -> bool {
        if number.is_multiple_of(STRIDE) && number > 0 {
            self.done.fetch_add(STRIDE, Ordering::Relaxed);
        }
        !self.is_over()
    }

    /// Whether all are to end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Has `threads` threads do `work`, beginning together; tells the observer and asks it meanwhile. When one fails, all end.
pub(crate) fn work_together(
    threads: u32,
    observer: &mut dyn Observer,
    work: impl Fn(u32, &Watch) -> Result<Latencies, EmbeddedError> + Sync,
) -> Result<Worked, EmbeddedError> {
    let (watch, gate, arrived) = (Watch::default(), RwLock::new(()), AtomicU32::new(0));
    let (ended, all_ended) = channel::<()>();
    let one = |thread: u32| {
        arrived.fetch_add(1, Ordering::Relaxed);
        drop(gate.read());
        let start = Instant::now();
        let worked = work(thread, &watch).inspect_err(|_| watch.is_over.store(true, Ordering::Relaxed));
        (start, worked, Instant::now())
    };
    let results = thread::scope(|scope| {
        let one = &one;
        let closed = gate.write();
        let spawned: io::Result<Vec<_>> = (0..threads)
            .map(|thread| {
                let ended = ended.clone();
                let body = move || {
                    // Dropped when the thread ends, even by a panic.
                    let _ended = ended;
                    one(thread)
                };
                thread::Builder::new().spawn_scoped(scope, body)
            })
            .collect();
        // Those that were started have nothing to do without the others.
        watch.is_over.store(spawned.is_err(), Ordering::Relaxed);
        while spawned.is_ok() && arrived.load(Ordering::Relaxed) < threads {
            thread::yield_now();
        }
        drop((closed, ended));
        let spawned = spawned.map_err(EmbeddedError::Thread)?;
        while all_ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            observer.progress(watch.done.load(Ordering::Relaxed));
            if observer.is_interrupted() {
                watch.is_over.store(true, Ordering::Relaxed);
            }
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok(spawned.into_iter().map(join).collect::<Vec<_>>())
    })?;
    if observer.is_interrupted() {
        return Err(EmbeddedError::Interrupted);
    }
    let start = results.iter().map(|(start, ..)| *start).min();
    let end = results.iter().map(|(.., end)| *end).max();
    let mut latencies = Latencies::new();
    for (_, worked, _) in results {
        latencies.merge(&worked?);
    }
    let wall = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
    Ok(Worked { latencies, wall })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_measure::Quiet;
    use kvssd_types::Nanos;

    #[test]
    fn all_threads_count() {
        let work = |thread: u32, watch: &Watch| {
            let mut latencies = Latencies::new();
            (0..=u64::from(thread)).for_each(|number| {
                assert!(watch.goes_on(number));
                latencies.add(Nanos(5));
            });
            Ok(latencies)
        };
        let worked = work_together(8, &mut Quiet, work).unwrap();
        assert_eq!((worked.latencies.summary().count, worked.latencies.summary().max), (36, 5));
    }

    #[test]
    fn when_one_fails_all_end() {
        let work = |thread: u32, watch: &Watch| {
            if thread == 3 {
                return Err(EmbeddedError::Store { store: "mine", why: "it burns".to_owned() });
            }
            (0..).find(|number| !watch.goes_on(*number));
            Ok(Latencies::new())
        };
        let error = work_together(4, &mut Quiet, work).err().unwrap();
        assert_eq!(error.to_string(), "store mine: it burns");
    }
}
