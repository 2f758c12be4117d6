//! Actors, locks, time and kills.

use kvssd_runtime::sync::{Arc, Condvar, Mutex, RwLock};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_world::{Failure, Options, Process, Waiting, World, is_unwinding, point};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const OTHER: Process = Process(1);

/// What several threads do with a queue of two places. Gives who took what.
fn queue(_world: &World) -> Vec<(u32, u32)> {
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new(), Mutex::new(Vec::new())));
    let mut threads = Vec::new();
    for number in 0..3u32 {
        let shared = shared.clone();
        threads.push(thread::spawn(move || {
            for item in 0..20 {
                let mut queue = shared.0.lock().unwrap();
                while queue.len() == 2 {
                    queue = shared.1.wait(queue).unwrap();
                }
                queue.push(number * 100 + item);
                shared.1.notify_all();
            }
        }));
    }
    for number in 0..2u32 {
        let shared = shared.clone();
        threads.push(thread::spawn(move || {
            for _ in 0..30 {
                let mut queue = shared.0.lock().unwrap();
                while queue.is_empty() {
                    queue = shared.1.wait_timeout(queue, Duration::from_millis(3)).unwrap().0;
                }
                let item = queue.remove(0);
                drop(queue);
                shared.1.notify_all();
                shared.2.lock().unwrap().push((number, item));
                thread::yield_now();
            }
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    shared.2.lock().unwrap().clone()
}

#[test]
fn a_seed_tells_every_turn() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let (one, two) = (World::run(Options::of_seed(seed), queue), World::run(Options::of_seed(seed), queue));
        assert_eq!((one.trace, one.turns, one.time), (two.trace, two.turns, two.time));
        let (one, two) = (one.result.unwrap(), two.result.unwrap());
        assert_eq!(one.len(), 60);
        assert_eq!(one, two);
        seen.insert(one);
    }
    assert_eq!(seen.len(), 50, "seeds differ");
}

#[test]
fn a_deadlock_is_told_with_names() {
    let mut found = 0;
    for seed in 0..20 {
        let run = World::run(Options::of_seed(seed), |world| {
            let locks = Arc::new((Mutex::new(()), Mutex::new(())));
            let (a, b) = (locks.clone(), locks);
            let one = world.spawn(OTHER, "one", move || {
                let _first = a.0.lock().unwrap();
                point();
                let _second = a.1.lock().unwrap();
            });
            let two = world.spawn(OTHER, "two", move || {
                let _first = b.1.lock().unwrap();
                point();
                let _second = b.0.lock().unwrap();
            });
            (one.join(), two.join())
        });
        if let Err(failure) = run.result {
            let waits = |process, actor: &str, what| Waiting { process, actor: actor.to_owned(), what };
            let waiting = vec![
                waits(Process::MAIN, "main", "the end of an actor"),
                waits(OTHER, "one", "a lock"),
                waits(OTHER, "two", "a lock"),
            ];
            assert_eq!(failure, Failure::Deadlock { waiting });
            found += 1;
        }
    }
    assert!((1..20).contains(&found), "{found} of 20 seeds");
}

#[test]
fn nobody_waits_in_vain_for_time() {
    let run = World::run(Options::of_seed(1), |_| {
        let begin = Instant::now();
        thread::sleep(Duration::from_secs(86_400));
        thread::park_timeout(Duration::from_secs(1));
        let lock = Mutex::new(());
        let waited = Condvar::new().wait_timeout(lock.lock().unwrap(), Duration::from_secs(1)).unwrap();
        assert!(waited.1.timed_out());
        // Who waits by looking gets there, too.
        let until = Instant::now() + Duration::from_micros(50);
        while Instant::now() < until {}
        let main = thread::current();
        let other = thread::spawn(move || main.unpark());
        thread::park();
        other.join().unwrap();
        begin.elapsed()
    });
    assert_eq!(run.result.unwrap().as_secs(), 86_402);
}

#[test]
fn readers_share_and_writers_do_not() {
    for seed in 0..20 {
        let run = World::run(Options { loses_turn_one_in: 1, ..Options::of_seed(seed) }, |_| {
            let shared = Arc::new(RwLock::new((0, 0)));
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        for _ in 0..20 {
                            if number == 0 {
                                let mut pair = shared.write().unwrap();
                                pair.0 += 1;
                                point();
                                pair.1 += 1;
                            } else {
                                let pair = shared.read().unwrap();
                                let first = pair.0;
                                point();
                                assert_eq!((first, first), *pair);
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            shared.read().unwrap().1
        });
        assert_eq!(run.result.unwrap(), 20);
    }
}

/// Counts how often it is dropped by somebody who was killed.
struct Witness(Rc<Cell<u32>>, Arc<Mutex<u32>>);

impl Drop for Witness {
    fn drop(&mut self) {
        assert!(is_unwinding());
        // A destructor may take a lock that another one holds who is killed, too, and finds that nothing waits.
        *self.1.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
        thread::sleep(Duration::from_secs(1));
        thread::park();
        assert!(thread::Builder::new().spawn(|| ()).is_err());
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_process_is_killed_wherever_it_waits_and_others_live() {
    for seed in 0..100 {
        let run = World::run(Options::of_seed(seed), |world| {
            let (dropped, began) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let (lock, condition) = (Arc::new(Mutex::new(0)), Arc::new(Condvar::new()));
            for number in 0..6 {
                let (dropped, began, lock, condition) =
                    (dropped.clone(), began.clone(), lock.clone(), condition.clone());
                drop(world.spawn(OTHER, "victim", move || {
                    began.set(began.get() + 1);
                    let _witness = Witness(dropped, lock.clone());
                    loop {
                        match number {
                            0 => thread::sleep(Duration::from_micros(3)),
                            1 => thread::park(),
                            2 => drop(condition.wait(lock.lock().unwrap())),
                            3 => {
                                let mut held = lock.lock().unwrap();
                                *held += 0;
                                thread::sleep(Duration::from_micros(10));
                            }
                            4 => thread::yield_now(),
                            _ => point(),
                        }
                    }
                }));
            }
            let other = world.spawn(Process(2), "survivor", || {
                thread::sleep(Duration::from_millis(1));
                7
            });
            thread::sleep(Duration::from_nanos(world.random_u64() % 100_000));
            let time = world.time();
            world.kill(OTHER);
            assert!(!world.is_alive(OTHER) && world.is_alive(Process(2)));
            assert!(world.time() - time < Duration::from_micros(5), "to be killed takes no time");
            assert_eq!(dropped.get(), began.get());
            (other.join(), began.get())
        });
        let (other, began) = run.result.unwrap();
        assert_eq!(other, Some(7));
        assert!(began > 0 || seed > 0);
    }
}

#[test]
fn who_kills_its_own_process_does_not_come_back() {
    let run = World::run(Options::of_seed(3), |world| {
        let inner = world.clone();
        let handle = world.spawn(OTHER, "one", move || {
            inner.kill(OTHER);
            unreachable!("it was killed");
        });
        let end = handle.join();
        // The number can be used again.
        (end.is_none(), world.spawn(OTHER, "two", || 2).join())
    });
    assert_eq!(run.result.unwrap(), (true, Some(2)));
}

#[test]
fn a_panic_ends_the_world_and_is_told() {
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let given = log.clone();
    let run = World::run(Options::of_seed(3), move |world| {
        let lock = Arc::new(Mutex::new(()));
        let theirs = lock.clone();
        drop(world.spawn(OTHER, "the one", move || {
            let _held = theirs.lock().unwrap();
            thread::sleep(Duration::from_millis(2));
            panic!("number {}", 7);
        }));
        thread::sleep(Duration::from_millis(1));
        drop(lock.lock());
        given.lock().unwrap().push("it lives on");
    });
    assert_eq!(run.result, Err(Failure::Panic { actor: "the one".to_owned(), message: "number 7".to_owned() }));
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn who_never_ends_is_ended() {
    let options = Options { turns_max: 1000, ..Options::of_seed(1) };
    let run = World::run(options, |_| {
        loop {
            thread::yield_now();
        }
    });
    assert_eq!(run.result, Err::<(), _>(Failure::Endless { turns: 1000 }));
}

#[test]
fn what_others_do_not_wait_for_ends_with_the_main_actor() {
    let dropped = Rc::new(RefCell::new(0));
    let count = dropped.clone();
    let run = World::run(Options::of_seed(1), move |world| {
        struct Count(Rc<RefCell<i32>>);
        impl Drop for Count {
            fn drop(&mut self) {
                *self.0.borrow_mut() += 1;
            }
        }
        for _ in 0..5 {
            let count = Count(count.clone());
            drop(world.spawn(OTHER, "daemon", move || {
                thread::park();
                drop(count);
            }));
        }
        point();
    });
    assert_eq!((run.result, *dropped.borrow()), (Ok(()), 5));
}

/// cargo test -p kvssd-world --test all turns::how_fast -- --ignored --nocapture
#[test]
#[ignore = "it measures"]
fn how_fast_it_is() {
    let begin = std::time::Instant::now();
    let run = World::run(Options::of_seed(1), |_| {
        let threads: Vec<_> =
            (0..4).map(|_| thread::spawn(|| (0..1_000_000).for_each(|_| thread::yield_now()))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let seconds = begin.elapsed().as_secs_f64();
    println!("{:.2} M hand-overs/s ({} turns)", run.hand_overs as f64 / seconds / 1e6, run.turns);
    let begin = std::time::Instant::now();
    for seed in 0..20_000 {
        World::run(Options::of_seed(seed), queue).result.unwrap();
    }
    println!("{:.0} small worlds/s", 20_000.0 / begin.elapsed().as_secs_f64());
    let begin = std::time::Instant::now();
    for seed in 0..200_000 {
        World::run(Options::of_seed(seed), |_| ()).result.unwrap();
    }
    println!("{:.0} empty worlds/s", 200_000.0 / begin.elapsed().as_secs_f64());
    for name in ["outside", "in a world"] {
        let body = move || {
            let (lock, begin) = (Mutex::new(0u64), std::time::Instant::now());
            (0..10_000_000).for_each(|_| *std::hint::black_box(&lock).lock().unwrap() += 1);
            println!("{:.1} ns for a lock {name}", begin.elapsed().as_secs_f64() * 100.0);
            let (lock, begin) = (std::sync::Mutex::new(0u64), std::time::Instant::now());
            (0..10_000_000).for_each(|_| *std::hint::black_box(&lock).lock().unwrap() += 1);
            println!("{:.1} ns for one of std", begin.elapsed().as_secs_f64() * 100.0);
        };
        if name == "outside" { body() } else { World::run(Options::of_seed(1), move |_| body()).result.unwrap() }
    }
}

/// Takes a lock when it is dropped, while its actor holds another one.
struct Last(Arc<Mutex<()>>);

impl Drop for Last {
    fn drop(&mut self) {
        drop(self.0.lock());
    }
}

#[test]
fn destructors_that_wait_for_each_other_end_the_world_too() {
    for seed in 0..3 {
        let run = World::run(Options::of_seed(seed), |world| {
            let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
            for number in 0..2 {
                let (own, other) = (locks[number].clone(), locks[1 - number].clone());
                drop(world.spawn(OTHER, "victim", move || {
                    let _held = own.lock().unwrap();
                    let _last = Last(other);
                    thread::park();
                }));
            }
            thread::sleep(Duration::from_secs(1));
            world.kill(OTHER);
        });
        let Err(Failure::Deadlock { waiting }) = run.result else { panic!("{:?}", run.result) };
        assert!(waiting.iter().all(|waiting| waiting.what == "a lock"), "{waiting:?}");
    }
}
