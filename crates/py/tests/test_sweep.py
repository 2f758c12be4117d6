"""Sweeps from Python: the folder of the command line, whoever runs the points, however often it was ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import kvssd
import pytest

#: Four runs, one of which ends early since its drive is full, and two points that are impossible.
FILE = """
[options]
scale = "1/512"
operations = 2000
[axes]
design = ["original", "plus"]
[[pairs]]
value-bytes = [100, 2000, 3000000]
records = [4000, 300000, 10]
"""

SPACE = {
    "options": {"scale": "1/512", "operations": 2000},
    "axes": {"design": ("original", "plus")},
    "pairs": [{"value-bytes": [100, 2000, 3_000_000], "records": [4000, 300_000, 10]}],
}


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "experiment.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def whole(file: Path) -> dict[str, bytes]:
    """What the command line makes of it."""
    command = [os.environ["KVSSD"], "sweep", str(file), "--out", str(file.parent / "whole")]
    subprocess.run(command, check=True, capture_output=True)
    found = files(file.parent / "whole")
    assert len(found) == 1 + 4
    return found


class Later:
    """A future that has a result and nothing else."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result = call


class Plain:
    """An executor that does nothing before it is asked for the result."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Later:
        return Later(lambda: fn(*args))


def test_a_file_and_a_dictionary_give_the_folder_of_the_command_line(
    file: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    kvssd.sweep(file, tmp_path / "file", progress=lambda done, total: told.append((done, total)))
    assert files(tmp_path / "file") == whole and told[0] == (0, 4) and told[-1] == (4, 4) and told == sorted(told)
    kvssd.sweep(SPACE, out=tmp_path / "space")
    assert files(tmp_path / "space") == whole


@pytest.mark.parametrize(
    "executor",
    [lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")), Plain],
    ids=["threads", "processes", "plain"],
)
def test_whoever_runs_the_points_the_folder_is_the_same(
    executor: Callable[[], Any], whole: dict[str, bytes], tmp_path: Path
) -> None:
    pool = executor()
    kvssd.sweep(SPACE, tmp_path / "out", pool)
    assert files(tmp_path / "out") == whole
    if isinstance(pool, Executor):
        pool.shutdown()


def test_one_goes_on_where_another_one_was_killed(file: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    program = "import kvssd, sys; kvssd.sweep(sys.argv[1], sys.argv[2])"
    out, kills, returned = tmp_path / "out", 0, -1

    def finished() -> int:
        return sum(not path.name.endswith(".part") for path in out.rglob("*"))

    while returned != 0:
        before = finished()
        process = subprocess.Popen([sys.executable, "-c", program, str(file), str(out)], stderr=subprocess.DEVNULL)
        # Each life finishes something, and is killed then.
        while process.poll() is None and finished() <= before:
            time.sleep(0.001)
        process.kill()
        returned = process.wait()
        kills += returned != 0
    assert kills > 0
    # What is left of them are parts that nobody finished.
    assert {name: text for name, text in files(out).items() if not name.endswith(".part")} == whole
    kvssd.sweep(file, out, _Nobody())


class _Nobody:
    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        raise AssertionError("everything is there already")


def test_the_command_line_and_python_share_a_folder(file: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [os.environ["KVSSD"], "sweep", str(file), "--out", str(out), "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        kvssd.sweep(file, out)
        assert files(out).keys() >= whole.keys()
        assert other.wait() == 0
    assert files(out) == whole


def test_what_fails_is_raised_and_what_others_made_is_kept(whole: dict[str, bytes], tmp_path: Path) -> None:
    class Broken(Plain):
        calls = 0

        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Later:
            self.calls += 1
            return super().submit(fn, *args) if self.calls != 2 else Later(lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        kvssd.sweep(SPACE, tmp_path / "out", Broken())
    assert len(list((tmp_path / "out" / "runs").glob("*.json"))) == 3

    class Wrong(Plain):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Later:
            return Later(lambda: b"{}")

    with pytest.raises(kvssd.ExperimentError, match="something else than the report"):
        kvssd.sweep(SPACE, tmp_path / "out", Wrong())
    kvssd.sweep(SPACE, tmp_path / "out")
    assert files(tmp_path / "out") == whole


def test_another_build_does_not_run_points_of_this_one(tmp_path: Path) -> None:
    class Elsewhere(Plain):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Later:
            return Later(lambda: fn("0" * 32, args[1]))

    with pytest.raises(kvssd.ExperimentError, match="planned by another build, and this is kvssd 0"):
        kvssd.sweep(SPACE, tmp_path, Elsewhere())
    with pytest.raises(kvssd.ExperimentError, match="it is no experiment"):
        kvssd.run_point("0" * 32, "{}")


def test_ctrl_c_ends_a_sweep(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()

    def interrupt(done: int, total: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            kvssd.sweep({"options": {"scale": "1/4"}, "axes": {"seed": range(1, 9)}}, tmp_path, progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 30 and list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("space", "line"),
    [
        ({"axis": {}}, "unknown field `axis`"),
        ({"axes": {"seed": []}}, "seed: an axis has at least one value"),
        ({"options": {"nonsense": 1}}, "nonsense"),
        ({"options": {"store": "folder"}}, "store is not for a sweep"),
        ({"options": {"value-bytes": 3_000_000}}, "none of its points is possible"),
        ("nowhere.toml", "nowhere.toml: cannot be read"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(space: Any, line: str, tmp_path: Path) -> None:
    with pytest.raises(kvssd.ExperimentError, match=line) as raised:
        kvssd.sweep(space, tmp_path)
    assert "\n" not in str(raised.value)


def test_a_folder_is_a_table(tmp_path: Path) -> None:
    swept = kvssd.sweep(SPACE, tmp_path)
    rows = list(swept.rows())
    assert len(rows) == len(swept.points) == 6
    assert [row["design"] for row in rows] == ["original"] * 3 + ["plus"] * 3
    assert rows[0]["throughput_ops_s"] > 0 and "full" in rows[1]["failure"] and "2097152" in rows[2]["impossible"]
    said = repr(kvssd.Sweep(tmp_path))
    assert "100 with 4000, 2000 with 300000" in said and said.endswith("done                  2\nended early           2\nimpossible            2")
    assert "<td>impossible</td>" in swept._repr_html_()


def test_what_is_no_folder_of_a_sweep_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(kvssd.OpenError, match="nothing is no folder of a sweep: index.json: No such file"):
        kvssd.Sweep(tmp_path / "nothing")
    for text in ("no JSON", "[]", '{"axes": []}'):
        (tmp_path / "index.json").write_text(text)
        with pytest.raises(kvssd.OpenError, match="index.json is not what a sweep writes"):
            kvssd.Sweep(tmp_path)
