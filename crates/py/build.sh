#!/usr/bin/env bash
# Makes a wheel and a source archive in target/wheels, and tests the wheel where nothing else of the project is.
#
#   pinned maturin and zig -> source archive -> wheel of every Python from 3.9 on
#     -> a fresh virtual environment with the wheel -> the tests of the package
#
# Zig links against the glibc of 2014 (manylinux2014), whatever this machine has; without Linux there is no need.
# The wheel is of this checkout: its sweeps go on where those of the command line built here were ended.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# A virtual environment in target/ with what a file pins.
environment() {
    local folder=$PWD/target/$1 requirements=crates/py/$2
    if ! cmp --quiet "$requirements" "$folder/requirements.txt"; then
        python3 -m venv --clear "$folder"
        "$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$requirements"
        cp "$requirements" "$folder/requirements.txt"
    fi
}

linux=()
if [[ $(uname) == Linux ]]; then
    linux=(--zig --compatibility manylinux2014)
fi
environment python-build requirements-build.txt
rm -rf target/wheels
(
    export VIRTUAL_ENV=$PWD/target/python-build PATH=$PWD/target/python-build/bin:$PATH
    # It warns of each crate that it has no web page.
    maturin sdist --out target/wheels 2>target/sdist.log || { cat target/sdist.log >&2; exit 1; }
    maturin build --quiet --release --locked --strip "${linux[@]}" --out target/wheels
)

environment python-wheel requirements.txt
tested=target/python-wheel/bin
"$tested/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheels/kvssd-*.whl
cargo build --quiet --locked --package kvssd --features campaigns,papers
KVSSD=${CARGO_TARGET_DIR:-target}/debug/kvssd "$tested/pytest" --quiet crates/py/tests
ls -l target/wheels
