"""The laboratory: designs of drives side by side on virtual time, and papers' claims."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from kvssd import _kvssd
from kvssd.numbers import U64_MAX, beyond
from kvssd.results import Claims, Report


def bench(
    designs: str | Sequence[str] = (),
    *,
    profile: str | os.PathLike[str] | None = None,
    scale: float | str | None = None,
    records: int | None = None,
    fill: float | None = None,
    overwrites: int | None = None,
    operations: int | None = None,
    rounds: int | None = None,
    until: str | None = None,
    series: str | None = None,
    workload: str | None = None,
    db_bench: str | Sequence[str] | None = None,
    scan_length: int | None = None,
    kvbench: str | os.PathLike[str] | None = None,
    distribution: str | None = None,
    threads: int | None = None,
    queue_depth: int | None = None,
    rate: float | None = None,
    batch_pairs: int | None = None,
    key_bytes: int | None = None,
    value_bytes: int | None = None,
    value_distribution: str | None = None,
    seed: int | None = None,
    set: Mapping[str, object] | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Report:
    """Fill a new drive of each design, overwrite it and run a workload on it, on virtual time.

    Options and what they are by default are those of ``kvssd bench``, and so is the report (docs/REPORT.md). ``set`` overrides keys of the
    profile and parameters of the designs: ``{"nand.erase_ns": 3_800_000, "design.grain_bytes": 64}``. ``progress`` is called with the
    phase, the operations that are done, and all of them. Ctrl-C ends it, and so does an exception of ``progress``.
    """
    given: dict[str, object] = {
        "design": _list(designs),
        "profile": _path(profile),
        "scale": _text(scale),
        "records": records,
        "fill": fill,
        "overwrites": overwrites,
        "operations": operations,
        "rounds": rounds,
        "until": until,
        "series": series,
        "workload": workload,
        "db-bench": _list(db_bench),
        "scan-length": scan_length,
        "kvbench": _path(kvbench),
        "distribution": distribution,
        "threads": threads,
        "queue-depth": queue_depth,
        "rate": rate,
        "batch-pairs": batch_pairs,
        "key-bytes": key_bytes,
        "value-bytes": value_bytes,
        "value-distribution": value_distribution,
        "seed": seed,
        "set": [f"{key}={value}" for key, value in _assignments(set)],
    }
    options = {name: value for name, value in given.items() if value is not None}
    return Report(_kvssd.bench(json.dumps(options), progress))


def reproduce(
    paper: str,
    *,
    scale: float | str | None = None,
    seed: int = 1,
    set: Mapping[str, object] | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Claims:
    """Run the claims of a paper: ``iter``, ``kaml``, ``plus``, ``rhik``, ``study`` or ``fdp``, at a part of its testbed such as ``1/256``.

    The result is that of ``kvssd reproduce --json``: ``{"claims": [...]}``, with ``"sweep"`` where the paper sweeps over something. Ctrl-C
    ends it.
    """
    try:
        return Claims(_kvssd.reproduce(paper, _factor(scale), seed, _assignments(set), progress))
    except OverflowError:
        raise beyond(seed=(seed, 0, U64_MAX)) from None


def _list(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _factor(scale: float | str | None) -> float | None:
    """A scale, which may be written as a fraction."""
    if not isinstance(scale, str):
        return scale
    over, _, under = scale.partition("/")
    try:
        return float(over) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"scale {scale!r}: a number or a fraction above 0, such as 0.5 or '1/64'") from None


def _assignments(overrides: Mapping[str, object] | None) -> list[tuple[str, str]]:
    return [(key, _text(value) or "") for key, value in (overrides or {}).items()]
