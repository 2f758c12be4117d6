"""A cache on a drive that may go away: then everything is a miss, until it is there again."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvssd._kvssd import (
    DamagedError,
    Error,
    FailedError,
    FullError,
    InvalidError,
    NamespaceError,
    OpenError,
    ReadOnlyError,
    RefusedError,
)
from kvssd.cache import Cache, Eviction
from kvssd.store import Store, open

if TYPE_CHECKING:
    from typing_extensions import Buffer

_LOG = logging.getLogger("kvssd")
_SCHEME = "nvme+tcp://"

# A cache that has one wait for a drive is worse than a miss; the client alone would wait half a minute.
_TIMEOUT_SECONDS = 2
_RETRY_SECONDS = 5.0

# Garbage collection needs room: a drive that is full to the last block writes each byte several times.
_DRIVE_SHARE = 0.9

# What an image is made for. Values of a large language model have tens of MiB.
_VALUE_BYTES_MAX = 256 << 20

# Keys that were put or deleted while the drive was lost: what it has of them is old. Beyond so many all pairs count as old.
_DOUBTFUL_MAX = 1 << 20

# What one pair is refused with; the drive goes on. Where an old value is damaged, a new one may not find its place.
_REFUSALS = (DamagedError, FullError, InvalidError, ReadOnlyError, RefusedError)


class DriveCache:
    """The pairs of a drive, an image or a URL, as a cache that never raises once it is made. It can be used from any thread.

    ``budget_bytes`` is nine tenths of the drive unless it says another. An image that is not there is made with ``create_bytes`` of flash.
    A drive that fails or is not reached is opened again every five seconds, in a thread of its own; a URL that is not reached at first, too.
    Whoever cannot be opened for another reason raises :class:`kvssd.Error` at once. When the namespace is deleted, whoever has its number then gets
    nothing: everything stays a miss, and the log says so.

    What was put or deleted while the drive was lost, or was under way then, or may not be changed by this host any more, is a miss until it is put
    again: an older value never comes back. Only this object knows of it: a program that ends before the drive is back leaves old values on it. Of
    more than a million such keys it remembers none, and begins with an empty cache.
    """

    def __init__(
        self,
        drive: str,
        *,
        budget_bytes: int | None = None,
        create_bytes: int | None = None,
        eviction: Eviction = "s3-fifo",
        admit: Iterable[str] = (),
    ) -> None:
        self._drive = _with_timeout(drive)
        self._budget_bytes = budget_bytes
        self._create_bytes = create_bytes
        self._eviction = eviction
        self._admit = [admit] if isinstance(admit, str) else list(admit)
        self._lock = threading.Lock()
        self._opened: tuple[Store, Cache] | None = None
        self._retry_at = 0.0
        self._opening: threading.Thread | None = None
        self._is_closed = False
        self._namespace: tuple[str | None, int] | None = None
        self._doubtful: set[bytes] = set()
        self._are_all_old = False
        try:
            self._opened = self._open()
        except (OpenError, FailedError) as error:
            if not drive.startswith(_SCHEME):
                raise
            _LOG.warning("%s: %s; everything is a miss until it is reached", drive, error)

    def get(self, key: Buffer) -> bytes | None:
        """The value of a key; ``None`` where it is not in, or the drive is lost."""
        opened = self._current()
        if opened is None or self._is_old(key):
            return None
        cache = opened[1]
        try:
            return cache.get(key)
        except DamagedError as error:
            _LOG.warning("%s: a pair is lost: %s", self._drive, error)
            self.delete(key)
        except _REFUSALS as error:
            _LOG.warning("%s: a pair cannot be read: %s", self._drive, error)
        except Error as error:
            self._lose(opened, error)
        return None

    def put(self, key: Buffer, value: Buffer) -> bool:
        """Store a pair. ``False`` where it is kept out or refused, or the drive is lost: what was there before is gone then, too."""
        opened = self._current()
        if opened is None:
            self._doubt(key)
            return False
        try:
            is_in = opened[1].put(key, value)
            if self._doubtful:
                self._doubtful.discard(_bytes_of(key))
            return is_in
        except _REFUSALS as error:
            _LOG.warning("%s: a pair stays out: %s", self._drive, error)
            # What was there before is old.
            self.delete(key)
        except Error as error:
            self._lose(opened, error)
            self._doubt(key)
        return False

    def __contains__(self, key: Buffer) -> bool:
        """Whether a key is in, as far as memory knows; it asks no drive."""
        opened = self._current()
        try:
            return opened is not None and not self._is_old(key) and key in opened[1]
        except Error:
            return False

    def delete(self, key: Buffer) -> bool:
        """Delete a pair. Gives whether it was in; ``False`` while the drive is lost, and it is a miss when that is back."""
        opened = self._current()
        if opened is None:
            self._doubt(key)
            return False
        try:
            return opened[1].delete(key)
        except InvalidError as error:
            # No pair has such a key.
            _LOG.warning("%s: a pair cannot be deleted: %s", self._drive, error)
        except _REFUSALS as error:
            _LOG.warning("%s: a pair cannot be deleted, and is a miss: %s", self._drive, error)
            self._keep_out(opened, key, error)
        except Error as error:
            self._lose(opened, error)
            self._doubt(key)
        return False

    def _keep_out(self, opened: tuple[Store, Cache], key: Buffer, error: Error) -> None:
        """What the drive keeps of a key is old: this host may only read by now, say."""
        with self._lock:
            self._doubtful.add(_bytes_of(key))
            are_too_many = len(self._doubtful) > _DOUBTFUL_MAX
        if are_too_many:
            self._lose(opened, error)
            self._doubt(key)

    def _is_old(self, key: Buffer) -> bool:
        return bool(self._doubtful) and _bytes_of(key) in self._doubtful

    def _doubt(self, key: Buffer) -> None:
        """What the drive has of a key is old, until it is deleted or another value is there."""
        old = _bytes_of(key)
        with self._lock:
            self._doubtful.add(old)
            opened = self._opened
            if opened is None and len(self._doubtful) > _DOUBTFUL_MAX:
                self._doubtful.clear()
                self._are_all_old = True
        if opened is not None:
            # It was opened again meanwhile.
            self._settle(opened, [old])

    @property
    def cache(self) -> Cache | None:
        """The cache as it is now; ``None`` while the drive is lost."""
        opened = self._current()
        return opened[1] if opened else None

    def close(self) -> None:
        """End in order; what is called later is a miss. Closing twice is no error."""
        with self._lock:
            self._is_closed = True
            opening = self._opening
        if opening is not None:
            opening.join()
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            _close(opened[0])

    def _open(self) -> tuple[Store, Cache]:
        if self._create_bytes is None or self._drive.startswith(_SCHEME):
            store = open(self._drive)
        else:
            store = open(self._drive, create_bytes=self._create_bytes, value_bytes_max=_VALUE_BYTES_MAX)
        try:
            info = store.info()
            self._keep_to((info["name"], info["birth"]))
            budget_bytes = self._budget_bytes
            if budget_bytes is None:
                budget_bytes = int(store.stats()["capacity_bytes"] * _DRIVE_SHARE)
            return store, Cache(store, budget_bytes, eviction=self._eviction, admit=self._admit)
        except Error:
            _close(store)
            raise

    def _keep_to(self, found: tuple[str | None, int]) -> None:
        if self._namespace is None:
            self._namespace = found
        elif self._namespace != found:
            raise NamespaceError(f"the namespace {self._namespace[0]!r} was deleted, and {found[0]!r} has its number")

    def _current(self) -> tuple[Store, Cache] | None:
        opened = self._opened
        if opened is None and not self._is_closed and time.monotonic() >= self._retry_at:
            with self._lock:
                if self._opened is None and self._opening is None and not self._is_closed:
                    opening = threading.Thread(target=self._open_again, name="kvssd-open", daemon=True)
                    try:
                        opening.start()
                        self._opening = opening
                    except RuntimeError as error:
                        # The system has no more threads, or the interpreter ends.
                        self._retry_at = time.monotonic() + _RETRY_SECONDS
                        _LOG.warning("%s: it cannot be opened again yet: %s", self._drive, error)
        return opened

    def _lose(self, lost: tuple[Store, Cache], error: Error) -> None:
        with self._lock:
            if self._opened is not lost:
                # Others have noticed.
                return
            self._opened = None
            self._retry_at = time.monotonic() + _RETRY_SECONDS
        if isinstance(error, NamespaceError):
            self._give_up(error)
        else:
            _LOG.warning("%s: %s; everything is a miss until it is opened again", self._drive, error)
        # An image is let go before it is opened again; this may wait for calls of other threads.
        try:
            threading.Thread(target=_close, args=(lost[0],), name="kvssd-close", daemon=True).start()
        except RuntimeError:
            _close(lost[0])

    def _open_again(self) -> None:
        try:
            opened = self._open()
            is_empty, old = False, list[bytes]()
            while self._opened is None:
                if self._are_all_old and not is_empty:
                    _empty(opened)
                    is_empty = True
                with self._lock:
                    # They may have become so many just now.
                    if is_empty or not self._are_all_old:
                        self._opened, self._are_all_old = opened, False
                        old = list(self._doubtful)
            _LOG.warning("%s: it is open again, with %d pairs", self._drive, len(opened[1]))
            self._settle(opened, old)
        except NamespaceError as error:
            self._give_up(error)
        except Error as error:
            # A drive that is away may come back; one that refuses waits for somebody to do something.
            _LOG.log(logging.WARNING if isinstance(error, RefusedError) else logging.INFO, "%s: %s", self._drive, error)
        finally:
            with self._lock:
                self._opening = None
                self._retry_at = max(self._retry_at, time.monotonic() + _RETRY_SECONDS)

    def _settle(self, opened: tuple[Store, Cache], old: list[bytes]) -> None:
        """Delete what the drive has of these keys, but of those that were put meanwhile."""
        for key in old:
            if key not in self._doubtful:
                continue
            try:
                opened[1].delete(key)
                self._doubtful.discard(key)
            except _REFUSALS as error:
                _LOG.warning("%s: a pair cannot be deleted, and is a miss: %s", self._drive, error)
            except Error as error:
                self._lose(opened, error)
                return

    def _give_up(self, error: Error) -> None:
        """The namespace is gone for good: another one with its number is not this cache's."""
        with self._lock:
            self._retry_at = math.inf
        _LOG.error("%s: %s; everything is a miss from here on: name a namespace that is there, and start again", self._drive, error)


def _empty(opened: tuple[Store, Cache]) -> None:
    try:
        for key in list(opened[0]):
            opened[1].delete(key)
    except Error:
        _close(opened[0])
        raise


def _bytes_of(key: Buffer) -> bytes:
    # A number is no key; bytes() would take it for a length.
    return bytes(memoryview(key))


def _close(store: Store) -> None:
    try:
        store.close()
    except Error as error:
        # What was stored is stored; the drive is gone, or in doubt.
        _LOG.info("close: %s", error)


def _with_timeout(drive: str) -> str:
    query = drive.partition("?")[2]
    # A name of a host or a file may have the word, too.
    if not drive.startswith(_SCHEME) or any(part.startswith("timeout=") for part in query.split("&")):
        return drive
    return f"{drive}{'&' if '?' in drive else '?'}timeout={_TIMEOUT_SECONDS}"
