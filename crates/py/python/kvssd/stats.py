"""What stores and namespaces tell of themselves."""

from __future__ import annotations

from typing import Optional, TypedDict


class NamespaceInfo(TypedDict):
    """What was chosen of a namespace, and how full it is. Who has its number later has another ``birth``, which is 0 where it is not known."""

    id: int
    name: Optional[str]
    index: str
    is_ordered: bool
    birth: int
    quota_bytes: Optional[int]
    pairs_max: Optional[int]
    cache: Optional[str]
    pairs: int
    pair_bytes: int
    live_bytes: int
    capacity_bytes: int


class NamespaceCacheInfo(TypedDict):
    """What a namespace holds that is a cache, and what happened."""

    cache: str
    budget_bytes: int
    held_bytes: int
    kept_bytes: int
    hits: int
    misses: int
    admitted: int
    kept_out: int
    evicted: int
    expired: int


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
    """What all hosts did since a drive on the wire is served. Calls that failed do not count, and who found no key has failed."""

    changes: int
    lookups: int
    stored_bytes: int
    retrieved_bytes: int
    processor_ns: Optional[int]


class Stats(TypedDict):
    """How full a store is, with all its namespaces. Of an image there is no ``traffic``, nor for a host that does not see
    all namespaces; of other makers' drives no ``firmware``."""

    design: str
    live_bytes: int
    capacity_bytes: int
    value_bytes_max: int
    batch_bytes_max: int
    batch_value_bytes_max: int
    batch_changes_max: int
    write_amplification: Optional[float]
    firmware: Optional[FirmwareStats]
    traffic: Optional[TrafficStats]
