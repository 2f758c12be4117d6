"""A namespace as a cache, as a Python program meets it."""

from __future__ import annotations

import threading
from pathlib import Path

import kvssd
import pytest
from kvssd.drive_cache import DriveCache

FLASH_BYTES = 64 << 20
VALUE = bytes(100_000)


def test_a_full_cache_takes_everything_and_is_there_again(tmp_path: Path) -> None:
    image = tmp_path / "drive.kv"
    with kvssd.open(image, create_bytes=FLASH_BYTES) as store:
        cache = kvssd.Cache(store, 2 * FLASH_BYTES, eviction="lru")
        assert cache.get(b"none") is None and len(cache) == 0
        for number in range(1500):
            assert cache.put(b"%d" % number, VALUE)
        stats = cache.stats()
        assert stats["evicted"] > 500 and stats["budget_bytes"] < FLASH_BYTES and stats["misses"] == 1
        assert b"1499" in cache and b"0" not in cache and cache.stats()["misses"] == 1
        assert cache.get(b"1499") == VALUE and cache.get(b"0") is None
        assert cache.delete(b"1499") and not cache.delete(b"1499") and cache.get(b"1499") is None
        held = len(cache)
        assert held == len(store) and "MiB" in repr(cache)
    with kvssd.open(image) as store:
        assert len(kvssd.Cache(store, FLASH_BYTES)) == held
        # A smaller one lets others go at once.
        assert len(kvssd.Cache(store, 10 * len(VALUE) + 1000)) == len(store) == 10


def test_who_is_not_worth_a_write_stays_out(tmp_path: Path) -> None:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=FLASH_BYTES) as store:
        cache = kvssd.Cache(store.create_namespace("blocks"), 1 << 20, admit=["asked=2", "at-most=1000"])
        assert not cache.put(b"key", b"value") and cache.put(b"key", b"value") and len(store) == 0
        assert not cache.put(b"key", VALUE) and cache.get(b"key") is None
        assert cache.stats()["kept_out"] == 2


def test_one_rule_needs_no_list(tmp_path: Path) -> None:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=FLASH_BYTES) as store, kvssd.Cache(store, 1 << 20, admit="asked=2") as cache:
        assert not cache.put(b"key", b"value") and cache.put(b"key", b"value")
    kept = DriveCache(str(tmp_path / "drive.kv"), admit="asked=2")
    assert not kept.put(b"other", b"value") and kept.put(b"other", b"value")
    kept.close()


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    store = kvssd.open(tmp_path / "drive.kv", create_bytes=FLASH_BYTES)
    with pytest.raises(kvssd.InvalidError, match="s3-fifo"):
        kvssd.Cache(store, 1 << 20, eviction="clock")  # type: ignore[arg-type]
    with pytest.raises(kvssd.InvalidError, match="asked=TIMES"):
        kvssd.Cache(store, 1 << 20, admit=["often"])
    for no_namespace in (None, "blocks"):
        with pytest.raises(TypeError, match="a namespace is what store.namespace"):
            kvssd.Cache(no_namespace, 1)  # type: ignore[arg-type]
    for wrong in (-1, 1 << 64):
        with pytest.raises(kvssd.InvalidError, match="budget_bytes"):
            kvssd.Cache(store, wrong)
    cache = kvssd.Cache(store, 1 << 20)
    store.close()
    for call in (lambda: cache.put(b"key", b"value"), lambda: len(cache), cache.stats):
        with pytest.raises(kvssd.ClosedError):
            call()
    assert repr(cache) == "<kvssd.Cache: the store is closed>"


def test_a_namespace_has_one_at_a_time(tmp_path: Path) -> None:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=FLASH_BYTES) as store:
        first = kvssd.Cache(store, 1 << 20)
        assert first.put(b"key", b"value")
        with pytest.raises(kvssd.RefusedError, match="this store has a cache open in it already"):
            kvssd.Cache(store, 2 << 20)
        kvssd.Cache(store.create_namespace("blocks"), 1 << 20)
        first.close()
        first.close()
        for call in (lambda: first.put(b"key", b"value"), lambda: first.get(b"key"), lambda: b"key" in first, first.stats):
            with pytest.raises(kvssd.ClosedError, match="the cache is closed"):
                call()
        with kvssd.Cache(store, 2 << 20) as second:
            assert second.get(b"key") == b"value"
        # One that nothing refers to is closed.
        for _ in range(2):
            kvssd.Cache(store, 1 << 20)


def test_a_cache_that_the_drive_keeps_takes_no_other_one(tmp_path: Path) -> None:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=FLASH_BYTES) as store:
        blocks = store.create_namespace("blocks", cache="lru budget=1000000")
        with pytest.raises(kvssd.RefusedError, match="the drive keeps it as a cache"):
            kvssd.Cache(blocks, 1 << 20)
        blocks.set_cache(None)
        with kvssd.Cache(blocks, 1 << 20):
            with pytest.raises(kvssd.RefusedError, match="close that one first"):
                blocks.set_cache("lru budget=1000000")
        blocks.set_cache("lru budget=1000000")


def test_threads_share_it(tmp_path: Path) -> None:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=FLASH_BYTES) as store:
        cache = kvssd.Cache(store, 4 << 20)

        def work(first: int) -> None:
            for number in range(500):
                key = b"%d" % ((first + number * 7919) % 97)
                found = cache.get(key)
                assert found is None or found == key * 30_000
                if found is None:
                    assert cache.put(key, key * 30_000)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = cache.stats()
        assert stats["hits"] + stats["misses"] == 2000 and stats["held_bytes"] <= 4 << 20
        assert stats["pairs"] >= len(store)
