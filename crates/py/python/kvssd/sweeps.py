"""Sweeps: many experiments, each on whatever machine an executor finds, kept in the folder that ``kvssd sweep`` keeps.

    space -> plan (Rust, that of kvssd sweep) -> missing points -> executor.submit(run_point, ...) -> reports -> folder
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, Protocol, Tuple, TypedDict

from kvssd import _kvssd
from kvssd._kvssd import OpenError, RawClaim, RawSweep
from kvssd.results import Report, frame_of, html_table, text_table

if TYPE_CHECKING:
    import pandas

#: Points that an executor has at once: each is a file that is open and locked.
_UNDER_WAY_MAX = 512
#: How long is slept before futures are looked at again, in seconds.
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.002, 0.2


class Promise(Protocol):
    """What an executor gives: a future. One that has ``done()`` as well is waited for with the others, not before them."""

    def result(self) -> Any:
        """What the function gave, or its exception."""


class Executor(Protocol):
    """Who runs points: anything like ``concurrent.futures``."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Have ``fn(*args)`` called somewhere, and give a ``Promise`` of what it gives."""


class Point(TypedDict, total=False):
    """A point of a sweep: where it is on the axes, and the path of its report in the folder, or why it is impossible."""

    at: Dict[str, Any]
    report: str
    impossible: str


