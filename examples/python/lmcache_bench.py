"""Gigabytes a second under LMCache: a drive in this process, a drive over loopback, and LMCache's own back end of files, by turns.

    crates/py/lmcache-test.sh --bench [folder on the disk to measure]
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import kvssd
import torch
from lmcache.logging import logging
from lmcache.utils import CacheEngineKey
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.event_manager import EventManager
from lmcache.v1.memory_management import MemoryFormat
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.storage_backend.storage_manager import StorageManager

ROUNDS = 5
ROUND_BYTES = 256 << 20
# Keys of one call, as a prompt of so many chunks asks for.
BATCH = 16
TOKENS = 64
FLASH_BYTES = 4 << 30


def manager(**changes: Any) -> StorageManager:
    """A storage manager of LMCache with one back end besides its memory."""
    extra = {"storage_plugin.kvssd.module_path": "kvssd.lmcache", "storage_plugin.kvssd.class_name": "KvssdBackend"}
    config = LMCacheEngineConfig.from_defaults(chunk_size=TOKENS, local_cpu=False, max_local_cpu_size=0.5)
    if "drive" in changes:
        config.storage_plugins = ["kvssd"]
        config.extra_config = {**extra, "kvssd.drive": changes["drive"], "kvssd.eviction": "fifo"}
    else:
        config.local_disk, config.max_local_disk_size = changes["folder"], FLASH_BYTES * 0.6 / (1 << 30)
    shape = (16, 2, TOKENS, 8, 128)
    metadata = LMCacheMetadata("model", 1, 1, 0, 0, torch.bfloat16, shape)
    return StorageManager(config, metadata, EventManager())


def measure(backend: Any, allocator: StorageManager, chunk_bytes: int, first: int) -> tuple[float, float]:
    """Seconds to store new chunks until all are in, and to load them."""
    shape = torch.Size((2, chunk_bytes // (4 * TOKENS * 1024), TOKENS, 1024))
    chunk = allocator.allocate(shape, torch.bfloat16, MemoryFormat.KV_2LTD)
    assert chunk is not None and chunk.get_size() == chunk_bytes
    chunk.tensor.view(torch.uint8).random_(0, 256)
    keys = [
        CacheEngineKey("model", 1, 0, first + number, torch.bfloat16) for number in range(ROUND_BYTES // chunk_bytes)
    ]
    batches = [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
    begun = time.perf_counter()
    for batch in batches:
        backend.batched_submit_put_task(batch, [chunk] * len(batch))
    while not all(backend.contains(key) for key in keys):
        time.sleep(0.001)
    stored = time.perf_counter()
    for batch in batches:
        for loaded in backend.batched_get_blocking(batch):
            assert loaded is not None and loaded.get_size() == chunk_bytes
            loaded.ref_count_down()
    seconds = stored - begun, time.perf_counter() - stored
    last = backend.get_blocking(keys[-1])
    assert torch.equal(last.tensor.view(torch.uint8), chunk.tensor.view(torch.uint8))
    last.ref_count_down()
    chunk.ref_count_down()
    return seconds


def main(folder: Path) -> None:
    for name in ("image", "served"):
        kvssd.open(folder / name, create_bytes=FLASH_BYTES, value_bytes_max=32 << 20).close()
    command = [os.environ["KVSSD"], "serve", str(folder / "served"), "--listen", "127.0.0.1:0"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    managers: dict[str, StorageManager] = {}
    try:
        assert service.stdout is not None
        url = "nvme+tcp://" + service.stdout.readline().split(" on ")[1].split(" ")[0]
        (folder / "files").mkdir()
        managers["files"] = manager(folder=str(folder / "files"))
        managers["image"] = manager(drive=str(folder / "image"))
        managers["URL"] = manager(drive=url)
        compare(managers)
    finally:
        for one in managers.values():
            one.close()
        service.terminate()


def compare(managers: dict[str, StorageManager]) -> None:
    """Print a line for each back end and size of a chunk."""
    first = 0
    print(f"{ROUNDS} rounds of {ROUND_BYTES >> 20} MiB by turns; GB/s: median (least to most)")
    print(f"{'chunk':>8} {'':6} {'store':>24} {'load':>24}")
    for chunk_bytes in (256 << 10, 1 << 20, 4 << 20):
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in managers}
        for _ in range(ROUNDS):
            for name, one in managers.items():
                backend = one.storage_backends["LocalDiskBackend" if name == "files" else "kvssd"]
                seen[name].append(measure(backend, one, chunk_bytes, first))
                first += ROUND_BYTES
        for name, rounds in seen.items():
            cells = []
            for seconds in zip(*rounds):
                rates = sorted(ROUND_BYTES / 1e9 / second for second in seconds)
                cells.append(f"{statistics.median(rates):.2f} ({rates[0]:.2f} to {rates[-1]:.2f})")
            print(f"{chunk_bytes >> 10:>4} KiB {name:6} {cells[0]:>24} {cells[1]:>24}", flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    workplace = Path(tempfile.mkdtemp(prefix="kvssd-lmcache-", dir=sys.argv[1] if len(sys.argv) > 1 else None))
    try:
        main(workplace)
    finally:
        shutil.rmtree(workplace)
