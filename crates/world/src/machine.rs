//! A world as the machine of those in it.

use crate::actor::ActorId;
use crate::shared::{Shared, ns};
use crate::{links, sockets};
use kvssd_runtime::machine::{Key, Machine, Wake};
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

impl Machine for Shared {
    fn number(&self) -> u64 {
        self.number
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.turns.borrow_mut().look())
    }

    fn random_u64(&self) -> u64 {
        self.turns.borrow_mut().random.bits()
    }

    fn actor(&self) -> u64 {
        self.turns.borrow().current.0.into()
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce()>) -> io::Result<()> {
        if self.is_unwinding() {
            return Err(ErrorKind::Interrupted.into());
        }
        let process = self.turns.borrow_mut().current().process;
        self.start(process, name, body);
        Ok(())
    }

    fn is_unwinding(&self) -> bool {
        Shared::is_unwinding(self)
    }

    fn may_lose_turn(&self) {
        if self.turns.borrow_mut().loses_turn() {
            self.point();
        }
    }

    fn yield_now(&self) {
        if !self.is_unwinding() {
            self.turns.borrow_mut().step_back();
            self.switch();
        }
    }

    fn wait(&self, key: Key, until: Option<Duration>) -> bool {
        self.wait_ns(key, until.map(ns))
    }

    fn wake(&self, key: Key, wake: Wake) {
        self.turns.borrow_mut().wake(key, wake);
    }

    fn park(&self, until: Option<Duration>) {
        let mut turns = self.turns.borrow_mut();
        let key = park_key(turns.current);
        if std::mem::take(&mut turns.current().may_pass) {
            return;
        }
        drop(turns);
        self.wait(key, until);
        self.turns.borrow_mut().current().may_pass = false;
    }

    fn unpark(&self, actor: u64) {
        let id = ActorId(actor as u32);
        let mut turns = self.turns.borrow_mut();
        turns.actors[id.index()].may_pass = true;
        turns.wake(park_key(id), Wake::One);
    }

    fn connect(&self, address: SocketAddr, timeout: Duration) -> io::Result<u64> {
        sockets::connect(self, address, timeout)
    }

    fn read(&self, stream: u64, buffer: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        sockets::read(self, stream, buffer, timeout)
    }

    fn try_read(&self, stream: u64, buffer: &mut [u8]) -> io::Result<usize> {
        sockets::read(self, stream, buffer, Some(sockets::AWAKE))
    }

    fn write(&self, stream: u64, bytes: &[u8], timeout: Option<Duration>) -> io::Result<usize> {
        sockets::write(self, stream, bytes, timeout)
    }

    fn shut_down(&self, stream: u64, how: Shutdown) -> io::Result<()> {
        sockets::shut_down(self, stream, how)
    }

    fn close(&self, stream: u64) {
        links::close(&mut self.turns.borrow_mut(), stream);
    }
}

fn park_key(id: ActorId) -> Key {
    Key { id: id.0.into(), kind: "an unpark" }
}
