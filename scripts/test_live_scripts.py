"""Tests of record_live.py, record_workloads.py and study_vssim.py: recorded commands, and the page of the study."""

from __future__ import annotations

import itertools
import random
import unittest
from pathlib import Path

import record_live
import record_workloads
import study_vssim


class RecordTest(unittest.TestCase):
    """The statements of the recorded workload."""

    def test_statements_depend_only_on_the_seed(self) -> None:
        """Equal seeds give equal statements, other seeds different ones. Each transaction is committed."""
        work = list(record_live.working(1, 200))
        self.assertEqual(work, list(record_live.working(1, 200)))
        self.assertNotEqual(work, list(record_live.working(2, 200)))
        self.assertEqual(work.count("BEGIN;\n"), work.count("COMMIT;\n"))
        first = list(itertools.islice(record_live.filling(1), 5))
        self.assertTrue(first[0].startswith("PRAGMA journal_mode=WAL;"), first[0])
        self.assertTrue(all(line.endswith(";\n") for line in work + first))

    def test_small_numbers_are_more_frequent(self) -> None:
        """All numbers are in range, and half of them in the first eighth."""
        rng = random.Random(1)
        drawn = [record_live.skewed(rng, 1000) for _ in range(4000)]
        self.assertTrue(1 <= min(drawn) and max(drawn) <= 1000)
        self.assertAlmostEqual(sum(number <= 125 for number in drawn) / len(drawn), 0.5, delta=0.03)


class WorkloadsTest(unittest.TestCase):
    """The workloads that are recorded in a guest."""

    def test_commands_are_complete_and_requests_are_those_of_an_ide_disk(self) -> None:
        """Each command stops at the first error, limits requests to 128 KiB, and unmounts the file system."""
        for job in record_workloads.JOBS.values():
            lines = job.script().splitlines()
            self.assertEqual(lines[:2], ["set -e", "echo 128 >/sys/block/${SSD#/dev/}/queue/max_sectors_kb"])
            self.assertTrue(lines[2].endswith(f" $SSD {job.size}"), lines[2])
            self.assertEqual(lines[-2:], ["sync", "umount /mnt"])


class StudyTest(unittest.TestCase):
    """The page of the study."""

    def test_names_of_cases_are_unique_and_their_states_are_right(self) -> None:
        """Reads and random writes run on a filled device, sequential writes on an empty one."""
        cases = study_vssim.X25M + study_vssim.figure_9()
        self.assertEqual(len({case.name for case in cases}), len(cases))
        self.assertEqual([case.state for case in study_vssim.X25M[:2]], ["none", "none"])
        self.assertTrue(all("size=512m" in case.state for case in cases[2:]))

    def test_the_page_contains_all_tables(self) -> None:
        """Figures are in MB/s of 10^6 bytes. The page has the deviations from the paper and the gains of Figure 9."""
        self.assertEqual(study_vssim.figure(study_vssim.X25M[0], 1000.0, 7.0), 1.024)
        self.assertEqual(study_vssim.figure(study_vssim.X25M[3], 1000.0, 7.0), 7.0)
        ours = {"A": 110.0}
        rows = [
            study_vssim.Measured(case, ours.get(case.name[0], 100.0), 99.0, 0.005) for case in study_vssim.figure_9()
        ]
        guest = study_vssim.Guest(60.0, 0.02, True, 0.1)
        x25m = [study_vssim.Measured(study_vssim.X25M[0], 67.5, 64.9, 0.008, guest)]
        # A read of the paper takes 1 s / 4,400, and a write 1 s / 700.
        x25m += [study_vssim.Measured(case, 1000.0, 990.0, 0.0) for case in study_vssim.X25M[3:]]
        mappings = [study_vssim.Measured(case, 106.0, 108.12, 0.01) for case in study_vssim.figure_12()]
        template = (Path(__file__).parent / "study_vssim.md").read_text()
        page = study_vssim.page(x25m, rows, mappings, "a machine", template)
        self.assertIn("|sequential write, 900 us|MB/s|68.9|67.5|-2.0%|64.9|-3.9%|0.8%|", page)
        # 131,072 B at 60 and at 67.5 MB/s differ by 243 us.
        self.assertIn("|sequential write, 900 us|MB/s|68.9|67.5|60.0|-12.9%|243 us|2.0%|", page)
        self.assertIn("simulated time ran at 0.1 of real time", page)
        self.assertIn("|FAST|106.0|108.1|+2.0%|1.0%|", page)
        self.assertIn("|depth 32, simulated|+10.0%|+0.0%|+0.0%|", page)
        self.assertIn("|depth 1, 8 KiB pages, live|||+0.0%|", page)
        self.assertIn("Measured on a machine", page)
        self.assertIn("a read takes -773 us longer than here, and a write 429 us.", " ".join(page.split()))
        self.assertIn("A over B is +10.0% and B over C +0.0%", " ".join(page.split()))
        self.assertNotIn("{", page)

    def test_numbers_in_the_text_of_the_page_are_those_of_its_tables(self) -> None:
        """Numbers that the script fills in are repeated from the rounded values of the tables."""
        page = (Path(__file__).parents[1] / "docs" / "studies" / "vssim.md").read_text()
        cases = {case.name: case for case in (*study_vssim.X25M, *study_vssim.figure_9())}
        cells = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
        rows = [
            # The tables of the X25-M have the unit and the paper's value first.
            study_vssim.Measured(cases[name], float(values[0 if len(values) == 4 else 2].replace(",", "")), 0.0, 0.0)
            for name, *values in cells
            if name in cases
        ]
        numbers = study_vssim.numbers(rows, [])
        text = " ".join((Path(__file__).parent / "study_vssim.md").read_text().split())
        for sentence in ("In the paper, a read takes", "With pages placed by number"):
            printed = text[text.index(sentence) :].partition(". ")[0]
            for mark, number in numbers.items():
                printed = printed.replace(mark, number)
            self.assertIn(printed, " ".join(page.split()))

    def test_the_page_has_the_paragraphs_of_the_template_and_no_other(self) -> None:
        """Only tables and paragraphs with numbers that the script fills in differ."""
        page = (Path(__file__).parents[1] / "docs" / "studies" / "vssim.md").read_text().strip().split("\n\n")
        template = (Path(__file__).parent / "study_vssim.md").read_text().strip().split("\n\n")
        self.assertEqual(len(page), len(template))
        for ours, theirs in zip(page, template):
            if "{" not in theirs:
                self.assertEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main()
