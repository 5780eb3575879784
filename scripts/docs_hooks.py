"""Hooks of the documentation's site, which `mkdocs.yml` names.

Pages link to files of the repository that are not pages, such as devices. These files become part of the site, so that
it is complete without a network. The tutorial's notebook becomes a page, and so does the help of all commands, which
the program named by FLOATGATE prints. Tables in files of their own, which studies have, are shown below their links. A
list that directly follows a line of text, as GitHub allows, gets the empty line that Python-Markdown needs.
"""

from __future__ import annotations

import csv
import json
import os
import posixpath
import re
import subprocess
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Markdown links, without images.
_LINKS = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
#: A line with nothing but a link to a table.
_TABLE = re.compile(r"^\[[^\]]*\]\(([^)\s]+\.csv)\)$", re.MULTILINE)
_ROLES = re.compile(r":(?:class|meth|func|mod|data|attr|exc):<code>~?(?:floatgate\.)?")
_FENCE = re.compile(r"^ *(```|~~~)")
_ITEM = re.compile(r"^ *([-*]|\d+\.) ")
#: Names of subcommands, in the help of a command.
_COMMANDS = re.compile(r"^Commands:\n((?:  .*\n)+)", re.MULTILINE)

#: Page with the help of all commands. It is part of the site, and not of the repository.
COMMANDS = "reference/commands.md"


def on_config(config):
    """Link to the repository, if Cargo.toml has its address."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    if package["repository"]:
        config["repo_url"], config["repo_name"] = package["repository"], config["site_name"]
    return config


def on_files(files, config):
    """Add the page of the tutorial, the page on commands, and the files that pages link to."""
    from mkdocs.structure.files import File

    docs = Path(config["docs_dir"])
    files.append(File.generated(config, COMMANDS, content=commands_page(_help)))
    for notebook in sorted(docs.glob("*.ipynb")):
        text = page_of(json.loads(notebook.read_text(encoding="utf-8")))
        files.append(File.generated(config, notebook.with_suffix(".md").name, content=text))
        for file in [file for file in files if file.src_uri == notebook.name]:
            files.remove(file)
    for page in files.documentation_pages():
        text = page.content_string
        for _, link in _LINKS.findall(text):
            place = _outside(link, page.src_uri)
            if place is None or not (ROOT / place).is_file():
                continue
            if files.get_file_from_path(_site_name(place)) is None:
                files.append(File.generated(config, _site_name(place), content=(ROOT / place).read_bytes()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Point links to the added files, show linked tables, and separate lists from the text before them."""

    def changed(match):
        if match[2].endswith(".ipynb"):
            return f"[{match[1]}]({match[2].removesuffix('.ipynb')}.md)"
        place = _outside(match[2], page.file.src_uri)
        if place is None:
            return match[0]
        if not (ROOT / place).is_file():
            return match[1]  # A directory, which is not part of the site.
        up = posixpath.relpath(_site_name(place), posixpath.dirname(page.file.src_uri) or ".")
        return f"[{match[1]}]({up})"

    directory = Path(config["docs_dir"], posixpath.dirname(page.file.src_uri))
    shown = _TABLE.sub(lambda match: f"{match[0]}\n\n{_table(directory / match[1])}", markdown)
    return _parted(_LINKS.sub(changed, shown))


def on_page_content(html, page, config, files):
    """Show names in docstrings as code: `:class:` and similar roles are for other tools."""
    return _ROLES.sub("<code>", html)


def commands_page(help_of):
    """Return the page on commands. `help_of` returns the help of a command, which it gets as a list of words."""
    parts = ["# Commands\n\n`floatgate help COMMAND` prints the same texts.\n"]

    def add(words):
        text = help_of(words).rstrip() + "\n"
        parts.append(f"\n{'#' * min(len(words) + 2, 4)} {' '.join(['floatgate', *words])}\n\n```text\n{text}```\n")
        found = _COMMANDS.search(text)
        for line in found[1].splitlines() if found else []:
            # Longer descriptions continue on lines that are indented further.
            name = line[2:].split(" ")[0]
            if name not in ("", "help"):
                add([*words, name])

    add([])
    return "".join(parts)


def _help(words):
    program = os.environ.get("FLOATGATE")
    if not program:
        raise RuntimeError("FLOATGATE is not set: expected the path of the program, which `make docs` sets")
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def _table(path):
    """Return a CSV file with a header as HTML that can be unfolded."""
    head, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<details><summary>Show the table</summary><table><tr>{names}</tr>{body}</table></details>"


def _outside(link, page):
    """Return the file or directory of the repository that a link outside `docs` points to, or None."""
    if "://" in link or link.startswith(("#", "/", "mailto:")):
        return None
    place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link.split("#")[0]))
    if place == "docs" or place.startswith("docs/"):
        return None
    if (ROOT / place / "README.md").is_file():
        place = f"{place}/README.md"
    return place if not place.startswith("..") and (ROOT / place).exists() else None


def _site_name(place):
    """Return the name of a file within the site. The suffix makes browsers show it as text."""
    return f"files/{place}.txt"


def _parted(text):
    lines = []
    fenced = False
    before = ""
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced and _ITEM.match(line) and before.strip() and not before.startswith((" ", "|")):
            if not _ITEM.match(before) and not _within(lines):
                lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines) + "\n"


def _within(lines):
    """Return True if the last line belongs to a list item."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if _ITEM.match(line):
            return True
        if not line.startswith(" "):
            return False
    return False


def page_of(notebook):
    """Convert a notebook to Markdown, with its outputs."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output):
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="figure" src="data:image/png;base64,{"".join(data["image/png"]).replace(chr(10), "")}">'
    if "text/html" in data:
        # On one line: an empty line would end the HTML block in Markdown.
        return "".join(data["text/html"]).replace("\n", " ")
    text = "".join(data.get("text/plain", output.get("text", "")))
    return f"<pre>{escape(text)}</pre>".replace("\n\n", "\n&#8203;\n") if text else ""
