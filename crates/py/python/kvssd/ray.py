"""Sweeps on a Ray cluster. It needs ``pip install ray``, and this package on every machine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import ray


class RayExecutor:
    """An executor of ``kvssd.sweep`` for the cluster that ``ray.init`` has found. ``options`` are those of a Ray task, such as ``memory``."""

    def __init__(self, **options: Any) -> None:
        self._options = {"num_cpus": 1, **options}

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Have a task call it."""
        task: Any = ray.remote(**self._options)(fn)
        future: Future[Any] = task.remote(*args).future()
        return future
