"""A namespace: a mapping of bytes to bytes."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from typing import TYPE_CHECKING, TypeVar, cast, overload

from kvssd._kvssd import Error, RawStore, to_bytes
from kvssd.results import html_table
from kvssd.stats import NamespaceCacheInfo, NamespaceInfo

if TYPE_CHECKING:
    from typing_extensions import Buffer

Default = TypeVar("Default")
Item = TypeVar("Item")
_NO_DEFAULT = object()
# So many keys or changes go to the drive with a call; Python's signals are heeded between two.
_CALL_MANY = 1024


# The number of a namespace, and which life of that number is meant: another one may get the number when this one is deleted.
Meant = tuple[int, int]


class Namespace(MutableMapping[bytes, bytes]):
    """The pairs of a namespace. Keys and values are bytes, or any buffer of them; text is encoded by whoever knows how.

    Iteration goes in the order of the namespace's index: that of the keys where the namespace is ordered. A key that is there all the
    time is met once; one that comes or goes meanwhile may be met or not.
    """

    def __init__(self, raw: RawStore, meant: Meant) -> None:
        self._raw = raw
        self._id = meant

    @property
    def id(self) -> int:
        """Its number."""
        return self._id[0]

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
        return [value for some in calls(list(keys)) for value in self._raw.retrieve_many(self._id, some)]

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
            return f"<kvssd.Namespace {self.id}: {why}>"
        name = "" if info["name"] is None else f" {info['name']!r}"
        ordered = ", ordered" if info["is_ordered"] else ""
        return f"<kvssd.Namespace {self.id}{name}: {info['pairs']} pairs, {info['index']}{ordered}>"

    def _repr_html_(self) -> str:
        return html_table([["namespace", str(self.id)], *([key, str(value)] for key, value in self.info().items())])


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


def checked(namespace: Namespace) -> Namespace:
    """A namespace, if it is one and not its name."""
    if not isinstance(namespace, Namespace):
        raise TypeError(f"a namespace is what store.namespace(name) gives, not {namespace!r}")
    return namespace


def calls(many: list[Item]) -> Iterator[list[Item]]:
    return (many[begin : begin + _CALL_MANY] for begin in range(0, max(len(many), 1), _CALL_MANY))
