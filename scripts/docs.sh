#!/usr/bin/env bash
# Builds the documentation's site with mkdocs, in its own virtual environment: DIRECTORY/site/index.html.
#
#   FLOATGATE=PROGRAM docs.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
directory=$(cd "$1" && pwd)
environment=$directory/environment
wanted=scripts/docs_requirements.txt
present=$environment/requirements.txt

[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
if ! cmp --silent "$wanted" "$present"; then
    "$environment/bin/python" -m pip install --quiet --requirement "$wanted"
    cp "$wanted" "$present"
fi
NO_MKDOCS_2_WARNING=1 "$environment/bin/python" -B -m mkdocs build --strict --site-dir "$directory/site"
echo "$directory/site/index.html (to use the search, serve the site: python3 -m http.server -d $directory/site)"
