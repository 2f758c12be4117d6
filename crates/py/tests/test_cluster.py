"""Sweeps on a Ray cluster and through submitit, and the example that searches with Optuna, as crates/py/test_cluster.sh runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import kvssd
import pytest
from test_documents import ROOT
from test_sweep import SPACE, file, files, whole

ray = pytest.importorskip("ray")
submitit = pytest.importorskip("submitit")

__all__ = ["file", "whole"]


@pytest.fixture
def cluster() -> Iterator[None]:
    """A head that runs nothing, and two workers."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    yield
    ray.shutdown()
    nodes.shutdown()


def test_a_ray_cluster_gives_the_folder_of_the_command_line(
    cluster: None, whole: dict[str, bytes], tmp_path: Path
) -> None:
    from kvssd.ray import RayExecutor

    assert ray.cluster_resources()["CPU"] == 2
    kvssd.sweep(SPACE, tmp_path / "out", RayExecutor())
    assert files(tmp_path / "out") == whole


def test_submitit_goes_on_where_a_sweep_on_this_machine_was_ended(whole: dict[str, bytes], tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def end(done: int, total: int) -> None:
        if done > 0:
            raise Enough

    with pytest.raises(Enough):
        kvssd.sweep(SPACE, tmp_path / "out", progress=end)
    assert 0 < len(list((tmp_path / "out" / "runs").glob("*.json"))) < 4
    executor = submitit.AutoExecutor(folder=tmp_path / "log", cluster="local")
    executor.update_parameters(timeout_min=5)
    kvssd.sweep(SPACE, tmp_path / "out", executor)
    assert files(tmp_path / "out") == whole


def test_the_example_of_optuna_finds_what_nobody_beats() -> None:
    command = [sys.executable, str(ROOT / "examples" / "python" / "pareto.py")]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert said[0] == "of 40 trials these are beaten by none:" and len(said) > 1
