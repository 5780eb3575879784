#!/usr/bin/env bash
# Writes the man pages of a program, and its completions for bash, fish and zsh, to DIRECTORY, which is the `share/` of
# an installation. With `crates/wheel/data/data/share`, the Python package will contain them.
#
#   shell_files.sh PROGRAM DIRECTORY
set -euo pipefail

program=$(command -v -- "$1") || { echo "shell_files.sh: there is no program $1" >&2 && exit 1; }
program=$(realpath "$program")
mkdir -p "$2/bash-completion/completions" "$2/fish/vendor_completions.d" "$2/zsh/site-functions"
cd "$2"
rm -rf man/man1
"$program" man man/man1
"$program" completions bash >bash-completion/completions/floatgate
"$program" completions fish >fish/vendor_completions.d/floatgate.fish
"$program" completions zsh >zsh/site-functions/_floatgate
