#!/usr/bin/env bash
# Installs the Python package into its own virtual environment in the build directory, as `pip install .` does, and
# tests it there. FLOATGATE is the program whose results the package must reproduce.
#
# REQUIREMENTS is a file with the other requirements of the tests.
#
#   test_python.sh DIRECTORY [ARGUMENTS OF PYTEST...]
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
environment=$(cd "$1" && pwd)
shift
# The build calls maturin by its name.
export PATH=$environment/bin:$PATH
python=$environment/bin/python
wanted=${REQUIREMENTS:-python/tests/requirements.txt}
present=$environment/requirements.txt

[ -x "$python" ] || python3 -m venv "$environment"
if ! cmp --silent "$wanted" "$present"; then
    "$python" -m pip install --quiet --requirement "$wanted" 'numpy>=1.24' 'pyarrow>=14'
    cp "$wanted" "$present"
fi
[ -z "${FLOATGATE:-}" ] || scripts/shell_files.sh "$FLOATGATE" crates/wheel/data/data/share
# Use the profile of the tests, which reuses what Cargo has built for them, and the installed maturin.
"$python" -m pip install --quiet --no-deps --no-build-isolation --force-reinstall . \
    --config-settings 'build-args=--profile dev'
"$python" -B -m pytest -p no:cacheprovider --numprocesses auto --dist loadfile "$@"
