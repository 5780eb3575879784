"""Tests of check_report.py: what it takes for a fault. They need no browser."""

import unittest

import check_report

PLOT = '<div class="plot" data-figure="a"><svg class="main-svg" style="background: rgb(0, 0, 0);"></svg></div>'


def page(state: str, drawn: int, body: str, more: str = "") -> str:
    return f'<!DOCTYPE html><html data-expected="1" data-drawn="{drawn}" data-state="{state}" {more}>{body}</html>'


class Dom(unittest.TestCase):
    def test_a_page_with_all_its_figures_is_good(self) -> None:
        self.assertEqual(check_report.faults_of_dom(page("ready", 1, PLOT)), [])

    def test_a_page_that_is_not_done_is_not(self) -> None:
        faults = check_report.faults_of_dom(page("drawing", 1, PLOT))
        self.assertIn("not done in time", faults[0])

    def test_a_page_says_why_it_failed(self) -> None:
        faults = check_report.faults_of_dom(page("failed", 0, "", 'data-failure="no &quot;x&quot;"'))
        self.assertIn('no "x"', faults[0])

    def test_a_figure_that_is_missing_is_a_fault(self) -> None:
        empty = '<div class="plot" data-figure="a"></div>'
        self.assertEqual(check_report.faults_of_dom(page("ready", 1, empty)), ["there are 0 drawings in 1 places"])
        self.assertTrue(check_report.faults_of_dom(page("ready", 0, PLOT)))
        self.assertTrue(check_report.faults_of_dom(page("ready", 1, PLOT + PLOT)))

    def test_no_page_is_a_fault(self) -> None:
        self.assertEqual(check_report.faults_of_dom(""), ["the browser shows no page"])


class Console(unittest.TestCase):
    def test_what_the_page_says_is_a_fault_and_what_the_browser_says_is_not(self) -> None:
        log = (
            "[1:1:0101/000000.000:ERROR:dbus/bus.cc(407)] Failed to connect to the bus\n"
            '[1:1:0101/000000.000:INFO:CONSOLE:3] "Uncaught Error: x", source: file:///a.html (3)\n'
        )
        faults = check_report.faults_of_console(log)
        self.assertEqual(faults, ['console: "Uncaught Error: x", source: file:///a.html (3)'])


if __name__ == "__main__":
    unittest.main()
