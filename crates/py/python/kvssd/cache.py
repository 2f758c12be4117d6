"""A namespace as a cache, which is never full."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypedDict, cast

from kvssd._kvssd import Error, InvalidError, RawCache
from kvssd.namespace import Namespace, checked

if TYPE_CHECKING:
    from typing_extensions import Buffer

Eviction = Literal["fifo", "lru", "s3-fifo"]


class CacheStats(TypedDict):
    """What a cache holds, and what happened since it was opened."""

    pairs: int
    held_bytes: int
    budget_bytes: int
    hits: int
    misses: int
    admitted: int
    kept_out: int
    evicted: int


class Cache:
    """The pairs of a namespace as a cache of at most ``budget_bytes`` of keys and values. It can be used from any thread.

    Nothing is refused for want of room: who leaves is said by ``eviction``, who comes in by ``admit``: a rule or several, such as ``"asked=2"`` (at
    the second offer), ``"at-most=1048576"`` (bytes) and ``"a-day=100000000000"`` (bytes written), which must all agree. ``kvssd replay --cache``
    shows what they do to a trace and to the life of a drive. Pairs outlive the process; who was asked for does not.

    Of an open store a namespace has one at a time: another one is a ``RefusedError`` until the first is closed, or nothing refers to it any more. So
    is one in a namespace that the drive itself keeps as a cache.
    """

    def __init__(
        self, namespace: Namespace, budget_bytes: int, *, eviction: Eviction = "s3-fifo", admit: Iterable[str] = ()
    ) -> None:
        raw, rules = checked(namespace)._raw, [admit] if isinstance(admit, str) else list(admit)
        try:
            self._raw = RawCache.open(raw, namespace._id, budget_bytes, eviction, rules)
        except OverflowError:
            raise InvalidError(f"budget_bytes is a number of bytes from 0 on, not {budget_bytes}") from None

    def close(self) -> None:
        """Let another one into the namespace; pairs stay. Closing twice is no error."""
        self._raw.close()

    def __enter__(self) -> Cache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: Buffer) -> bytes | None:
        """The value of a key, ``None`` where it is not in."""
        return self._raw.retrieve(key)

    def put(self, key: Buffer, value: Buffer) -> bool:
        """Store a pair, and let others go for it. ``False`` when it is kept out: what was there before is gone then, too."""
        return self._raw.store(key, value)

    def __contains__(self, key: Buffer) -> bool:
        """Whether a key is in, and not about to be stored. It asks no drive, and is no hit."""
        return self._raw.contains(key)

    def delete(self, key: Buffer) -> bool:
        """Delete a pair. Gives whether it was in."""
        return self._raw.delete(key)

    def __len__(self) -> int:
        return self.stats()["pairs"]

    def stats(self) -> CacheStats:
        """What it holds, and what happened."""
        return cast(CacheStats, self._raw.stats())

    def __repr__(self) -> str:
        try:
            stats = self.stats()
        except Error as why:
            return f"<kvssd.Cache: {why}>"
        full = stats["held_bytes"] / max(1, stats["budget_bytes"])
        return f"<kvssd.Cache: {stats['pairs']} pairs, {full:.1%} of {stats['budget_bytes'] >> 20} MiB taken>"
