"""Measured drives of Haas et al., SSD-iq: what their logs contain, as means over three repeats of 16 samples."""

from __future__ import annotations

from dataclasses import dataclass

#: Statistics of a latency, in the order of a row's values.
STATISTICS = ("mean", "p50", "p99", "p99.9")


@dataclass(frozen=True)
class Load:
    """Requests at one rate."""

    #: Rate that the benchmark was asked for, in requests/s. It offers 5,000 more.
    asked: int
    #: Completed writes and reads, per second.
    writes: int
    reads: int
    #: Latencies of the latency thread in us, by :data:`STATISTICS`.
    read: tuple[int, int, int, int]
    write: tuple[int, int, int, int]

    @property
    def is_saturated(self) -> bool:
        """True if the drive completed fewer requests than were offered."""
        return self.writes + self.reads < self.asked + 5_000 - 1_500

    @property
    def waits(self) -> bool:
        """True if the latency thread, with 64 requests at most, was slowed too."""
        return self.reads < 5_000


@dataclass(frozen=True)
class Drive:
    """A measured drive."""

    #: Its built-in device.
    device: str
    title: str
    loads: tuple[Load, ...]
    #: Rates whose rows were used to fit the device, and saturated rows that do not differ from these.
    fitted: tuple[int, ...]
    #: Threads of the load, by Little's law from the saturated rows: 64 requests of each are in flight.
    threads: int = 6


DRIVES = (
    Drive(
        "micron-7450-max",
        "Micron 7450 MAX 800 GB",
        (
            Load(10_000, 9950, 5050, (73, 65, 161, 389), (13, 9, 14, 1467)),
            Load(20_000, 19_850, 5150, (80, 65, 258, 1016), (36, 9, 882, 3912)),
            Load(30_000, 29_750, 5250, (88, 74, 323, 1086), (153, 9, 3680, 8593)),
            Load(40_000, 39_650, 5350, (101, 75, 568, 3342), (407, 9, 7215, 12_684)),
            Load(50_000, 49_550, 5450, (152, 76, 2812, 5375), (727, 10, 10_149, 13_516)),
            Load(60_000, 59_450, 5550, (278, 88, 4033, 4938), (1215, 10, 10_675, 11_895)),
            Load(70_000, 69_350, 5650, (126, 106, 624, 1418), (1273, 10, 6234, 7364)),
            Load(80_000, 79_240, 5750, (122, 108, 424, 595), (1594, 11, 5208, 5276)),
            Load(90_000, 89_160, 5850, (134, 116, 505, 813), (1922, 1051, 4763, 5032)),
            Load(100_000, 99_050, 5950, (150, 125, 601, 1051), (2400, 3586, 4403, 4848)),
            Load(110_000, 108_940, 6050, (163, 138, 620, 1053), (2928, 3509, 3990, 4412)),
            Load(120_000, 117_050, 6130, (166, 144, 488, 694), (3303, 3304, 3358, 3371)),
            Load(130_000, 116_860, 6130, (166, 144, 488, 701), (3309, 3310, 3365, 3377)),
        ),
        fitted=(10_000, 50_000, 80_000, 120_000, 130_000),
    ),
    Drive(
        "samsung-pm9a3",
        "Samsung PM9A3 960 GB",
        (
            Load(10_000, 9950, 5050, (75, 64, 236, 394), (11, 11, 14, 17)),
            Load(20_000, 19_850, 5150, (84, 71, 276, 428), (11, 11, 14, 17)),
            Load(30_000, 29_750, 5250, (95, 73, 318, 472), (12, 11, 14, 18)),
            Load(40_000, 39_650, 5350, (105, 89, 349, 505), (12, 11, 14, 18)),
            Load(50_000, 49_540, 5450, (116, 104, 372, 529), (14, 12, 43, 71)),
            Load(60_000, 59_450, 5550, (127, 108, 388, 545), (21, 14, 81, 138)),
            Load(70_000, 69_340, 5650, (136, 114, 384, 768), (46, 23, 335, 1776)),
            Load(80_000, 76_520, 5720, (954, 900, 2203, 3081), (3359, 3378, 4039, 5963)),
            Load(90_000, 76_550, 5720, (953, 899, 2203, 3033), (3358, 3377, 4036, 5919)),
        ),
        fitted=(10_000, 70_000, 80_000, 90_000),
        threads=4,
    ),
    Drive(
        "sk-hynix-pe8110",
        "SK hynix PE8110 960 GB",
        (
            Load(10_000, 9950, 5050, (74, 56, 315, 457), (10, 10, 12, 16)),
            Load(20_000, 19_850, 5150, (89, 64, 372, 497), (10, 10, 12, 16)),
            Load(30_000, 29_760, 5250, (105, 66, 397, 521), (10, 10, 12, 16)),
            Load(40_000, 39_650, 5350, (120, 71, 411, 536), (10, 10, 13, 16)),
            Load(50_000, 49_550, 5450, (135, 146, 419, 548), (10, 10, 13, 16)),
            Load(60_000, 59_440, 5550, (151, 150, 430, 564), (10, 10, 13, 19)),
            Load(70_000, 69_340, 5650, (167, 156, 448, 606), (13, 10, 30, 680)),
            Load(80_000, 79_220, 5750, (3648, 3777, 6027, 6226), (4156, 4308, 6876, 6979)),
            Load(90_000, 79_400, 5750, (4605, 4806, 6068, 6262), (5192, 5297, 6904, 6991)),
        ),
        fitted=(10_000, 70_000, 90_000),
    ),
    Drive(
        "wd-dc",
        "WD DC 960 GB",
        (
            Load(10_000, 9950, 5050, (104, 83, 358, 562), (13, 13, 16, 35)),
            Load(20_000, 19_860, 5150, (135, 93, 452, 638), (13, 13, 17, 38)),
            Load(30_000, 29_750, 5250, (167, 144, 505, 706), (14, 13, 21, 48)),
            Load(40_000, 39_650, 5350, (201, 190, 557, 786), (14, 13, 35, 126)),
            Load(50_000, 46_770, 4170, (8204, 8114, 11_428, 14_039), (8332, 8241, 11_688, 14_344)),
            Load(60_000, 46_890, 4090, (8577, 8488, 11_533, 14_122), (8719, 8629, 11_799, 14_429)),
        ),
        fitted=(10_000, 50_000, 60_000),
    ),
)


