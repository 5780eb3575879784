#!/usr/bin/env bash
# Runs the studies of the papers with the current package, in the release profile, and executes the tutorial. Rewrites
# their pages in docs/: review `git diff` afterwards. Runs are kept in RUNS, and are not repeated. TRACES is a directory
# with the traces of IOzone and Postmark for agrawal2008, whose page was made with them.
#
#   studies.sh ENVIRONMENT RUNS
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1" "$2"
environment=$(cd "$1" && pwd)
runs=$(cd "$2" && pwd)
export PATH=$environment/bin:$PATH
python=$environment/bin/python

[ -x "$python" ] || python3 -m venv "$environment"
"$python" -m pip install --quiet --requirement python/tests/requirements.txt nbconvert 'numpy>=1.24' 'pyarrow>=14'
"$python" -m pip install --quiet --no-deps --no-build-isolation --force-reinstall .
for study in park2015 hu2011 hu2013; do
    "$python" -m floatgate study "$study" --out "$runs" --markdown docs/studies
done
"$python" -m floatgate study agrawal2008 ${TRACES:+--traces "$TRACES"} --out "$runs" --markdown docs/studies
"$python" -m floatgate study yoo2013 --traces examples --out "$runs" --markdown docs/studies
"$python" -B scripts/gallery.py
"$python" -m jupyter nbconvert --to notebook --execute --inplace docs/tutorial.ipynb