def sweep(
    space: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    executor: Executor | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Run every point of a space that has no report in the folder ``out`` yet.

    ``space`` is the path of a file as ``kvssd sweep`` takes it (docs/SWEEPS.md), or the same as a dictionary:
    ``{"options": {"scale": "1/256"}, "axes": {"design": ["original", "plus"], "seed": range(1, 6)}}``. The folder is, byte for byte, that
    of the command line: either goes on where the other one was ended.

    ``executor`` is anything with ``submit(fn, *args)`` that gives a future: of ``concurrent.futures``, of submitit, ``kvssd.ray.RayExecutor``. Its
    machines need the same build of this package, and no files. Without one, the runs are done here, on all cores, as far as memory allows.

    ``progress`` is called with the runs that are done, and all of them. An exception, Ctrl-C too, ends the sweep; what was run is kept.
    """
    is_file = isinstance(space, (str, os.PathLike))
    file = os.fspath(space) if isinstance(space, (str, os.PathLike)) else None
    raw = RawSweep.open(file, "" if is_file else json.dumps(space, default=_plain), os.fspath(out))
    missing = raw.missing()
    if executor is None:
        with _Cores(max((memory_bytes for _, _, memory_bytes in missing), default=0)) as cores:
            _fill(raw, missing, cores, cores.count, progress)
    else:
        _fill(raw, missing, executor, _UNDER_WAY_MAX, progress)
    raw.check()
    return Sweep(out)


def run_point(hash: str, experiment: str, progress: Callable[[str, int, int], object] | None = None) -> bytes:
    """Run an experiment, given as JSON, wherever this is called; give its report."""
    return _kvssd.run_point(hash, experiment, progress)


class Sweep:
    """The folder of a sweep, by whomever it was made."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / "index.json"
        try:
            index = json.loads(path.read_text(encoding="utf-8"))
            self.axes: List[Dict[str, List[Any]]] = index["axes"]
            self.points: List[Point] = index["points"]
        except OSError as error:
            raise OpenError(f"{folder} is no folder of a sweep: {path.name}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise OpenError(f"{folder} is no folder of a sweep: {path.name} is not what a sweep writes") from None

    def report(self, point: Point) -> Report | None:
        """The report of a point; none while it is missing, and where the point is impossible."""
        path = self.folder / point["report"] if "report" in point else None
        if path is None or not path.exists():
            return None
        return Report(json.loads(path.read_text(encoding="utf-8")))

    def rows(self) -> Iterator[Dict[str, Any]]:
        """What came out at each point: its place on the axes, and the figures of a run, ``failure`` or ``impossible``."""
        for point in self.points:
            report = self.report(point)
            if "impossible" in point:
                yield {**point["at"], "impossible": point["impossible"]}
            elif report is not None and "failure" in report:
                yield {**point["at"], "failure": report["failure"]}
            elif report is not None:
                yield from ({**point["at"], **run} for run in report.runs)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each run, and for each point that has none the reason."""
        return frame_of(self.rows())

    def __repr__(self) -> str:
        return f"<kvssd.Sweep {self.folder}: {len(self.points)} points>\n" + text_table(self._table()[1:])

    def _repr_html_(self) -> str:
        return html_table(self._table())

    def _table(self) -> List[List[str]]:
        axes = [
            (", ".join(axis), ", ".join(" with ".join(map(str, values)) for values in zip(*axis.values())))
            for axis in self.axes
        ]
        states = [_state(point, self.report(point)) for point in self.points]
        counts = [(state, str(states.count(state))) for state in dict.fromkeys(states)]
        return [["axis, state", "values, points"], *(list(row) for row in axes), *(list(row) for row in counts)]


class _Cores:
    """This machine: a thread for each core, as far as the largest run fits into its memory. A run holds no lock of the interpreter."""

    def __init__(self, memory_bytes_max: int) -> None:
        cores, free_bytes = _kvssd.limits()
        self.count = max(1, min(cores, free_bytes // max(1, memory_bytes_max)))
        self._pool = ThreadPoolExecutor(self.count)
        self._is_ended = False

    def __enter__(self) -> _Cores:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_ended = True
        self._pool.shutdown(cancel_futures=True)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self._pool.submit(fn, *args, self._go_on)

    def _go_on(self, phase: str, done: int, total: int) -> None:
        if self._is_ended:
            raise InterruptedError(f"the sweep was ended during {phase}")


def _fill(
    raw: RawSweep,
    missing: List[Tuple[int, int, int]],
    executor: Executor,
    under_way_max: int,
    progress: Callable[[int, int], object] | None,
) -> None:
    """Have the missing reports made, the longest first. A point that another process has is looked at again until it is there or free."""
    left = deque(number for number, _, _ in sorted(missing, key=lambda run: -run[1]))
    under_way: List[Tuple[Any, RawClaim]] = []
    failure: Exception | None = None
    total, told, pause_s = raw.count(), -1, _PAUSE_S_MIN
    try:
        while under_way or (left and failure is None):
            for _ in range(len(left) if failure is None else 0):
                if len(under_way) >= under_way_max:
                    break
                number = left.popleft()
                claim = raw.claim(number)
                if claim is None:
                    left.append(number)
                elif raw.has(number):
                    claim.done()
                else:
                    under_way.append((executor.submit(run_point, *raw.point(number)), claim))
            ended = [one for one in under_way if _is_done(one[0])]
            for one in ended:
                under_way.remove(one)
                failure = _keep(*one) or failure
            done = total - len(left) - len(under_way)
            if progress is not None and done != told and failure is None:
                told = done
                progress(done, total)
            pause_s = _PAUSE_S_MIN if ended else min(2 * pause_s, _PAUSE_S_MAX)
            if under_way or left:
                time.sleep(pause_s)
    finally:
        for future, claim in under_way:
            claim.done()
            getattr(future, "cancel", bool)()
    if failure is not None:
        raise failure


def _keep(future: Promise, claim: RawClaim) -> Exception | None:
    """Keep what came of a point. That nothing did ends the sweep, but only behind what others are at."""
    try:
        claim.keep(future.result())
    except Exception as failure:
        claim.done()
        return failure
    return None


def _is_done(future: Any) -> bool:
    # Of a future that does not tell, the result is waited for.
    return bool(getattr(future, "done", lambda: True)())


def _state(point: Point, report: Report | None) -> str:
    if "impossible" in point:
        return "impossible"
    if report is None:
        return "missing"
    return "ended early" if "failure" in report else "done"


def _plain(value: Any) -> Any:
    """What JSON does not know: figures and arrays of NumPy, ranges and paths."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.tolist() if hasattr(value, "tolist") else list(value)
