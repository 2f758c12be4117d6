#!/usr/bin/env bash
# Sweeps from Python on a Ray cluster of two workers and through submitit, and the example that searches with Optuna; or the tests that are given.
#
#   a virtual environment in target/ -> the tools of test.sh, Ray, submitit and Optuna, by their hashes -> maturin -> the program -> pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=$PWD/target/python-cluster
if ! cmp --quiet crates/py/requirements-cluster.txt "$environment/requirements.txt"; then
    python3 -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r crates/py/requirements-cluster.txt
    cp crates/py/requirements-cluster.txt "$environment/requirements.txt"
fi
export VIRTUAL_ENV=$environment PATH=$environment/bin:$PATH

maturin develop --quiet --locked
cargo build --quiet --locked --package kvssd --features campaigns,papers
export KVSSD=${CARGO_TARGET_DIR:-target}/debug/kvssd
pytest --quiet "${@:-crates/py/tests/test_cluster.py}"
