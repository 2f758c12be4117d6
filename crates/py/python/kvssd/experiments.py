"""The laboratory: designs of drives side by side on virtual time, and papers' claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvssd import _kvssd


def bench(
    designs: str | Sequence[str] = (),
    *,
    profile: str | None = None,
    scale: float | str | None = None,
    records: int | None = None,
    fill: float | None = None,
    overwrites: int | None = None,
    operations: int | None = None,
    workload: str | None = None,
    distribution: str | None = None,
    threads: int | None = None,
    queue_depth: int | None = None,
    rate: float | None = None,
    key_bytes: int | None = None,
    value_bytes: int | None = None,
    value_distribution: str | None = None,
    seed: int | None = None,
    set: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Fill a new drive of each design, overwrite it and run a YCSB workload on it, on virtual time.

    Options and what they are by default are those of ``kvssd bench``, and so is the result: ``{"runs": [...]}``, a dictionary for each
    design (docs/REPORT.md). ``pandas.json_normalize(result["runs"])`` makes a table of it. ``set`` overrides keys of the profile and
    parameters of the designs: ``{"nand.erase_ns": 3_800_000, "design.grain_bytes": 64}``. Ctrl-C ends it.
    """
    return _kvssd.bench(
        [designs] if isinstance(designs, str) else list(designs),
        profile,
        _factor(scale),
        records,
        fill,
        overwrites,
        operations,
        workload,
        distribution,
        threads,
        queue_depth,
        rate,
        key_bytes,
        value_bytes,
        value_distribution,
        seed,
        _assignments(set),
    )


def reproduce(
    paper: str, *, scale: float | str | None = None, seed: int = 1, set: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Run the claims of a paper: ``iter``, ``kaml``, ``plus``, ``rhik`` or ``study``, at a part of its testbed such as ``1/256``.

    The result is that of ``kvssd reproduce --json``: ``{"claims": [...]}``, with ``"sweep"`` where the paper sweeps over something. Ctrl-C
    ends it.
    """
    return _kvssd.reproduce(paper, _factor(scale), seed, _assignments(set))


def _factor(scale: float | str | None) -> float | None:
    """A scale, which may be written as a fraction."""
    if not isinstance(scale, str):
        return scale
    over, _, under = scale.partition("/")
    return float(over) / float(under or 1)


def _assignments(overrides: Mapping[str, object] | None) -> list[tuple[str, str]]:
    return [(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in (overrides or {}).items()]
