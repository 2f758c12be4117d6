"""Threads and handlers of signals that use one store."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import kvssd
import pytest


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

    before = signal.signal(signal.SIGUSR1, handler)
    with second:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert second.get(b"key", for_update=True) == b"value"
    signal.signal(signal.SIGUSR1, before)
