"""The store as a Python program meets it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kvssd
import pytest

SMALL = 64 << 20


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return tmp_path / "drive.kv"


@pytest.fixture
def store(image: Path) -> Iterator[kvssd.Store]:
    with kvssd.open(image, create_bytes=SMALL) as store:
        yield store


def test_a_store_is_a_mutable_mapping(store: kvssd.Store) -> None:
    assert isinstance(store, MutableMapping) and len(store) == 0 and not store
    store[b"one"] = b"1"
    store[bytearray(b"two")] = bytearray(b"2")
    store.update({b"three": b"3"})
    assert store[b"one"] == b"1" and len(store) == 3 and b"two" in store and b"four" not in store
    assert dict(store) == {b"one": b"1", b"two": b"2", b"three": b"3"}
    assert sorted(store) == [b"one", b"three", b"two"] and sorted(store.values()) == [b"1", b"2", b"3"]
    assert store.get(b"four") is None and store.get(b"four", 4) == 4 and store.get(bytearray(b"two")) == b"2"
    assert store.setdefault(b"four", b"4") == b"4" and store.setdefault(b"four", b"5") == b"4"
    assert store.pop(b"four") == b"4" and store.pop(b"four", None) is None
    del store[b"one"]
    with pytest.raises(KeyError):
        store[b"one"]
    with pytest.raises(KeyError):
        del store[b"one"]
    store[b""[:0] + b"empty"] = b""
    assert store[b"empty"] == b""
    store.clear()
    assert list(store) == []


def test_pairs_that_are_deleted_meanwhile_are_no_error(store: kvssd.Store) -> None:
    pairs = {b"%d" % number: b"%d" % (number * number) for number in range(1000)}
    for ordered in (False, True):
        namespace = store.create_namespace(ordered=ordered)
        namespace.update(pairs)
        assert dict(namespace.items()) == pairs and namespace == pairs
        assert sorted(namespace.values()) == sorted(pairs.values()) and b"81" in namespace.values()
        items, values = iter(namespace.items()), iter(namespace.values())
        assert pairs[next(items)[0]] and next(values)
        namespace.clear()
        assert len(namespace) == 0 and list(items) == [] and list(values) == []


def test_of_threads_that_pop_a_pair_one_has_it(store: kvssd.Store) -> None:
    pairs = {b"%d" % number: b"v%d" % number for number in range(2000)}
    popped: list[tuple[bytes, bytes]] = []

    def pop_by_key() -> None:
        for key in pairs:
            value = store.pop(key, None)
            if value is not None:
                popped.append((key, value))

    def pop_any() -> None:
        while store:
            try:
                popped.append(store.popitem())
            except KeyError:
                assert not store

    for pop in (pop_by_key, pop_any):
        store.update(pairs)
        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(pop) for _ in range(4)]:
                done.result()
        assert sorted(popped) == sorted(pairs.items()) and not store
        popped.clear()


def test_to_clear_a_store_is_no_more_work_than_to_delete_its_pairs(store: kvssd.Store) -> None:
    def pages_read() -> int:
        firmware = store.stats()["firmware"]
        assert firmware is not None
        return firmware["pages_read"]

    store.update({b"%d" % number: b"" for number in range(1000)})
    before = pages_read()
    store.clear()
    assert len(store) == 0 and pages_read() - before < 5_000


def test_of_large_values_a_scan_reads_few_at_a_time(store: kvssd.Store) -> None:
    for number in range(60):
        store[b"%d" % number] = bytes(500_000)
    for pairs in (store.scan(), iter(store.items())):
        tracemalloc.start()
        assert len([None for _ in pairs]) == 60
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
        tracemalloc.stop()


def test_text_is_not_taken_for_bytes(store: kvssd.Store) -> None:
    with pytest.raises(TypeError):
        store["key"] = b"value"  # type: ignore[index]
    with pytest.raises(TypeError):
        store[b"key"] = "value"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="keys and values are bytes, or a buffer such as a NumPy array, not str"):
        assert "key" in store  # type: ignore[comparison-overlap]
    with pytest.raises(TypeError, match="not NoneType"):
        store[b"key"] = None  # type: ignore[assignment]


def test_keys_and_values_are_any_buffer(store: kvssd.Store) -> None:
    numpy = pytest.importorskip("numpy")
    numbers = numpy.arange(1000, dtype="<u4")
    store[memoryview(b"a key")[2:]] = numbers
    assert store[b"key"] == numbers.tobytes()
    store[b"every other"] = numbers[::2]
    assert store[b"every other"] == numbers[::2].tobytes()
    store[numbers[:2]] = b"a key of eight bytes"
    assert store[bytes(8)[:4] + b"\1\0\0\0"] == b"a key of eight bytes" and numbers[:2] in store
    with pytest.raises(TypeError, match="not ndarray"):
        store[b"objects"] = numpy.array([object()])
    with store.batch() as batch:
        batch[bytearray(b"in a batch")] = numbers
    with store.transaction() as tx:
        assert tx.get(memoryview(b"in a batch")) == numbers.tobytes()

    back = numpy.zeros(1000, dtype="<u4")
    assert store.get_into(b"key", back) == 4000 and (back == numbers).all()
    start = bytearray(6)
    assert store.get_into(b"key", start) == 4000 and start == numbers.tobytes()[:6]
    assert store.get_into(b"nobody", start) is None and store.get_into(b"key", bytearray()) == 4000
    larger = bytearray(b"x" * 5000)
    assert store.get_into(b"key", larger) == 4000 and larger[4000:] == b"x" * 1000
    with pytest.raises(TypeError):
        store.get_into(b"key", b"cannot be written to")


def test_many_keys_are_asked_for_at_once(store: kvssd.Store) -> None:
    for number in range(3000):
        store[b"%d" % number] = b"v%d" % number
    values = store.get_many(b"%d" % number for number in range(2990, 3010))
    assert values == [b"v%d" % number for number in range(2990, 3000)] + [None] * 10
    assert store.get_many([]) == []
    assert store.get_many(b"%d" % number for number in range(3000)) == [b"v%d" % number for number in range(3000)]


def test_stores_and_namespaces_say_what_they_are(store: kvssd.Store, image: Path) -> None:
    accounts = store.create_namespace("accounts", ordered=True)
    accounts[b"alice"] = b"70"
    assert repr(store).startswith(f"<kvssd.Store {image}: plus, ") and repr(store).endswith(" MiB taken>")
    assert repr(accounts) == "<kvssd.Namespace 2 'accounts': 1 pairs, lsm, ordered>"
    assert "<td>plus</td>" in store._repr_html_() and "<td>accounts</td>" in accounts._repr_html_()
    store.close()
    assert repr(store) == f"<kvssd.Store {image}: the store is closed>"


def test_what_was_stored_is_there_in_the_next_life(image: Path) -> None:
    with kvssd.open(image, create_bytes=SMALL, design="original", sync=True) as store:
        store[b"key"] = b"v" * 100_000
    with kvssd.open(str(image), read_only=True) as store:
        assert store[b"key"] == b"v" * 100_000 and store.stats()["design"] == "original"
        with pytest.raises(kvssd.ReadOnlyError):
            store[b"other"] = b""


def test_a_program_that_ends_without_closing_loses_nothing(image: Path) -> None:
    program = "import kvssd, os; store = kvssd.open(%r, create=True); store[b'key'] = b'value'; os._exit(9)" % os.fspath(image)
    assert subprocess.run([sys.executable, "-c", program]).returncode == 9
    with kvssd.open(image) as store:
        assert store[b"key"] == b"value"


def test_errors_say_what_is_wrong(image: Path, tmp_path: Path) -> None:
    with pytest.raises(kvssd.OpenError, match="there is no such file; create=True makes one"):
        kvssd.open(image)
    with pytest.raises(kvssd.OpenError, match="there is no such file"):
        kvssd.open(image, create_bytes=SMALL, create=False)
    for made in ({"create": True}, {"create_bytes": SMALL}):
        with pytest.raises(kvssd.OpenError, match="there is no such file; read_only=True makes none"):
            kvssd.open(image, read_only=True, **made)
    with pytest.raises(kvssd.InvalidError, match="one that is to be made cannot be opened read-only"):
        kvssd.open(image, create="new", read_only=True)
    assert not image.exists()
    with pytest.raises(ValueError, match="create is True, False or \"new\", not 'never'"):
        kvssd.open(image, create="never")  # type: ignore[arg-type]
    with pytest.raises(kvssd.InvalidError):
        kvssd.open(image, create_bytes=SMALL, design="nonsense")
    with pytest.raises(kvssd.InvalidError):
        kvssd.open("nvme+tcp://")
    for option, wrong, line in (
        ("create_bytes", 1 << 64, "create_bytes is a number from 67108864 to 8796093022208, not 18446744073709551616"),
        ("value_bytes_max", 1 << 32, "value_bytes_max is a number from 4096 to 268435456, not 4294967296"),
        ("value_bytes_max", -1, "value_bytes_max is a number from 4096 to 268435456, not -1"),
        ("partitions", 1 << 32, "partitions is a number from 1 to 64, not 4294967296"),
        ("cache_bytes", -1, "cache_bytes is a number from 0 to 18446744073709551615, not -1"),
    ):
        with pytest.raises(kvssd.InvalidError, match=line):
            kvssd.open(image, **{"create_bytes": SMALL, option: wrong})  # type: ignore[arg-type]
    for option, less, line in (
        ("partitions", 0, "1 partition at the least"),
        ("value_bytes_max", 0, "4096 bytes at the least"),
        ("value_bytes_max", 4095, "4096 bytes at the least"),
    ):
        with pytest.raises(kvssd.InvalidError, match=line):
            kvssd.open(image, create_bytes=SMALL, **{option: less})  # type: ignore[arg-type]
        with pytest.raises(kvssd.OpenError, match="there is no such file"):
            kvssd.open(image, **{option: less})  # type: ignore[arg-type]
    (tmp_path / "text").write_text("no image")
    with pytest.raises(kvssd.OpenError):
        kvssd.open(tmp_path / "text")
    store = kvssd.open(image, create_bytes=SMALL)
    with pytest.raises(kvssd.OpenError, match="in use"):
        kvssd.open(image)
    with pytest.raises(kvssd.OpenError, match="it exists already"):
        kvssd.open(image, create="new")
    with pytest.raises(kvssd.InvalidError, match="1 to 255 bytes"):
        store[b""] = b"value"
    with pytest.raises(kvssd.InvalidError, match="too large"):
        store[b"key"] = bytes(SMALL)
    with pytest.raises(kvssd.NamespaceError, match="no namespace nobody"):
        store.namespace("nobody")
    with pytest.raises(kvssd.FullError):
        for number in range(SMALL):
            store[b"%d" % number] = bytes(100_000)
    store.close()
    store.close()
    with pytest.raises(kvssd.ClosedError, match="closed"):
        store[b"key"]
    with pytest.raises(kvssd.ClosedError), store.batch():
        raise AssertionError("nothing is gathered for a store that is closed")
    with pytest.raises(kvssd.OpenError, match="empty"):
        kvssd.open("", create=True)
    with pytest.raises(kvssd.OpenError, match="nowhere/drive.kv"):
        kvssd.open(tmp_path / "nowhere" / "drive.kv", create=True)
    for family in (kvssd.OpenError, kvssd.FullError, kvssd.AbortedError, kvssd.ExperimentError):
        assert issubclass(family, kvssd.Error)


def test_namespaces_have_keys_of_their_own(store: kvssd.Store) -> None:
    accounts = store.create_namespace("accounts", ordered=True)
    hashed = store.create_namespace("hashed", index="hash-fixed", quota_bytes=1 << 20)
    accounts[b"alice"] = b"70"
    assert b"alice" not in store and b"alice" not in hashed and len(accounts) == 1
    assert [info["name"] for info in store.namespaces()] == [None, "accounts", "hashed"]
    assert store.namespace(2)[b"alice"] == b"70" and store.namespace("hashed").info()["quota_bytes"] == 1 << 20
    assert store.namespace("hashed").info()["pairs_max"] is None
    store.delete_namespace("accounts")
    with pytest.raises(kvssd.NamespaceError):
        accounts[b"alice"]
    with pytest.raises(kvssd.InvalidError):
        store.create_namespace("hashed")
    for wrong in (-1, 1 << 64):
        with pytest.raises(kvssd.InvalidError, match="quota_bytes"):
            store.create_namespace(quota_bytes=wrong)


def test_a_quota_of_no_bytes_is_none(store: kvssd.Store) -> None:
    unbounded = store.create_namespace("unbounded", quota_bytes=0)
    unbounded[b"alice"] = b"70"
    assert unbounded[b"alice"] == b"70" and unbounded.info()["quota_bytes"] is None


def test_scans_go_along_keys(store: kvssd.Store) -> None:
    ordered = store.create_namespace("tree", ordered=True)
    for number in range(2000):
        key = b"%s/%04d" % (b"even" if number % 2 == 0 else b"odd", number)
        store[key] = ordered[key] = b"%d" % number
    assert list(ordered) == sorted(store)
    assert [value for _, value in ordered.scan(b"odd/")] == [b"%d" % number for number in range(1, 2000, 2)]
    assert sorted(store.scan(prefix=b"odd/")) == list(ordered.scan(prefix=b"odd/"))
    assert list(ordered.scan(start=b"odd/1996")) == [(b"odd/1997", b"1997"), (b"odd/1999", b"1999")]
    assert list(ordered.scan(b"odd/", start=b"even/")) == list(ordered.scan(b"odd/"))
    assert list(ordered.scan(start=b"odd/1", stop=b"odd/1003")) == [(b"odd/1001", b"1001")]
    assert sorted(store.scan(start=b"odd/1", stop=b"odd/1003")) == [(b"odd/1001", b"1001")]
    assert len(list(ordered.scan(b"even/", stop=b"even/1000"))) == 500 and list(ordered.scan(stop=b"a")) == []
    assert list(ordered.scan(b"none")) == [] and list(store.scan(b"none")) == []
    assert len(list(store.scan())) == 2000
    for key, _ in ordered.scan(b"even/"):
        del ordered[key]
    assert len(ordered) == 1000


def test_a_scan_shows_what_was_there_when_it_began(store: kvssd.Store) -> None:
    ordered = store.create_namespace("tree", ordered=True)
    for number in range(500):
        ordered[b"%04d" % number] = b"old"
    scan = ordered.scan(b"0", stop=b"0400")
    shown = [next(scan)]
    for number in range(1, 500, 2):
        del ordered[b"%04d" % number]
    for number in range(0, 500, 2):
        ordered[b"%04d" % number] = b"new" * 1000
    ordered[b"0399x"] = b"new"
    shown += scan
    assert shown == [(b"%04d" % number, b"old") for number in range(400)]
    assert [value for _, value in ordered.scan(b"039")] == [b"new" * 1000] * 5 + [b"new"]
    half = ordered.scan()
    next(half)
    del half
    for _ in range(200):
        next(ordered.scan())
    open_scan = ordered.scan()
    next(open_scan)
    store.delete_namespace("tree")
    with pytest.raises(kvssd.Error):
        list(open_scan)


def test_a_batch_is_made_whole_or_not_at_all(store: kvssd.Store) -> None:
    other = store.create_namespace("other")
    store[b"old"] = b"0"
    with store.batch() as batch:
        batch[b"one"] = b"1"
        batch.store(b"two", b"2", other)
        del batch[b"old"]
        assert len(batch) == 3 and b"one" not in store
    assert dict(store) == {b"one": b"1"} and dict(other) == {b"two": b"2"}
    with pytest.raises(ZeroDivisionError), store.batch() as batch:
        batch[b"three"] = b"3"
        raise ZeroDivisionError
    with pytest.raises(kvssd.InvalidError, match="too large"), store.batch() as batch:
        for number in range(100_000):
            batch[b"%d" % number] = b""
    assert len(store) == 1
    with store.batch(atomic=False) as bulk:
        for number in range(20_000):
            bulk[b"%d" % number] = b"%d" % number
    assert len(store) == 20_001 and store[b"19999"] == b"19999"
    # One after the other, so that what came long before the wrong one is there.
    with pytest.raises(kvssd.InvalidError, match="255 bytes"), store.batch(atomic=False) as bulk:
        for number in range(5_000):
            bulk[b"" if number == 4_000 else b"%d" % number] = b"new"
    assert store[b"0"] == b"new" and store[b"4500"] == b"4500"


def test_a_value_that_is_too_large_for_a_batch_is_told_from_a_batch_that_is(image: Path) -> None:
    with kvssd.open(image.with_name("plain.kv"), create_bytes=SMALL) as store, store.batch() as batch:
        batch[b"k" * 255] = bytes(store.stats()["batch_value_bytes_max"])
    with kvssd.open(image, create_bytes=SMALL, value_bytes_max=16 << 20) as store:
        most = store.stats()["batch_value_bytes_max"]
        with store.batch() as batch:
            batch[b"k" * 255] = bytes(most)
        why = f"a value of {most + 1} bytes is too large for a batch or a transaction: this drive takes {most} there"
        with pytest.raises(kvssd.InvalidError, match=why), store.batch() as batch:
            batch[b"more"] = bytes(most + 1)
        with pytest.raises(kvssd.InvalidError, match=why), store.transaction() as tx:
            tx[b"more"] = bytes(most + 1)
        store[b"more"] = bytes(most + 1)


def test_transactions_commit_abort_and_are_tried_again(store: kvssd.Store) -> None:
    accounts = store.create_namespace("accounts", ordered=True)
    with store.transaction() as tx:
        tx.insert(b"alice", b"70", accounts)
        tx[b"log"] = b"opened"
        assert tx.get(b"alice", accounts) == b"70" and b"alice" not in accounts and b"log" in tx
    assert accounts[b"alice"] == b"70" and store[b"log"] == b"opened"
    with pytest.raises(KeyError), store.transaction() as tx:
        tx.insert(b"alice", b"0", accounts)
    with store.transaction() as tx:
        tx[b"outer"] = b"1"
        with pytest.raises(RuntimeError, match="has begun already"), tx:
            raise AssertionError("it begins once")
    assert store[b"outer"] == b"1"
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        del tx[b"log"]
        raise ZeroDivisionError
    assert store[b"log"] == b"opened"
    with pytest.raises(kvssd.AbortedError), store.transaction("optimistic") as first:
        value = int(first.get(b"alice", accounts) or b"0")
        with store.transaction("optimistic") as second:
            second.update(b"alice", b"60", accounts)
        first.update(b"alice", b"%d" % (value + 1), accounts)
    assert accounts[b"alice"] == b"60"
    with store.transaction("snapshot") as snapshot:
        accounts[b"alice"] = b"past transactions"
        assert snapshot.get(b"alice", accounts) == b"60"
        with pytest.raises(kvssd.RefusedError, match="younger"):
            snapshot.get(b"alice", store.create_namespace("later", ordered=True))
        with pytest.raises(kvssd.Error):
            store.close()
        with pytest.raises(kvssd.ReadOnlyError):
            snapshot.store(b"alice", b"0", accounts)
    with store.transaction() as tx:
        assert tx.get(b"alice", accounts) == b"past transactions"
    with pytest.raises(RuntimeError):
        tx[b"alice"]
    with pytest.raises(ValueError), store.transaction("none"):  # type: ignore[arg-type]
        pass


def test_what_an_optimistic_transaction_has_read_aborts_it_when_it_was_changed(store: kvssd.Store) -> None:
    with pytest.raises(kvssd.AbortedError), store.transaction("optimistic") as first:
        assert first.get(b"k") is None
        with store.transaction("optimistic") as second:
            second.store(b"k", b"other")
        assert first.get(b"k") is None
        first.insert(b"k", b"mine")
    assert store[b"k"] == b"other"
    with pytest.raises(kvssd.AbortedError), store.transaction("optimistic") as first:
        assert first.get(b"k") == b"other"
        with store.transaction("optimistic") as second:
            second.delete(b"k")
        first.update(b"k", b"mine")
    store.update({b"x": b"4", b"y": b"6"})
    with pytest.raises(kvssd.AbortedError), store.transaction("optimistic") as first:
        assert first.get(b"x") == b"4"
        with store.transaction("optimistic") as second:
            second.store(b"x", b"0")
            second.store(b"y", b"10")
        pytest.fail(f"4 and {first.get(b'y')!r} never were together")


def test_optimistic_threads_count_by_get_or_insert(store: kvssd.Store) -> None:
    def count(_: int) -> None:
        for _ in range(50):
            while True:
                try:
                    with store.transaction("optimistic") as tx:
                        before = tx.get(b"count")
                        if before is None:
                            tx.insert(b"count", b"1")
                        elif int(before) % 10 == 9:
                            tx.delete(b"count")
                            tx.insert(b"count", b"%d" % (int(before) + 1))
                        else:
                            tx.update(b"count", b"%d" % (int(before) + 1))
                    break
                except kvssd.AbortedError:
                    pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))
    assert store[b"count"] == b"400"


WAITS_FOR_ANOTHER = """
import kvssd, sys, threading, time

