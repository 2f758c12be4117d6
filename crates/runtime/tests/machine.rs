//! Outside of worlds all is as std has it.

use kvssd_runtime::net::{Shutdown, TcpStream};
use kvssd_runtime::sync::{Arc, Condvar, Mutex, RwLock, TryLockError};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use std::io::{ErrorKind, Read, Write};

#[test]
fn locks_are_poisoned_by_a_panic() {
    let lock = Arc::new((Mutex::new(1), RwLock::new(2)));
    let theirs = lock.clone();
    let ended = thread::spawn(move || {
        let (_mutex, _written) = (theirs.0.lock().unwrap(), theirs.1.write().unwrap());
        panic!("it is to be");
    });
    assert!(ended.join().is_err());
    assert_eq!(*lock.0.lock().unwrap_err().into_inner(), 1);
    assert!(matches!(lock.0.try_lock(), Err(TryLockError::Poisoned(_))));
    assert!(lock.1.read().is_err() && lock.1.write().is_err());
    let lock = Mutex::new(3);
    let held = lock.lock().unwrap();
    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)));
    drop(held);
    assert_eq!(*lock.try_lock().unwrap(), 3);
    assert_eq!(lock.into_inner().unwrap(), 3);
}

#[test]
fn conditions_parks_and_sleeps_wait() {
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let (theirs, main) = (shared.clone(), thread::current());
    let builder = thread::Builder::new().name("other".to_owned());
    let other = builder.spawn(move || {
        *theirs.0.lock().unwrap() = 7;
        theirs.1.notify_all();
        main.unpark();
        thread::current().id()
    });
    let mut value = shared.0.lock().unwrap();
    while *value == 0 {
        value = shared.1.wait(value).unwrap();
    }
    drop(value);
    thread::park();
    assert_ne!(other.unwrap().join().unwrap(), thread::current().id());
    let begin = Instant::now();
    let waited = shared.1.wait_timeout(shared.0.lock().unwrap(), Duration::from_millis(5)).unwrap();
    assert!(*waited.0 == 7 && waited.1.timed_out());
    thread::sleep(Duration::from_millis(5));
    thread::park_timeout(Duration::from_millis(5));
    assert!(begin.elapsed() >= Duration::from_millis(10));
    assert_eq!(begin.checked_duration_since(begin + Duration::from_secs(1)), None);
}

#[test]
fn a_stream_is_one_of_the_machine() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect_timeout(&listener.local_addr().unwrap(), Duration::from_secs(5)).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut buffer = [0; 4];
    assert_eq!(stream.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(stream.read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.write_all(b"ping").unwrap();
    peer.read_exact(&mut buffer).unwrap();
    peer.write_all(&buffer).unwrap();
    stream.set_read_timeout(None).unwrap();
    stream.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"ping");
    stream.shutdown(Shutdown::Both).unwrap();
    assert_eq!((stream.read(&mut buffer).unwrap(), peer.read(&mut buffer).unwrap()), (0, 0));
}

#[test]
fn random_numbers_differ() {
    assert_ne!(kvssd_runtime::random_u64().unwrap(), kvssd_runtime::random_u64().unwrap());
}
