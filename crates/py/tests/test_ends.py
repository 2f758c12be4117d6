"""What a program leaves open when it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import kvssd, os, sys, threading

def begin():
    store = kvssd.open(sys.argv[1], create_bytes=64 << 20)
    pairs = store.create_namespace("pairs", ordered=True)
    pairs.update({b"%d" % number: b"" for number in range(3000)})
    scan, change = pairs.scan(), store.transaction()
    next(scan)
    return store, scan, change
"""
ENDS = {
    "all open": "store, scan, change = begin(); change.__enter__(); change[b'1'] = b'2'",
    "a store that was closed": "store, scan, change = begin(); store.close()",
    "all open, begun by another thread": """
left = []
def work():
    left.extend(begin())
    left[2].__enter__()
    left[2][b'1'] = b'2'
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
    "all open, in a child": """
store, scan, change = begin()
change.__enter__()
change[b'1'] = b'2'
child = os.fork()
if child != 0:
    assert os.waitpid(child, 0)[1] == 0
    change.__exit__(None, None, None)
    store.close()
""",
}


@pytest.mark.parametrize("what", ENDS)
def test_a_program_that_ends_with_it_says_nothing(what: str, tmp_path: Path) -> None:
    if "child" in what and sys.platform == "win32":
        pytest.skip("there is no fork")
    command = [sys.executable, "-c", BEGIN + ENDS[what], str(tmp_path / "drive.kv")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
