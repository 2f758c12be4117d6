"""Threads and handlers of signals that use one store."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kvssd
import pytest
from calls import interrupted


@pytest.fixture
def store(tmp_path: Path) -> Iterator[kvssd.Store]:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=64 << 20) as store:
        yield store


def test_a_handler_does_not_wait_for_the_transaction_that_it_interrupts(store: kvssd.Store) -> None:
    store[b"key"] = b"value"
    first, second = store.transaction(), store.transaction()
    first.__enter__()
    first.get(b"key", for_update=True)

    def handler(number: int, frame: object) -> None:
        with pytest.raises(kvssd.RefusedError, match="under way"):
            second.get(b"other")
        first.__exit__(None, None, None)

    with second, interrupted(signal.SIGUSR1, handler):
        assert second.get(b"key", for_update=True) == b"value"


@pytest.mark.parametrize("call", ["store", "delete", "batch", "commit"])
def test_a_call_on_its_way_does_not_come_to_the_namespace_that_gets_the_number(store: kvssd.Store, call: str) -> None:
    old = store.create_namespace("old")
    old[b"key"] = b"old"

    def replace(frame: object, event: str, called: object) -> None:
        """What another thread does before the call begins: others come until one has the number."""
        if event == "c_call" and getattr(called, "__name__", None) == call:
            sys.setprofile(None)
            store.delete_namespace("old")
            while store.create_namespace("new").id != old.id:
                store.delete_namespace("new")
            store.namespace("new")[b"key"] = b"new"

    def change() -> None:
        if call == "batch":
            with store.batch() as batch:
                sys.setprofile(replace)
                batch.store(b"key", b"late", old)
        elif call == "commit":
            with store.transaction() as tx:
                tx.store(b"key", b"late", old)
                sys.setprofile(replace)
        else:
            sys.setprofile(replace)
            if call == "store":
                old[b"key"] = b"late"
            else:
                del old[b"key"]

    try:
        with pytest.raises(kvssd.NamespaceError, match="was deleted"):
            change()
    finally:
        sys.setprofile(None)
    assert dict(store.namespace("new")) == {b"key": b"new"} and store.namespace("new").id == old.id


LETTERS = 500


@pytest.mark.parametrize("how", ["setdefault", "batch", "transaction"])
def test_what_one_thread_stores_another_one_pops_once(store: kvssd.Store, how: str) -> None:
    box = store.create_namespace("box")
    popped: list[int] = []

    def put_by_batch(letter: bytes) -> None:
        with store.batch() as batch:
            batch.store(b"letter", letter, box)

    def put_by_transaction(letter: bytes) -> None:
        with store.transaction() as tx:
            tx.store(b"letter", letter, box)

    put: dict[str, Callable[[bytes], object]] = {
        "setdefault": lambda letter: box.setdefault(b"letter", letter),
        "batch": put_by_batch,
        "transaction": put_by_transaction,
    }

    def put_all() -> None:
        for number in range(LETTERS):
            while b"letter" in box:
                assert not any(thread.done() for thread in done) and time.monotonic() < deadline
            put[how](b"%d" % number)

    def pop(take: Callable[[], bytes]) -> None:
        while (not is_over.is_set() or box) and time.monotonic() < deadline:
            try:
                popped.append(int(take()))
            except KeyError:
                pass

    is_over = threading.Event()
    deadline = time.monotonic() + 300
    with ThreadPoolExecutor(2) as threads:
        takes = (lambda: box.pop(b"letter"), lambda: box.popitem()[1])
        done = [threads.submit(pop, take) for take in takes]
        try:
            put_all()
        finally:
            is_over.set()
        for thread in done:
            thread.result()
    assert sorted(popped) == list(range(LETTERS))
