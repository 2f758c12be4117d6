"""A software-defined key-value SSD: a durable store as a mutable mapping, and a laboratory of drives.

    import kvssd

    with kvssd.open("drive.kv", create=True) as store:      # or "nvme+tcp://127.0.0.1:4420/?ns=1"
        store[b"city/oslo"] = b"59.91N"
        for key, value in store.scan(prefix=b"city/"):
            print(key, value)

    kvssd.bench(["original", "plus"]).to_pandas()
    kvssd.sweep("experiment.toml", out="results").to_pandas()
"""

from kvssd._kvssd import (
    AbortedError,
    ClosedError,
    DamagedError,
    Error,
    ExperimentError,
    FailedError,
    ForkedError,
    FullError,
    InvalidError,
    NamespaceError,
    OpenError,
    ReadOnlyError,
    RefusedError,
    __version__,
)
from kvssd.cache import Cache, CacheStats
from kvssd.changes import Batch, Transaction
from kvssd.device import Completion, Device, DeviceStats
from kvssd.experiments import bench, reproduce
from kvssd.namespace import Namespace
from kvssd.results import Claims, Latency, Report, Run
from kvssd.stats import FirmwareStats, NamespaceCacheInfo, NamespaceInfo, Stats, TrafficStats
from kvssd.store import Store, open
from kvssd.sweeps import Sweep, run_point, sweep

__all__ = [
    "AbortedError",
    "Batch",
    "Cache",
    "CacheStats",
    "Claims",
    "ClosedError",
    "Completion",
    "DamagedError",
    "Device",
    "DeviceStats",
    "Error",
    "ExperimentError",
    "FailedError",
    "FirmwareStats",
    "ForkedError",
    "FullError",
    "InvalidError",
    "Latency",
    "Namespace",
    "NamespaceError",
    "NamespaceCacheInfo",
    "NamespaceInfo",
    "OpenError",
    "ReadOnlyError",
    "RefusedError",
    "Report",
    "Run",
    "Stats",
    "Store",
    "Sweep",
    "TrafficStats",
    "Transaction",
    "__version__",
    "bench",
    "open",
    "reproduce",
    "run_point",
    "sweep",
]
