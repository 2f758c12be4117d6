"""What documents and examples show works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kvssd
import pytest

ROOT = Path(__file__).parents[3]

#: The files that blocks of the documents read, in the folder where they are run.
EXPERIMENT = '[options]\nscale = "1/512"\noperations = 2000\nrecords = 4000\n[axes]\nseed = [1, 2]\n'


def blocks(document: str, of: str | None = None) -> list[str]:
    """The blocks of Python in a document: those with the line ``of``, else all but those of clusters."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if of is not None:
        return [block for block in found if of in block]
    return [block for block in found if "import ray" not in block and "import submitit" not in block]


@pytest.mark.parametrize(
    ("document", "count"), [("docs/PYTHON.md", 5), ("docs/SWEEPS.md", 1), ("README.md", 1)]
)
def test_blocks_of_documents_run(document: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    known: dict[str, Any] = {}
    found = blocks(document)
    assert len(found) == count
    # One after the other, as they are read.
    for block in found:
        exec(compile(block, document, "exec"), known)


def test_the_asyncio_example_runs(tmp_path: Path) -> None:
    drive = tmp_path / "drive.kv"
    command = [sys.executable, os.fspath(ROOT / "examples" / "python" / "gather.py"), os.fspath(drive)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.startswith("2000 pairs on the disk")
    with kvssd.open(drive) as store:
        assert len(store) == 2000
