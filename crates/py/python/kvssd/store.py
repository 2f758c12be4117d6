"""The store: mappings of bytes to bytes, batches and transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Optional, TypedDict, TypeVar, Union, cast, overload

from kvssd._kvssd import RawStore

if TYPE_CHECKING:
    from kvssd._kvssd import RawTransaction

Bytes = Union[bytes, bytearray]
Default = TypeVar("Default")
Isolation = Literal["locking", "optimistic", "snapshot"]


class NamespaceInfo(TypedDict):
    """What was chosen of a namespace, and how full it is."""

    id: int
    name: Optional[str]
    index: str
    is_ordered: bool
    quota_bytes: Optional[int]
    pairs: int
    pair_bytes: int
    live_bytes: int
    capacity_bytes: int


class FirmwareStats(TypedDict):
    """What the firmware did since the drive was opened, and its wear."""

    pairs: int
    pair_bytes: int
    flash_bytes: int
    dram_bytes: int
    dram_bytes_max: int
    page_bytes: int
    pages_read: int
    pages_programmed: int
    pairs_moved: int
    erases: int
    blocks: int
    erases_max: int


class TrafficStats(TypedDict):
    """What all hosts did since a drive on the wire is served."""

    changes: int
    lookups: int
    stored_bytes: int
    retrieved_bytes: int
    processor_ns: Optional[int]


class Stats(TypedDict):
    """How full a store is, with all its namespaces. Of an image there is no ``traffic``, of other makers' drives no ``firmware``."""

    design: str
    live_bytes: int
    capacity_bytes: int
    value_bytes_max: int
    batch_bytes_max: int
    batch_changes_max: int
    write_amplification: Optional[float]
    firmware: Optional[FirmwareStats]
    traffic: Optional[TrafficStats]


def open(
    drive: str | os.PathLike[str],
    *,
    missing: Literal["create", "fail", "create_new"] | None = None,
    create_bytes: int | None = None,
    design: str = "plus",
    value_bytes_max: int | None = None,
    preallocate: bool = False,
    sync: bool = False,
    read_only: bool = False,
    cache_bytes: int = 64 << 20,
) -> Store:
    """Open the drive in an image file, or at a URL such as ``nvme+tcp://127.0.0.1:4420/nqn?ns=1``.

    An image that is missing is an ``OpenError``, unless it is asked for: with ``create_bytes`` of flash, or ``missing="create"`` for
    1 GiB (``"create_new"``: and it must not be there). It is made with the firmware ``design``, for values of up to 2 MiB or, by choice,
    ``value_bytes_max`` bytes, 256 MiB at the most. What a call has stored outlives the process, and with ``sync`` the machine. ``cache_bytes`` of
    its pages are kept in memory. Of a drive at a URL none of the options but ``read_only`` is chosen here.
    """
    if missing is None:
        missing = "fail" if create_bytes is None else "create"
    if create_bytes is None:
        create_bytes = 1 << 30
    path = os.fspath(drive)
    return Store(RawStore.open(path, missing, create_bytes, design, value_bytes_max, preallocate, sync, read_only, cache_bytes))


