#!/usr/bin/env python3
"""Steps of a release. RELEASING.md has the list of all steps.

    scripts/release.py check              print what is missing before a release
    scripts/release.py crates             print the published crates, in the order of their dependencies
    scripts/release.py readme FILE        make the links of a README absolute, in place, for the sites of packages

The address of the repository is the key `repository` of Cargo.toml, and is written nowhere else by hand, except in
CITATION.cff. Links have the form that GitHub uses: ADDRESS/blob/vVERSION/PATH for pages, and ADDRESS/raw/ for images.
"""

from __future__ import annotations

import json
import pathlib
import posixpath
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Markdown links, and images.
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def package() -> dict:
    """Return what all crates inherit from Cargo.toml."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]


def metadata() -> list[dict]:
    """Return the crates of the workspace, as Cargo describes them."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["packages"]


def published(crates: list[dict]) -> list[dict]:
    """Return the published crates. Each one comes after those that it depends on."""
    left = {crate["name"]: crate for crate in crates if crate["publish"] is None}
    ordered: list[dict] = []
    while left:
        ready = [crate for crate in left.values() if not needs(crate) & left.keys()]
        if not ready:
            raise ValueError(f"crates depend on each other in a circle: {', '.join(left)}")
        for crate in ready:
            ordered.append(left.pop(crate["name"]))
    return ordered


def needs(crate: dict) -> set[str]:
    """Return the dependencies that the package of a crate has: development dependencies only if they have a version."""
    found = crate["dependencies"]
    return {item["name"] for item in found if item["kind"] != "dev" or (item.get("path") and item["req"] != "*")}


def absolute(text: str, repository: str, version: str) -> str:
    """Return a README with absolute links to the files of the repository."""

    def changed(match: re.Match) -> str:
        image, label, link = match.groups()
        if "://" in link or link.startswith(("#", "mailto:")):
            return match[0]
        kind = "raw" if image else "blob"
        return f"{image}[{label}]({repository.rstrip('/')}/{kind}/v{version}/{posixpath.normpath(link)})"

    return LINK.sub(changed, text)


def missing() -> list[str]:
    """Return what is missing before the release of this version."""
    found = []
    version, repository = package()["version"], package()["repository"]
    if not repository:
        found.append("Cargo.toml: `repository` is empty; write the address of the public repository")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for line in (f"version: {version}", *([f"repository-code: {repository}"] if repository else [])):
        if f"\n{line}\n" not in citation:
            found.append(f"CITATION.cff: no line `{line}`")
    date = re.search(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, re.MULTILINE)
    if not date:
        found.append("CITATION.cff: no line `date-released: YYYY-MM-DD`")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE)
    if not section:
        found.append(f"CHANGELOG.md: no section `## [{version}] - YYYY-MM-DD`")
    elif date and section[1] != date[1]:
        found.append(f"CHANGELOG.md: {section[1]}, but CITATION.cff has {date[1]}")
    return found


def main(arguments: list[str]) -> int:
    """Run a command, and return the exit status."""
    match arguments:
        case ["check"]:
            found = missing()
            print("\n".join(found) or "nothing is missing")
            return 1 if found else 0
        case ["crates"]:
            print("\n".join(crate["name"] for crate in published(metadata())))
        case ["readme", file]:
            if not package()["repository"]:
                print("Cargo.toml has no `repository`: the links stay relative", file=sys.stderr)
                return 0
            place = pathlib.Path(file)
            text = place.read_text(encoding="utf-8")
            place.write_text(absolute(text, package()["repository"], package()["version"]), encoding="utf-8")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
