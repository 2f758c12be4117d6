"""The store: the pairs of its own namespace, and all that concerns the whole drive."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, cast

from kvssd._kvssd import Error, InvalidError, OpenError, RawStore, RefusedError
from kvssd.changes import Batch, Isolation, Transaction
from kvssd.namespace import Namespace
from kvssd.numbers import U64_MAX, beyond
from kvssd.results import html_table
from kvssd.stats import NamespaceInfo, Stats


def open(
    drive: str | os.PathLike[str],
    *,
    create: bool | Literal["new"] | None = None,
    create_bytes: int | None = None,
    design: str = "plus",
    value_bytes_max: int | None = None,
    partitions: int = 1,
    preallocate: bool = False,
    sync: bool = False,
    read_only: bool = False,
    cache_bytes: int = 64 << 20,
) -> Store:
    """Open the drive in an image file, or at a URL such as ``nvme+tcp://127.0.0.1:4420/?ns=1``.

    An image that is missing is an ``OpenError``. It is made with ``create=True``, of 1 GiB of flash, or with as many as ``create_bytes`` says;
    ``create="new"`` wants that there is none yet, and ``create=False`` that there is one whatever ``create_bytes`` says. It is made with the
    firmware ``design``, for values of up to 2 MiB or, by choice, ``value_bytes_max`` bytes, 256 MiB at the most. As many
    threads change it side by side as it has ``partitions``, each with its part of the room. What a call has stored outlives the process, and with
    ``sync`` the machine. With ``read_only`` nothing is written, and none is made. ``cache_bytes`` of its pages are kept in memory. Of a drive at
    a URL none of the options but ``read_only`` is chosen here.
    """
    if create is None:
        create = create_bytes is not None
    if create not in (False, True, "new"):
        raise ValueError(f'create is True, False or "new", not {create!r}')
    if create and partitions == 0:
        raise InvalidError("an image has 1 partition at the least")
    if create and value_bytes_max is not None and 0 <= value_bytes_max < 4096:
        raise InvalidError("the largest value of an image has 4096 bytes at the least")
    missing = "create_new" if create == "new" else "create" if create else "fail"
    path = os.fsdecode(drive)
    if not path:
        raise OpenError("a drive is the path of an image or a URL, and this is empty")
    size = 1 << 30 if create_bytes is None else create_bytes
    try:
        raw = RawStore.open(
            path, missing, size, design, value_bytes_max, partitions, preallocate, sync, read_only, cache_bytes
        )
    except OverflowError:
        raise beyond(
            create_bytes=(size, 64 << 20, 8 << 40),
            value_bytes_max=(value_bytes_max, 4096, 256 << 20),
            partitions=(partitions, 1, 64),
            cache_bytes=(cache_bytes, 0, U64_MAX),
        ) from None
    return Store(raw, path)


class Store(Namespace):
    """A store that is open: the pairs of its own namespace, and all that concerns the whole drive. It can be used from any thread.

    What has been stored is safe without ``close``; the next ``open`` is quicker with it.
    """

    def __init__(self, raw: RawStore, drive: str) -> None:
        super().__init__(raw, raw.own_namespace())
        self._drive = drive

    @property
    def drive(self) -> str:
        """The path or URL that was opened."""
        return self._drive

    def __repr__(self) -> str:
        try:
            stats = self.stats()
        except Error as why:
            return f"<kvssd.Store {self._drive}: {why}>"
        full = stats["live_bytes"] / max(1, stats["capacity_bytes"])
        return f"<kvssd.Store {self._drive}: {stats['design']}, {full:.1%} of {stats['capacity_bytes'] >> 20} MiB taken>"

    def _repr_html_(self) -> str:
        try:
            stats = self.stats()
        except Error as why:
            return html_table([["store", self._drive], ["state", str(why)]])
        figures = [(key, value) for key, value in stats.items() if not isinstance(value, dict)]
        return html_table([["store", self._drive], *([key, str(value)] for key, value in figures)])

    def close(self) -> None:
        """End in order. Closing twice is no error; a transaction that is open is."""
        self._raw.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RefusedError as refused:
            # Whoever caught this one would miss what went wrong.
            if error is None:
                raise
            if sys.version_info >= (3, 11):
                error.add_note(f"the store stays open: {refused}")

    def flush(self) -> None:
        """Write out what the write buffer holds. Nothing becomes safer by it."""
        self._raw.flush()

    def stats(self) -> Stats:
        """How full it is, and what it did."""
        return cast(Stats, self._raw.stats())

    def namespaces(self) -> list[NamespaceInfo]:
        """All namespaces, in the order of their numbers."""
        return cast("list[NamespaceInfo]", self._raw.namespaces())

    def namespace(self, name: str | int) -> Namespace:
        """The namespace of that name, or number."""
        return Namespace(self._raw, self._raw.find_namespace(str(name)))

    def create_namespace(
        self,
        name: str | None = None,
        *,
        ordered: bool = False,
        index: str | None = None,
        parameters: Mapping[str, object] | None = None,
        quota_bytes: int | None = None,
        cache: str | None = None,
    ) -> Namespace:
        """Make an empty namespace: with keys in order, an index by name with parameters of its own, a most of flash bytes (0 for no bound).

        With ``cache`` it is never full, since others leave: ``"lru budget=1073741824 asked=2 ttl-ms=3600000"`` (``fifo``, ``lru``, ``s3-fifo``,
        ``ttl``; rules ``asked=``, ``at-most=``, ``a-day=``; all but the policy and the budget may be left out).
        """
        chosen = [(key, _text(value)) for key, value in (parameters or {}).items()]
        try:
            meant = self._raw.create_namespace(name, ordered, index, chosen, (quota_bytes, cache))
        except OverflowError:
            raise InvalidError(f"quota_bytes is a number of bytes from 0 on, not {quota_bytes}") from None
        return Namespace(self._raw, meant)

    def delete_namespace(self, name: str | int) -> None:
        """Delete a namespace with all its pairs. Who has it still gets a ``NamespaceError`` for every call."""
        self._raw.delete_namespace(str(name))

    def batch(self, *, atomic: bool = True) -> Batch:
        """Changes that are made together when the ``with`` block ends, and not at all when it ends with an exception.

        All or none are made, whatever happens in between; the largest is ``stats()["batch_changes_max"]`` changes, and
        ``stats()["batch_bytes_max"]`` bytes, of values of ``stats()["batch_value_bytes_max"]`` each. What is larger can be made with
        ``atomic=False``: quickly, each change by itself and in no order, so that an interrupt or an error leaves any of them made. What must
        not come without another change is to be made when that has returned.
        """
        return Batch(self._raw, self._id, atomic)

    def transaction(self, isolation: Isolation = "locking") -> Transaction:
        """A transaction, which is committed when the ``with`` block ends, and aborted when it ends with an exception.

        ``locking`` waits for others and is aborted by deadlocks; ``optimistic`` waits for nobody and is aborted when what it has read
        was changed, when it reads another key or is committed; ``snapshot`` reads ordered namespaces as they are now, and writes
        nothing. ``AbortedError`` says that nothing is left of it, and that it may be tried again.

        Changes past transactions, by the store's own calls, wait for none of them and are not noticed by optimistic ones. A
        thread must not wait within a transaction for another one of its own.
        """
        return Transaction(self._raw, self._id, isolation)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
