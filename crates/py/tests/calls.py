"""Signals to a call of the package that is under way."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import kvssd

Handler = Callable[[int, Any], object]
_PACKAGE = os.path.dirname(kvssd.__file__)


def is_under_way(thread: int) -> bool:
    """Whether a thread is within a call of the package, and stays there for a while."""
    for _ in range(5):
        frame = sys._current_frames().get(thread)
        if frame is None or os.path.dirname(frame.f_code.co_filename) != _PACKAGE:
            return False
        time.sleep(0.05)
    return True


def wait_for_call(thread: int, is_over: threading.Event | None = None) -> None:
    """Comes back when a thread is within a call of the package, or it is over; half a minute is the most."""
    deadline = time.monotonic() + 30
    is_over = is_over or threading.Event()
    while not is_under_way(thread) and time.monotonic() < deadline:
        if is_over.wait(0.01):
            break


@contextmanager
def interrupted(number: int, handler: Handler) -> Iterator[None]:
    """What waits in the block is sent a signal; the handler that was there before is there again afterwards."""
    main = threading.get_ident()

    def work() -> None:
        wait_for_call(main, is_over)
        if not is_over.is_set():
            os.kill(os.getpid(), number)

    is_over = threading.Event()
    thread = threading.Thread(target=work)
    before = signal.signal(number, handler)
    try:
        thread.start()
        yield
    finally:
        is_over.set()
        try:
            thread.join()
        finally:
            signal.signal(number, before)
