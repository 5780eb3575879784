"""The command installed by the package."""

import re
import signal
import subprocess
import sys

import pytest
import tomllib

import floatgate as fg


def call(script, *arguments, **options):
    return subprocess.run([script, *arguments], capture_output=True, text=True, check=False, **options)


def test_the_page_on_commands_has_all_commands(root, program, monkeypatch):
    monkeypatch.syspath_prepend(root / "scripts")
    monkeypatch.setenv("FLOATGATE", program)
    import docs_hooks

    page = docs_hooks.commands_page(docs_hooks._help)
    for command in ("run", "serve", "ctl power-cut", "device schema", "trace synth", "sweep", "man"):
        assert re.search(f"^#+ floatgate {command}\n\n```text\n", page, re.MULTILINE), command
    assert "--precondition <STATE>" in page


def test_the_script_behaves_like_the_program(script, program):
    for arguments in (
        ["--help"],
        ["device", "list"],
        ["run", "--help"],
        ["device", "show", "hu2011"],
        ["device", "show", "hu2012"],
        ["wrong"],
    ):
        ours, theirs = call(script, *arguments), call(program, *arguments)
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


def test_versions_are_equal(script, root):
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert call(script, "--version").stdout == f"floatgate {version}\n"
    assert fg.__version__ == version


def test_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "floatgate", "device", "check", "tiny"], capture_output=True, text=True, check=True
    )
    assert "tiny is a valid device" in done.stdout


def test_arguments_are_recorded(script):
    done = call(script, "run", "tiny", "rw=read number_ios=10", "--json", "--seed", "3")
    assert '"arguments": ["run", "tiny", "rw=read number_ios=10", "--seed", "3"]' in done.stdout


def test_ctrl_c_ends_the_run_cleanly(script, tmp_path):
    arguments = ["run", "tiny", "rw=randwrite bs=4k iodepth=8 number_ios=100m", "--out", str(tmp_path)]
    process = subprocess.Popen([script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not any(tmp_path.iterdir()):
        assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert "INTERRUPTED" in output
    assert "ending" in errors
    assert fg.load(tmp_path).complete is False


def test_a_closed_pipe_is_not_an_error(script):
    shell = f"{script} device show hu2011 --toml | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_stderr_may_have_invalid_utf8(script):
    done = subprocess.run([script.encode(), b"run", b"tiny", b"\xff"], capture_output=True, check=False)
    assert done.returncode == 2
    assert re.match(rb"error: ", done.stderr)
