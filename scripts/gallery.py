#!/usr/bin/env python3
"""Draws the gallery of figures: docs/gallery.md, and its pictures in docs/gallery/.

    gallery.py

Needs the package with matplotlib, SciPy and pandas. Each figure is drawn by the code that the page shows.
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from floatgate.studies import drawing
from matplotlib import pyplot as plt

DOCS = Path(__file__).resolve().parents[1] / "docs"

HEAD = """\
# Gallery

Figures that the Python package draws, with the code that draws each. All methods draw on `ax=`, or on a new figure,
and return matplotlib's axes ([python.md](python.md)). `make studies` repeats the runs and draws the figures again.

`matplotlib.pyplot.savefig("throughput.png")` saves the figure that was drawn last.

"""

#: Code before the figures.
FIRST = """
import floatgate as fg

job = "rw=randrw rwmixread=70 bs=4k iodepth=8 number_ios=60k random_distribution=zipf:0.9"
result = fg.run("tiny", job, precondition="steady")
"""

SWEEP = """
table = fg.sweep(
    {"capacity.spare": [0.15, 0.2, 0.25, 0.3], "gc.victim": ["fifo", "random", "cost-benefit", "greedy"]},
    device="tiny", workload="rw=randwrite bs=4k iodepth=16 number_ios=20k", precondition="steady", seeds=(1, 2),
)
"""

CHANNELS = """
table = fg.sweep(
    {"geometry.channels": [1, 2, 4, 8], "geometry.dies": [1, 2]},
    device="tiny", workload="rw=randrw bs=4k iodepth=8 number_ios=10k", precondition="steady",
)
"""

COMPARISON = """
designs = {victim: fg.Device("tiny", {"gc.victim": victim}) for victim in ("greedy", "fifo")}
runs = {name: [fg.run(device, job, precondition="steady", seed=seed) for seed in (1, 2, 3)]
        for name, device in designs.items()}
comparison = fg.compare(runs)
"""

#: Name of the picture, heading, text, code that is run once before it, and code that draws it.
FIGURES = (
    ("throughput", "Throughput over time",
     "Bold lines are moving averages over 1/32 of the run. Thin lines are the values of each window.",
     FIRST, "result.plot.throughput()"),
    ("latency", "Latency over time", "Hatched bands reach from the mean to the 99th percentile.",
     "", "result.plot.latency()"),
    ("amplification", "Write amplification",
     "The value of the run so far, and a moving average over 1/32 of the run.",
     "", "result.plot.write_amplification()"),
    ("wear", "Wear", "Blocks by their number of erases, including those of preconditioning.",
     "", "result.plot.wear()"),
    ("cdf", "Distribution of latencies",
     "With `tail=True`, the share that took longer, on logarithmic axes. Requests of 0 us are at the left edge.",
     "", "result.plot.cdf(tail=True)"),
    ("attribution", "Where the time goes",
     "The latency breakdown of all requests, and at percentiles, each with its own scale.",
     "", "result.plot.attribution()"),
    ("utilization", "Utilization", "The busy time of every channel and die.", "", "result.plot.utilization()"),
    ("comparison", "Comparison", "One metric, with 95% confidence intervals over seeds.",
     COMPARISON, 'comparison.plot.metric("write_amplification")'),
    ("heat-map", "A sweep as a heat map",
     "A value by two parameters, as the mean over the seeds. Cells whose runs all failed are marked.",
     SWEEP, 'fg.plotting.heat_map(table, "capacity.spare", "gc.victim", "write_amplification")'),
    ("pareto-front", "Pareto front of a sweep",
     "Designs for which no other is better in both values, which are means over the seeds.",
     CHANNELS, 'fg.plotting.pareto_front(table, "geometry.channels", "requests.read.latency_us.p99",\n'
               '                         label="geometry.dies")'),
)  # fmt: skip


def main():
    """Draw all figures and write the page."""
    names = {}
    page = HEAD
    (DOCS / "gallery").mkdir(exist_ok=True)
    with drawing._style():
        for name, heading, text, before, code in FIGURES:
            exec(before, names)
            ax = eval(code, names)
            place = DOCS / "gallery" / f"{name}.svg"
            ax.figure.savefig(place, metadata={"Date": None, "Creator": None})
            plt.close("all")
            shown = f"{before.strip()}\n{code}".strip()
            page += f"## {heading}\n\n{text}\n\n```python\n{shown}\n```\n\n![{heading}](gallery/{name}.svg)\n\n"
    (DOCS / "gallery.md").write_text(page.rstrip() + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
