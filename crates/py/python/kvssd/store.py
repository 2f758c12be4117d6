"""The store: mappings of bytes to bytes, batches and transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeVar, cast, overload

from kvssd._kvssd import Error, InvalidError, OpenError, RawStore, to_bytes
from kvssd.numbers import U64_MAX, beyond
from kvssd.results import html_table
from kvssd.stats import NamespaceCacheInfo, NamespaceInfo, Stats

if TYPE_CHECKING:
    from kvssd._kvssd import RawTransaction
    from typing_extensions import Buffer

Default = TypeVar("Default")
Item = TypeVar("Item")
_NO_DEFAULT = object()
# So many keys or changes go to the drive with a call; Python's signals are heeded between two.
_CALL_MANY = 1024
Isolation = Literal["locking", "optimistic", "snapshot"]


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


class Namespace(MutableMapping[bytes, bytes]):
    """The pairs of a namespace. Keys and values are bytes, or any buffer of them; text is encoded by whoever knows how.

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

    def set_cache(self, cache: str | None) -> None:
        """Make it another cache, with the pairs that it has; or a cache, or none any more, while it is empty (see ``create_namespace``)."""
        self._raw.set_cache(self._id, cache)

    def cache_info(self) -> NamespaceCacheInfo | None:
        """What it holds as a cache, and what happened since the drive was opened or the cache was changed; ``None`` if it is none."""
        return cast("NamespaceCacheInfo | None", self._raw.cache_info(self._id))

    def __getitem__(self, key: Buffer) -> bytes:
        value = self._raw.retrieve(self._id, key)
        if value is None:
            raise KeyError(key)
        return value

    @overload
    def get(self, key: Buffer, /) -> bytes | None: ...
    @overload
    def get(self, key: Buffer, /, default: bytes | Default) -> bytes | Default: ...
    def get(self, key: Buffer, /, default: bytes | Default | None = None) -> bytes | Default | None:
        """The value of a key, or the default."""
        value = self._raw.retrieve(self._id, key)
        return default if value is None else value

    def get_many(self, keys: Iterable[Buffer]) -> list[bytes | None]:
        """The values of keys in their order, ``None`` where there is none: a drive on the wire is asked for 1024 at a time."""
        return [value for some in _calls(list(keys)) for value in self._raw.retrieve_many(self._id, some)]

    def get_into(self, key: Buffer, buffer: Buffer) -> int | None:
        """Copy the value of a key into a buffer, as much as fits; give the length of the whole value, ``None`` without one."""
        target = memoryview(buffer).cast("B")
        found = self._raw.retrieve_first(self._id, key, len(target))
        if found is None:
            return None
        first, value_bytes = found
        target[: len(first)] = first
        return value_bytes

    def __setitem__(self, key: Buffer, value: Buffer) -> None:
        self._raw.store(self._id, key, value, False)

    def setdefault(self, key: Buffer, default: Buffer = b"") -> bytes:
        """The value of a key; the default is stored if there is none, and nobody else's value is overwritten."""
        while not self._raw.store(self._id, key, default, True):
            value = self._raw.retrieve(self._id, key)
            # It may have been deleted in between.
            if value is not None:
                return value
        return bytes(default)

    def __delitem__(self, key: Buffer) -> None:
        if not self._raw.delete(self._id, key):
            raise KeyError(key)

    @overload
    def pop(self, key: Buffer, /) -> bytes: ...
    @overload
    def pop(self, key: Buffer, /, default: bytes | Default) -> bytes | Default: ...
    def pop(self, key: Buffer, /, default: object = _NO_DEFAULT) -> object:
        """Remove a key and give its value, else the default: one step for all who use this open store."""
        value = self._raw.pop(self._id, key)
        if value is not None:
            return value
        if default is _NO_DEFAULT:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[bytes, bytes]:
        """Find the key that iteration meets first and ``pop`` it; ``KeyError`` when there is none."""
        while (key := self._raw.first_key(self._id)) is not None:
            value = self.pop(key, None)
            if value is not None:
                return key, value
        raise KeyError("there is no pair")

    def __contains__(self, key: object) -> bool:
        return self._raw.exist(self._id, cast("Buffer", key))

    def __len__(self) -> int:
        return self._raw.count(self._id)

    def __iter__(self) -> Iterator[bytes]:
        cursor = self._raw.keys(self._id, None)
        while keys := cursor.next_keys():
            yield from keys

    def scan(
        self, prefix: Buffer = b"", start: Buffer | None = None, *, stop: Buffer | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs whose keys begin with ``prefix``, from the key ``start`` on, and before the key ``stop``.

        In an ordered namespace only those are looked at, and they are what they were when the first was asked for, whatever is stored
        or deleted meanwhile. The drive keeps them as long as the scan goes on; if stores need that space, the oldest scan ends with
        ``kvssd.RefusedError``. Elsewhere all keys are looked at, and those that change meanwhile may come or not.
        """
        if self.info()["is_ordered"]:
            window = self._raw.range(self._id, prefix, start, stop)
            try:
                while pairs := window.next_pairs():
                    yield from pairs
            finally:
                window.end()
            return
        head, first = to_bytes(prefix), b"" if start is None else to_bytes(start)
        end = None if stop is None else to_bytes(stop)
        yield from self._pairs(lambda key: key.startswith(head) and first <= key and (end is None or key < end))

    def _pairs(self, is_wanted: Callable[[bytes], bool] = lambda key: True) -> Iterator[tuple[bytes, bytes]]:
        """Pairs as iteration meets their keys, but those that are deleted meanwhile: about as many values at a time as make a mebibyte."""
        cursor, many = self._raw.keys(self._id, None), 1
        while page := cursor.next_keys():
            keys = [key for key in page if is_wanted(key)]
            while keys:
                some, keys = keys[:many], keys[many:]
                pairs = [(key, value) for key, value in zip(some, self.get_many(some)) if value is not None]
                is_little = sum(len(value) for _, value in pairs) < 1 << 20
                many = min(2 * many, 256) if is_little else max(many // 2, 1)
                yield from pairs

    def items(self) -> ItemsView[bytes, bytes]:
        """The pairs, as iteration meets their keys."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """The values, as iteration meets their keys."""
        return _Values(self)

    def clear(self) -> None:
        """Delete all pairs, one after the other: those that others store meanwhile may stay."""
        cursor = self._raw.keys(self._id, None)
        while keys := cursor.next_keys():
            self._raw.batch([(self._id, key, None) for key in keys], False)

    def __repr__(self) -> str:
        try:
            info = self.info()
        except Error as why:
            return f"<kvssd.Namespace {self._id}: {why}>"
        name = "" if info["name"] is None else f" {info['name']!r}"
        ordered = ", ordered" if info["is_ordered"] else ""
        return f"<kvssd.Namespace {self._id}{name}: {info['pairs']} pairs, {info['index']}{ordered}>"

    def _repr_html_(self) -> str:
        return html_table([["namespace", str(self._id)], *([key, str(value)] for key, value in self.info().items())])


class _Items(ItemsView[bytes, bytes]):
    """The pairs of a namespace: one whose key is deleted on the way is no error."""

    def __init__(self, pairs: Namespace) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._pairs._pairs()


class _Values(ValuesView[bytes]):
    """The values of a namespace, as those of its pairs."""

    def __init__(self, pairs: Namespace) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def __iter__(self) -> Iterator[bytes]:
        return (value for _, value in self._pairs._pairs())


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
        cache: str | None = None,
    ) -> Namespace:
        """Make an empty namespace: with keys in order, an index by name with parameters of its own, a most of flash bytes (0 for no bound).

        With ``cache`` it is never full, since others leave: ``"lru budget=1073741824 asked=2 ttl-ms=3600000"`` (``fifo``, ``lru``, ``s3-fifo``,
        ``ttl``; rules ``asked=``, ``at-most=``, ``a-day=``; all but the policy and the budget may be left out).
        """
        chosen = [(key, _text(value)) for key, value in (parameters or {}).items()]
        try:
            number = self._raw.create_namespace(name, ordered, index, chosen, (quota_bytes, cache))
        except OverflowError:
            raise InvalidError(f"quota_bytes is a number of bytes from 0 on, not {quota_bytes}") from None
        return Namespace(self._raw, number)

    def delete_namespace(self, name: str | int) -> None:
        """Delete a namespace with all its pairs."""
        self._raw.delete_namespace(str(name))

    def batch(self, *, atomic: bool = True) -> Batch:
        """Changes that are made together when the ``with`` block ends, and not at all when it ends with an exception.

        All or none are made, whatever happens in between; the largest is ``stats()["batch_changes_max"]`` changes, and
        ``stats()["batch_bytes_max"]`` bytes, of values of ``stats()["batch_value_bytes_max"]`` each. What is larger can be made with
        ``atomic=False``: quickly, one after the other, so that an interrupt or an error leaves the first of them made.
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
    """Changes that are gathered: copies of keys and values as they are then. Of several changes of one key the last counts."""

    def __init__(self, raw: RawStore, namespace: int, atomic: bool) -> None:
        self._raw = raw
        self._namespace = namespace
        self._atomic = atomic
        self._changes: list[tuple[int, bytes, bytes | None]] = []

    def __enter__(self) -> Batch:
        # A store that is closed, or another process's, says so before changes are gathered for it.
        self._raw.own_namespace()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            changes, self._changes = self._changes, []
            for some in [changes] if self._atomic else _calls(changes):
                self._raw.batch(some, self._atomic)

    def __len__(self) -> int:
        return len(self._changes)

    def __setitem__(self, key: Buffer, value: Buffer) -> None:
        self.store(key, value)

    def __delitem__(self, key: Buffer) -> None:
        self.delete(key)

    def store(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Add a store, in the store's own namespace or another one."""
        self._changes.append((_id(namespace, self._namespace), to_bytes(key), to_bytes(value)))

    def delete(self, key: Buffer, namespace: Namespace | None = None) -> None:
        """Add a delete. That the key is not there is no error."""
        self._changes.append((_id(namespace, self._namespace), to_bytes(key), None))


class Transaction:
    """A transaction. It begins with the ``with`` block, and reads what it has written."""

    def __init__(self, raw: RawStore, namespace: int, isolation: Isolation) -> None:
        self._raw = raw
        self._namespace = namespace
        self._isolation = isolation
        self._open: RawTransaction | None = None

    def __enter__(self) -> Transaction:
        if self._open is not None:
            raise RuntimeError("the transaction has begun already: begin another one")
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

    def __getitem__(self, key: Buffer) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Buffer, value: Buffer) -> None:
        self.store(key, value)

    def __delitem__(self, key: Buffer) -> None:
        self.delete(key)

    def __contains__(self, key: Buffer) -> bool:
        return self.get(key) is not None

    def get(self, key: Buffer, namespace: Namespace | None = None, *, for_update: bool = False) -> bytes | None:
        """The value of a key, if there is one. ``for_update`` says that it will be written, which spares a deadlock."""
        return self._begun.read(_id(namespace, self._namespace), key, for_update)

    def store(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Give a key a value, whether or not it is there."""
        self._begun.write(_id(namespace, self._namespace), key, value)

    def insert(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Give a key that is not there a value; ``KeyError`` when it is."""
        self._begun.insert(_id(namespace, self._namespace), key, value)

    def update(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Give a key that is there a new value; ``KeyError`` when it is not."""
        self._begun.update(_id(namespace, self._namespace), key, value)

    def delete(self, key: Buffer, namespace: Namespace | None = None) -> None:
        """Remove a key, if it is there."""
        self._begun.delete(_id(namespace, self._namespace), key)

    @property
    def _begun(self) -> RawTransaction:
        if self._open is None:
            raise RuntimeError("a transaction begins with its `with` block, and ends with it")
        return self._open


def _id(namespace: Namespace | None, own: int) -> int:
    return own if namespace is None else checked(namespace).id


def checked(namespace: Namespace) -> Namespace:
    """A namespace, if it is one and not its name."""
    if not isinstance(namespace, Namespace):
        raise TypeError(f"a namespace is what store.namespace(name) gives, not {namespace!r}")
    return namespace


def _calls(many: list[Item]) -> Iterator[list[Item]]:
    return (many[begin : begin + _CALL_MANY] for begin in range(0, max(len(many), 1), _CALL_MANY))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
