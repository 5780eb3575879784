"""Parameters that follow directly from measurements, by the formulas of docs/own-drive.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floatgate._values import size_in_bytes
from floatgate.ranges import number_of

if TYPE_CHECKING:
    from floatgate.device import Device
    from floatgate.measurements import Point

#: Share of a bound above which a measurement says nothing about other parameters.
_BOUND = 0.95

#: Rate of a burst, relative to the fastest one, below which it does not fit into the buffer.
_OVERFLOWS = 0.8

#: Bytes of a write from which on the link and the memory work at the same time.
_BURST = 16384


@dataclass(frozen=True)
class Inferred:
    """Value of a parameter, in its base unit, and its origin."""

    value: float
    how: str


def words_of(load: str) -> dict[str, str]:
    """Return the options of a load of one job, or no options if there are several jobs or a file."""
    if ";" in load:
        return {}
    pairs = (word.partition("=") for word in load.split())
    return {key: value for key, _, value in pairs}


def _size(text: str) -> int:
    """Return a size of fio in bytes."""
    suffixes = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    text = text.lower().removesuffix("b")
    return int(float(text[:-1]) * suffixes[text[-1]]) if text[-1:] in suffixes else int(text)


@dataclass(frozen=True)
class _Job:
    """A point of a load of one job."""

    point: Point
    rw: str
    size: int
    depth: int

    @property
    def value(self) -> float:
        return self.point.value

    @property
    def bytes_per_s(self) -> float:
        """Throughput, if the point is one."""
        return self.value * (2**20 if self.point.statistic == "mib_per_s" else self.size)


def _jobs(points: Iterable[Point]) -> list[_Job]:
    found = []
    for point in points:
        words = words_of(point.load)
        if point.use != "fit" or not words or "rate_iops" in words or "rwmixread" in words:
            continue
        try:
            job = _Job(point, words.get("rw", ""), _size(words.get("bs", "4k")), int(words.get("iodepth", "1")))
        except ValueError:
            continue  # Several block sizes.
        found.append(job)
    return found


class _Drive:
    """Parameters of a device, with those inferred so far."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.config = device.config
        self.inferred: dict[str, Inferred] = {}

    def get(self, path: str, default: float = 0.0) -> float:
        """Return a parameter in its base unit: seconds, bytes, or bytes per second. A list has its mean."""
        if path in self.inferred:
            return self.inferred[path].value
        value = value_at(self.config, path)
        return default if value is None else mean_of(value)

    def infer(self, path: str, value: float, how: str) -> None:
        self.inferred[path] = Inferred(value, how)

    @property
    def units(self) -> int:
        """Number of units that read independently."""
        geometry = self.config["geometry"]
        levels = ["channels", "chips", "dies", "planes"][: 4 if self.config["nand"]["concurrency"] == "plane" else 3]
        return math.prod(geometry[level] for level in levels)

    @property
    def transfer(self) -> Callable[[int], float]:
        """Returns the seconds of bytes on a channel, after the command."""
        bus = self.config["bus"]
        cycles = (bus.get("command_cycles") or {}).get("read", 0)
        command = cycles * self.get("bus.command_cycle")
        rate = self.get("bus.protocol.nv-ddr")
        seconds = 1 / rate if rate else self.get("bus.protocol.sdr")
        return lambda size: command + size * seconds * 8 / bus.get("width", 8)


