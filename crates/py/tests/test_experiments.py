"""The laboratory from Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kvssd
import pytest

def small(designs: str | list[str], **options: Any) -> list[kvssd.Run]:
    """The runs of a bench that takes little time."""
    return kvssd.bench(designs, scale="1/512", records=20_000, operations=4_000, **options).runs


def test_a_bench_gives_a_dictionary_for_each_design() -> None:
    runs = small(["original", "plus"], workload="ycsb-b", seed=3)
    assert [run["design"] for run in runs] == ["original", "plus"]
    for run in runs:
        assert run["operations"] == 4_000 and run["throughput_ops_s"] > 0 and run["failed_retrieves"] == 0
        assert run["workload"].startswith("ycsb-b") and run["latency_ns"]["retrieve"]["p99"] > 0
    again = small("original", workload="ycsb-b", seed=3)[0]
    assert {**again, "host": None} == {**runs[0], "host": None}


def test_a_report_is_a_table_and_can_be_run_again(tmp_path: Path) -> None:
    report = kvssd.bench("plus", scale="1/512", records=20_000, operations=4_000, rounds=2, series="5ms")
    assert report.runs == report["runs"] and report["runs"][0]["rounds"]["reported_last"] == 2
    assert repr(report).startswith("<kvssd.Report: 1 runs>\ndesign") and "ycsb-a" in repr(report)
    assert "<th>op/s</th>" in report._repr_html_()
    report.save(tmp_path / "runs.json")
    again = [os.environ["KVSSD"], "bench", "--from", str(tmp_path / "runs.json"), "--json", "-"]
    done = subprocess.run(again, check=True, capture_output=True)
    assert not done.stderr, "it is the same build"
    assert {**json.loads(done.stdout)["runs"][0], "host": None} == {**report.runs[0], "host": None}


def test_reports_and_claims_are_frames() -> None:
    pytest.importorskip("pandas")
    frame = kvssd.bench(scale="1/512", records=20_000, operations=4_000).to_pandas()
    assert list(frame["design"]) == ["original", "plus"] and (frame["latency_ns.retrieve.p99"] > 0).all()
    claims = kvssd.Claims({"claims": [{"id": "plus.1", "verdict": "reproduced"}]})
    assert claims.to_pandas()["verdict"][0] == "reproduced" and "plus.1" in repr(claims)


def test_a_table_without_pandas_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        kvssd.Claims({"claims": []}).to_pandas()


def test_progress_is_told_and_may_end_it() -> None:
    told: list[tuple[str, int, int]] = []
    kvssd.bench("plus", scale="1/512", progress=lambda *at: told.append(at))
    phases = list(dict.fromkeys(phase for phase, _, _ in told))
    assert len(phases) >= 3 and all(0 <= done <= total for _, done, total in told)

    def stop(phase: str, done: int, total: int) -> None:
        raise StopIteration(phase)

    with pytest.raises(StopIteration):
        kvssd.bench("plus", progress=stop)


def test_what_progress_raises_is_raised_also_where_all_was_done_by_then() -> None:
    def stop(*at: object) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        kvssd.bench("plus", scale="1/512", records=100, operations=10, progress=stop)


def test_overrides_change_what_is_measured() -> None:
    runs = [small("plus", set={"nand.program_ns": ns})[0] for ns in (1_000, 10_000_000)]
    assert runs[0]["throughput_ops_s"] > 2 * runs[1]["throughput_ops_s"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"designs": "nonsense"}, "nonsense"),
        ({"profile": "nonsense"}, "nonsense"),
        ({"workload": "nonsense"}, "nonsense"),
        ({"distribution": "nonsense"}, "nonsense"),
        ({"set": {"design.nonsense": 1}}, "nonsense"),
        ({"threads": 0}, "threads"),
        ({"scale": 1e-9}, "scale"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(options: dict[str, object], line: str) -> None:
    with pytest.raises(kvssd.ExperimentError, match=line) as raised:
        kvssd.bench(**options)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


def test_a_paper_that_nobody_knows_and_a_testbed_that_is_too_small_are_said() -> None:
    with pytest.raises(kvssd.ExperimentError, match="there is no paper nobody"):
        kvssd.reproduce("nobody")
    with pytest.raises(kvssd.ExperimentError, match="too small"):
        kvssd.reproduce("study", scale="1/4096")
    with pytest.raises(kvssd.InvalidError, match="seed is a number from 0 to 18446744073709551615, not -1"):
        kvssd.reproduce("plus", seed=-1)


@pytest.mark.parametrize(
    "experiment", [lambda: kvssd.bench("plus", scale="1/4"), lambda: kvssd.reproduce("plus", scale="1/4")]
)
def test_ctrl_c_ends_an_experiment_and_threads_go_on_meanwhile(experiment: Callable[[], object]) -> None:
    ticks = 0

    def interrupt() -> None:
        nonlocal ticks
        for _ in range(20):
            time.sleep(0.02)
            ticks += 1
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    began = time.monotonic()
    # Who starts the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            experiment()
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ticks == 20 and time.monotonic() - began < 30
