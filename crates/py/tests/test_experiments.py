"""The laboratory from Python."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import kvssd
import pytest

def small(designs: str | list[str], **options: Any) -> list[dict[str, Any]]:
    """The runs of a bench that takes little time."""
    runs: list[dict[str, Any]] = kvssd.bench(designs, scale="1/512", records=20_000, operations=4_000, **options)["runs"]
    return runs


def test_a_bench_gives_a_dictionary_for_each_design() -> None:
    runs = small(["original", "plus"], workload="ycsb-b", seed=3)
    assert [run["design"] for run in runs] == ["original", "plus"]
    for run in runs:
        assert run["operations"] == 4_000 and run["throughput_ops_s"] > 0 and run["failed_retrieves"] == 0
        assert run["workload"].startswith("ycsb-b") and run["latency_ns"]["retrieve"]["p99"] > 0
    again = small("original", workload="ycsb-b", seed=3)[0]
    assert {**again, "host": None} == {**runs[0], "host": None}


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
