"""A store belongs to the process that opened it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import kvssd
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")

PAIRS = {b"k%05d" % number: os.urandom(100) for number in range(2000)}


def in_child(work: Callable[[], None], orderly: bool) -> None:
    """Do something in a forked child, which ends at once or as programs do; it must go well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            if orderly:
                gc.collect()
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def refused(store: kvssd.Store) -> None:
    """Every call says whose the store is."""
    calls: list[Callable[[], object]] = [
        lambda: store[b"k00001"],
        lambda: store.update({b"of the child": b""}),
        lambda: store.pop(b"k00001"),
        lambda: b"k00001" in store,
        lambda: len(store),
        lambda: list(store),
        lambda: list(store.scan(b"k")),
        store.stats,
        store.flush,
        store.namespaces,
        store.close,
    ]
    for call in calls:
        with pytest.raises(kvssd.ForkedError, match=f"opened by process {os.getppid()}"):
            call()
    with pytest.raises(kvssd.ForkedError), store.batch() as batch:
        batch[b"of the child"] = b""
    with pytest.raises(kvssd.ForkedError), store.transaction() as transaction:
        transaction[b"of the child"] = b""


@pytest.mark.parametrize("orderly", [True, False])
def test_a_forked_child_is_refused_and_the_parent_goes_on(tmp_path: Path, orderly: bool) -> None:
    image = tmp_path / "drive.kv"
    store = kvssd.open(image, create_bytes=64 << 20)
    keys = iter(store)
    half = dict(list(PAIRS.items())[:1000])
    store.update(half)

    def child() -> None:
        nonlocal store
        refused(store)
        with pytest.raises(kvssd.OpenError, match=f"in use by process {os.getppid()}"):
            kvssd.open(image)
        del store

    for _ in range(3):
        in_child(child, orderly)
    with store.transaction() as transaction:
        transaction[b"k00001"] = b"committed"
        in_child(lambda: refused_in(transaction), orderly)
    assert len(list(keys)) == 1000
    store.update(PAIRS)
    with pytest.raises(kvssd.OpenError):
        kvssd.open(image)
    store.close()
    with kvssd.open(image) as again:
        assert dict(again) == PAIRS


def refused_in(transaction: kvssd.Transaction) -> None:
    with pytest.raises(kvssd.ForkedError):
        transaction[b"k00001"] = b"of the child"
    with pytest.raises(kvssd.ForkedError):
        transaction.__exit__(None, None, None)


shared: kvssd.Store | None = None


def put_in_worker(number: int) -> None:
    assert shared is not None
    shared[b"w%05d" % number] = b"of a worker"


def open_in_worker(image: str) -> str:
    try:
        kvssd.open(image).close()
    except kvssd.OpenError as error:
        return str(error)
    return ""


def test_the_workers_of_a_pool_are_refused_by_name(tmp_path: Path) -> None:
    global shared
    image = tmp_path / "drive.kv"
    with kvssd.open(image, create_bytes=64 << 20) as store:
        shared = store
        store.update(PAIRS)
        with multiprocessing.get_context("fork").Pool(4) as pool:
            results = [pool.apply_async(put_in_worker, (number,)) for number in range(20)]
            for number, result in enumerate(results):
                with pytest.raises(kvssd.ForkedError, match=f"opened by process {os.getpid()}"):
                    result.get(timeout=60)
                store[b"p%05d" % number] = b"of the parent"
            assert f"in use by process {os.getpid()}" in pool.apply(open_in_worker, (str(image),))
            pool.close()
            pool.join()
        assert len(store) == len(PAIRS) + 20
    shared = None
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(open_in_worker, (str(image),)) == ""
    with kvssd.open(image) as again:
        assert len(again) == len(PAIRS) + 20 and all(again[key] == value for key, value in PAIRS.items())


def test_a_cache_is_refused_in_a_child(tmp_path: Path) -> None:
    def child() -> None:
        calls: list[Callable[[], object]] = [lambda: cache.get(b"key"), lambda: b"key" in cache, lambda: len(cache), cache.stats, cache.close]
        for call in calls:
            with pytest.raises(kvssd.ForkedError):
                call()
        assert f"opened by process {os.getppid()}" in repr(cache)

    with kvssd.open(tmp_path / "drive.kv", create_bytes=64 << 20) as store:
        cache = kvssd.Cache(store, 1 << 20)
        in_child(child, False)


def test_a_child_waits_for_no_thread_that_it_does_not_have(tmp_path: Path) -> None:
    stop = threading.Event()
    with kvssd.open(tmp_path / "drive.kv", create_bytes=64 << 20, sync=True) as store:

        def work(thread: int) -> None:
            number = 0
            while not stop.is_set():
                store[b"%d %d" % (thread, number)] = b"x" * 100
                number += 1

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            in_child(lambda: refused(store), False)
        stop.set()
        for thread in threads:
            thread.join()
