"""Floatgate: a deterministic simulator of flash SSDs.

Choose a device and a workload, and run the workload on the device::

    import floatgate as fg

    device = fg.Device("hu2011").with_options({"gc.victim": "greedy", "geometry.channels": 8})
    workload = fg.Synthetic("rw=randwrite bs=4k iodepth=32 number_ios=100k")
    result = fg.run(device, workload, precondition="steady")
    result.summary.requests.write.latency_us.p99
    result.report("report.html")

The results are identical to those of the ``floatgate`` command, byte for byte.
"""

import importlib
from typing import TYPE_CHECKING, Any

from floatgate import plotting, policies
from floatgate import plotting as plot
from floatgate._floatgate import __version__
from floatgate.comparison import Comparison, compare
from floatgate.designing import Design, design
from floatgate.device import Device, devices
from floatgate.exceptions import (
    ConfigError,
    FloatgateError,
    FloatgateWarning,
    InternalError,
    OptionError,
    OutputError,
    PolicyError,
    PreconditionError,
    Problem,
    ResultError,
    SimulationError,
    TraceError,
    WorkloadError,
)
from floatgate.fitting import DeviceFit, FittedParameter, FittedPoint, fit
from floatgate.fleets import fleet, fleet_summary
from floatgate.importing import Import, import_config
from floatgate.living import Lifetimes, lifetime
from floatgate.measurements import Known, Measurements, Point
from floatgate.optimizing import Search, optimize
from floatgate.profile import Profile
from floatgate.ranges import Range
from floatgate.result import Explanation, Result, load
from floatgate.running import run
from floatgate.serving import Server, serve
from floatgate.simulator import Simulator, State
from floatgate.summary import Summary
from floatgate.sweeping import Sobol, sweep
from floatgate.tables import Table
from floatgate.workload import Fit, JobFile, Synthetic, TableTrace, Trace, Workload, object_info

if TYPE_CHECKING:
    from floatgate import studies

__all__ = [
    "Comparison",
    "ConfigError",
    "Design",
    "Device",
    "DeviceFit",
    "Explanation",
    "Fit",
    "FittedParameter",
    "FittedPoint",
    "FloatgateError",
    "FloatgateWarning",
    "Import",
    "InternalError",
    "JobFile",
    "Known",
    "Lifetimes",
    "Measurements",
    "OptionError",
    "OutputError",
    "Point",
    "PolicyError",
    "PreconditionError",
    "Problem",
    "Profile",
    "Range",
    "Result",
    "ResultError",
    "Search",
    "Server",
    "SimulationError",
    "Simulator",
    "Sobol",
    "State",
    "Summary",
    "Synthetic",
    "Table",
    "TableTrace",
    "Trace",
    "TraceError",
    "Workload",
    "WorkloadError",
    "__version__",
    "compare",
    "design",
    "devices",
    "fit",
    "fleet",
    "fleet_summary",
    "import_config",
    "lifetime",
    "load",
    "object_info",
    "optimize",
    "plot",
    "plotting",
    "policies",
    "run",
    "serve",
    "studies",
    "sweep",
]


def __dir__() -> list[str]:
    """List the public names, without the modules that define them."""
    return __all__


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module)
    """Import the studies on first use, not with the package."""
    if name != "studies":
        raise AttributeError(f"module 'floatgate' has no attribute {name!r}")
    return importlib.import_module("floatgate.studies")
