//! Streams of a world: pieces, room, ends, breaks.

use kvssd_runtime::net::{Shutdown, SocketAddr, TcpStream};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_world::{Interest, Listener, NetworkFaults, Options, Process, Socket, World};
use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::rc::Rc;

const SECOND: Duration = Duration::from_secs(1);
const SERVER: Process = Process(1);

fn address() -> SocketAddr {
    "10.0.0.1:1".parse().unwrap()
}

fn connect() -> TcpStream {
    TcpStream::connect_timeout(&address(), SECOND).unwrap()
}

/// A connection to somebody who does that.
fn meet(world: &World, server: impl FnOnce(Socket) + 'static) -> TcpStream {
    let inner = world.clone();
    drop(world.spawn(SERVER, "server", move || {
        let listener = inner.listen(address()).unwrap();
        let socket = listener.accept(SECOND).unwrap();
        drop(listener);
        server(socket);
    }));
    thread::sleep(Duration::from_micros(10));
    connect()
}

fn read_all(socket: &Socket) -> (Vec<u8>, ErrorKind) {
    let (mut all, mut buffer) = (Vec::new(), [0; 700]);
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return (all, ErrorKind::UnexpectedEof),
            Ok(bytes) => all.extend(&buffer[..bytes]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                socket.poll(Interest { read: true, write: false }, SECOND);
            }
            Err(error) => return (all, error.kind()),
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 % 251) as u8).collect()
}

#[test]
fn all_bytes_arrive_in_order_however_little_room_there_is() {
    for seed in 0..30 {
        let network = NetworkFaults { room_bytes: (1, 2000), stall_one_in: 50, ..NetworkFaults::default() };
        let run = World::run(Options { network, ..Options::of_seed(seed) }, |world| {
            let mut stream = meet(world, |socket| {
                let (all, end) = read_all(&socket);
                assert_eq!((all == pattern(30_000), end), (true, ErrorKind::UnexpectedEof));
                let mut left = &b"thank you"[..];
                while !left.is_empty() {
                    match socket.write(left) {
                        Ok(bytes) => left = &left[bytes..],
                        Err(_) => drop(socket.poll(Interest { read: false, write: true }, SECOND)),
                    }
                }
            });
            let other = stream.try_read(&mut [0]).unwrap_err();
            assert_eq!(other.kind(), ErrorKind::WouldBlock);
            stream.write_all(&pattern(30_000)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(stream.write(&[1]).unwrap_err().kind(), ErrorKind::BrokenPipe);
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        assert_eq!(run.result.unwrap(), "thank you", "seed {seed}");
    }
}

#[test]
fn nobody_listens_or_answers() {
    let run = World::run(Options::of_seed(1), |world| {
        let refused = TcpStream::connect_timeout(&address(), SECOND).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let listener: Listener = world.listen(address()).unwrap();
        assert_eq!(world.listen(address()).err().map(|error| error.kind()), Some(ErrorKind::AddrInUse));
        let mut stream = connect();
        stream.set_read_timeout(Some(SECOND)).unwrap();
        let begin = Instant::now();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(begin.elapsed().as_secs(), 1);
        // Nobody reads: there is room for so much, and no more.
        stream.set_write_timeout(Some(SECOND)).unwrap();
        let (mut sent, end) = (0, loop_write(&mut stream));
        sent += end.0;
        assert!((4 << 10..=256 << 10).contains(&sent), "{sent} bytes");
        assert_eq!(end.1, ErrorKind::WouldBlock);
        // Who has not been accepted is told.
        drop(listener);
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
    run.result.unwrap();
}

fn loop_write(stream: &mut TcpStream) -> (usize, ErrorKind) {
    let mut sent = 0;
    loop {
        match stream.write(&[7; 1000]) {
            Ok(bytes) => sent += bytes,
            Err(error) => return (sent, error.kind()),
        }
    }
}

#[test]
fn a_cut_loses_the_end_and_nothing_else() {
    let (mut lost, mut broken) = (0, 0);
    for seed in 0..200 {
        let run = World::run(Options::of_seed(seed), |world| {
            let seen = Rc::new(Cell::new(None));
            let theirs = seen.clone();
            let mut stream = meet(world, move |socket| {
                let (all, end) = read_all(&socket);
                assert_eq!(all[..], pattern(1500)[..all.len()]);
                theirs.set(Some((all.len(), end)));
            });
            for piece in pattern(1500).chunks(100) {
                stream.write_all(piece).unwrap();
                thread::sleep(Duration::from_micros(5));
            }
            thread::sleep(Duration::from_nanos(world.random_u64() % 100_000));
            world.cut_connections();
            let end = stream.read(&mut [0]).unwrap_err().kind();
            thread::sleep(SECOND);
            assert_eq!(stream.write(&[1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
            (end, seen.get().unwrap())
        });
        let (end, (bytes, theirs)) = run.result.unwrap();
        assert_eq!((end, theirs), (ErrorKind::ConnectionReset, ErrorKind::ConnectionReset));
        lost += u32::from(bytes < 1500);
        broken += u32::from(bytes == 1500);
    }
    assert!(lost > 20 && broken > 20, "{lost} lost bytes, {broken} did not");
}

#[test]
fn the_end_of_a_process_is_told_to_its_peers() {
    let (mut ended, mut reset) = (0, 0);
    for seed in 0..100 {
        let run = World::run(Options::of_seed(seed), |world| {
            let mut stream = meet(world, |socket| {
                while socket.write(b"something").is_ok() {
                    thread::sleep(SECOND);
                }
            });
            thread::sleep(SECOND * 3 / 2);
            world.kill(SERVER);
            let refused = TcpStream::connect_timeout(&address(), SECOND).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            let mut all = Vec::new();
            let end = stream.read_to_end(&mut all).map_err(|error| error.kind());
            assert!(!all.is_empty());
            // Who goes on writing learns it.
            while stream.write(&[1]).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
            end.is_ok()
        });
        if run.result.unwrap() { ended += 1 } else { reset += 1 }
    }
    assert!(ended > 10 && reset > 10, "{ended} ends and {reset} resets");
}

#[test]
fn rates_of_faults_are_kept() {
    let network = NetworkFaults { cut_one_in: 20, refuse_one_in: 4, ..NetworkFaults::default() };
    let run = World::run(Options { network, ..Options::of_seed(1) }, |world| {
        let inner = world.clone();
        drop(world.spawn(SERVER, "server", move || {
            let listener = inner.listen(address()).unwrap();
            loop {
                let Ok(socket) = listener.accept(SECOND) else { continue };
                drop(inner.spawn(SERVER, "reader", move || read_all(&socket)));
            }
        }));
        thread::sleep(SECOND);
        let (mut refused, mut writes) = (0, 0);
        for _ in 0..1000 {
            let Ok(mut stream) = TcpStream::connect_timeout(&address(), SECOND) else {
                refused += 1;
                continue;
            };
            while stream.write(b"x").is_ok() {
                writes += 1;
                thread::sleep(Duration::from_millis(1));
            }
        }
        (refused, writes / (1000 - refused))
    });
    let (refused, writes) = run.result.unwrap();
    assert!((200..300).contains(&refused), "{refused} of 1000 refused");
    assert!((16..25).contains(&writes), "cut after {writes} writes");
}