class Namespace(MutableMapping[bytes, bytes]):
    """The pairs of a namespace. Keys and values are bytes or bytearrays; text is encoded by whoever knows how.

    Iteration goes in the order of the namespace's index: that of the keys where the namespace is ordered. A key that is there all the
    time is met once; one that comes or goes meanwhile may be met or not.
    """

    def __init__(self, raw: RawStore, id: int) -> None:
        self._raw = raw
        self._id = id

    @property
    def id(self) -> int:
        """Its number."""
        return self._id

    def info(self) -> NamespaceInfo:
        """What was chosen of it, and how full it is."""
        return cast(NamespaceInfo, self._raw.namespace_info(self._id))

    def __getitem__(self, key: Bytes) -> bytes:
        value = self._raw.retrieve(self._id, key)
        if value is None:
            raise KeyError(key)
        return value

    @overload
    def get(self, key: Bytes, /) -> bytes | None: ...
    @overload
    def get(self, key: Bytes, /, default: bytes | Default) -> bytes | Default: ...
    def get(self, key: Bytes, /, default: bytes | Default | None = None) -> bytes | Default | None:
        """The value of a key, or the default."""
        value = self._raw.retrieve(self._id, key)
        return default if value is None else value

    def __setitem__(self, key: Bytes, value: Bytes) -> None:
        self._raw.store(self._id, key, value, False)

    def setdefault(self, key: Bytes, default: Bytes = b"") -> bytes:
        """The value of a key; the default is stored if there is none, and nobody else's value is overwritten."""
        while not self._raw.store(self._id, key, default, True):
            value = self._raw.retrieve(self._id, key)
            # It may have been deleted in between.
            if value is not None:
                return value
        return bytes(default)

    def __delitem__(self, key: Bytes) -> None:
        if not self._raw.delete(self._id, key):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, (bytes, bytearray)):
            raise TypeError(f"a key is bytes, not {type(key).__name__}")
        return self._raw.exist(self._id, key)

    def __len__(self) -> int:
        return self._raw.count(self._id)

    def __iter__(self) -> Iterator[bytes]:
        cursor = self._raw.keys(self._id, None)
        while keys := cursor.next_keys():
            yield from keys

    def scan(self, prefix: Bytes = b"", start: Bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Pairs whose keys begin with ``prefix``, from the key ``start`` on, or the next one when that is not there.

        In an ordered namespace only those are looked at; elsewhere all keys are, since they lie in no order.
        """
        is_ordered = self.info()["is_ordered"]
        if start is None and is_ordered and prefix:
            start = prefix
        cursor = self._raw.keys(self._id, start)
        more = True
        while more:
            pairs, more = cursor.next_pairs(prefix, is_ordered)
            yield from pairs


class Store(Namespace):
    """A store that is open: the pairs of its own namespace, and all that concerns the whole drive. It can be used from any thread.

    What has been stored is safe without ``close``; the next ``open`` is quicker with it.
    """

    def __init__(self, raw: RawStore) -> None:
        super().__init__(raw, raw.own_namespace())

    def close(self) -> None:
        """End in order. Closing twice is no error; a transaction that is open is."""
        self._raw.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
    ) -> Namespace:
        """Make an empty namespace: with keys in order, an index by name with parameters of its own, a most of flash bytes."""
        chosen = [(key, _text(value)) for key, value in (parameters or {}).items()]
        return Namespace(self._raw, self._raw.create_namespace(name, ordered, index, chosen, quota_bytes))

    def delete_namespace(self, name: str | int) -> None:
        """Delete a namespace with all its pairs."""
        self._raw.delete_namespace(str(name))

    def batch(self, *, atomic: bool = True) -> Batch:
        """Changes that are made together when the ``with`` block ends, and not at all when it ends with an exception.

        All or none are made, whatever happens in between; the largest is ``stats()["batch_changes_max"]`` changes, and
        ``stats()["batch_bytes_max"]`` bytes. What is larger can be made with ``atomic=False``: quickly, one after the other.
        """
        return Batch(self._raw, self._id, atomic)

    def transaction(self, isolation: Isolation = "locking") -> Transaction:
        """A transaction, which is committed when the ``with`` block ends, and aborted when it ends with an exception.

        ``locking`` waits for others and is aborted by deadlocks; ``optimistic`` waits for nobody and is aborted when what it has read
        was changed; ``snapshot`` reads ordered namespaces as they are now, and writes nothing. ``AbortedError`` says that
        nothing is left of it, and that it may be tried again.

        Changes past transactions, by the store's own calls, wait for none of them and are not noticed by optimistic ones. A
        thread must not wait within a transaction for another one of its own.
        """
        return Transaction(self._raw, self._id, isolation)


class Batch:
    """Changes that are gathered. Of several changes of one key the last counts."""

    def __init__(self, raw: RawStore, namespace: int, atomic: bool) -> None:
        self._raw = raw
        self._namespace = namespace
        self._atomic = atomic
        self._changes: list[tuple[int, Bytes, Bytes | None]] = []

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            changes, self._changes = self._changes, []
            self._raw.batch(changes, self._atomic)

    def __len__(self) -> int:
        return len(self._changes)

    def __setitem__(self, key: Bytes, value: Bytes) -> None:
        self.store(key, value)

    def __delitem__(self, key: Bytes) -> None:
        self.delete(key)

    def store(self, key: Bytes, value: Bytes, namespace: Namespace | None = None) -> None:
        """Add a store, in the store's own namespace or another one."""
        self._changes.append((_id(namespace, self._namespace), key, value))

    def delete(self, key: Bytes, namespace: Namespace | None = None) -> None:
        """Add a delete. That the key is not there is no error."""
        self._changes.append((_id(namespace, self._namespace), key, None))


class Transaction:
    """A transaction. It begins with the ``with`` block, and reads what it has written."""

    def __init__(self, raw: RawStore, namespace: int, isolation: Isolation) -> None:
        self._raw = raw
        self._namespace = namespace
        self._isolation = isolation
        self._open: RawTransaction | None = None

    def __enter__(self) -> Transaction:
        self._open = self._raw.begin(self._isolation)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        begun, self._open = self._begun, None
        if kind is None:
            begun.commit()
        else:
            begun.abort()

    def __getitem__(self, key: Bytes) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Bytes, value: Bytes) -> None:
        self.store(key, value)

    def __delitem__(self, key: Bytes) -> None:
        self.delete(key)

    def __contains__(self, key: Bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: Bytes, namespace: Namespace | None = None, *, for_update: bool = False) -> bytes | None:
        """The value of a key, if there is one. ``for_update`` says that it will be written, which spares a deadlock."""
        return self._begun.read(_id(namespace, self._namespace), key, for_update)

    def store(self, key: Bytes, value: Bytes, namespace: Namespace | None = None) -> None:
        """Give a key a value, whether or not it is there."""
        self._begun.write(_id(namespace, self._namespace), key, value)

    def insert(self, key: Bytes, value: Bytes, namespace: Namespace | None = None) -> None:
        """Give a key that is not there a value; ``KeyError`` when it is."""
        self._begun.insert(_id(namespace, self._namespace), key, value)

    def update(self, key: Bytes, value: Bytes, namespace: Namespace | None = None) -> None:
        """Give a key that is there a new value; ``KeyError`` when it is not."""
        self._begun.update(_id(namespace, self._namespace), key, value)

    def delete(self, key: Bytes, namespace: Namespace | None = None) -> None:
        """Remove a key, if it is there."""
        self._begun.delete(_id(namespace, self._namespace), key)

    @property
    def _begun(self) -> RawTransaction:
        if self._open is None:
            raise RuntimeError("a transaction begins with its `with` block, and ends with it")
        return self._open


def _id(namespace: Namespace | None, own: int) -> int:
    return own if namespace is None else namespace.id


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
