"""An LMCache storage plugin: a key-value drive under the key-value cache of a large language model.

    chunk_size: 256
    max_local_cpu_size: 5
    storage_plugins: ["kvssd"]
    extra_config:
      storage_plugin.kvssd.module_path: kvssd.lmcache
      storage_plugin.kvssd.class_name: KvssdBackend
      kvssd.drive: drive.kv                     # or nvme+tcp://127.0.0.1:4420/?ns=1

It needs ``pip install kvssd[lmcache]``. A chunk is one record: what it is, then its bytes.

    key of the drive   16 bytes: BLAKE2b of the chunk's whole key, so that an image can be served as it is
    record             b"KVL1" | length of the description, u32 | description, JSON | bytes of the tensor
    description        the chunk's whole key, compared at each load; shapes, dtypes, format, positions
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from kvssd.drive_cache import DriveCache
from lmcache.logging import init_logger
from lmcache.utils import STR_DTYPE_TO_TORCH_DTYPE, TORCH_DTYPE_TO_STR_DTYPE, CacheEngineKey
from lmcache.v1.memory_management import MemoryFormat, MemoryObj
from lmcache.v1.storage_backend.abstract_backend import StoragePluginInterface

_LOG = init_logger(__name__)
_MAGIC = b"KVL1"
_HEAD = struct.Struct("<4sI")
_THREADS = 4
_OPTIONS = ("drive", "budget_gib", "create_gib", "eviction", "admit")
_PREFIX = "kvssd."

Stored = Callable[[CacheEngineKey], None]


class KvssdBackend(StoragePluginInterface):  # type: ignore[misc]
    """Chunks on a key-value drive: an image, or a URL. The drive never is full (``kvssd.Cache``), and one that fails or is not reached is a
    miss, not an exception. What was stored outlives the engine.

    ``kvssd.drive`` is a path or a URL; a list has one for each worker of tensor parallelism. ``kvssd.create_gib`` makes an image that is
    missing; ``kvssd.budget_gib``, ``kvssd.eviction`` (``"lru"`` unless it says another) and ``kvssd.admit`` are those of ``kvssd.Cache``.

    A pin keeps no chunk in: one that leaves between a lookup and its load is a miss.
    """

    def __init__(
        self,
        config: Any = None,
        metadata: Any = None,
        local_cpu_backend: Any = None,
        loop: asyncio.AbstractEventLoop | None = None,
        dst_device: str = "cpu",
    ) -> None:
        super().__init__(
            dst_device=dst_device, config=config, metadata=metadata, local_cpu_backend=local_cpu_backend, loop=loop
        )
        if local_cpu_backend is None:
            raise ValueError("chunks are loaded to LMCache's CPU memory: set max_local_cpu_size, and no scheduler role")
        options = _options(config.extra_config if config is not None else None)
        self._cache = DriveCache(
            _drive_of(options, metadata),
            budget_bytes=_bytes_of(options, "budget_gib"),
            create_bytes=_bytes_of(options, "create_gib"),
            eviction=options.get("eviction", "lru"),
            admit=options.get("admit", ()),
        )
        self._lock = threading.Lock()
        self._storing: set[bytes] = set()
        # Loads wait for memory that stores let go, and prefixes for loads, so each has threads of its own.
        self._storers = ThreadPoolExecutor(_THREADS, "kvssd-store")
        self._loaders = ThreadPoolExecutor(_THREADS, "kvssd-load")
        self._prefixes = ThreadPoolExecutor(_THREADS, "kvssd-prefix")
        # LMCache lets the memory of chunks go before it closes whoever stores them.
        close_memory = local_cpu_backend.close

        def close_after_stores() -> None:
            self._storers.shutdown(wait=True)
            close_memory()

        local_cpu_backend.close = close_after_stores

    def __str__(self) -> str:
        return "KvssdBackend"

    def contains(self, key: CacheEngineKey, pin: bool = False) -> bool:
        """Whether a chunk is in, as far as memory knows."""
        return _digest(_identity(key)) in self._cache

    def exists_in_put_tasks(self, key: CacheEngineKey) -> bool:
        """Whether a chunk is about to be stored."""
        with self._lock:
            return _digest(_identity(key)) in self._storing

    def batched_submit_put_task(
        self,
        keys: Sequence[CacheEngineKey],
        objs: list[MemoryObj],
        transfer_spec: Any = None,
        on_complete_callback: Stored | None = None,
    ) -> list[Future[None]] | None:
        """Store chunks in threads of this backend. Those that are in, or on their way, are left out."""
        tasks = []
        for key, chunk in zip(keys, objs):
            identity = _identity(key)
            digest = _digest(identity)
            if digest in self._cache:
                continue
            with self._lock:
                if digest in self._storing:
                    continue
                self._storing.add(digest)
            chunk.ref_count_up()
            try:
                tasks.append(self._storers.submit(self._store, key, identity, digest, chunk, on_complete_callback))
            except RuntimeError:
                # It was closed.
                self._stored(digest, chunk)
        return tasks or None

    def get_blocking(self, key: CacheEngineKey) -> MemoryObj | None:
        """The chunk of a key; ``None`` where it is not in."""
        identity = _identity(key)
        return self._loaded(identity, self._cache.get(_digest(identity)), busy_loop=True)

    def batched_get_blocking(self, keys: list[CacheEngineKey]) -> list[MemoryObj | None]:
        """The chunks of keys up to the first that is not in; ``None`` for those behind it."""
        loaded: list[MemoryObj | None] = list(self._load_prefix(keys, busy_loop=True))
        return loaded + [None] * (len(keys) - len(loaded))

    async def batched_async_contains(self, lookup_id: str, keys: list[CacheEngineKey], pin: bool = False) -> int:
        """How many of the keys are in, up to the first that is not."""
        hits: int = self.batched_contains(keys, pin)
        return hits

    async def batched_get_non_blocking(
        self, lookup_id: str, keys: list[CacheEngineKey], transfer_spec: Any = None
    ) -> list[MemoryObj]:
        """The chunks of keys up to the first that is not in. Who cancels it gets none, and none is kept for him."""
        try:
            loading = self._prefixes.submit(lambda: list(self._load_prefix(keys, busy_loop=False)))
        except RuntimeError:
            # It was closed: all is a miss.
            return []
        try:
            return await asyncio.wrap_future(loading)
        except asyncio.CancelledError:
            # Its thread may have begun, and goes on.
            loading.add_done_callback(_let_go)
            raise

    def pin(self, key: CacheEngineKey) -> bool:
        """Whether a chunk is in. It may leave all the same."""
        return self.contains(key)

    def unpin(self, key: CacheEngineKey) -> bool:
        """Whether a chunk is in."""
        return self.contains(key)

    def remove(self, key: CacheEngineKey, force: bool = True) -> bool:
        """Delete a chunk. Gives whether it was in."""
        return self._cache.delete(_digest(_identity(key)))

    def get_allocator_backend(self) -> Any:
        """Chunks are loaded to LMCache's CPU memory."""
        return self.local_cpu_backend

    def close(self) -> None:
        """Store what is on its way, and end in order."""
        self._storers.shutdown(wait=True)
        self._prefixes.shutdown(wait=True)
        self._loaders.shutdown(wait=True)
        self._cache.close()

    def _store(
        self, key: CacheEngineKey, identity: bytes, digest: bytes, chunk: MemoryObj, stored: Stored | None
    ) -> None:
        try:
            is_in = self._cache.put(digest, b"".join((_description(identity, chunk), chunk.byte_array.cast("B"))))
        finally:
            self._stored(digest, chunk)
        if is_in and stored is not None:
            try:
                stored(key)
            except Exception:
                _LOG.exception("who waits for chunk %s failed", key)

    def _stored(self, digest: bytes, chunk: MemoryObj) -> None:
        chunk.ref_count_down()
        with self._lock:
            self._storing.discard(digest)

    def _load_prefix(self, keys: Sequence[CacheEngineKey], busy_loop: bool) -> Iterator[MemoryObj]:
        identities = [_identity(key) for key in keys]
        for identity, record in zip(identities, self._records(identities)):
            chunk = self._loaded(identity, record, busy_loop)
            if chunk is None:
                return
            yield chunk

    def _records(self, identities: Sequence[bytes]) -> Iterator[bytes | None]:
        """The records in order; a few more than threads are in memory."""
        under_way: deque[Future[bytes | None]] = deque()
        try:
            for identity in identities:
                if len(under_way) > _THREADS:
                    yield under_way.popleft().result()
                under_way.append(self._loaders.submit(self._cache.get, _digest(identity)))
            while under_way:
                yield under_way.popleft().result()
        except RuntimeError:
            # It was closed: the rest is a miss.
            return

    def _loaded(self, identity: bytes, record: bytes | None, busy_loop: bool) -> MemoryObj | None:
        """The chunk of a record in LMCache's memory; ``None`` where the record is of another key or none at all, or memory has no room."""
        found = _described(identity, record)
        if found is None:
            return None
        description, payload = found
        try:
            shapes = [torch.Size(shape) for shape in description["shapes"]]
            dtypes = [STR_DTYPE_TO_TORCH_DTYPE[dtype] for dtype in description["dtypes"]]
            chunk_format = MemoryFormat[description["format"]]
            positions = description["positions"]
        except (KeyError, TypeError):
            # Another version's, or somebody else's.
            return None
        shape, dtype = (shapes[0], dtypes[0]) if len(shapes) == 1 else (shapes, dtypes)
        chunk = self.local_cpu_backend.allocate(shape, dtype, chunk_format, busy_loop=busy_loop)
        if chunk is None:
            _LOG.warning("no CPU memory for a chunk of %d bytes: a miss", len(payload))
            return None
        room = chunk.byte_array.cast("B")
        if len(room) != len(payload):
            chunk.ref_count_down()
            return None
        room[:] = payload
        if positions is not None:
            chunk.metadata.cached_positions = torch.tensor(positions, dtype=torch.long)
        return chunk


