"""A software-defined key-value SSD: a durable store as a mutable mapping, and a laboratory of drives.

    import kvssd

    with kvssd.open("drive.kv", create_bytes=1 << 30) as store:      # or "nvme+tcp://127.0.0.1:4420/nqn?ns=1"
        store[b"city/oslo"] = b"59.91N"
        for key, value in store.scan(prefix=b"city/"):
            print(key, value)

    runs = kvssd.bench(designs=["original", "plus"])["runs"]      # pandas.json_normalize(runs)
"""

from kvssd._kvssd import (
    AbortedError,
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
from kvssd.experiments import bench, reproduce
from kvssd.store import (
    Batch,
    FirmwareStats,
    Namespace,
    NamespaceInfo,
    Stats,
    Store,
    TrafficStats,
    Transaction,
    open,
)

__all__ = [
    "AbortedError",
    "Batch",
    "DamagedError",
    "Error",
    "ExperimentError",
    "FailedError",
    "FirmwareStats",
    "ForkedError",
    "FullError",
    "InvalidError",
    "Namespace",
    "NamespaceError",
    "NamespaceInfo",
    "OpenError",
    "ReadOnlyError",
    "RefusedError",
    "Stats",
    "Store",
    "TrafficStats",
    "Transaction",
    "__version__",
    "bench",
    "open",
    "reproduce",
]
