"""The same store, where the drive is on the wire and another process serves it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import kvssd
import pytest
from calls import interrupted, wait_for_call

LARGE = 20 << 20


class Service(NamedTuple):
    """A drive that another process serves."""

    process: subprocess.Popen[str]
    url: str

    def stop(self) -> None:
        """Has it keep silent until SIGCONT. A process answers on until it has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=256 << 20, value_bytes_max=32 << 20).close()
    command = [os.environ["KVSSD"], "serve", str(image), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # serving drive.kv on 127.0.0.1:4420 as nqn...
        address = process.stdout.readline().split(" on ")[1].split(" ")[0]
        try:
            yield Service(process, f"nvme+tcp://{address}")
        finally:
            # A test may have stopped it.
            process.send_signal(signal.SIGCONT)
            process.terminate()
        assert process.wait() == 0


def test_who_is_not_let_in_is_told_which_drive_it_is(tmp_path: Path) -> None:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=64 << 20).close()
    command = [os.environ["KVSSD"], "serve", str(image), "--listen", "127.0.0.1:0", "--allow-host", "nqn.2024-01.org.example:a"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        drive = f"nvme+tcp://{process.stdout.readline().split(' on ')[1].split(' ')[0]}/?ns=1"
        with pytest.raises(kvssd.RefusedError) as raised:
            kvssd.open(f"{drive}&host=nqn.2024-01.org.example:b")
        process.terminate()
    line = "the drive does not let nqn.2024-01.org.example:b in"
    assert str(raised.value) == f"{drive}&host=nqn.2024-01.org.example:b: {line}"


@pytest.fixture
def url(service: Service) -> str:
    return service.url


def test_a_drive_on_the_wire_is_a_mapping(url: str) -> None:
    with kvssd.open(url) as store:
        store[b"one"] = b"1"
        store.update({b"two": b"2", b"three": b"3"})
        assert dict(store) == {b"one": b"1", b"two": b"2", b"three": b"3"}
        del store[b"one"]
        assert b"one" not in store and store.get(b"one") is None and len(store) == 2
        with pytest.raises(KeyError):
            store[b"one"]
        stats = store.stats()
        assert stats["traffic"] is not None and stats["value_bytes_max"] == 32 << 20
    with kvssd.open(url, read_only=True) as store:
        assert store[b"two"] == b"2"
        with pytest.raises(kvssd.Error):
            store[b"four"] = b"4"


def test_what_is_made_all_or_none_is_refused_and_says_what_there_is(url: str) -> None:
    with kvssd.open(url) as store:
        for block in (store.batch(), store.transaction()):
            with pytest.raises(kvssd.RefusedError, match=r"at a URL has no batches .*store.batch\(atomic=False\)") as raised, block as changes:
                changes.store(b"key", b"value")
            assert "bulk" not in str(raised.value) and b"key" not in store
        with store.batch(atomic=False) as batch:
            batch[b"key"] = b"value"
        with store.transaction() as tx:
            assert tx.get(b"key") == b"value"


def test_a_snapshot_is_of_one_moment_or_refused(url: str) -> None:
    with kvssd.open(url) as store:
        first = store.create_namespace("first", ordered=True)
        first[b"key"] = b"then"
        with store.transaction("snapshot") as snapshot:
            first[b"key"] = b"now"
            assert snapshot.get(b"key", first) == b"then"
        store.create_namespace("second", ordered=True)
        with pytest.raises(kvssd.RefusedError, match="one namespace at a moment, and 2 have an order"), store.transaction("snapshot"):
            pass
        store.delete_namespace("second")
        with store.transaction("snapshot") as snapshot:
            assert snapshot.get(b"key", first) == b"now"


def test_a_second_cache_is_refused_on_the_wire(url: str) -> None:
    with kvssd.open(url) as store:
        blocks = store.create_namespace("blocks", cache="lru budget=1000000")
        with pytest.raises(kvssd.RefusedError, match="the drive keeps it as a cache"):
            kvssd.Cache(blocks, 1 << 20)
        with kvssd.Cache(store, 1 << 20), pytest.raises(kvssd.RefusedError, match="a cache open in it already"):
            kvssd.Cache(store, 1 << 20)
        kvssd.Cache(store, 1 << 20).close()


def test_namespaces_have_names_on_the_wire(url: str) -> None:
    long = b"a key that is longer than sixteen bytes"
    with kvssd.open(url) as store, kvssd.open(url) as other:
        events = store.create_namespace("events", ordered=True)
        events.update({b"b": b"2", b"a": b"1", long: b"long"})
        theirs = other.namespace("events")
        assert list(theirs.scan()) == [(b"a", b"1"), (long, b"long"), (b"b", b"2")] and len(theirs) == 3
        assert theirs.info()["is_ordered"] and b"a" not in store
        store.delete_namespace("events")
        with pytest.raises(kvssd.Error):
            other.namespace("events")


def test_a_host_that_stays_finds_what_is_called_so_now(url: str) -> None:
    with kvssd.open(url) as store, kvssd.open(url) as other:
        old: list[kvssd.Namespace] = []
        for number in range(40):
            name = f"job-{number}"
            other.create_namespace(name)[b"k"] = b"v"
            found = store.namespace(name)
            assert found[b"k"] == b"v" and name in [info["name"] for info in store.namespaces()]
            for stale in old:
                with pytest.raises(kvssd.NamespaceError):
                    stale[b"k"] = b"stale"
            old.append(found)
            if number % 2:
                other.delete_namespace(name)
                with pytest.raises(kvssd.NamespaceError):
                    store.delete_namespace(name)
            else:
                store.delete_namespace(name)
                with pytest.raises(kvssd.NamespaceError):
                    other.namespace(name)


def test_large_values_go_over_the_wire(url: str) -> None:
    value = os.urandom(LARGE)
    with kvssd.open(url) as store:
        store[b"large"] = value
        assert store[b"large"] == value
        with pytest.raises(kvssd.Error):
            store[b"larger"] = bytes((32 << 20) + 1)


def test_a_cache_on_the_wire_is_never_full(url: str) -> None:
    block = os.urandom(4 << 20)
    with kvssd.open(url) as store:
        cache = kvssd.Cache(store, 1 << 30, eviction="fifo")
        for number in range(100):
            assert cache.put(b"block/%d" % number, block)
        assert cache.get(b"block/99") == block and cache.get(b"block/0") is None
        held = len(cache)
        assert 20 < held == len(store) < 64
    with kvssd.open(url) as store:
        assert len(kvssd.Cache(store, 1 << 30)) == held


WORKERS = 4
PUTS = 50


def _put_own(task: tuple[str, int]) -> None:
    url, worker = task
    with kvssd.open(url) as store:
        for number in range(PUTS):
            store[b"%d/%d" % (worker, number)] = b"%d" % number


def test_forked_workers_that_open_the_url_are_hosts_of_their_own(url: str) -> None:
    with kvssd.open(url) as store:
        store[b"before"] = b"1"
        with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
            pool.map(_put_own, [(url, worker) for worker in range(2 * WORKERS)], chunksize=1)
        assert len(store) == 1 + 2 * WORKERS * PUTS
        for worker in range(2 * WORKERS):
            assert all(store[b"%d/%d" % (worker, number)] == b"%d" % number for number in range(PUTS))


def test_a_namespace_of_a_drive_on_the_wire_is_a_cache(url: str) -> None:
    with kvssd.open(url) as store:
        blocks = store.create_namespace("blocks", cache="lru budget=1000000 at-most=300000")
        for number in range(40):
            blocks[str(number).encode()] = bytes(100_000)
        assert b"39" in blocks and b"0" not in blocks
        blocks[b"wide"] = bytes(400_000)
        assert blocks.get(b"wide") is None
        info = blocks.cache_info()
        assert info is not None
        assert info["evicted"] == 31 and info["kept_out"] == 1 and info["held_bytes"] <= 1_000_000
        blocks.set_cache("fifo budget=250000")
        # Who is too many leaves with the next command.
        assert blocks[b"39"] == bytes(100_000) and len(blocks) == 2
        assert blocks.info()["cache"] == "fifo budget=250000"
        assert store.namespaces()[0]["cache"] is None
        for wrong in ("lru", "mru budget=1", "lru budget=0"):
            with pytest.raises(kvssd.InvalidError):
                store.create_namespace("wrong", cache=wrong)


def test_an_interrupt_ends_a_wait_for_a_drive_that_is_silent(service: Service) -> None:
    with kvssd.open(service.url) as store:
        store[b"one"] = b"1"
        service.stop()
        # The first call waits for an answer, the second one for a connection.
        for _ in range(2):
            begin = time.monotonic()
            with pytest.raises(KeyboardInterrupt), interrupted(signal.SIGINT, signal.default_int_handler):
                store[b"one"]
            assert time.monotonic() - begin < 10
        service.process.send_signal(signal.SIGCONT)
        assert store[b"one"] == b"1"


def test_a_handler_may_use_the_store_whose_call_it_interrupts(service: Service) -> None:
    seen: list[object] = []

    def look(number: int, frame: object) -> None:
        service.process.send_signal(signal.SIGCONT)
        seen.append(store[b"one"])
        with pytest.raises(kvssd.RefusedError, match="under way"):
            store.close()

    def end(number: int, frame: object) -> None:
        raise InterruptedError

    def look_while_it_connects(number: int, frame: object) -> None:
        with pytest.raises(kvssd.FailedError, match="connects to it already"):
            store[b"one"]
        service.process.send_signal(signal.SIGCONT)

    def one(handler: Callable[[int, object], None]) -> bytes:
        """What a call gets that the handler interrupts while the drive is silent."""
        service.stop()
        begin = time.monotonic()
        with interrupted(signal.SIGUSR1, handler):
            value = store[b"one"]
        assert time.monotonic() - begin < 10
        return value

    with kvssd.open(service.url) as store:
        store[b"one"] = b"1"
        assert one(look) == b"1" and seen == [b"1"]
        with pytest.raises(InterruptedError):
            one(end)
        assert one(look_while_it_connects) == b"1"


def test_a_handler_does_not_wait_for_who_waits_for_its_thread(service: Service) -> None:
    store = kvssd.open(service.url)
    store[b"one"] = b"1"
    cache = kvssd.Cache(store.create_namespace("blocks"), 1 << 20)
    cache.put(b"one", b"1")
    # What the main thread does, what another thread does then, and what the handler is refused as long as that waits.
    cases: list[tuple[Callable[[], object], Callable[[], object], Callable[[], object]]] = [
        (lambda: cache.get(b"one"), lambda: store.create_namespace("other"), lambda: cache.get(b"one")),
        (lambda: cache.get(b"one"), lambda: None, lambda: store.create_namespace("of the handler")),
        (lambda: store[b"one"], store.close, lambda: store[b"one"]),
    ]
    for wait, beside, within in cases:
        thread = threading.Thread(target=beside)

        def handler(number: int, frame: object) -> None:
            service.process.send_signal(signal.SIGCONT)
            thread.start()
            deadline = time.monotonic() + 10
            with pytest.raises(kvssd.RefusedError, match="under way"):
                while time.monotonic() < deadline:
                    within()

        service.stop()
        with interrupted(signal.SIGUSR1, handler):
            assert wait() == b"1"
        thread.join(10)
        assert not thread.is_alive()


def popping(service: Service, store: kvssd.Store, key: bytes) -> threading.Thread:
    """A thread that pops a key, and waits for the drive, which is silent from now on."""
    thread = threading.Thread(target=store.pop, args=(key,))
    service.stop()
    thread.start()
    assert thread.ident is not None
    wait_for_call(thread.ident)
    return thread


def test_an_interrupt_ends_a_wait_for_what_another_thread_pops(service: Service) -> None:
    with kvssd.open(service.url) as store:
        store[b"key"] = b"value"
        thread = popping(service, store, b"key")
        waits: list[Callable[[], object]] = [
            lambda: store.update({b"key": b"later"}),
            lambda: store.__delitem__(b"key"),
            store.close,
        ]
        for wait in waits:
            with pytest.raises(KeyboardInterrupt), interrupted(signal.SIGINT, signal.default_int_handler):
                wait()
        service.process.send_signal(signal.SIGCONT)
        thread.join(10)
        assert not thread.is_alive() and b"key" not in store


def test_a_handler_is_refused_a_transaction_that_waits_for_the_commit_that_it_interrupts(service: Service) -> None:
    calls: list[None] = []

    def handler(number: int, frame: object) -> None:
        with pytest.raises(kvssd.RefusedError, match="under way"):
            store.transaction("snapshot").__enter__()
        with pytest.raises(kvssd.RefusedError, match="under way"), store.transaction() as beside:
            beside.get(b"key", for_update=True)
        calls.append(None)
        raise KeyboardInterrupt

    with kvssd.open(service.url) as store:
        store[b"key"] = b"value"
        thread = popping(service, store, b"key")
        # Its commit waits for the pop.
        with pytest.raises(KeyboardInterrupt), interrupted(signal.SIGINT, handler):
            with store.transaction() as tx:
                tx[b"key"] = b"later"
        assert len(calls) == 1
        service.process.send_signal(signal.SIGCONT)
        thread.join(10)
        with store.transaction() as later:
            assert later.get(b"key", for_update=True) is None


def test_a_transaction_that_nobody_left_ends_beside_other_threads(service: Service) -> None:
    with kvssd.open(service.url + "?timeout=2") as store:
        store.create_namespace("ordered", ordered=True)
        snapshot = store.transaction("snapshot")
        snapshot.__enter__()
        ticks: list[None] = []
        is_over = threading.Event()

        def tick() -> None:
            while not is_over.wait(0.05):
                ticks.append(None)

        thread = threading.Thread(target=tick)
        service.stop()
        thread.start()
        del snapshot
        is_over.set()
        thread.join()
        service.process.send_signal(signal.SIGCONT)
        assert len(ticks) > 10


def test_an_interrupt_ends_a_wait_in_a_child_of_another_thread(service: Service) -> None:
    def interrupted() -> bool:
        """Of a child: its one thread is the one that handlers run in."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        store = kvssd.open(service.url)
        # It is no child of this process, which cannot wait until it has stopped.
        os.kill(service.process.pid, signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 10:
                store.get(b"one")
        except KeyboardInterrupt:
            return time.monotonic() - begin < 10
        return False

    def work() -> None:
        kvssd.open(service.url).close()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if interrupted() else 1
            finally:
                os._exit(code)
        codes.append(os.waitpid(child, 0)[1])

    codes: list[int] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert codes == [0]


def test_a_thread_that_waits_for_a_silent_drive_does_not_break_the_end_of_the_program(service: Service) -> None:
    program = (
        "import kvssd, sys, threading, time\n"
        "store = kvssd.open(sys.argv[1])\n"
        "print('connected', flush=True)\n"
        "sys.stdin.readline()\n"
        "threading.Thread(target=lambda: store[b'one'], daemon=True).start()\n"
        "time.sleep(0.3)\n"
    )
    command = [sys.executable, "-c", program, service.url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "connected\n"
        service.stop()
        _, said = running.communicate("go on\n", timeout=20)
    assert (running.returncode, said) == (0, "")
