"""The packages of a release have all files that they need. `make packages` builds them."""

import json
import re
import subprocess
import sys
import tarfile

import pytest

#: Files that a source includes, with a macro variable in place of a name. Tests are not built from packages.
INCLUDED = re.compile(r'include_(?:str|bytes)!\((?:concat!\()?"([^"]*)"(?:, \$name, "([^"]*)")?')
LICENSES = {"LICENSE-APACHE", "LICENSE-MIT"}


def cargo(root, *arguments):
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout


def needed(crate):
    """Return the patterns of the files that the sources of a crate include, relative to the crate."""
    found = set()
    for source in crate.glob("src/**/*.rs"):
        text = source.read_text().split("#[cfg(test)]")[0]
        if source.name == "tests.rs":
            continue
        for start, end in INCLUDED.findall(text):
            file = (source.parent / (start + ("*" + end if end else ""))).resolve()
            found.add(str(file.relative_to(crate)))
    return found


def missing(crate, names):
    """Return the files that the sources of a crate include, but which are not among the names of a package."""
    files = {str(file.relative_to(crate)) for pattern in needed(crate) for file in crate.glob(pattern)}
    assert all(list(crate.glob(pattern)) for pattern in needed(crate))
    return sorted(files - names)


@pytest.fixture(scope="module")
def crates(root):
    """The published crates, as Cargo describes them."""
    packages = json.loads(cargo(root, "metadata", "--no-deps", "--format-version", "1"))["packages"]
    return [package for package in packages if package["publish"] is None]


def test_included_files_are_found(root):
    assert {"devices/*.toml"} == needed(root / "crates/core")
    assert "assets/monitor.html" in needed(root / "crates/serve")


def test_crates_have_included_files_and_licenses(root, crates):
    assert len(crates) == 11
    for crate in crates:
        listed = cargo(root, "package", "--package", crate["name"], "--list", "--allow-dirty")
        names = set(listed.splitlines())
        assert {*LICENSES, "README.md"} <= names, crate["name"]
        folder = root / "crates" / crate["manifest_path"].split("/")[-2]
        assert missing(folder, names) == [], crate["name"]


def test_crates_have_metadata(crates):
    for crate in crates:
        empty = [key for key in ("authors", "description", "license", "categories", "keywords") if not crate[key]]
        assert empty == [], crate["name"]
        assert len(crate["keywords"]) <= 5, crate["name"]


def test_dependencies_between_crates_have_the_version_of_the_workspace(crates):
    """A package has no paths, so a dependency without a version could not be found."""
    names = {crate["name"]: crate["version"] for crate in crates}
    for crate in crates:
        for needs in crate["dependencies"]:
            if needs.get("path") and needs["kind"] != "dev":
                assert needs["req"] == f"^{names[needs['name']]}", (crate["name"], needs["name"])


def test_the_sdist_is_complete(root, tmp_path):
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        (about,) = (name for name in archive.getnames() if name.endswith("/PKG-INFO") and name.count("/") == 1)
        text = archive.extractfile(about).read().decode()
    assert {"Cargo.lock", "pyproject.toml", "python/floatgate/py.typed", *LICENSES} <= names
    assert "Author: The Floatgate developers" in text
    assert "License-Expression: MIT OR Apache-2.0" in text
    crates = {name.split("/")[1] for name in names if name.startswith("crates/")}
    assert {"core", "cli", "wheel"} <= crates
    for crate in crates:
        inside = {name.removeprefix(f"crates/{crate}/") for name in names}
        assert missing(root / "crates" / crate, inside) == [], crate
    # `make test` writes them before it tests the package.
    pages = {name for name in names if name.startswith("crates/wheel/data/data/share/")}
    assert any(name.endswith("man1/floatgate-run.1") for name in pages)
    assert len(pages) > 20


def test_the_package_installs_man_pages_and_completions(script):
    from importlib import metadata

    files = [str(file) for file in metadata.files("floatgate")]
    for end in ("man/man1/floatgate.1", "bash-completion/completions/floatgate", "zsh/site-functions/_floatgate"):
        assert any(file.endswith(f"share/{end}") for file in files), end
    printed = subprocess.run([script, "completions", "bash"], capture_output=True, text=True, check=True).stdout
    (installed,) = (file for file in metadata.files("floatgate") if str(file).endswith("completions/floatgate"))
    assert installed.locate().read_text() == printed