@dataclass(frozen=True)
class Mechanism:
    """What drives do and their devices cannot."""

    #: Built-in devices of the drives.
    devices: tuple[str, ...]
    about: str


#: Mechanisms that the devices lack, as far as the measurements show them.
MISSING = (
    Mechanism(
        ("micron-7450-max",),
        "near saturation, all writes of the drive wait alike, perhaps by credits. The device has none, because "
        "`buffer.credits` measures a rate that bursts change all the time.",
    ),
    Mechanism(
        ("samsung-pm9a3", "sk-hynix-pe8110", "wd-dc"),
        "well below saturation, some writes of the drive wait. Those of the device wait only for room in its buffer.",
    ),
    Mechanism(
        ("samsung-pm9a3", "wd-dc"),
        "over several loads, medians of reads pass from the latency of an idle die to that of a busy one, as if the "
        "time to suspend a program varied. The device suspends each program in the same time, so its medians change at "
        "once.",
    ),
)

#: Measured on the Micron 7450 MAX: write amplification and host MiB/s of random writes, by the GiB that are in use.
FOOTPRINTS = {
    373: (1.105, 1221.0),
    447: (1.182, 1100.0),
    522: (1.275, 992.0),
    596: (1.407, 878.0),
    671: (1.599, 756.0),
    745: (1.889, 623.0),
}
#: GiB of that drive that the host sees.
VISIBLE = 745.2
#: Footprints that were used to fit the device.
FITTED_FOOTPRINTS = (745,)
#: Share of the programs of that drive for parity and metadata, which its counters include: the amplification of a
#: sequential fill of all addresses.
PARITY = 1.018

#: Bytes that drives with the flash of the 7450 MAX show to the host: the sizes that IDEMA LBA1-03 gives them.
CAPACITIES = {"7450 MAX 800 GB": 800_166_076_416, "7450 PRO 960 GB": 960_197_124_096}
