#!/usr/bin/env bash
# Tests the extension module of examples/policies/python, with the Python package of the source tree. The module
# replaces the package's own. Needs an environment with NumPy and pyarrow, such as that of scripts/test_python.sh.
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
