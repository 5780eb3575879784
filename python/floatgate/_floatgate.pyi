"""Extension module: bindings of the simulator. Use the other modules of the package instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypedDict, final

import pyarrow as pa

__all__ = [
    "Column",
    "DeviceConfig",
    "Simulator",
    "Units",
    "__version__",
    "_provoke_panic",
    "builtin_names",
    "check_precondition",
    "check_result",
    "check_summary",
    "check_table",
    "check_workload",
    "command",
    "compare",
    "draw",
    "explain",
    "grouped_files",
    "lifetime",
    "metric",
    "policy_names",
    "report",
    "run",
    "seal",
    "state_info",
    "summary_text",
    "trace_convert",
    "trace_info",
    "trace_synth",
]

__version__: str

class _Progress(Protocol):
    def __call__(self, part: str, share: float | None, /) -> object: ...

class _RunOptions(TypedDict):
    workloads: list[str]
    precondition: str | None
    saved: str | None
    prewrite: str
    seed: int
    attribution: bool
    out: str | None
    requests: bool
    series: str | None
    timeline: str | None

class _LifetimeOptions(TypedDict):
    workloads: list[str]
    until: str
    precondition: str | None
    endurance_scale: float
    seed: int
    seeds: str | None
    out: str | None

class _FitOptions(TypedDict):
    out: str | None
    requests: int | None
    scale_rate: float | None
    scale_footprint: float | None
    seed: int

@final
class Column:
    """A read-only column of numbers, for NumPy."""

    @property
    def __array_interface__(self) -> dict[str, object]: ...

@final
class Units:
    """Units in the buffer, for an eviction policy."""

    def entries(self) -> int: ...
    def rows(self) -> bytes: ...

@final
class DeviceConfig:
    """A valid device configuration."""

    @staticmethod
    def load(name_or_path: str, overrides: list[str]) -> DeviceConfig:
        """Load a built-in device by name, or a device file by path."""
    @staticmethod
    def from_toml(text: str, called: str, overrides: list[str]) -> DeviceConfig:
        """Parse the text of a device file."""
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def state_digest(self) -> str: ...
    @property
    def array(self) -> str | None: ...
    @property
    def base(self) -> str | None: ...
    @property
    def logical_bytes(self) -> int: ...
    @property
    def physical_bytes(self) -> int: ...
    def to_json(self) -> str: ...
    def to_toml(self) -> str: ...
    def figures(self) -> list[tuple[str, str, str | None]]: ...
    def externals(self) -> list[tuple[str, str, str, str]]:
        """Return the policies in Python: path of the key, name, digest of the source, options as JSON."""
    def with_policies(self, makers: dict[str, Callable[[str, int], object]]) -> DeviceConfig:
        """Return the device with factories of its policies in Python, by path of the key."""

@final
class Simulator:
    """A device with a clock. Times are in picoseconds, addresses and lengths in sectors."""

    def __new__(
        cls,
        device: DeviceConfig,
        *,
        precondition: str,
        seed: int,
        attribution: bool,
        progress: _Progress | None,
    ) -> Simulator: ...
    @property
    def now(self) -> int: ...
    @property
    def next_event_time(self) -> int | None: ...
    @property
    def outstanding(self) -> int: ...
    @property
    def has_room(self) -> bool: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def precondition(self) -> str: ...
    @property
    def submitted(self) -> int: ...
    def submit(self, operation: str, sector: int, sectors: int, at: int, *, fua: bool) -> int: ...
    def advance(self, until: int | None, *, progress: _Progress | None) -> None: ...
    def completions(self) -> pa.Table: ...
    def counters(self) -> list[tuple[str, int]]: ...
    def blocks(self) -> pa.Table: ...
    def units(self) -> pa.Table: ...
    def map(self) -> pa.Table: ...
    def fork(self) -> Simulator: ...
    def in_same_state(self, device: DeviceConfig, *, seed: int, attribution: bool) -> Simulator: ...
    def save(self, path: str, *, progress: _Progress | None) -> None: ...
    @staticmethod
    def load(
        path: str, device: DeviceConfig, *, seed: int, attribution: bool, progress: _Progress | None
    ) -> Simulator: ...

def builtin_names() -> list[str]: ...
def policy_names(path: str) -> list[str]: ...
def command(arguments: list[str]) -> int: ...
def run(
    device: DeviceConfig, options: _RunOptions, *, prepared: Simulator | None, progress: _Progress | None
) -> tuple[str, pa.Table | None, pa.Table | None]: ...
def lifetime(device: DeviceConfig, options: _LifetimeOptions, *, progress: _Progress | None) -> str: ...
def report(summary: str, series: pa.Table | None) -> str: ...
def summary_text(json: str, with_details: bool) -> str: ...
def check_precondition(text: str) -> None: ...
def check_workload(text: str) -> None: ...
def trace_info(path: str, options: str, *, progress: _Progress | None) -> tuple[str, str]: ...
def trace_synth(
    path: str, options: str, fitting: _FitOptions, *, progress: _Progress | None
) -> tuple[str, str, str]: ...
def trace_convert(
    path: str, options: str, output: str, to: str, *, progress: _Progress | None
) -> tuple[str, list[str]]: ...
def explain(directory: Path, request: str) -> tuple[str, str, str | None]: ...
def draw(directory: Path, span: str | None, title: str | None, out: Path | None) -> Path: ...
def check_summary(name: str, json: str) -> None: ...
def check_result(path: Path, summary: str) -> None: ...
def check_table(path: Path, summary: str, table: Path) -> None: ...
def seal(directory: Path, summary: str, written: list[str]) -> str: ...
def compare(results: list[tuple[str, bool, list[tuple[str, str]]]]) -> tuple[str, str, str]: ...
def grouped_files(arguments: list[str]) -> list[tuple[str, list[str]]]: ...
def metric(name: str) -> tuple[str, str, str]: ...
def state_info(path: str) -> str: ...
def _provoke_panic(text: str) -> None: ...
