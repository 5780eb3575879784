"""Tests of scripts/first_difference.py."""

import unittest

from first_difference import first_difference, show


class FirstDifference(unittest.TestCase):
    OLD = ["1 2 \tread", "3 4 \tprogram", "5 6 \terase"]

    def test_only_numbers_are_compared(self):
        renamed = ["1 2 \tREAD", "3 4 \tPROGRAM", "5 6 \tERASE"]
        self.assertIsNone(first_difference(self.OLD, renamed))

    def test_the_first_different_line_is_found(self):
        self.assertEqual(first_difference(self.OLD, ["1 2 \tread", "3 5 \tprogram", "5 7 \terase"]), 1)

    def test_a_shorter_history_differs_at_its_end(self):
        self.assertEqual(first_difference(self.OLD, self.OLD[:2]), 2)
        self.assertEqual(first_difference(self.OLD[:2], self.OLD), 2)

    def test_a_difference_is_shown_with_the_lines_before_it(self):
        shown = show(self.OLD, self.OLD[:2], 2)
        self.assertEqual(
            shown.splitlines(), ["    1 2 \tread", "    3 4 \tprogram", "old 5 6 \terase", "new (nothing more)"]
        )


if __name__ == "__main__":
    unittest.main()
