"""Tests of the fault detection in check_report.py. They need no browser."""

import json
import unittest

import check_report

PLOT = '<div class="plot" data-figure="a"><svg class="main-svg" style="background: rgb(0, 0, 0);"></svg></div>'


def page(state: str, drawn: int, body: str, more: str = "") -> str:
    return f'<!DOCTYPE html><html data-expected="1" data-drawn="{drawn}" data-state="{state}" {more}>{body}</html>'


class Dom(unittest.TestCase):
    def test_a_page_with_all_figures_has_no_faults(self) -> None:
        self.assertEqual(check_report.faults_of_dom(page("ready", 1, PLOT)), [])

    def test_a_page_that_is_still_drawing_is_a_fault(self) -> None:
        faults = check_report.faults_of_dom(page("drawing", 1, PLOT))
        self.assertIn("not done in time", faults[0])

    def test_the_failure_of_a_page_is_reported(self) -> None:
        faults = check_report.faults_of_dom(page("failed", 0, "", 'data-failure="no &quot;x&quot;"'))
        self.assertIn('no "x"', faults[0])

    def test_a_missing_figure_is_a_fault(self) -> None:
        empty = '<div class="plot" data-figure="a"></div>'
        self.assertEqual(check_report.faults_of_dom(page("ready", 1, empty)), ["there are 0 drawings in 1 places"])
        self.assertTrue(check_report.faults_of_dom(page("ready", 0, PLOT)))
        self.assertTrue(check_report.faults_of_dom(page("ready", 1, PLOT + PLOT)))

    def test_an_empty_dom_is_a_fault(self) -> None:
        self.assertEqual(check_report.faults_of_dom(""), ["the browser shows no page"])


class Figures(unittest.TestCase):
    @staticmethod
    def faults(requests: int, figures: dict) -> list[str]:
        head = f"Measured: 1.000 s of simulated time, {requests:,} requests, seed 1"
        script = f'<script id="figures" type="application/json">{json.dumps(figures)}</script>'
        return check_report.faults_of_figures(head + script)

    def test_an_empty_bar_is_a_fault(self) -> None:
        def bars(lengths: list[float]) -> dict:
            parts = [{"type": "bar", "orientation": "h", "x": lengths, "y": ["read", "trim"]} for _ in range(2)]
            return {"attribution": {"data": parts, "layout": {}}}

        self.assertEqual(self.faults(9, bars([1.0, 2.0])), [])
        self.assertEqual(self.faults(9, bars([1.0, 0])), ["figure attribution has empty bars: trim"])

    def test_many_windows_of_few_requests_are_a_fault(self) -> None:
        over_time = {"throughput-over-time": {"data": [{"x": list(range(100)), "y": [1.0] * 100}], "layout": {}}}
        self.assertEqual(self.faults(20_000, over_time), [])
        self.assertEqual(self.faults(5000, over_time), ["5000 requests are shown in 100 windows, not in at most 25"])


class Console(unittest.TestCase):
    def test_only_messages_of_the_page_are_faults(self) -> None:
        log = (
            "[1:1:0101/000000.000:ERROR:dbus/bus.cc(407)] Failed to connect to the bus\n"
            '[1:1:0101/000000.000:INFO:CONSOLE:3] "Uncaught Error: x", source: file:///a.html (3)\n'
        )
        faults = check_report.faults_of_console(log)
        self.assertEqual(faults, ['console: "Uncaught Error: x", source: file:///a.html (3)'])


if __name__ == "__main__":
    unittest.main()