def _let_go(loading: Future[list[MemoryObj]]) -> None:
    """Let go the chunks that nobody waits for any more."""
    if not loading.cancelled() and loading.exception() is None:
        for chunk in loading.result():
            chunk.ref_count_down()


def _identity(key: CacheEngineKey) -> bytes:
    """All that makes a key another one, without two ways to read it."""
    fields = [
        type(key).__name__,
        key.model_name,
        key.world_size,
        key.worker_id,
        type(key.chunk_hash).__name__,
        key.chunk_hash_hex,
        TORCH_DTYPE_TO_STR_DTYPE[key.dtype],
        getattr(key, "layer_id", None),
        [[name, repr(value)] for name, value in key.tags or ()],
    ]
    return json.dumps(fields, separators=(",", ":")).encode()


def _digest(identity: bytes) -> bytes:
    return hashlib.blake2b(identity, digest_size=16).digest()


def _description(identity: bytes, chunk: MemoryObj) -> bytes:
    positions = chunk.metadata.cached_positions
    description = json.dumps(
        {
            "key": identity.decode(),
            "shapes": [list(shape) for shape in chunk.get_shapes()],
            "dtypes": [TORCH_DTYPE_TO_STR_DTYPE[dtype] for dtype in chunk.get_dtypes()],
            "format": chunk.get_memory_format().name,
            "positions": None if positions is None else positions.tolist(),
        },
        separators=(",", ":"),
    ).encode()
    return _HEAD.pack(_MAGIC, len(description)) + description


