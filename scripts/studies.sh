#!/usr/bin/env bash
# Runs the studies of the papers with the current package, in the release profile, and executes the notebooks. Rewrites
# their pages in docs/: review `git diff` afterwards. Runs are kept in RUNS, and are not repeated. TRACES is a directory
# with the traces of IOzone and Postmark for agrawal2008, whose page was made with them. If QUICK is set, does small
# runs, whose verdicts are not reliable, and leaves docs/ as it is. With STUDY, runs this study only, and no notebook.
#
#   studies.sh ENVIRONMENT RUNS [STUDY]
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1" "$2"
environment=$(cd "$1" && pwd)
runs=$(cd "$2" && pwd)
only=${3:-}
export PATH=$environment/bin:$PATH
python=$environment/bin/python

[ -x "$python" ] || python3 -m venv "$environment"
"$python" -m pip install --quiet --requirement python/tests/requirements.txt nbconvert 'numpy>=1.24' 'pyarrow>=14'
"$python" -m pip install --quiet --no-deps --no-build-isolation --force-reinstall . \
    --config-settings 'build-args=--profile release'
if [ -n "${QUICK:-}" ]; then
    pages=(--quick)
    notebooks=(--output-dir "$runs")
else
    pages=(--markdown docs/studies)
    notebooks=(--inplace)
fi
study() {
    [ "${only:-$1}" = "$1" ] || return 0
    "$python" -m floatgate study "$@" --out "$runs" "${pages[@]}"
}
study park2015
study hu2011
study hu2013
study agrawal2008 ${TRACES:+--traces "$TRACES"}
study yoo2013 --traces examples
study kvcache
study consumer
study ssdiq2025
[ -n "${QUICK:-}" ] || "$python" -B scripts/fidelity.py
[ -z "$only" ] || exit 0
[ -n "${QUICK:-}" ] || "$python" -B scripts/gallery.py
"$python" -m jupyter nbconvert --to notebook --execute --ExecutePreprocessor.record_timing=False \
    "${notebooks[@]}" docs/tutorial.ipynb docs/which-policy.ipynb
