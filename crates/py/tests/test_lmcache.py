"""The storage plugin as the real LMCache drives it: its engine, its storage manager, small tensors in CPU memory.

`crates/py/lmcache-test.sh` installs LMCache and torch and runs this; without them it is skipped.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kvssd
import pytest

pytest.importorskip("lmcache")

import torch
from kvssd.lmcache import KvssdBackend
from lmcache.utils import CacheEngineKey
from lmcache.v1.cache_engine import LMCacheEngine, LMCacheEngineBuilder
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.event_manager import EventManager
from lmcache.v1.gpu_connector.mock_gpu_connector import MockGPUConnector
from lmcache.v1.memory_management import MemoryFormat, MemoryObj
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.storage_backend.storage_manager import StorageManager

CHUNK_TOKENS = 64
# Layers, keys and values, tokens, heads, elements of a head: 512 KiB a chunk.
KV_SHAPE = (4, 2, CHUNK_TOKENS, 8, 64)
CHUNK_BYTES = 4 * 2 * CHUNK_TOKENS * 8 * 64 * 2


def configured(drive: str | list[str], **options: Any) -> LMCacheEngineConfig:
    """What a user's file says."""
    config = LMCacheEngineConfig.from_defaults(
        chunk_size=CHUNK_TOKENS,
        local_cpu=False,
        max_local_cpu_size=0.1,
        lmcache_instance_id="kvssd",
        pre_caching_hash_algorithm="sha256_cbor",
    )
    config.storage_plugins = ["kvssd"]
    config.extra_config = {
        "storage_plugin.kvssd.module_path": "kvssd.lmcache",
        "storage_plugin.kvssd.class_name": "KvssdBackend",
        "kvssd.drive": drive,
        **{f"kvssd.{name}": value for name, value in options.items()},
    }
    return config


def metadata(**changes: Any) -> LMCacheMetadata:
    fields: dict[str, Any] = {
        "model_name": "a/model@1",
        "world_size": 1,
        "local_world_size": 1,
        "worker_id": 0,
        "local_worker_id": 0,
        "kv_dtype": torch.bfloat16,
        "kv_shape": KV_SHAPE,
    }
    return LMCacheMetadata(**{**fields, **changes})


def key(number: int, **changes: Any) -> CacheEngineKey:
    fields: dict[str, Any] = {"model_name": "a/model@1", "world_size": 1, "worker_id": 0, "dtype": torch.bfloat16}
    return CacheEngineKey(**{**fields, "chunk_hash": number, **changes})