def _described(identity: bytes, record: bytes | None) -> tuple[dict[str, Any], memoryview] | None:
    """What a record says, and its bytes; ``None`` where it is not of that key."""
    if record is None or len(record) < _HEAD.size:
        return None
    magic, description_bytes = _HEAD.unpack_from(record)
    end = _HEAD.size + description_bytes
    if magic != _MAGIC or end > len(record):
        return None
    try:
        description = json.loads(record[_HEAD.size : end])
    except ValueError:
        return None
    if not isinstance(description, dict) or description.get("key") != identity.decode():
        return None
    return description, memoryview(record)[end:]


def _options(extra_config: dict[str, Any] | None) -> dict[str, Any]:
    options = {name: value for name, value in (extra_config or {}).items() if name.startswith(_PREFIX)}
    for name in options:
        if name[len(_PREFIX) :] not in _OPTIONS:
            raise ValueError(f"extra_config has {name}, which is none of {', '.join(_PREFIX + name for name in _OPTIONS)}")
    return {name[len(_PREFIX) :]: value for name, value in options.items()}


def _drive_of(options: dict[str, Any], metadata: Any) -> str:
    drives = options.get("drive")
    workers, worker = (metadata.world_size, metadata.worker_id) if metadata is not None else (1, 0)
    if isinstance(drives, str) and workers == 1:
        return drives
    if isinstance(drives, list) and len(set(drives)) == len(drives) and worker < len(drives):
        return str(drives[worker])
    if drives is None:
        raise ValueError("extra_config has no kvssd.drive: the path of an image, or nvme+tcp://HOST:PORT/NQN?ns=1")
    raise ValueError(f"kvssd.drive is a list of {workers} different drives, one for each worker (?ns=1, ?ns=2, ... of one URL)")


def _bytes_of(options: dict[str, Any], name: str) -> int | None:
    gib = options.get(name)
    return None if gib is None else int(float(gib) * (1 << 30))
