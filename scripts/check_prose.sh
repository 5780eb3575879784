#!/usr/bin/env bash
# Checks the spelling of all texts with typos (typos.toml has the word list), and the messages of new commits.
# Usage: check_prose.sh DIRECTORY, where typos is installed once.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$1
version=1.52.0
if ! "$environment/bin/typos" --version 2>/dev/null | grep -q "$version"; then
    python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "typos==$version"
fi
"$environment/bin/typos" --config typos.toml --format brief
scripts/check_commit_message.sh
