"""What a program hands over that is of another type."""

from __future__ import annotations

from pathlib import Path

import kvssd
import pytest


def test_a_name_is_no_namespace(tmp_path: Path) -> None:
    store = kvssd.open(tmp_path / "drive.kv", create_bytes=64 << 20)
    store.create_namespace("accounts")
    line = "a namespace is what store.namespace\\(name\\) gives, not 'accounts'"
    with store.batch() as batch:
        with pytest.raises(TypeError, match=line):
            batch.store(b"a", b"b", "accounts")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=line):
            batch.delete(b"a", "accounts")  # type: ignore[arg-type]
    with store.transaction() as tx, pytest.raises(TypeError, match=line):
        tx.get(b"a", "accounts")  # type: ignore[arg-type]
    assert len(store) == 0
    store.close()
