#!/usr/bin/env bash
# Tests the extension module of examples/policies/python: the Python package of the source tree with that module in the
# place of its own. It needs an environment with NumPy and pyarrow, as scripts/test_python.sh makes it.
#
#   test_example.sh ENVIRONMENT TARGET
set -euo pipefail
cd "$(dirname "$0")/.."

environment=$(cd "$1" && pwd)
target=$2
package=$target/example-python
rm -rf "$package"
mkdir -p "$package"
cp -r python/floatgate "$package/floatgate"
cp "$target/debug/libexample_floatgate.so" "$package/floatgate/_floatgate.abi3.so"
PYTHONPATH=$package "$environment/bin/python" -B examples/policies/python/test.py
