"""Sweeps on a Slurm, as crates/py/test_slurm.sh starts one; those of a cluster that is there are as good."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import kvssd
import pytest
from test_documents import blocks
from test_sweep import SPACE, file, files, whole

submitit = pytest.importorskip("submitit")

__all__ = ["file", "whole"]

pytestmark = pytest.mark.skipif("SLURM_CONF" not in os.environ, reason="crates/py/test_slurm.sh starts a Slurm")


def slurm(*command: str) -> str:
    """What a program of Slurm says."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_block_of_the_document_gives_the_folder_of_the_command_line(
    file: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("experiment.toml").write_bytes(file.read_bytes())
    (block,) = blocks("docs/PYTHON.md", of="import submitit")
    known: dict[str, Any] = {"kvssd": kvssd}
    exec(compile(block, "docs/PYTHON.md", "exec"), known)
    assert isinstance(known["slurm"]._executor, submitit.SlurmExecutor)
    assert files(Path("results")) == whole
    # A job for each point.
    assert len(list(Path("log").glob("*_result.pkl"))) == 4


def test_a_sweep_that_is_ended_takes_its_jobs_back(whole: dict[str, bytes], tmp_path: Path) -> None:
    def end(done: int, total: int) -> None:
        raise InterruptedError

    out, log = tmp_path / "out", tmp_path / "log"
    with pytest.raises(InterruptedError):
        kvssd.sweep(SPACE, out, submitit.SlurmExecutor(folder=log), progress=end)
    assert len(list(log.glob("*_submitted.pkl"))) == 4
    assert slurm("squeue", "--noheader", "--states=PENDING,RUNNING") == ""
    kvssd.sweep(SPACE, out, submitit.SlurmExecutor(folder=log))
    assert files(out) == whole


def test_a_job_array_of_the_command_line_gives_the_same_folder(file: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "out"
    shard = f"{os.environ['KVSSD']} sweep {file} --out {out} --shard $SLURM_ARRAY_TASK_ID/3"
    slurm("sbatch", "--wait", "--array=1-3", f"--output={tmp_path}/%a.log", f"--wrap={shard}")
    assert files(out) == whole