store = kvssd.open(sys.argv[1])
first, second = store.transaction(), store.transaction()
first.__enter__()
first[b"key"] = b"first"
second.__enter__()
values = []
reads = threading.Thread(target=lambda: values.append(second[b"key"]))
reads.start()
time.sleep(0.2)

def commit():
    time.sleep(0.2)
    first.__exit__(None, None, None)

commits = threading.Thread(target=commit)
commits.start()
second.__exit__(ValueError, None, None)
reads.join()
commits.join()
print(values)
"""


def test_a_transaction_that_is_ended_while_a_thread_waits_in_it_holds_nobody_up(
    store: kvssd.Store, image: Path
) -> None:
    store.close()
    # Who waits with the interpreter's lock hangs for ever, and could not be ended from here.
    command = [sys.executable, "-c", WAITS_FOR_ANOTHER, str(image)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("[b'first']\n", "")


WAITS_FOR_ITSELF = """
import kvssd, os, signal, sys, threading

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
with kvssd.open(sys.argv[1]) as store:
    try:
        with store.transaction() as outer, store.transaction(sys.argv[2]) as inner:
            outer[b"key"] = b"outer"
            inner[b"key"] = b"inner"
    except KeyboardInterrupt:
        print("interrupted")
    with store.transaction() as tx:
        tx[b"other"] = b"later"
    print(dict(store))
