"""Changes that are made together: batches and transactions."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Literal

from kvssd._kvssd import RawStore, to_bytes
from kvssd.namespace import Meant, Namespace, calls, checked

if TYPE_CHECKING:
    from kvssd._kvssd import RawTransaction
    from typing_extensions import Buffer

Isolation = Literal["locking", "optimistic", "snapshot"]


class Batch:
    """Changes that are gathered: copies of keys and values as they are then. Of several changes of one key the last counts."""

    def __init__(self, raw: RawStore, own: Meant, atomic: bool) -> None:
        self._raw = raw
        self._own = own
        self._atomic = atomic
        self._changes: list[tuple[Meant, bytes, bytes | None]] = []

    def __enter__(self) -> Batch:
        # A store that is closed, or another process's, says so before changes are gathered for it.
        self._raw.own_namespace()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            changes, self._changes = self._changes, []
            for some in [changes] if self._atomic else calls(changes):
                self._raw.batch(some, self._atomic)

    def __len__(self) -> int:
        return len(self._changes)

    def __setitem__(self, key: Buffer, value: Buffer) -> None:
        self.store(key, value)

    def __delitem__(self, key: Buffer) -> None:
        self.delete(key)

    def store(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Add a store, in the store's own namespace or another one."""
        self._changes.append((self._meant(namespace), to_bytes(key), to_bytes(value)))

    def delete(self, key: Buffer, namespace: Namespace | None = None) -> None:
        """Add a delete. That the key is not there is no error."""
        self._changes.append((self._meant(namespace), to_bytes(key), None))

    def _meant(self, namespace: Namespace | None) -> Meant:
        if namespace is None:
            return self._own
        # One that is gone says so before more is gathered for it.
        self._raw.check(checked(namespace)._id)
        return namespace._id


class Transaction:
    """A transaction. It begins with the ``with`` block, and reads what it has written."""

    def __init__(self, raw: RawStore, own: Meant, isolation: Isolation) -> None:
        self._raw = raw
        self._own = own
        self._isolation = isolation
        self._seen: set[Meant] = set()
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
        seen, self._seen = self._seen, set()
        if kind is None:
            begun.commit(list(seen))
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
        return self._begun.read(self._meant(namespace), key, for_update)

    def store(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Give a key a value, whether or not it is there."""
        self._begun.write(self._meant(namespace), key, value)

    def insert(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Give a key that is not there a value; ``KeyError`` when it is."""
        self._begun.insert(self._meant(namespace), key, value)

    def update(self, key: Buffer, value: Buffer, namespace: Namespace | None = None) -> None:
        """Give a key that is there a new value; ``KeyError`` when it is not."""
        self._begun.update(self._meant(namespace), key, value)

    def delete(self, key: Buffer, namespace: Namespace | None = None) -> None:
        """Remove a key, if it is there."""
        self._begun.delete(self._meant(namespace), key)

    @property
    def _begun(self) -> RawTransaction:
        if self._open is None:
            raise RuntimeError("a transaction begins with its `with` block, and ends with it")
        return self._open

    def _meant(self, namespace: Namespace | None) -> Meant:
        meant = self._own if namespace is None else checked(namespace)._id
        self._seen.add(meant)
        return meant
