"""Quality of the package: types, examples that run, and a fast import."""

import doctest
import importlib
import inspect
import itertools
import json
import os
import pkgutil
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import floatgate as fg
from conftest import python


def tool(root, *arguments):
    command = [sys.executable, "-m", *arguments]
    variables = {**os.environ, "MYPY_CACHE_DIR": CACHE}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr


#: Kept between runs, because mypy takes half a minute for the types of NumPy.
CACHE = str(Path(sys.prefix, "mypy"))


def test_types_are_checked(root):
    tool(root, "mypy", "python/floatgate")


WRONG_NAMES = """
import floatgate as fg

result = fg.run("tiny", "rw=read")
result.summary.requests.write.latency_us.p9
result.summary.bottlenecks
result.summary.requests.write.attribution.mean
result.summary.requests.write.iops + result.summary.write_amplification
right: float = result.summary.requests.write.latency_us.p99
free: object = result.summary.config.gc.victim
fg.Trace("x").info().operations[0].operations
"""


def test_wrong_names_are_errors_of_types(root, tmp_path):
    place = tmp_path / "wrong.py"
    place.write_text(WRONG_NAMES)
    variables = {**os.environ, "MYPY_CACHE_DIR": CACHE, "MYPYPATH": str(root / "python")}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(root / "pyproject.toml"), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=variables)
    found = [line.split("error: ")[1] for line in done.stdout.splitlines() if "wrong.py" in line and "error: " in line]
    assert len(found) == 4, done.stdout
    assert '"Distribution" has no attribute "p9"; maybe' in found[0]
    assert '"Summary" has no attribute "bottlenecks"; maybe "bottleneck"?' in found[1]
    assert "None" in found[2]
    assert '"OperationProfile" has no attribute "operations"; maybe "operation"?' in found[3]


def test_the_stub_matches_the_module(root):
    tool(root, "mypy.stubtest", "--mypy-config-file", "pyproject.toml", "floatgate._floatgate")


def test_style(root):
    tool(root, "ruff", "check", "--no-cache", ".")
    tool(root, "ruff", "format", "--no-cache", "--check", ".")


def test_types_are_installed():
    files = {str(file) for file in metadata.files("floatgate")}
    assert {"floatgate/py.typed", "floatgate/_floatgate.pyi"} <= files
    assert not [file for file in files if "tests" in file]


def test_there_are_two_base_dependencies():
    required = [text for text in metadata.requires("floatgate") if "extra ==" not in text]
    assert sorted(re.match(r"[a-z]+", text)[0] for text in required) == ["numpy", "pyarrow"]


def test_import_loads_no_large_modules():
    done = python(
        "import sys, floatgate; print([name for name in ('numpy', 'pyarrow', 'matplotlib') if name in sys.modules])"
    )
    assert done.stdout == "[]\n", done.stderr


def test_everything_public_is_documented():
    for module in [fg, *(importlib.import_module(f"floatgate.{m.name}") for m in pkgutil.iter_modules(fg.__path__))]:
        assert module.__doc__, module
    for name in fg.__all__:
        value = getattr(fg, name)
        assert inspect.getdoc(value), name
        if inspect.isclass(value):
            for part, member in vars(value).items():
                if not part.startswith("_") and (callable(member) or isinstance(member, property)):
                    assert inspect.getdoc(member), f"{name}.{part}"


@pytest.mark.parametrize(
    "module",
    [
        "comparison",
        "designing",
        "device",
        "fitting",
        "fleets",
        "optimizing",
        "policies",
        "ranges",
        "running",
        "simulator",
        "summary",
        "sweeping",
    ],
)
def test_examples_run(module, result, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(root / "examples")
    Path("volumes.csv").write_text("".join(f"{7 if i % 5 == 0 else 3},W,{4096 * i},4096,{i}\n" for i in range(500)))
    found = importlib.import_module(f"floatgate.{module}")
    names = {"fg": fg, "result": result, "device": fg.Device("tiny"), "workload": "rw=randwrite number_ios=500"}
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    tests = [test for test in finder.find(found, globs=names) if test.examples]
    assert tests
    for test in tests:
        runner.run(test)
    assert runner.failures == 0


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/policies.md", "docs/own-scheme.md"])
def test_code_of_the_pages_runs(page, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(root / "examples")
    found = blocks((root / page).read_text())
    assert found
    import matplotlib as mpl

    mpl.use("agg")
    names = {}
    for number, block in enumerate(found):
        exec(compile(block, f"{page}, block {number + 1}", "exec"), names)
    assert Path("report.html").is_file() == any("report.html" in block for block in found)


#: Pages and notebooks whose code has types. The code of a page follows that of the pages that it refers to.
TYPED = (
    ["README.md"], ["docs/python.md"], ["docs/policies.md", "docs/live.md"], ["docs/own-scheme.md"], ["docs/traces.md"],
    ["docs/fit.md"], ["docs/design-guide.md"], ["docs/gallery.md"], ["docs/studies/index.md"],
    ["examples/policies/README.md"], ["docs/tutorial.ipynb"], ["docs/which-policy.ipynb"],
)  # fmt: skip


def code_of(path):
    """Return the blocks of code of a page or a notebook."""
    if path.suffix != ".ipynb":
        return blocks(path.read_text())
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_code_of_the_pages_has_types(root, tmp_path):
    listed = {root / page for page in itertools.chain(*TYPED)}
    found = (
        path for part in ("docs", "examples") for kind in ("md", "ipynb") for path in (root / part).rglob(f"*.{kind}")
    )
    assert [path for path in found if path not in listed and code_of(path)] == []
    programs = []
    for number, pages in enumerate(TYPED):
        # Each is one program, whose names are those of its earlier blocks.
        code = [code_of(root / page) for page in pages]
        assert all(code)
        programs.append(tmp_path / f"program_{number}_{Path(pages[-1]).stem.replace('-', '_')}.py")
        programs[-1].write_text("\n".join(itertools.chain(*code)) + "\n")
    tool(root, "mypy", "--strict", "--config-file", os.devnull, *map(str, programs))