"""


@pytest.mark.parametrize("isolation", ["locking", "optimistic"])
def test_a_transaction_that_waits_is_ended_by_a_signal(store: kvssd.Store, image: Path, isolation: str) -> None:
    store.close()
    command = [sys.executable, "-c", WAITS_FOR_ITSELF, str(image), isolation]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("interrupted\n{b'other': b'later'}\n", "")


def test_threads_share_a_store(store: kvssd.Store) -> None:
    store[b"count"] = b"0"
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(200):
                store[b"%d/%d" % (thread, number)] = b"x" * 1000
                while True:
                    try:
                        with store.transaction() as tx:
                            tx[b"count"] = b"%d" % (int(tx.get(b"count", for_update=True) or b"") + 1)
                        break
                    except kvssd.AbortedError:
                        pass
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and store[b"count"] == b"800" and len(store) == 801


def test_who_has_a_deleted_namespace_touches_nothing_of_what_gets_its_number(store: kvssd.Store) -> None:
    def replaced(old: kvssd.Namespace) -> kvssd.Namespace:
        """What has its number when numbers come again."""
        store.delete_namespace(old.id)
        for _ in range(100):
            new = store.create_namespace("new")
            if new.id == old.id:
                return new
            store.delete_namespace("new")
        raise AssertionError("numbers come again")

    old = store.create_namespace("old")
    old[b"key"] = b"old"
    window = iter(old)
    batch, transaction = store.batch(), store.transaction()
    with pytest.raises(kvssd.NamespaceError, match="was deleted"), transaction:
        transaction.store(b"written", b"old", old)
        batch.store(b"gathered", b"old", old)
        new = replaced(old)
    with pytest.raises(kvssd.NamespaceError, match="was deleted"), batch:
        new[b"key"] = b"new"
    calls: list[Callable[[], object]] = [
        lambda: old[b"key"],
        lambda: old.get(b"key"),
        lambda: old.__setitem__(b"key", b"old"),
        lambda: old.pop(b"key"),
        lambda: b"key" in old,
        lambda: len(old),
        lambda: list(window),
        lambda: list(old.items()),
        lambda: list(old.scan()),
        lambda: store.batch().store(b"key", b"old", old),
        old.clear,
        old.info,
    ]
    for call in calls:
        with pytest.raises(kvssd.NamespaceError):
            call()
    assert dict(new) == {b"key": b"new"}
    assert repr(old).startswith(f"<kvssd.Namespace {new.id}: there is no namespace {new.id} any more")


def test_what_went_wrong_leaves_a_store_that_a_transaction_keeps_open(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as raised, kvssd.open(tmp_path / "drive.kv", create_bytes=64 << 20) as store:
        transaction = store.transaction().__enter__()
        raise ZeroDivisionError
    if sys.version_info >= (3, 11):
        assert raised.value.__notes__ == ["the store stays open: a transaction is open: end it before the store is closed"]
    transaction.__exit__(None, None, None)
    with pytest.raises(kvssd.RefusedError, match="a transaction is open"), store:
        transaction = store.transaction().__enter__()
    transaction.__exit__(None, None, None)
    store.close()
