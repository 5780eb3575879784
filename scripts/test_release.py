"""Tests of release.py and artifact.py: links of packages, the order of crates, versions, and checklists."""

from __future__ import annotations

import tomllib
import unittest

import artifact
import release


class Links(unittest.TestCase):
    """The README of packages."""

    def test_links_to_files_become_absolute(self) -> None:
        """Images are raw files. Links to other sites and within the page stay as they are."""
        text = "![a\nb](docs/a.svg) [c](docs/c.md#d) [e](https://example.org/f) [g](#h)"
        expected = (
            "![a\nb](https://git.example/fg/raw/v1.2.3/docs/a.svg) "
            "[c](https://git.example/fg/blob/v1.2.3/docs/c.md#d) [e](https://example.org/f) [g](#h)"
        )
        self.assertEqual(release.absolute(text, "https://git.example/fg/", "1.2.3"), expected)

    def test_no_link_of_the_readme_stays_relative(self) -> None:
        """All links of the README are found, and lead to files."""
        text = (release.ROOT / "README.md").read_text(encoding="utf-8")
        links = [link for _, _, link in release.LINK.findall(text) if "://" not in link]
        self.assertEqual(len(links), text.count("](") - text.count("](http"))
        for link in links:
            self.assertTrue((release.ROOT / link.partition("#")[0]).exists(), link)


class Crates(unittest.TestCase):
    """The published crates."""

    def test_crates_come_after_their_dependencies(self) -> None:
        """Otherwise a crate could not be published."""
        crates = release.published(release.metadata())
        names = [crate["name"] for crate in crates]
        for position, crate in enumerate(crates):
            self.assertLessEqual(release.needs(crate) & set(names), set(names[:position]), crate["name"])
        self.assertEqual(names[0], "floatgate-sim")
        self.assertNotIn("floatgate-validation", names)

    def test_a_circle_is_an_error(self) -> None:
        """Each of the two crates would have to be published first."""

        def crate(name: str, needs: str) -> dict:
            return {"name": name, "publish": None, "dependencies": [{"name": needs, "kind": None, "req": "^1"}]}

        with self.assertRaisesRegex(ValueError, "circle: a, b"):
            release.published([crate("a", "b"), crate("b", "a")])

    def test_all_versions_are_equal(self) -> None:
        """Crates name each other's version, and CITATION.cff has it, too."""
        version = release.package()["version"]
        manifest = tomllib.loads((release.ROOT / "Cargo.toml").read_text(encoding="utf-8"))
        for name, needs in manifest["workspace"]["dependencies"].items():
            if name.startswith("floatgate") and "version" in needs:
                self.assertEqual(needs["version"], version, name)
        self.assertIn(f"\nversion: {version}\n", (release.ROOT / "CITATION.cff").read_text(encoding="utf-8"))


class Checklist(unittest.TestCase):
    """The checklist of an artifact evaluation."""

    LOG = (
        "make: ...\nFigure 1\n  agrees: a. Ours: 1\n  agrees in direction: b. Ours: 2\n  sign only: c. Ours: 3\n"
        "out/hu2011.html, in 12 s\nx\n"
    )

    def test_studies_are_found_in_the_output(self) -> None:
        """Each study has its seconds and its verdicts."""
        counts = {"agrees": 1, "agrees in direction": 1, "sign only": 1}
        self.assertEqual(artifact.ended(self.LOG), {"hu2011": (12, counts)})
        self.assertIn("yoo2013", artifact.names())

    def test_a_study_that_did_not_run_is_not_checked_off(self) -> None:
        """Only a study with verdicts passes."""
        items = {item.text.partition(":")[0]: item.passed for item in artifact.quick_studies(self.LOG)}
        self.assertIs(items["hu2011"], True)
        self.assertIs(items["park2015"], False)
        self.assertIs(items[artifact.LIVE], None)


if __name__ == "__main__":
    unittest.main()
