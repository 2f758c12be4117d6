"""Reports: the dictionaries that the command line writes as JSON, with a table of what matters for people."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Dict, List, TypedDict

if TYPE_CHECKING:
    import pandas

#: What a table shows of a run: the heading, and the way to it.
_COLUMNS = (
    ("design", "design"),
    ("workload", "workload"),
    ("op/s", "throughput_ops_s"),
    ("retrieve p50, us", "latency_ns.retrieve.p50"),
    ("retrieve p99, us", "latency_ns.retrieve.p99"),
    ("store p50, us", "latency_ns.store.p50"),
    ("store p99, us", "latency_ns.store.p99"),
    ("batch p99, us", "latency_ns.batch.p99"),
    ("write amplification", "write_amplification"),
)


class Latency(TypedDict):
    """How long commands of a kind took, in nanoseconds; all 0 when there were none."""

    count: int
    mean: float
    p50: int
    p99: int
    p999: int
    max: int


class Run(TypedDict, total=False):
    """What came out of a run. docs/REPORT.md has all fields; these are the ones that are asked for most."""

    experiment: str
    design: str
    profile: str
    workload: str
    distribution: str
    seed: int
    records: int
    operations: int
    simulated_ns: int
    throughput_ops_s: float
    latency_ns: Dict[str, Latency]
    write_amplification: float
    read_amplification: float
    failed_retrieves: int


class Report(Dict[str, Any]):
    """A report of ``kvssd bench``: a dictionary with ``program``, ``experiments`` and ``runs`` (docs/REPORT.md)."""

    @property
    def runs(self) -> List[Run]:
        """What came out: one for each design, with db_bench and KVbench several."""
        runs: List[Run] = self["runs"]
        return runs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, for ``kvssd bench --from`` and ``kvssd report``."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self, file, indent=2, ensure_ascii=False)
            file.write("\n")

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each run; a column such as ``latency_ns.retrieve.p99`` for each figure."""
        return frame_of(self.runs)

    def __repr__(self) -> str:
        return f"<kvssd.Report: {len(self.runs)} runs>\n" + text_table(_table(self.runs))

    def _repr_html_(self) -> str:
        return html_table(_table(self.runs))


class Claims(Dict[str, Any]):
    """What ``kvssd reproduce`` found: a dictionary with ``claims`` and, of some papers, ``sweep`` (docs/REPORT.md)."""

    @property
    def claims(self) -> List[Dict[str, Any]]:
        """A dictionary for each claim."""
        claims: List[Dict[str, Any]] = self["claims"]
        return claims

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each claim."""
        return frame_of(self.claims)

    def __repr__(self) -> str:
        return f"<kvssd.Claims: {len(self.claims)} claims>\n" + text_table(self._table())

    def _repr_html_(self) -> str:
        return html_table(self._table())

    def _table(self) -> List[List[str]]:
        columns = ("id", "claim", "paper", "ours", "verdict")
        return [list(columns), *([str(claim.get(column, "")) for column in columns] for claim in self.claims)]


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """Rows as a table, without the histograms: a text of 2 to 3 KB each."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("a table wants pandas, which is not installed: pip install pandas") from error

    return pandas.json_normalize([{key: row[key] for key in row if key != "latency_histograms"} for row in rows])


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first row above them."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """The same for a notebook."""

    def line(row: Sequence[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in row) + "</tr>"

    return f"<table>{line(rows[0], 'th')}{''.join(line(row, 'td') for row in rows[1:])}</table>"


def _table(runs: Sequence[Run]) -> List[List[str]]:
    return [[heading for heading, _ in _COLUMNS], *([_figure(run, path) for _, path in _COLUMNS] for run in runs)]


def _figure(run: Run, path: str) -> str:
    value: Any = run
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) and value.get("count") != 0 else None
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if path.startswith("latency_ns"):
        return f"{value / 1000:.1f}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
