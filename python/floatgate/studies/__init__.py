"""Reproductions of five papers, and two studies of our own: ``floatgate study``, and one module per study.

::

    from floatgate import studies

    shown = studies.park2015.figure_3()     # a figure or table of the paper
    shown.data                              # an Arrow table
    shown.draw()                            # a matplotlib figure
    shown.findings                          # the paper's claims, compared with our runs

    studies.run("park2015", out="pages")    # the whole study, as a page
"""

from floatgate.studies import agrawal2008, hu2011, hu2013, kvcache, park2015, ssdiq2025, workloads, yoo2013
from floatgate.studies.commandline import command, run
from floatgate.studies.study import Claim, Exhibit, Finding, Setting, Study

__all__ = [
    "Claim",
    "Exhibit",
    "Finding",
    "Setting",
    "Study",
    "agrawal2008",
    "command",
    "hu2011",
    "hu2013",
    "kvcache",
    "park2015",
    "run",
    "ssdiq2025",
    "workloads",
    "yoo2013",
]


def __dir__() -> list[str]:
    """List the public names, without other modules."""
    return __all__
