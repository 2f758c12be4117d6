"""A cache whose drive may go away."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import kvssd
import pytest
from kvssd import drive_cache
from kvssd.drive_cache import DriveCache, _with_timeout

VALUE = os.urandom(300_000)


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def serve(image: Path, listen: str = "127.0.0.1:0", *options: str) -> tuple[subprocess.Popen[str], str]:
    command = [os.environ["KVSSD"], "serve", str(image), "--listen", listen, *options]
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


def test_a_url_has_a_short_timeout_unless_it_says_another() -> None:
    for drive in [
        "nvme+tcp://host",
        "nvme+tcp://host/nqn.a?ns=2",
        "nvme+tcp://host?",
        "nvme+tcp://host/nqn.a?host=nqn.b:timeout=3",
        "nvme+tcp://host?tls-key-file=/keys/timeout=9.key",
        "nvme+tcp://host/nqn.timeout=1",
    ]:
        limited = _with_timeout(drive)
        assert limited.startswith(drive) and limited.partition("?")[2].split("&")[-1] == "timeout=2"
        # Nothing is added twice.
        assert _with_timeout(limited) == limited
    for drive in ["drive.kv", "nvme+tcp://host?timeout=7", "nvme+tcp://host?ns=1&timeout=7&depth=3"]:
        assert _with_timeout(drive) == drive


def test_what_is_refused_stays_out_and_the_rest_goes_on(tmp_path: Path) -> None:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=64 << 20).close()
    cache = DriveCache(str(image), budget_bytes=10 << 20, eviction="fifo")
    assert not cache.put(b"too large", bytes(3 << 20)) and not cache.put(b"", b"no key")
    for number in range(300):
        assert cache.put(b"%d" % number, VALUE)
    assert cache.get(b"299") == VALUE and b"0" not in cache
    for wrong in (b"", b"k" * 256):
        assert cache.get(wrong) is None and not cache.delete(wrong) and wrong not in cache
    assert cache.get(b"299") == VALUE
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


@pytest.mark.parametrize("doubtful_max", [1 << 20, 1])
def test_no_older_value_comes_back_with_a_drive_that_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doubtful_max: int
) -> None:
    monkeypatch.setattr(drive_cache, "_DOUBTFUL_MAX", doubtful_max)
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=128 << 20).close()
    service, address = serve(image)
    cache = DriveCache(f"nvme+tcp://{address}")
    for key in (b"put", b"deleted", b"same"):
        assert cache.put(key, b"1")
    service.kill()
    service.wait()
    assert not cache.put(bytearray(b"put"), b"2") and not cache.delete(b"deleted") and cache.get(b"same") is None
    for no_key in (7, "put"):
        with pytest.raises(TypeError):
            cache.put(no_key, b"2")  # type: ignore[arg-type]
    service, _ = serve(image, address)
    until(lambda: cache.cache is not None)
    # Who may remember one key alone lets all go.
    same = b"1" if doubtful_max > 1 else None
    assert [cache.get(key) for key in (b"put", b"deleted", b"same")] == [None, None, same]
    assert cache.put(b"put", b"3") and cache.get(b"put") == b"3"
    # What a drive refuses leaves nothing older either.
    assert not cache.put(b"put", bytes(3 << 20)) and cache.get(b"put") is None
    cache.close()
    service.kill()
    service.wait()


@pytest.mark.parametrize("doubtful_max", [1 << 20, 3])
def test_no_older_value_stays_where_this_host_may_only_read_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doubtful_max: int
) -> None:
    monkeypatch.setattr(drive_cache, "_DOUBTFUL_MAX", doubtful_max)
    image, rights = tmp_path / "drive.kv", tmp_path / "target.toml"
    kvssd.open(image, create_bytes=128 << 20).close()
    rights.write_text('[others]\nread_write = "all"\n')
    service, address = serve(image, "127.0.0.1:0", "--config", str(rights))
    cache = DriveCache(f"nvme+tcp://{address}")
    for key in (b"put", b"deleted", b"same"):
        assert cache.put(key, b"1")
    rights.write_text('[others]\nread_only = "all"\n')
    service.send_signal(signal.SIGHUP)
    until(lambda: not cache.put(b"put", b"2"))
    assert not cache.delete(b"deleted") and not cache.delete(b"k" * 256)
    keys = (b"put", b"deleted", b"same")
    assert [cache.get(key) for key in keys] == [None, None, b"1"]
    for number in range(3):
        assert not cache.put(b"%d" % number, b"1")
    # Who may remember three keys alone has lost the drive by now.
    assert cache.get(b"same") == (b"1" if doubtful_max > 3 else None)
    rights.write_text('[others]\nread_write = "all"\n')
    service.send_signal(signal.SIGHUP)
    # What is put while old pairs are deleted may go with them.
    until(lambda: cache.put(b"put", b"3") and cache.get(b"put") == b"3")
    assert cache.get(b"deleted") is None
    cache.close()
    service.kill()
    service.wait()


def test_what_is_put_while_old_pairs_are_deleted_stays(tmp_path: Path) -> None:
    cache = DriveCache(str(tmp_path / "drive.kv"), create_bytes=64 << 20)
    opened = cache._opened
    assert opened is not None and cache.put(b"put", b"1") and cache.put(b"other", b"1")
    cache._doubtful = {b"put", b"other"}
    old = list(cache._doubtful)
    assert cache.put(b"put", b"2")
    cache._settle(opened, old)
    assert cache.get(b"put") == b"2" and cache.get(b"other") is None and not cache._doubtful
    cache.close()


def test_it_raises_nothing_where_there_are_no_more_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=128 << 20).close()
    service, address = serve(image)
    cache = DriveCache(f"nvme+tcp://{address}")
    assert cache.put(b"key", b"value")
    service.kill()
    service.wait()

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        patch.setattr(drive_cache, "_RETRY_SECONDS", 0.0)
        for _ in range(3):
            assert cache.get(b"key") is None and not cache.put(b"other", b"value") and cache.cache is None
    service, _ = serve(image, address)
    until(lambda: cache.get(b"key") == b"value")
    cache.close()
    service.kill()
    service.wait()


def created(url: str, name: str) -> int:
    """Another host makes a namespace."""
    with kvssd.open(url) as host:
        return host.create_namespace(name).id


def deleted(url: str, name: str) -> None:
    with kvssd.open(url) as host:
        host.delete_namespace(name)


def until_number(url: str, number: int) -> str:
    """Others come and go until one has that number; gives its name."""
    for round_ in range(40):
        name = f"other {round_}"
        if created(url, name) == number:
            return name
        deleted(url, name)
    raise AssertionError("nobody gets the number")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=128 << 20).close()
    service, address = serve(image)
    yield f"nvme+tcp://{address}"
    service.kill()
    service.wait()


def test_a_cache_whose_namespace_another_host_deletes_says_what_to_do(url: str) -> None:
    number = created(url, "blocks")
    with kvssd.open(f"{url}?ns={number}") as store:
        cache = kvssd.Cache(store, 10 << 20, eviction="lru")
        assert cache.put(b"key", VALUE) and cache.get(b"key") == VALUE
        deleted(url, "blocks")

        def is_refused() -> None:
            begin = time.monotonic()
            for call in (lambda: cache.get(b"key"), lambda: cache.put(b"key", VALUE), lambda: cache.delete(b"key")):
                with pytest.raises(kvssd.NamespaceError, match="any more.*open") as refusal:
                    call()
                assert "\n" not in str(refusal.value)
            assert time.monotonic() - begin < 10

        is_refused()
        name = until_number(url, number)
        is_refused()
        # Also when it looks at what there is now.
        store.namespaces()
        is_refused()
    with kvssd.open(url) as host:
        assert host.namespace(name).id == number and len(host.namespace(name)) == 0


def test_a_cache_on_an_image_does_not_follow_the_number_of_its_namespace(tmp_path: Path) -> None:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=64 << 20) as store:
        blocks = store.create_namespace("blocks")
        cache = kvssd.Cache(blocks, 1 << 20)
        assert cache.put(b"key", b"value")
        store.delete_namespace("blocks")
        with pytest.raises(kvssd.NamespaceError, match="any more: it was deleted.*open a cache in one that is there"):
            cache.put(b"key", b"value")
        for round_ in range(40):
            other = store.create_namespace(f"other {round_}")
            if other.id == blocks.id:
                break
            store.delete_namespace(f"other {round_}")
        assert other.id == blocks.id and other.info()["birth"] > 0
        for call in (lambda: cache.get(b"key"), lambda: cache.put(b"key", b"value"), lambda: cache.delete(b"key")):
            with pytest.raises(kvssd.NamespaceError, match="any more"):
                call()
        assert len(other) == 0


def test_a_drive_cache_whose_namespace_is_deleted_is_a_miss_for_good(url: str, caplog: pytest.LogCaptureFixture) -> None:
    number = created(url, "blocks")
    cache = DriveCache(f"{url}?ns={number}")
    assert cache.put(b"key", VALUE) and cache.get(b"key") == VALUE
    deleted(url, "blocks")
    name = until_number(url, number)
    assert cache.get(b"key") is None and not cache.put(b"key", VALUE)
    (line,) = (record.getMessage() for record in caplog.records if record.levelname == "ERROR")
    assert "any more" in line and "name a namespace that is there" in line and "\n" not in line
    # It is not opened again, even when it is time to.
    cache._retry_at = min(cache._retry_at, time.monotonic() + 3600)
    assert cache.cache is None and not cache.put(b"key", VALUE)
    with kvssd.open(url) as host:
        assert len(host.namespace(name)) == 0
    cache.close()


def test_a_drive_cache_that_comes_back_does_not_take_another_namespace_for_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=128 << 20).close()
    service, address = serve(image)
    url = f"nvme+tcp://{address}"
    number = created(url, "blocks")
    cache = DriveCache(f"{url}?ns={number}")
    assert cache.put(b"key", VALUE)
    # While the service is away the namespace goes, and another one gets its number.
    service.kill()
    service.wait()
    assert cache.get(b"key") is None and cache.cache is None
    with kvssd.open(image) as store:
        store.delete_namespace("blocks")
        for round_ in range(40):
            if store.create_namespace(f"other {round_}").id == number:
                break
            store.delete_namespace(f"other {round_}")
    service, _ = serve(image, address)
    until(lambda: cache.cache is not None or any(record.levelname == "ERROR" for record in caplog.records))
    assert cache.cache is None and not cache.put(b"key", VALUE)
    with kvssd.open(f"{url}?ns={number}") as other:
        assert len(other) == 0
    cache.close()
    service.kill()
    service.wait()
