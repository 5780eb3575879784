"""Tests of the hooks of the documentation's site."""

import tempfile
import types
import unittest
from pathlib import Path

import docs_hooks


class Links(unittest.TestCase):
    def test_links_to_files_outside_the_docs_are_found(self) -> None:
        device = "crates/core/devices/tiny.toml"
        self.assertEqual(docs_hooks._outside(f"../../{device}", "reference/config.md"), device)
        self.assertEqual(docs_hooks._outside("../CONTRIBUTING.md#x", "index.md"), "CONTRIBUTING.md")

    def test_a_link_to_a_directory_points_to_its_readme_if_present(self) -> None:
        self.assertEqual(docs_hooks._outside("../examples", "index.md"), "examples/README.md")
        self.assertEqual(docs_hooks._outside("../validation", "index.md"), "validation")

    def test_other_links_are_left_to_mkdocs(self) -> None:
        for link in ("timing.md", "#anchor", "https://example.org/x", "../nowhere.md", "../../outside"):
            self.assertIsNone(docs_hooks._outside(link, "model/README.md"), link)


class Tables(unittest.TestCase):
    def test_a_linked_table_is_shown_below_its_link(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "studies", "a").mkdir(parents=True)
            Path(directory, "studies", "a", "b.csv").write_text('name,"us, mean"\n<x>,1\n', encoding="utf-8")
            page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri="studies/a.md"))
            text = "text\n\n[Data](a/b.csv)\n\nSee [data](a/b.csv).\n"
            shown = docs_hooks.on_page_markdown(text, page, {"docs_dir": directory}, None)
        table = "<table><tr><th>name</th><th>us, mean</th></tr><tr><td>&lt;x&gt;</td><td>1</td></tr></table>"
        table = f"<details><summary>Show the table</summary>{table}</details>"
        self.assertEqual(shown, f"text\n\n[Data](a/b.csv)\n\n{table}\n\nSee [data](a/b.csv).\n")


class Lists(unittest.TestCase):
    def test_a_list_is_separated_from_the_text_before_it(self) -> None:
        self.assertEqual(docs_hooks._parted("text:\n- one\n- two\n"), "text:\n\n- one\n- two\n")

    def test_list_items_and_code_are_unchanged(self) -> None:
        for text in ("- one\n  more\n- two\n", "```\ntext\n- no list\n```\n", "1. one\n2. two\n"):
            self.assertEqual(docs_hooks._parted(text), text)


class Commands(unittest.TestCase):
    def test_the_page_has_the_help_of_every_command(self) -> None:
        texts = {
            "": "A program\n\nCommands:\n  ctl   Query\n        or control\n  help  Print this\n\nOptions:\n  -h\n",
            "ctl": "Query or control\n\nCommands:\n  fail  Make it fail\n",
            "ctl fail": "Make it fail\n\n\n",
        }
        page = docs_hooks.commands_page(lambda words: texts[" ".join(words)])
        headings = [line for line in page.splitlines() if line.startswith("#")]
        self.assertEqual(
            headings, ["# Commands", "## floatgate", "### floatgate ctl", "#### floatgate ctl fail"]
        )
        self.assertTrue(page.endswith("#### floatgate ctl fail\n\n```text\nMake it fail\n```\n"), page)


class Notebooks(unittest.TestCase):
    def test_cells_and_outputs_become_a_page(self) -> None:
        cells = [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "source": ["1 < 2"],
                "outputs": [
                    {"data": {"text/plain": ["True & <b>"]}},
                    {"data": {"image/png": "QUJD\n", "text/plain": "a figure"}},
                    {"data": {"text/html": ["<b>\n", "x</b>"]}},
                    {"text": ["printed\n"]},
                ],
            },
        ]
        page = docs_hooks.page_of({"cells": cells})
        self.assertEqual(
            page,
            "# Title\ntext\n\n```python\n1 < 2\n```\n\n<pre>True &amp; &lt;b&gt;</pre>\n\n"
            '<img alt="figure" src="data:image/png;base64,QUJD">\n\n<b> x</b>\n\n<pre>printed\n</pre>\n',
        )


if __name__ == "__main__":
    unittest.main()