def until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    """Stores go on behind the caller's back."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


class Served:
    """A drive that another process serves, until it is killed."""

    def __init__(self, image: Path) -> None:
        self.image = image
        self.listen = "127.0.0.1:0"
        kvssd.open(image, create_bytes=256 << 20, value_bytes_max=32 << 20).close()
        self.start()

    def start(self) -> None:
        command = [os.environ["KVSSD"], "serve", str(self.image), "--listen", self.listen]
        self.service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.service.stdout is not None
        # The same address in the next life.
        self.listen = self.service.stdout.readline().split(" on ")[1].split(" ")[0]
        self.url = f"nvme+tcp://{self.listen}"

    def kill(self) -> None:
        self.service.kill()
        self.service.wait()


@pytest.fixture(params=["image", "url"])
def drive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    image = tmp_path / "drive.kv"
    if request.param == "image":
        kvssd.open(image, create_bytes=256 << 20, value_bytes_max=32 << 20).close()
        yield str(image)
        return
    served = Served(image)
    yield served.url
    served.kill()


class Managed:
    """A storage manager with the plugin in it."""

    def __init__(self, config: LMCacheEngineConfig, **changes: Any) -> None:
        self.manager = StorageManager(config, metadata(**changes), EventManager())
        self.backend: KvssdBackend = self.manager.storage_backends["kvssd"]

    def __enter__(self) -> Managed:
        return self

    def __exit__(self, *_: object) -> None:
        self.manager.close()

    def chunk(self, seed: int, shape: tuple[int, ...] = (2, 4, CHUNK_TOKENS, 512)) -> MemoryObj:
        chunk = self.manager.allocate(torch.Size(shape), torch.bfloat16, MemoryFormat.KV_2LTD)
        assert chunk is not None
        chunk.tensor.copy_(torch.full(shape, float(seed % 200)))
        chunk.tensor.view(torch.uint8).view(-1)[-1] = seed % 251
        return chunk

    def put(self, numbers: list[int]) -> None:
        self.manager.batched_put([key(number) for number in numbers], [self.chunk(number) for number in numbers])

    def check(self, number: int, got: MemoryObj | None) -> None:
        assert got is not None
        expected = self.chunk(number)
        assert torch.equal(got.tensor, expected.tensor) and got.get_memory_format() == MemoryFormat.KV_2LTD
        assert got.get_shape() == expected.get_shape() and got.get_dtype() == torch.bfloat16
        expected.ref_count_down()
        got.ref_count_down()

    def all_in(self, numbers: list[int]) -> bool:
        keys = [key(number) for number in numbers]
        return bool(self.manager.batched_contains(keys)[0] == len(keys))

    def is_storing(self, numbers: list[int]) -> bool:
        return any(self.backend.exists_in_put_tasks(key(number)) for number in numbers)


def test_chunks_are_stored_and_loaded_one_by_one_in_batches_and_in_asyncio(drive: str) -> None:
    numbers = list(range(12))
    with Managed(configured(drive)) as managed:
        assert managed.manager.contains(key(1)) is None and managed.manager.get(key(1)) is None
        managed.put(numbers)
        until(lambda: managed.all_in(numbers))
        assert managed.manager.contains(key(3), pin=True) == "kvssd"
        managed.check(3, managed.manager.get(key(3)))
        keys = [key(number) for number in numbers]
        for number, got in zip(numbers, managed.manager.batched_get(keys, location="kvssd")):
            managed.check(number, got)
        # A prefix ends at the first chunk that is not in.
        loaded = managed.manager.batched_get([*keys[:2], key(99), *keys[2:]], location="kvssd")
        assert [chunk is None for chunk in loaded] == [False, False] + [True] * 11
        for chunk in loaded[:2]:
            chunk.ref_count_down()
        loop = managed.manager.loop
        prefix = managed.backend.batched_async_contains("lookup", [*keys, key(99)], True)
        assert asyncio.run_coroutine_threadsafe(prefix, loop).result(30) == 12
        loading = managed.backend.batched_get_non_blocking("lookup", [*keys, key(99)])
        chunks = asyncio.run_coroutine_threadsafe(loading, loop).result(30)
        assert len(chunks) == 12
        for number, chunk in zip(numbers, chunks):
            managed.check(number, chunk)
        # What was loaded is in LMCache's own memory, too.
        assert managed.manager.remove(key(3), ["kvssd"]) == 1 and not managed.backend.contains(key(3))
        assert managed.backend.get_blocking(key(3)) is None and managed.backend.batched_contains(keys) == 3
        assert managed.manager.memcheck()


def test_every_life_finds_what_the_ones_before_stored(drive: str) -> None:
    for life in range(3):
        with Managed(configured(drive)) as managed:
            numbers = list(range(4 * life))
            assert managed.all_in(numbers)
            keys = [key(number) for number in numbers]
            for number, got in zip(numbers, managed.manager.batched_get(keys, location="kvssd")):
                managed.check(number, got)
            # Close waits for what is on its way.
            managed.put(list(range(4 * life, 4 * life + 4)))


def test_a_drive_that_is_full_takes_everything(drive: str) -> None:
    numbers = list(range(900))
    with Managed(configured(drive, eviction="fifo")) as managed:
        for first in range(0, len(numbers), 20):
            part = numbers[first : first + 20]
            managed.put(part)
            until(lambda: not managed.is_storing(numbers))
        cache = managed.backend._cache.cache
        assert cache is not None and cache.stats()["evicted"] > 400
        assert managed.manager.contains(key(0)) is None and managed.all_in(numbers[-50:])
        managed.check(899, managed.manager.get(key(899)))


def test_keys_that_differ_in_anything_are_different(tmp_path: Path) -> None:
    hashed = {"chunk_hash": 0x12}
    keys = [
        key(0x12),
        key(0x13),
        key(0, chunk_hash=b"\x12"),
        key(0, **hashed, model_name="a/model"),
        key(0, **hashed, world_size=2),
        key(0, **hashed, worker_id=1),
        key(0, **hashed, dtype=torch.float16),
        key(0, **hashed, request_configs={"lmcache.tag.user": "one"}),
        key(0, **hashed, request_configs={"lmcache.tag.user": "two"}),
        *key(0x12).split_layers(3),
    ]
    with Managed(configured(str(tmp_path / "drive.kv"), create_gib=0.25)) as managed:
        chunks = [managed.chunk(number) for number in range(len(keys))]
        done: list[CacheEngineKey] = []
        tasks = managed.backend.batched_submit_put_task(keys, chunks, on_complete_callback=done.append)
        assert tasks is not None and [task.result(30) for task in tasks] and len(done) == len(keys)
        assert managed.backend.batched_submit_put_task(keys, chunks) is None, "they are in"
        for number, each in enumerate(keys):
            managed.check(number, managed.backend.get_blocking(each))
        # What is no chunk, and a chunk of another key under this one's, is a miss.
        from kvssd.lmcache import _digest, _identity

        stolen = managed.backend._cache.get(_digest(_identity(keys[1])))
        for wrong in [b"", b"x", b"KVL1" + b"\xff" * 4, stolen, b'KVL1\x02\0\0\0{}', b"KVL1\x01\0\0\0["]:
            assert wrong is not None and managed.backend._cache.put(_digest(_identity(keys[0])), wrong)
            assert managed.backend.get_blocking(keys[0]) is None
        for chunk in chunks:
            chunk.ref_count_down()
        assert managed.manager.memcheck()


def test_a_chunk_of_many_megabytes_and_one_that_is_too_large(tmp_path: Path) -> None:
    image = tmp_path / "drive.kv"
    kvssd.open(image, create_bytes=256 << 20, value_bytes_max=16 << 20).close()
    shape = (2, 4, 8 * CHUNK_TOKENS, 512)
    with Managed(configured(str(image))) as managed:
        for number, times in [(1, 3), (2, 8)]:
            chunk = managed.chunk(number, (2, 4 * times, 8 * CHUNK_TOKENS, 512))
            tasks = managed.backend.batched_submit_put_task([key(number)], [chunk])
            assert tasks is not None
            tasks[0].result(30)
            assert managed.backend.contains(key(number)) is (times == 3)
            chunk.ref_count_down()
        got = managed.backend.get_blocking(key(1))
        assert got is not None and got.get_shape() == torch.Size((shape[0], 12, *shape[2:]))
        got.ref_count_down()


def test_a_drive_that_is_killed_is_a_miss_and_comes_back(tmp_path: Path) -> None:
    served = Served(tmp_path / "drive.kv")
    numbers = list(range(30))
    try:
        with Managed(configured(served.url)) as managed:
            managed.put(numbers[:10])
            until(lambda: managed.all_in(numbers[:10]))
            # In the middle of stores and loads of several threads.
            failures: list[BaseException] = []

            def load() -> None:
                try:
                    for _ in range(20):
                        for number, got in zip(numbers, managed.backend.batched_get_blocking([key(n) for n in numbers[:10]])):
                            if got is not None:
                                managed.check(number, got)
                except BaseException as failure:
                    failures.append(failure)

            threads = [threading.Thread(target=load) for _ in range(3)]
            for thread in threads:
                thread.start()
            managed.put(numbers[10:])
            served.kill()
            for thread in threads:
                thread.join(60)
            assert not failures and not any(thread.is_alive() for thread in threads)
            assert managed.backend.get_blocking(key(0)) is None and not managed.backend.contains(key(0))
            until(lambda: not managed.is_storing(numbers))
            managed.put([50])
            served.start()
            until(lambda: managed.backend.contains(key(0)))
            managed.check(0, managed.backend.get_blocking(key(0)))
            managed.put([51])
            until(lambda: managed.all_in([51]))
            assert managed.manager.memcheck()
    finally:
        served.kill()


def test_a_namespace_that_another_host_deletes_is_a_miss_for_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    served = Served(tmp_path / "drive.kv")
    try:
        with kvssd.open(served.url) as host:
            number = host.create_namespace("blocks").id
        with Managed(configured(f"{served.url}?ns={number}", budget_gib=0.05)) as managed:
            managed.put([1, 2])
            until(lambda: managed.all_in([1, 2]))
            with kvssd.open(served.url) as host:
                host.delete_namespace("blocks")
                # Others come until one has the number.
                for name in (f"other {number}" for number in range(40)):
                    if host.create_namespace(name).id == number:
                        break
                    host.delete_namespace(name)
            assert managed.backend.get_blocking(key(1)) is None
            managed.put([3])
            until(lambda: not managed.is_storing([3]))
            assert not managed.backend.contains(key(3)) and managed.manager.memcheck()
        (line,) = (record.getMessage() for record in caplog.records if record.levelname == "ERROR")
        assert "any more" in line and "name a namespace that is there" in line
        with kvssd.open(f"{served.url}?ns={number}") as other:
            assert len(other) == 0 and other.info()["name"] == name
    finally:
        served.kill()


def test_a_drive_that_is_not_there_at_first_is_found_later(tmp_path: Path) -> None:
    served = Served(tmp_path / "drive.kv")
    served.kill()
    try:
        with Managed(configured(served.url)) as managed:
            managed.put([1])
            assert managed.manager.get(key(1)) is None
            served.start()
            until(lambda: managed.backend._cache.cache is not None)
            managed.put([2])
            until(lambda: managed.all_in([2]))
    finally:
        served.kill()


class Device(MockGPUConnector):  # type: ignore[misc]
    """The memory of an accelerator, which is none: each token's place says what its bytes are."""

    def batched_from_gpu(self, memory_objs: list[MemoryObj], starts: list[int], ends: list[int], **_: Any) -> None:
        for chunk, start in zip(memory_objs, starts):
            chunk.tensor.fill_(float(start % 251))

    def batched_to_gpu(self, memory_objs: list[MemoryObj], starts: list[int], ends: list[int], **_: Any) -> None:
        for chunk, start in zip(memory_objs, starts):
            assert torch.all(chunk.tensor == float(start % 251))
            self.stored_data[start] = True


