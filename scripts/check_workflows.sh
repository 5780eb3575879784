#!/usr/bin/env bash
# Checks the workflows of .github with their JSON schema, and with actionlint if it is installed.
# Usage: check_workflows.sh DIRECTORY, where check-jsonschema is installed once.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$1
version=0.39.0
if ! "$environment/bin/check-jsonschema" --version 2>/dev/null | grep -q "$version"; then
    python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "check-jsonschema==$version"
fi
"$environment/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
if command -v actionlint >/dev/null; then
    actionlint
fi
