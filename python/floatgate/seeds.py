"""Seeds of several runs: their number, a range, or a list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from floatgate._values import _plain
from floatgate.exceptions import OptionError

#: Number of seeds from 1 on, a range such as ``"5..9"``, or the seeds.
Seeds: TypeAlias = "int | str | Iterable[int]"

_RANGE = re.compile(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?")

_EXPECTED = 'a number of seeds, such as 3, a range, such as "5..9", or a list of whole numbers from 0'


def seeds_of(seeds: Seeds) -> list[int]:
    """Return the seeds.

    Examples
    --------
    >>> seeds_of(3), seeds_of("5..7"), seeds_of([1, 8]), seeds_of("2")
    ([1, 2, 3], [5, 6, 7], [1, 8], [1, 2])
    """
    given = _plain(seeds)
    if isinstance(given, str):
        found = [one for part in given.split(",") for one in _part(part, seeds, is_only="," not in given)]
    elif isinstance(given, int) and not isinstance(given, bool):
        found = list(range(1, given + 1))
    elif isinstance(given, Iterable):
        found = [_plain(seed) for seed in given]
    else:
        found = []
    if not found or not all(
        isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 64 for seed in found
    ):
        raise OptionError(f"seeds={seeds!r}: expected {_EXPECTED}")
    return found


def _part(text: str, seeds: object, *, is_only: bool) -> range:
    """Return the seeds of a part between commas: a seed or a range. A single number is the number of seeds."""
    found = _RANGE.fullmatch(text)
    if not found:
        raise OptionError(f"seeds={seeds!r}: expected {_EXPECTED}")
    if found[2] is not None:
        return range(int(found[1]), int(found[2]) + 1)
    return range(1, int(found[1]) + 1) if is_only else range(int(found[1]), int(found[1]) + 1)