def engine(config: LMCacheEngineConfig) -> LMCacheEngine:
    made = LMCacheEngineBuilder.get_or_create(
        "kvssd", config, metadata(), Device(KV_SHAPE), lambda tensor, source: None, lambda thing, source: thing
    )
    made.post_init()
    return made


def store_ends(made: LMCacheEngine, tokens: torch.Tensor) -> None:
    until(lambda: bool(made.lookup(tokens) == len(tokens)))


def test_the_engine_finds_prompts_again_in_its_next_life(drive: str) -> None:
    prompts = [[prompt * 10_000 + token for token in range(5 * CHUNK_TOKENS)] for prompt in range(3)]
    for life in range(2):
        made = engine(configured(drive))
        try:
            for prompt in prompts:
                tokens = torch.tensor(prompt)
                if life == 0:
                    assert made.lookup(tokens) == 0
                    made.store(tokens)
                    store_ends(made, tokens)
                assert made.lookup(tokens, lookup_id="request", pin=True) == len(tokens)
                found = made.retrieve(tokens)
                assert int(found.sum()) == len(tokens)
                made.lookup_unpin("request")
                # Another end: the common prefix alone.
                other = torch.tensor([*prompt[: 2 * CHUNK_TOKENS], *range(90_000, 90_000 + 3 * CHUNK_TOKENS)])
                assert made.lookup(other) == 2 * CHUNK_TOKENS
                assert int(made.retrieve(other).sum()) == 2 * CHUNK_TOKENS
        finally:
            LMCacheEngineBuilder.destroy("kvssd")


