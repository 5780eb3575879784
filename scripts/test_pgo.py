"""Tests of pgo.sh with a compiler that only pretends to compile."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("pgo.sh")
RUSTC = """case $1 in
-vV) printf 'host: here\\nLLVM version: 99.1.0\\n' ;;
*) echo /nonexistent ;;
esac"""
CARGO = """echo "flags: $RUSTFLAGS" >&2
while [ "$1" != --target-dir ]; do shift; done
mkdir -p "$2/here/release"
printf '#!/bin/sh\\n' >"$2/here/release/floatgate"
chmod +x "$2/here/release/floatgate"
"""
PROFDATA = """case $1 in
--version) echo 'LLVM version 99.2.1' ;;
merge) echo profile >"${2#--output=}" ;;
show) for number in $(seq 30); do echo "  lib.rs;hot$number, max count = $number"; done ;;
esac"""


def nm(name):
    """Return a program that lists functions."""
    return f'for number in $(seq 30); do echo "0000 T {name}$number"; done'


class Pgo(unittest.TestCase):
    def run_with(self, *arguments, **programs):
        """Run the script with these programs first on the PATH."""
        with tempfile.TemporaryDirectory() as place:
            for name, text in {"rustc": RUSTC, "cargo": CARGO, **programs}.items():
                path = pathlib.Path(place) / name.replace("_", "-")
                path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
                path.chmod(0o755)
            environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "CARGO_TARGET_DIR": place}
            environment.pop("LLVM_PROFDATA", None)
            return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False, env=environment)

    def test_without_a_reader_of_profiles_the_program_is_built_without_one(self):
        done = self.run_with(llvm_profdata='echo "LLVM version 98.0.0"')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there is no llvm-profdata for LLVM 99", done.stderr)
        self.assertNotIn("-Cprofile", done.stderr)
        self.assertTrue(done.stdout.endswith("/pgo/here/release/floatgate\n"), done.stdout)

    def test_a_target_is_built_in_either_form_of_the_option(self):
        cargo = CARGO.replace("/here/", "/there/") + 'echo "options: $*" >&2'
        for words in (["--target", "there"], ["--target=there"]):
            done = self.run_with(*words, llvm_profdata='echo "LLVM version 98.0.0"', cargo=cargo)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.endswith("/pgo/there/release/floatgate\n"), done.stdout)
            self.assertNotIn("--target here", done.stderr)

    def test_a_profile_of_the_same_functions_is_used(self):
        done = self.run_with(llvm_profdata=PROFDATA, nm=nm("hot"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(done.stderr.index("-Cprofile-generate="), done.stderr.index("-Cprofile-use="))
        self.assertIn("30 of the 30 hottest functions", done.stderr)
        self.assertTrue(done.stdout.endswith("/pgo/here/release/floatgate\n"), done.stdout)

    def test_a_profile_of_other_functions_is_an_error(self):
        done = self.run_with(llvm_profdata=PROFDATA, nm=nm("other"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: the profile does not match the program", done.stderr)

    def test_a_warning_of_the_compiler_is_an_error(self):
        cargo = CARGO + "echo 'warning: function control flow change detected (hash mismatch) f' >&2"
        done = self.run_with(llvm_profdata=PROFDATA, nm=nm("hot"), cargo=cargo)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: the profile does not match the program", done.stderr)


if __name__ == "__main__":
    unittest.main()
