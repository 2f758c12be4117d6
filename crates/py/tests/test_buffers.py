"""Keys and values in buffers that are used again, are of odd kinds, or are large."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path

import kvssd
import pytest


@pytest.fixture
def store(tmp_path: Path) -> Iterator[kvssd.Store]:
    with kvssd.open(tmp_path / "drive.kv", create_bytes=64 << 20) as store:
        yield store


def test_a_batch_has_what_a_buffer_held_at_the_call(store: kvssd.Store) -> None:
    key, value = bytearray(1), bytearray(2)
    with store.batch() as batch:
        for number in range(3):
            key[:], value[:] = b"%d" % number, b"%d" % number * 2
            batch[key] = value
        batch.delete(key)
        value.extend(b"more")
    assert dict(store) == {b"0": b"00", b"1": b"11"}


def test_a_batch_refuses_at_the_call_what_is_no_buffer(store: kvssd.Store) -> None:
    with store.batch() as batch:
        batch[b"key"] = b"value"
        for wrong in ("text", None, 1):
            with pytest.raises(TypeError, match="keys and values are bytes"):
                batch[b"other"] = wrong  # type: ignore[assignment]
            with pytest.raises(TypeError, match="keys and values are bytes"):
                batch.delete(wrong)  # type: ignore[arg-type]
    assert dict(store) == {b"key": b"value"}


def test_a_value_goes_into_a_buffer_that_is_larger_than_the_memory(store: kvssd.Store, tmp_path: Path) -> None:
    store[b"key"] = b"value"
    large = 8 << 40
    with (tmp_path / "sparse").open("w+b") as file:
        try:
            file.truncate(large)
        except OSError as why:
            pytest.skip(f"the file system has no file of 8 TiB: {why}")
        with mmap.mmap(file.fileno(), large) as buffer:
            assert store.get_into(b"key", buffer) == 5 and buffer[:6] == b"value\0"


def test_a_large_value_fills_what_there_is_of_a_buffer(tmp_path: Path) -> None:
    value = bytes(range(250)) * 20_000
    with kvssd.open(tmp_path / "large.kv", create_bytes=128 << 20, value_bytes_max=16 << 20) as store:
        store[b"key"] = value
        for room in (2 << 20, 3 << 20, len(value), 8 << 20):
            buffer = bytearray(b"x" * room)
            assert store.get_into(b"key", buffer) == len(value)
            assert buffer == value[:room] + b"x" * (room - len(value))


def test_a_field_has_any_name(store: kvssd.Store) -> None:
    numpy = pytest.importorskip("numpy")
    prices = numpy.zeros(3, dtype=[("Open", "<f4"), ("Old", [("O", "<u2")])])
    store[b"prices"] = prices
    assert store[b"prices"] == prices.tobytes()
    for objects in ([("a", "O")], [("a", [("O", "O")])]):
        with pytest.raises(TypeError, match="not ndarray"):
            store[b"objects"] = numpy.zeros(1, dtype=objects)


def test_an_array_of_addresses_is_refused(store: kvssd.Store) -> None:
    text = ctypes.create_string_buffer(b"text")
    addresses = (ctypes.c_char_p * 1)(b"text"), (ctypes.c_wchar_p * 1)("text"), (ctypes.c_void_p * 1)(1)
    for wrong in (*addresses, (ctypes.POINTER(ctypes.c_char) * 1)(), ctypes.CFUNCTYPE(None)()):
        with pytest.raises(TypeError, match="keys and values are bytes"):
            store[b"key"] = wrong
    store[b"key"] = text
    assert store[b"key"] == b"text\0"


def test_complex_numbers_are_no_addresses(store: kvssd.Store) -> None:
    numpy = pytest.importorskip("numpy")
    for kind in ("complex64", "complex128", "clongdouble"):
        store[b"key"] = numbers = numpy.ones(2, dtype=kind)
        assert store[b"key"] == numbers.tobytes()