def test_the_engine_computes_what_a_lost_drive_had(tmp_path: Path) -> None:
    served = Served(tmp_path / "drive.kv")
    made = engine(configured(served.url))
    tokens = torch.arange(5 * CHUNK_TOKENS)
    try:
        made.store(tokens)
        store_ends(made, tokens)
        assert made.lookup(tokens, lookup_id="request", pin=True) == len(tokens)
        served.kill()
        # It was promised, and it is gone.
        assert int(made.retrieve(tokens, req_id="request").sum()) == 0
        made.lookup_unpin("request")
        assert made.lookup(tokens) == 0 and int(made.retrieve(tokens).sum()) == 0
        made.store(tokens)
    finally:
        LMCacheEngineBuilder.destroy("kvssd")
        served.kill()


@pytest.mark.parametrize(
    ("options", "changes", "line"),
    [
        ({"drive": None}, {}, "kvssd.drive"),
        ({"drive": "one.kv", "sizes": 3}, {}, "kvssd.sizes"),
        ({"drive": "one.kv"}, {"world_size": 2, "worker_id": 1}, "list of 2"),
        ({"drive": ["one.kv", "one.kv"]}, {"world_size": 2, "worker_id": 1}, "different drives"),
        ({"drive": "none/such.kv"}, {}, "none/such.kv"),
        ({"drive": "one.kv", "create_gib": 0.25, "eviction": "clock"}, {}, "s3-fifo"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    options: dict[str, Any],
    changes: dict[str, Any],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    config = configured(**{"drive": "", **options})
    with pytest.raises((ValueError, kvssd.Error), match=line):
        KvssdBackend(config=config, metadata=metadata(**changes), local_cpu_backend=object())
    with pytest.raises(ValueError, match="max_local_cpu_size"):
        KvssdBackend(config=config, metadata=metadata())


def test_each_worker_has_a_drive_of_its_own(tmp_path: Path) -> None:
    drives = [str(tmp_path / f"{worker}.kv") for worker in range(2)]
    config = configured(drives, create_gib=0.25)
    with Managed(config, world_size=2, worker_id=0) as one, Managed(config, world_size=2, worker_id=1) as other:
        one.put([1])
        until(lambda: one.all_in([1]))
        assert not other.all_in([1]) and sorted(tmp_path.iterdir()) == [Path(drive) for drive in drives]
