"""Design guide of Hu et al.: chips and channels needed for a speed, and whether they fit a controller.

Y. Hu, H. Jiang, D. Feng, L. Tian, H. Luo, C. Ren, "Exploring and exploiting the multilevel parallelism inside SSDs for
improved performance and endurance", IEEE Transactions on Computers 62(6), 2013, Section 5. ``docs/design-guide.md``
derives the formulas, and lists the assumptions behind the numbers of the paper.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, dataclass
from fractions import Fraction
from html import escape
from math import ceil
from typing import TYPE_CHECKING, Any

from floatgate import _files, _html
from floatgate._values import picoseconds, size_in_bytes
from floatgate.device import Device
from floatgate.exceptions import OptionError
from floatgate.running import run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

#: Advanced commands that a design may use.
ADVANCED = ("interleave", "multi-plane")

#: Control pins of a channel, and pins of each chip (Table 1): CLE, ALE, WE, RE, WP; CE and R/B.
_CONTROL_PINS, _CHIP_PINS = 5, 2
_LANE = 8

#: Channels and chips of the largest designs: those of the controllers with most channels (Microchip's Flashtec NVMe
#: 3032, 32 channels), and of as many chips as a channel has chip enables (8 in ONFI's packages, two packages).
_MAX_CHANNELS, _MAX_CHIPS = 32, 16

#: Rate of a bus: ``sdr@40`` or ``nv-ddr3@1600``, in transfers of a byte, 10^6 per second.
_INTERFACE = re.compile(r"(sdr|nv-ddr[23]?|nv-lpddr4|toggle)@(\d+)")


@dataclass(frozen=True)
class Cell:
    """Flash of a kind of cell: defaults of a design, and the interface that such flash has."""

    page: str
    spare: str
    read: str
    program: str
    pages_per_program: int
    dies: int
    planes: int
    advanced: tuple[str, ...]
    interface: str
    has_buffer: bool


def _of_device(name: str, interface: str) -> Cell:
    """Return the flash of a built-in device, whose figures have sources."""
    config = Device(name).config
    reads = [picoseconds(time) for time in config["nand"]["read"]]
    geometry = config["geometry"]
    return Cell(
        page=geometry["page_size"], spare=geometry["spare_size"], read=f"{sum(reads) // len(reads)}ps",
        program=config["nand"]["program"], pages_per_program=geometry["pages_per_program"], dies=geometry["dies"],
        planes=geometry["planes"], advanced=ADVANCED, interface=interface, has_buffer=True,
    )  # fmt: skip


def _cell(name: str) -> Cell:
    """Return the flash of a kind of cell: for ``slc`` that of the paper, and for others that of a built-in drive."""
    if name == "slc":
        return Cell("2KiB", "64B", "20us", "200us", 1, 2, 2, ("interleave",), "sdr@40", has_buffer=False)
    if name in _DRIVES:
        return _of_device(_DRIVES[name], "nv-ddr3@1600")
    raise OptionError(f"unknown cell `{name}`: expected slc, {', '.join(_DRIVES)}")


#: Built-in drives with the flash of a kind of cell.
_DRIVES = {"tlc": "tlc-direct", "qlc": "qlc-direct"}


def _cycle_of(interface: str) -> int:
    """Return the time of a transfer of a bus, in picoseconds."""
    found = _INTERFACE.fullmatch(interface)
    if not found or not 1 <= int(found[2]) <= 10_000:
        raise OptionError(
            f"invalid interface `{interface}`: expected a name with its rate in MT/s, such as nv-ddr3@1600"
        )
    return round(10**6 / int(found[2]))


#: Planes of the largest simulated device, which takes about 100 MB of memory.
_MAX_PLANES = 4096


@dataclass(frozen=True)
class Flash:
    """Flash and bus, as modeled by the guide: data cycles and cell operations take time, commands do not."""

    page_bytes: int
    spare_bytes: int
    read_ps: int
    program_ps: int
    read_cycle_ps: int
    write_cycle_ps: int
    dies: int
    planes: int
    pages_per_program: int = 1
    """Pages of a plane that are programmed together: those of a wordline."""
    has_buffer: bool = False
    """True if the controller has a write buffer."""

    def cycle_ps(self, operation: str) -> int:
        """Return the time of a data cycle of a read or a write."""
        return self.read_cycle_ps if operation == "read" else self.write_cycle_ps

    def transfer_ps(self, operation: str) -> int:
        """Return the transfer time of a page and its spare bytes on eight lines."""
        return (self.page_bytes + self.spare_bytes) * self.cycle_ps(operation)

    @property
    def payload(self) -> Fraction:
        """Share of the transferred bytes that are host data."""
        return Fraction(self.page_bytes, self.page_bytes + self.spare_bytes)

    def utilization(self, operation: str, *, chips: int, dies: int, planes: int) -> Fraction:
        """Return the share of time for which the channel carries data: n m k X / (k X + C), and at most 1.

        Each of the `dies` of the `chips` transfers `planes` pages of X over the channel, one after another, and of a
        wordline with several pages all of them. Then its cells are busy for C.
        """
        cells = self.read_ps if operation == "read" else self.program_ps
        pages = planes * (1 if operation == "read" else self.pages_per_program)
        moved = pages * self.transfer_ps(operation)
        return min(Fraction(1), Fraction(chips * dies * moved, moved + cells))


@dataclass(frozen=True)
class Way:
    """A way to exploit parallelism on one channel, and the resulting utilization of the channel."""

    figure: str
    """Part of Figure 19."""
    name: str
    operation: str
    chips: int
    dies: int
    planes: int
    utilization: float
    """Utilization by the formula."""
    simulated: float | None
    """Utilization by simulation; None if not simulated."""


@dataclass(frozen=True)
class Option:
    """A controller with channels of a given width."""

    width: int
    """Data lines per channel; 16 is the bit extension, two flashes side by side."""
    page_bytes: int
    """Size of a flash page as seen by the host."""
    chips: int
    """Minimum chips per channel for the wanted fill; with 16 lines, pairs of flashes."""
    channels_by_formula: int
    """Formula (3): the target divided by the rate of a full channel, counting spare bytes as data."""
    channels: int
    """Channels needed at the utilization of these chips, without counting spare bytes."""
    pins: int
    """Number of pins, by Formula (6)."""
    logic_cells: int | None
    """Number of logic cells, by Formula (5); None if the cells per channel are unknown."""
    read_mb_s: float
    """Read throughput, by the formulas."""
    write_mb_s: float
    missing: tuple[str, ...]
    """Resources that the controller lacks; empty if the design fits."""


@dataclass(frozen=True)
class Check:
    """Simulated performance of the design."""

    read_mb_s: float
    write_mb_s: float
    passes: bool
    """True if both reach their targets within 0.5%. Runs start and end with channels that are not full."""


@dataclass(frozen=True)
class Design:
    """Result of :func:`design`. ``print`` shows all of it."""

    read_mb_s: float
    write_mb_s: float
    advanced: tuple[str, ...]
    fill: float | None
    """Required utilization of a channel; None: what the speed requires."""
    flash: Flash
    ways: tuple[Way, ...]
    options: tuple[Option, ...]
    chosen: Option | None
    """Narrowest option that fits the controller; None if none fits."""
    check: Check | None
    """Check of the chosen option; None if none was chosen or no check was requested."""
    notes: tuple[str, ...]

    def table(self) -> pa.Table:
        """Return the ways as a table."""
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        return pa.Table.from_pylist([asdict(way) for way in self.ways])

    def to_dict(self) -> dict[str, Any]:
        """Return the design as nested dictionaries."""
        return asdict(self)

    def device(self) -> Device:
        """Create the chosen device.

        Raises
        ------
        OptionError
            No option fits the controller.
        """
        if self.chosen is None:
            raise OptionError("no design fits the controller; see `missing` of each option")
        return _device(self.flash, self.advanced, self.chosen)

    def __str__(self) -> str:
        return "".join(_text(self))

    def _repr_html_(self) -> str:
        rows = [(f"{way.figure}: {escape(way.name)}", f"{way.utilization:.1%}") for way in self.ways]
        title = f"{self.read_mb_s:g} / {self.write_mb_s:g} MB/s"
        return _html.card(title, escape(_answer(self)), _html.pairs(rows))


def design(
    *,
    read_mb_s: float,
    write_mb_s: float,
    cell: str = "tlc",
    interface: str | None = None,
    page: int | str | None = None,
    spare: int | str | None = None,
    read: int | str | None = None,
    program: int | str | None = None,
    cycle: int | str | None = None,
    read_cycle: int | str | None = None,
    write_cycle: int | str | None = None,
    dies: int | None = None,
    planes: int | None = None,
    advanced: Collection[str] | None = None,
    fill: float | None = None,
    pins: int | None = None,
    logic_cells: int | None = None,
    channel_logic_cells: int | None = None,
    check: bool = True,
    seed: int = 1,
) -> Design:
    """Compute the channels, chips and pins that an SSD needs for a speed, and check the result by simulation.

    Parameters
    ----------
    read_mb_s, write_mb_s
        Target speeds, in 10^6 bytes per second.
    cell
        Kind of cells, which the defaults of all further parameters depend on: ``"tlc"`` or ``"qlc"``, the flash of the
        built-in drives `tlc-direct` and `qlc-direct`, with a write buffer, or ``"slc"``, the flash of the paper
        (Table 2), without one.
    interface
        Bus of the flash with its rate in 10^6 transfers of a byte per second. Default: ``"nv-ddr3@1600"``, or
        ``"sdr@40"`` with ``"slc"``.
    page, spare
        Bytes of a flash page, and spare bytes transferred with it.
    read, program
        Times of the cells: tR and tPROG.
    cycle
        Time of a bus cycle, instead of `interface`. Eight lines transfer one byte per cycle.
    read_cycle, write_cycle
        Times of a bus cycle of reads, tRC, and of writes, tWC, if they differ from `cycle`.
    dies, planes
        Dies per chip, and planes per die.
    advanced
        Advanced commands: with ``"interleave"``, the dies of a chip work together, and with ``"multi-plane"``, the
        planes of a die. Section 5.2 uses only the first, which is the default with ``"slc"``.
    fill
        Required utilization of a channel: 1 is full, 0.9 is 90%. Default: 1 with ``"slc"``, as in the paper, and
        otherwise only what the speed requires.
    pins, logic_cells
        Pins and logic cells of the controller for its channels; None for no limit.
    channel_logic_cells
        Logic cells that one channel takes.
    check
        Simulate the ways and the design.
    seed
        Seed of these simulations.

    Returns
    -------
    Design

    Raises
    ------
    OptionError
        A value is invalid.

    Examples
    --------
    >>> guide = fg.design(read_mb_s=7000, write_mb_s=3000, check=False)
    >>> guide.chosen.channels, guide.chosen.chips
    (5, 6)
    >>> guide = fg.design(read_mb_s=250, write_mb_s=240, cell="slc", spare=0, cycle="30ns", check=False)
    >>> guide.chosen.channels, guide.chosen.chips
    (8, 3)
    """
    kind = _cell(cell)
    bus = _cycle_of(kind.interface if interface is None else interface) if cycle is None else picoseconds(cycle)
    advanced = kind.advanced if advanced is None else advanced
    fill = 1.0 if fill is None and cell == "slc" else fill
    flash = Flash(
        page_bytes=size_in_bytes(kind.page if page is None else page),
        spare_bytes=size_in_bytes(kind.spare if spare is None else spare),
        read_ps=picoseconds(kind.read if read is None else read),
        program_ps=picoseconds(kind.program if program is None else program),
        read_cycle_ps=bus if read_cycle is None else picoseconds(read_cycle),
        write_cycle_ps=bus if write_cycle is None else picoseconds(write_cycle),
        dies=kind.dies if dies is None else dies, planes=kind.planes if planes is None else planes,
        pages_per_program=kind.pages_per_program, has_buffer=kind.has_buffer,
    )  # fmt: skip
    _check_values(flash, advanced, {"read_mb_s": read_mb_s, "write_mb_s": write_mb_s}, fill)
    budget = {"pins": pins, "logic_cells": logic_cells, "channel_logic_cells": channel_logic_cells}
    for name, value in budget.items():
        if value is not None and value < 1:
            raise OptionError(f"invalid {name} `{value}`: expected 1 or more")
    if logic_cells is not None and channel_logic_cells is None:
        raise OptionError("logic_cells needs channel_logic_cells, the number that one channel takes")
    used = tuple(name for name in ADVANCED if name in advanced)
    targets = {"read": read_mb_s, "write": write_mb_s}
    options = tuple(
        _option(flash, used, targets, fill=fill, width=width, budget=budget) for width in (_LANE, 2 * _LANE)
    )
    chosen = next((option for option in options if not option.missing), None)
    return Design(
        read_mb_s=read_mb_s,
        write_mb_s=write_mb_s,
        advanced=used,
        fill=fill,
        flash=flash,
        ways=tuple(_ways(flash, check=check, seed=seed)),
        options=options,
        chosen=chosen,
        check=_checked(flash, used, chosen, targets, seed) if check and chosen else None,
        notes=tuple(_notes(flash, used, options[0], fill)),
    )


def _check_values(flash: Flash, advanced: Collection[str], targets: dict[str, float], fill: float | None) -> None:
    if isinstance(advanced, str):
        raise OptionError(f"advanced must be a list of commands, such as ['{advanced}']")
    for name in advanced:
        if name not in ADVANCED:
            raise OptionError(f"unknown advanced command `{name}`: expected {' or '.join(ADVANCED)}")
    for name, target in targets.items():
        if not 0 < target < 1e9:
            raise OptionError(f"invalid {name} `{target}`: expected a number above 0, in 10^6 bytes per second")
    if fill is not None and not 0 < fill <= 1:
        raise OptionError(f"invalid fill `{fill}`: expected a number above 0, and at most 1")
    for name, value in asdict(flash).items():
        if value < 1 and name not in ("spare_bytes", "has_buffer"):
            raise OptionError(f"{name.removesuffix('_ps').removesuffix('_bytes')}={value}: expected a value above 0")


def _levels(flash: Flash, advanced: Collection[str]) -> dict[str, int]:
    """Return the numbers of dies and planes that work together."""
    return {
        "dies": flash.dies if "interleave" in advanced else 1,
        "planes": flash.planes if "multi-plane" in advanced else 1,
    }


def _min_chips(flash: Flash, operation: str, fill: float, *, dies: int, planes: int) -> int:
    """Apply Formula (1): return the minimum number of chips for a channel utilization of `fill`."""
    one = flash.utilization(operation, chips=1, dies=dies, planes=planes)
    return ceil(Fraction(fill).limit_denominator(10**6) / one)


def _chips_of_speed(flash: Flash, targets: dict[str, float], full: dict[str, Fraction], levels: dict[str, int]) -> int:
    """Return the chips per channel that reach the speed with as few channels as their buses allow."""
    exact = {operation: Fraction(target).limit_denominator(10**6) for operation, target in targets.items()}
    channels = max(ceil(exact[operation] / (full[operation] * flash.payload)) for operation in targets)
    share = {operation: exact[operation] / (channels * full[operation] * flash.payload) for operation in targets}
    chips = max(_min_chips(flash, operation, float(share[operation]), **levels) for operation in targets)
    return min(chips, _MAX_CHIPS)


def _option(
    flash: Flash,
    advanced: Collection[str],
    targets: dict[str, float],
    *,
    fill: float | None,
    width: int,
    budget: dict[str, int | None],
) -> Option:
    levels = _levels(flash, advanced)
    lanes = width // _LANE
    # Bytes per microsecond equal 10^6 bytes per second.
    full = {operation: Fraction(lanes * 10**6, flash.cycle_ps(operation)) for operation in targets}
    if fill is None:
        chips = _chips_of_speed(flash, targets, full, levels)
    else:
        chips = max(_min_chips(flash, operation, fill, **levels) for operation in targets)
    rates = {
        operation: full[operation] * flash.payload * flash.utilization(operation, chips=chips, **levels)
        for operation in targets
    }
    exact = {operation: Fraction(target).limit_denominator(10**6) for operation, target in targets.items()}
    channels = max(ceil(exact[operation] / rates[operation]) for operation in targets)
    # Formula (4) for eight lines. With 16 lines, each flash of a pair has its own lines, chip enable and ready/busy.
    pins = channels * (_CONTROL_PINS + lanes * (_LANE + _CHIP_PINS * chips))
    cells = None if budget["channel_logic_cells"] is None else channels * budget["channel_logic_cells"]
    limits = {"pins": budget["pins"], "logic cells": budget["logic_cells"], "channels": _MAX_CHANNELS,
              "chips per channel": _MAX_CHIPS}  # fmt: skip
    needs = {"pins": pins, "logic cells": cells, "channels": channels, "chips per channel": chips}
    missing = [
        f"{need - room} {name}"
        for name, need, room in ((name, needs[name], limits[name]) for name in limits)
        if need is not None and room is not None and need > room
    ]
    return Option(
        width=width,
        page_bytes=lanes * flash.page_bytes,
        chips=chips,
        channels_by_formula=max(ceil(exact[operation] / full[operation]) for operation in targets),
        channels=channels,
        pins=pins,
        logic_cells=cells,
        read_mb_s=float(channels * rates["read"]),
        write_mb_s=float(channels * rates["write"]),
        missing=tuple(missing),
    )


def _ways(flash: Flash, *, check: bool, seed: int) -> Iterator[Way]:
    """Yield the cases of Figure 19. The paper does not say which case is b, c or d; the order is ours."""
    dies, planes = flash.dies, flash.planes
    shapes = [
        ("a", "basic read", "read", 1, 1, 1),
        ("b", "basic write", "write", 1, 1, 1),
        ("c", f"{planes}-plane write", "write", 1, 1, planes),
        ("d", f"interleaved write of {dies} dies", "write", 1, dies, 1),
        ("e", f"interleaved {planes}-plane write of {dies} dies", "write", 1, dies, planes),
        ("f", f"interleaved write of {dies} dies, 2 chips", "write", 2, dies, 1),
    ]
    for figure, operation in (("g", "read"), ("h", "write")):
        chips = _min_chips(flash, operation, 1.0, dies=1, planes=1)
        shapes.append((figure, f"basic {operation}, {chips} chips", operation, chips, 1, 1))
    # With one die per chip, two of the cases are others again.
    shapes = [shape for shape in shapes if dies > 1 or not shape[1].startswith("interleaved")]
    for figure, name, operation, chips, many_dies, many_planes in shapes:
        formula = flash.utilization(operation, chips=chips, dies=many_dies, planes=many_planes)
        simulated = None
        if check:
            device = _flash_device(flash, channels=1, chips=chips, dies=many_dies, planes=many_planes, width=_LANE)
            simulated = _simulated(device, operation, seed)["utilization"]
        yield Way(figure, name, operation, chips, many_dies, many_planes, float(formula), simulated)


def _flash_device(flash: Flash, *, channels: int, chips: int, dies: int, planes: int, width: int) -> Device:
    """Create a device whose levels all work together. It has enough space that garbage collection never runs."""
    lanes = width // _LANE
    # Blocks for twice the pages that a check writes.
    units = channels * chips * dies * planes
    if units > _MAX_PLANES:
        raise OptionError(
            f"{channels} channels of {chips} chips have {units} planes, more than the "
            f"{_MAX_PLANES} that are simulated; "
            "use faster flash, or disable the check"
        )
    pages = 64 if flash.pages_per_program == 1 else 32 * flash.pages_per_program
    blocks = max(64, 2 * (_requests(units) * flash.pages_per_program // (units * pages) + 1) + 16)
    buffer = ""
    if flash.has_buffer:
        # Room for the pages that are programmed, and for those that follow them.
        held = 2 * units * flash.pages_per_program * lanes * flash.page_bytes
        buffer = f'[buffer]\ncapacity = "{held}B"\nwrite = "write-back"\nhigh_water = 0.5\nlow_water = 0.25'
    return Device.from_toml(f"""
        name = "design-guide"
        [geometry]
        channels = {channels}
        chips = {chips}
        dies = {dies}
        planes = {planes}
        blocks = {blocks}
        pages = {pages}
        pages_per_program = {flash.pages_per_program}
        page_size = "{lanes * flash.page_bytes}B"
        spare_size = "{lanes * flash.spare_bytes}B"
        mapping_unit = "page"
        [capacity]
        spare = 0.5
        [nand]
        read = "{flash.read_ps}ps"
        program = "{flash.program_ps}ps"
        erase = "1.5ms"
        concurrency = "die"
        advanced.multi_plane_program = "{"wise" if planes > 1 else "off"}"
        advanced.multi_plane_read = {"true" if planes > 1 else "false"}
        [bus]
        protocol.sdr = "{flash.write_cycle_ps}ps"
        read_cycle = "{flash.read_cycle_ps}ps"
        width = {width}
        transfer_spare = true
        [allocation.static]
        order = "channel-chip-die-plane"
        {buffer}
        """)


def _device(flash: Flash, advanced: Collection[str], option: Option) -> Device:
    levels = _levels(flash, advanced)
    return _flash_device(flash, channels=option.channels, chips=option.chips, **levels, width=option.width)


def _requests(units: int) -> int:
    return 4000 + 1000 * units


def _simulated(device: Device, operation: str, seed: int) -> dict[str, float]:
    """Keep a device busy with sequential pages, and measure its speed."""
    geometry = device.config["geometry"]
    units = 1
    for level in ("channels", "chips", "dies", "planes"):
        units *= geometry[level]
    together = geometry["pages_per_program"]
    job = (
        f"rw={operation} bs={size_in_bytes(geometry['page_size'])} iodepth={2 * units * together} "
        f"number_ios={_requests(units) * together}"
    )
    state = "fill" if operation == "read" else "none"
    # Without a write buffer, a run is steady at once. A buffer has to be full first.
    ramp = "5ms" if together == 1 else "30ms"
    summary = run(device, f"{job} ramp_time={ramp}", precondition=state, seed=seed, series=False, warn=False).summary
    return {
        "utilization": summary.utilization.channels.data.mean,
        "mb_s": summary.requests.all.bytes / summary.measured_s / 1e6,
    }


def _checked(flash: Flash, advanced: Collection[str], option: Option, targets: dict[str, float], seed: int) -> Check:
    device = _device(flash, advanced, option)
    found = {operation: _simulated(device, operation, seed)["mb_s"] for operation in targets}
    passes = all(found[operation] >= 0.995 * target for operation, target in targets.items())
    return Check(read_mb_s=found["read"], write_mb_s=found["write"], passes=passes)


def _notes(flash: Flash, advanced: Collection[str], option: Option, fill: float | None) -> Iterator[str]:
    if option.channels > _MAX_CHANNELS:
        yield (
            f"{option.channels} channels: controllers have at most {_MAX_CHANNELS}. Flash with a faster interface "
            "needs fewer, such as TLC flash on nv-ddr3@1600."
        )
    if fill is None:
        return  # The notes are about the paper's way to fill channels.
    levels = _levels(flash, advanced)
    one, two = (float(flash.utilization("write", chips=chips, **levels)) for chips in (1, 2))
    full = _min_chips(flash, "write", 1.0, **levels)
    if two < 1 and ceil(1 / two) != full:
        yield (
            f"Formula (1) uses the utilization by one chip: {one:.1%} for writes, so {full} chips fill the channel. "
            f"Two chips reach {two:.1%}. Applied to that, as in Section 5.2, the formula counts pairs of chips: "
            f"{ceil(1 / two)} pairs."
        )
    if option.channels != option.channels_by_formula:
        filled = float(flash.utilization("write", chips=option.chips, **levels))
        yield (
            f"Formula (3) gives {option.channels_by_formula} channels of 8 lines. It assumes full channels, and counts "
            f"spare bytes as data. {option.chips} chips fill a channel to {filled:.1%} with writes, and "
            f"{float(flash.payload):.1%} of the bytes are data: {option.channels} channels."
        )
    if fill < 1:
        yield f"The chips fill a channel to {fill:.0%}. A full channel needs {full} chips for writes."


def _answer(guide: Design) -> str:
    if guide.chosen is None:
        return "no design fits the controller"
    option = guide.chosen
    return f"{option.channels} channels of {option.width} lines, {option.chips} chips on each, {option.pins} pins"


def _text(guide: Design) -> Iterator[str]:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    flash = guide.flash
    both = [f"{cycle / 1e3:g}" for cycle in (flash.read_cycle_ps, flash.write_cycle_ps)]
    cycles = both[0] if both[0] == both[1] else " and ".join(both)
    yield (
        f"{guide.read_mb_s:g} MB/s read, {guide.write_mb_s:g} MB/s written; pages of {flash.page_bytes} + "
        f"{flash.spare_bytes} B, {flash.read_ps / 1e6:g} us to read and {flash.program_ps / 1e6:g} us to program, "
        f"{cycles} ns a byte; {' and '.join(guide.advanced) or 'basic commands only'}\n\n"
    )
    rows: list[dict[str, Any]] = [
        {"Fig. 19": way.figure, "way": way.name, "formula": f"{way.utilization:.2%}",
         "simulated": None if way.simulated is None else f"{way.simulated:.2%}"}
        for way in guide.ways
    ]  # fmt: skip
    yield _files.text_table(pa.Table.from_pylist(rows)) + "\n"
    rows = [
        {"lines": option.width, "page, B": option.page_bytes, "chips": option.chips, "channels": option.channels,
         "pins/channel": option.pins // option.channels, "pins": option.pins, "logic cells": option.logic_cells,
         "read, MB/s": option.read_mb_s, "write, MB/s": option.write_mb_s,
         "fits": "no: " + ", ".join(option.missing) + " too few" if option.missing else "yes"}
        for option in guide.options
    ]  # fmt: skip
    yield _files.text_table(pa.Table.from_pylist(rows)) + "\n"
    yield f"Design: {_answer(guide)}\n"
    if guide.check:
        verdict = "reaches both" if guide.check.passes else "DOES NOT REACH BOTH"
        yield (
            f"Simulated: {guide.check.read_mb_s:.1f} MB/s read, {guide.check.write_mb_s:.1f} MB/s written: {verdict}\n"
        )
    for note in guide.notes:
        yield f"Note: {note}\n"


def command(arguments: list[str]) -> int:
    """Run ``floatgate design``, and return the exit status."""
    made = argparse.ArgumentParser(
        prog="floatgate design",
        description="Compute the channels, chips and pins that an SSD needs for a speed, and simulate it.",
        epilog="After Hu et al. 2013, Section 5. docs/design-guide.md has the formulas and their assumptions. The exit "
        "status is 1 if no design fits, or if the simulation does not reach the speed.",
    )
    made.add_argument("--read-mb-s", type=float, required=True, metavar="X", help="10^6 bytes per second read")
    made.add_argument("--write-mb-s", type=float, required=True, metavar="X", help="10^6 bytes per second written")
    made.add_argument("--cell", default="tlc", choices=("slc", *_DRIVES), help="kind of cells: other defaults [tlc]")
    made.add_argument("--interface", metavar="BUS@RATE", help="bus with MT/s [nv-ddr3@1600; slc: sdr@40]")
    made.add_argument("--page", metavar="SIZE", help="size of a flash page [16KiB; slc: 2KiB]")
    made.add_argument("--spare", metavar="SIZE", help="spare bytes transferred with a page [0B; slc: 64B]")
    made.add_argument("--read", metavar="TIME", help="time from cells to register [slc: 20us]")
    made.add_argument("--program", metavar="TIME", help="time from register to cells [slc: 200us]")
    made.add_argument("--cycle", metavar="TIME", help="bus cycle, which transfers a byte [that of --interface]")
    made.add_argument("--read-cycle", metavar="TIME", help="bus cycle of reads, tRC [that of --cycle]")
    made.add_argument("--write-cycle", metavar="TIME", help="bus cycle of writes, tWC [that of --cycle]")
    made.add_argument("--dies", type=int, metavar="N", help="dies per chip [1; slc: 2]")
    made.add_argument("--planes", type=int, metavar="N", help="planes per die [4; slc: 2]")
    made.add_argument(
        "--advanced", metavar="A,B", help="interleave, multi-plane, or none [interleave,multi-plane; slc: interleave]"
    )
    made.add_argument(
        "--fill", type=float, metavar="SHARE", help="required utilization of a channel [as the speed requires; slc: 1]"
    )
    made.add_argument("--pins", type=int, metavar="N", help="pins that the controller has for its channels")
    made.add_argument("--logic-cells", type=int, metavar="N", help="logic cells of the controller for its channels")
    made.add_argument("--channel-logic-cells", type=int, metavar="N", help="logic cells that one channel takes")
    made.add_argument("--no-check", dest="check", action="store_false", help="skip the simulation")
    made.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the simulations [1]")
    made.add_argument("--json", action="store_true", help="print the result as JSON")
    options = vars(made.parse_args(arguments))
    as_json = options.pop("json")
    advanced = options.pop("advanced")
    try:
        named = None if advanced is None else () if advanced == "none" else tuple(advanced.split(","))
        guide = design(**options, advanced=named)
    except ValueError as error:
        # This includes times and sizes that cannot be parsed.
        raise OptionError(str(error)) from None
    sys.stdout.write(json.dumps(guide.to_dict(), indent=2) + "\n" if as_json else str(guide))
    return 0 if guide.chosen and (guide.check is None or guide.check.passes) else 1
