#!/usr/bin/env bash
# Tests the storage plugin (kvssd.lmcache) with the real LMCache, by hand: CI does not call it, since LMCache needs torch, and the torch of the
# package index brings CUDA along, 6 GB in all. No accelerator is needed. Two minutes to install, five in all on two cores that others use.
#
#   Python 3.11 on Linux, x86-64 -> a virtual environment in target/, pinned by hashes -> maturin -> the program
#     -> pytest: LMCache's storage manager and engine on an image and on a URL
#     -> with --bench: gigabytes a second beside LMCache's own back end of files (examples/python/lmcache_bench.py)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=$PWD/target/python-lmcache
if ! cmp --quiet crates/py/requirements-lmcache.txt "$environment/requirements.txt"; then
    python3.11 -m venv --clear "$environment"
    # The file has all that they need of each other.
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r crates/py/requirements-lmcache.txt
    cp crates/py/requirements-lmcache.txt "$environment/requirements.txt"
fi
export VIRTUAL_ENV=$environment PATH=$environment/bin:$PATH
target=${CARGO_TARGET_DIR:-target}

if [[ ${1:-} == --bench ]]; then
    maturin develop --quiet --locked --release
    cargo build --quiet --locked --release --package kvssd
    KVSSD=$target/release/kvssd exec python examples/python/lmcache_bench.py "${@:2}"
fi
maturin develop --quiet --locked
cargo build --quiet --locked --package kvssd --features campaigns,papers
KVSSD=$target/debug/kvssd pytest --quiet --show-capture=no crates/py/tests/test_lmcache.py
