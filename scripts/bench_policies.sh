#!/usr/bin/env bash
# Installs the Python package into a virtual environment, in the release profile as published wheels have it, and
# measures policies in Python.
#
#   bench_policies.sh ENVIRONMENT [ARGUMENTS OF bench_policies.py...]
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
environment=$(cd "$1" && pwd)
shift
export PATH=$environment/bin:$PATH
python=$environment/bin/python

[ -x "$python" ] || python3 -m venv "$environment"
"$python" -m pip install --quiet 'maturin>=1.8,<2' 'numpy>=1.24' 'pyarrow>=14' 'numba>=0.59'
"$python" -m pip install --quiet --no-deps --no-build-isolation --force-reinstall . \
    --config-settings 'build-args=--profile release'
"$python" -B scripts/bench_policies.py "$@"
