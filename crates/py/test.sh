#!/usr/bin/env bash
# Builds the Python package and tests it: pytest, and mypy over its types.
#
#   a virtual environment in target/ -> pinned tools, by their hashes -> maturin, of what `cargo test` has built
#     -> the program -> pytest -> mypy -> stubtest: what the native part is, and what it says it is
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=$PWD/target/python
if ! cmp --quiet crates/py/requirements.txt "$environment/requirements.txt"; then
    python3 -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r crates/py/requirements.txt
    cp crates/py/requirements.txt "$environment"
fi
export VIRTUAL_ENV=$environment PATH=$environment/bin:$PATH

# With what the tests of the crate kvssd turn on: nothing but the package itself is built again.
maturin develop --quiet --locked --features tls,kvssd/campaigns,kvssd/papers,kvssd/tls
# What serves a drive on the wire, as `cargo test --workspace` builds it.
cargo test --quiet --locked --workspace --no-run --test command_line
export KVSSD=${CARGO_TARGET_DIR:-target}/debug/kvssd
pytest --quiet crates/py/tests
mypy
mypy crates/py/tests examples/python
stubtest --ignore-missing-stub --concise kvssd._kvssd