def value_at(config: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 (a value of a device file)
    """Return a value of a configuration by its path, or None."""
    value: Any = config
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mean_of(value: Any) -> float:  # noqa: ANN401 (a value of a device file)
    """Return a quantity in its base unit, or the mean of a list."""
    values = value if isinstance(value, list) else [value]
    return sum(map(number_of, values)) / len(values)


def infer(points: Sequence[Point], device: Device) -> dict[str, Inferred]:
    """Return the parameters that follow directly from points, by path, in base units.

    The paths ``geometry.planes`` and ``geometry.page_size`` join planes to units that read as one.
    """
    jobs, drive = _jobs(points), _Drive(device)
    for step in (_link_bandwidth, _link_latency, _bus, _read, _units, _program, _blocks, _buffer):
        step(jobs, drive)
    return drive.inferred


def _of(
    jobs: Iterable[_Job], rw: Sequence[str], statistics: Sequence[str], **limits: Callable[[float], bool]
) -> list[_Job]:
    return [
        job for job in jobs
        if job.rw in rw and job.point.statistic in statistics
        and all(holds(getattr(job, name)) for name, holds in limits.items())
    ]  # fmt: skip


def _alone(jobs: Sequence[_Job], rw: Sequence[str]) -> dict[int, float]:
    """Return the latency in seconds of single requests by size: the mean, or the median without one."""
    found = _of(jobs, rw, ["p50", "mean"], depth=lambda depth: depth == 1)
    found = [job for job in found if job.point.precondition != "steady"]
    # Means replace medians.
    return {job.size: job.value * 1e-6 for job in sorted(found, key=lambda job: job.point.statistic == "mean")}


def _per_byte(latencies: Mapping[int, float], least: float = 0, most: float = math.inf) -> float | None:
    """Return the seconds that a byte adds to the latency, from the smallest request to the largest within limits."""
    sizes = sorted(size for size in latencies if least <= size <= most)
    if len(sizes) < 2:
        return None
    return (latencies[sizes[-1]] - latencies[sizes[0]]) / (sizes[-1] - sizes[0])


def _has_buffer(drive: _Drive) -> bool:
    return drive.get("buffer.capacity") > 0 and value_at(drive.config, "buffer.write") != "write-through"


def _link_bandwidth(jobs: Sequence[_Job], drive: _Drive) -> None:
    if value_at(drive.config, "host.link_bandwidth") is None:
        return
    fast = _of(jobs, ["read"], ["mib_per_s", "iops"], depth=lambda depth: depth >= 8, size=lambda size: size >= 65536)
    rate = max((job.bytes_per_s for job in fast), default=0.0)
    slope = _per_byte(_alone(jobs, ["write", "randwrite"]), least=_BURST) if _has_buffer(drive) else None
    # The slower one of link and memory determines what a byte of a long write adds.
    if slope and rate <= 1 / slope < _BOUND * drive.get("buffer.bandwidth", math.inf):
        drive.infer("host.link_bandwidth", 1 / slope, f"a KiB adds {slope * 1024 * 1e9:.3g} ns to a write at depth 1")
        return
    if rate:
        drive.infer("host.link_bandwidth", rate, f"sequential reads reach {rate / 1e6:.0f} MB/s")


def _link_latency(jobs: Sequence[_Job], drive: _Drive) -> None:
    latencies = _alone(jobs, ["write", "randwrite"])
    if not latencies or not _has_buffer(drive):
        return
    size = min(latencies)
    bandwidth = drive.get("buffer.bandwidth")
    rest = (
        size / drive.get("host.link_bandwidth", math.inf)
        + (size / bandwidth if bandwidth else 0)
        + drive.get("buffer.latency")
        + drive.get("host.software")
    )
    value = (latencies[size] - rest) / 2
    if value > 0:
        drive.infer("host.link_latency", value, f"writes at depth 1 take {latencies[size] * 1e6:.4g} us")


def _bus(jobs: Sequence[_Job], drive: _Drive) -> None:
    """Find the rate of a channel from reads of one page and of a part of it."""
    page = size_in_bytes(drive.config["geometry"]["page_size"])
    slope = _per_byte(_alone(jobs, ["randread"]), most=page)
    if slope is None or not drive.get("bus.protocol.nv-ddr"):
        return
    link = drive.get("host.link_bandwidth")
    value = slope - (1 / link if link else 0)
    if value > 0:
        rate = 8 / drive.config["bus"].get("width", 8) / value
        drive.infer("bus.protocol.nv-ddr", rate, f"a KiB adds {slope * 1024 * 1e9:.3g} ns to a read at depth 1")


def _read(jobs: Sequence[_Job], drive: _Drive) -> None:
    latencies = _alone(jobs, ["randread"])
    if not latencies:
        return
    size = min(latencies)
    rest = (
        2 * drive.get("host.link_latency")
        + size / drive.get("host.link_bandwidth", math.inf)
        + drive.transfer(size)
        + drive.get("host.software")
    )
    value = latencies[size] - rest
    if value > 0:
        drive.infer("nand.read", value, f"reads at depth 1 take {latencies[size] * 1e6:.4g} us")


def _units(jobs: Sequence[_Job], drive: _Drive) -> None:
    """Join planes until the device has the units that the random reads show."""
    found = _of(jobs, ["randread"], ["iops"], depth=lambda depth: depth >= 2 * drive.units)
    if not found or drive.config["nand"]["concurrency"] != "plane":
        return
    job = max(found, key=lambda one: one.value)
    if job.bytes_per_s > _BOUND * drive.get("host.link_bandwidth", math.inf):
        return
    overlaps = bool(value_at(drive.config, "nand.advanced.cache_read"))
    units = job.value * (drive.get("nand.read") + (0 if overlaps else drive.transfer(job.size)))
    geometry = drive.config["geometry"]
    planes = geometry["planes"]
    choices = [number for number in range(1, planes + 1) if planes % number == 0]
    best = min(choices, key=lambda number: abs(math.log(drive.units * number / planes / units)))
    if best != planes:
        how = f"{job.value:.0f} reads/s show {units:.0f} independent units"
        page = size_in_bytes(geometry["page_size"]) * planes // best
        drive.infer("geometry.planes", best, how)
        drive.infer("geometry.page_size", page, how)
        geometry["planes"], geometry["page_size"] = best, f"{page}B"


def _program(jobs: Sequence[_Job], drive: _Drive) -> None:
    rate = _drain(jobs)
    if rate is None or rate > _BOUND * drive.get("host.link_bandwidth", math.inf):
        return
    geometry = drive.config["geometry"]
    together = geometry.get("pages_per_program", 1)
    size = drive.units * size_in_bytes(geometry["page_size"]) * together
    programs = geometry["pages"] / together if geometry.get("pages") else math.inf
    value = size / rate - drive.get("nand.erase") / programs
    if value > 0:
        drive.infer("nand.program", value, f"sequential writes reach {rate / 1e6:.0f} MB/s")


def _drain(jobs: Sequence[_Job]) -> float | None:
    """Return the rate of long sequential writes in bytes per second."""
    found = _of(jobs, ["write"], ["mib_per_s", "iops"], depth=lambda depth: depth >= 8)
    found = [job for job in found if "io_size" not in words_of(job.point.load)]
    return max((job.bytes_per_s for job in found), default=None)


def amplification(ratio: float) -> float:
    """Return the write amplification of uniform random writes, for a ratio of usable flash to data (FIFO)."""
    if ratio <= 1:
        return math.inf
    valid = 0.5
    for _ in range(200):
        valid = math.exp(-ratio * (1 - valid))
    return 1 / (1 - valid)


def _blocks(jobs: Sequence[_Job], drive: _Drive) -> None:
    """Find the blocks of a plane by which the closed form of write amplification is nearest to the footprint sweep."""
    found = _of(jobs, ["randwrite"], ["write_amplification"])
    shares = [(words_of(job.point.load).get("size", "100%"), job.value) for job in found]
    sweep = [(float(share[:-1]) / 100, value) for share, value in shares if share.endswith("%")]
    if not sweep:
        return
    device = drive.device
    blocks = drive.config["geometry"]["blocks"]
    reserve = _reserve(drive)
    per_block = device.physical_bytes / blocks

    def distance(number: int) -> float:
        usable = (number - reserve) * per_block
        logs = [math.log(value / amplification(usable / (share * device.logical_bytes))) for share, value in sweep]
        # The drive also counts parity, which is the same share at each footprint.
        parity = max(0.0, sum(logs) / len(logs)) if len(logs) > 2 else 0.0
        return sum((one - parity) ** 2 for one in logs)

    least = math.ceil(device.logical_bytes / per_block + reserve) + 1
    candidates = range(least, 2 * least + 2, max(1, least // 1000))
    best = min(candidates, key=distance)
    how = f"write amplification by footprint, {', '.join(f'{share:.0%}: {value:.3g}' for share, value in sweep)}"
    drive.infer("geometry.blocks", best, how)


def _reserve(drive: _Drive) -> float:
    """Return the free blocks of a plane that garbage collection keeps."""
    threshold = value_at(drive.config, "gc.soft_threshold")
    return (threshold if isinstance(threshold, int | float) else 3) + 0.5


def _buffer(jobs: Sequence[_Job], drive: _Drive) -> None:
    """Find the data that bursts left in the buffer: what was accepted, less what was written to flash meanwhile."""
    drain = _drain(jobs)
    bursts = [
        (_size(words["io_size"]), job.bytes_per_s)
        for job in _of(jobs, ["write"], ["mib_per_s", "iops"])
        if "io_size" in (words := words_of(job.point.load)) and not words["io_size"].endswith("%")
    ]
    if drain is None or len(bursts) < 2 or not drive.get("buffer.capacity"):
        return
    # In the smallest burst that does not fit, the flash has written least, and needed no erases.
    fastest = max(rate for _, rate in bursts)
    beyond = [(size, rate) for size, rate in sorted(bursts) if rate < _OVERFLOWS * fastest]
    if beyond and drain < beyond[0][1]:
        size, rate = beyond[0]
        held = size * (1 - drain / rate)
        drive.infer("buffer.capacity", held, f"a burst of {size / 2**20:g} MiB leaves {held / 2**20:.3g} MiB in it")
