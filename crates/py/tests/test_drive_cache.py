"""A cache whose drive may go away."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import kvssd
import pytest
from kvssd.drive_cache import DriveCache

VALUE = os.urandom(300_000)


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def serve(image: Path, listen: str = "127.0.0.1:0") -> tuple[subprocess.Popen[str], str]:
    command = [os.environ["KVSSD"], "serve", str(image), "--listen", listen]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    return service, service.stdout.readline().split(" on ")[1].split(" ")[0]


def test_it_makes_an_image_for_large_values_and_finds_it_again(tmp_path: Path) -> None:
    image = str(tmp_path / "drive.kv")
    for life in range(3):
        cache = DriveCache(image, create_bytes=256 << 20)
        if life == 0:
            assert cache.put(b"large", bytes(20 << 20)) and cache.put(b"small", b"")
        assert b"large" in cache and cache.get(b"large") == bytes(20 << 20) and cache.get(b"small") == b""
        assert b"none" not in cache and cache.get(b"none") is None and not cache.delete(b"none")
        cache.close()
        cache.close()
        # What comes later is a miss.
        assert cache.get(b"small") is None and not cache.put(b"small", b"1") and b"small" not in cache


def test_what_is_refused_stays_out_and_the_rest_goes_on(tmp_path: Path) -> None:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=64 << 20).close()
    cache = DriveCache(str(image), budget_bytes=10 << 20, eviction="fifo")
    assert not cache.put(b"too large", bytes(3 << 20)) and not cache.put(b"", b"no key")
    for number in range(300):
        assert cache.put(b"%d" % number, VALUE)
    assert cache.get(b"299") == VALUE and b"0" not in cache
    cache.close()
    with pytest.raises(kvssd.OpenError):
        DriveCache(str(tmp_path / "none.kv"))
    with pytest.raises(kvssd.InvalidError):
        DriveCache("nvme+tcp://127.0.0.1:1?unknown=1")


def test_a_pair_that_is_damaged_is_a_miss(tmp_path: Path) -> None:
    image = tmp_path / "drive.kv"
    marker = b"what lies in the middle"
    cache = DriveCache(str(image), create_bytes=64 << 20)
    assert cache.put(b"key", VALUE[:150_000] + marker + VALUE[150_000:]) and cache.put(b"other", VALUE)
    cache.close()
    content = image.read_bytes()
    assert marker in content
    image.write_bytes(content.replace(marker, marker.upper()))
    cache = DriveCache(str(image))
    assert b"key" in cache and cache.get(b"key") is None and b"key" not in cache
    assert cache.get(b"other") == VALUE and cache.put(b"key", b"another") and cache.get(b"key") == b"another"
    cache.close()


def test_a_drive_that_is_killed_is_a_miss_and_is_found_again(tmp_path: Path) -> None:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=128 << 20).close()
    service, address = serve(image)
    cache = DriveCache(f"nvme+tcp://{address}")
    failures: list[BaseException] = []
    is_over = threading.Event()

    def work(first: int) -> None:
        try:
            while not is_over.is_set():
                key = b"%d" % (first % 100)
                found = cache.get(key)
                assert found is None or found == VALUE
                cache.put(key, VALUE)
                first += 7
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: b"7" in cache)
    for _ in range(2):
        service.kill()
        service.wait()
        until(lambda: cache.cache is None)
        assert b"7" not in cache
        service, _ = serve(image, address)
        until(lambda: cache.cache is not None and b"7" in cache)
    is_over.set()
    for thread in threads:
        thread.join(30)
    assert not failures and not any(thread.is_alive() for thread in threads)
    cache.close()
    service.kill()
    service.wait()
