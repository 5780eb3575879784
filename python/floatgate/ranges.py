"""Ranges of values in spaces, with units, and the choice of a value in them."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from floatgate._values import _plain
from floatgate.exceptions import FloatgateWarning, OptionError

#: Units of quantities in device files, by family: their size in the smallest unit of the family.
_FAMILIES: dict[str, dict[str, int]] = {
    "time": {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12},
    "size": {
        "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
        "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    },
    "bandwidth": {
        "B/s": 1, "KB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9, "KiB/s": 2**10, "MiB/s": 2**20, "GiB/s": 2**30,
    },
    "transfer rate": {"T/s": 1, "kT/s": 10**3, "MT/s": 10**6, "GT/s": 10**9},
    "frequency": {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9},
    "share": {"%": 100},
}  # fmt: skip
_FAMILY_OF = {unit: family for family, units in _FAMILIES.items() for unit in units}

#: Families whose values are whole multiples of the finer unit of the ends, unless a step is set.
_WHOLE = ("size",)

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z%][A-Za-z/]*)\s*")


@dataclass(frozen=True)
class Range:
    """A range of values, for :func:`optimize` and :class:`Sobol`.

    Parameters
    ----------
    least, greatest
        The ends, which are values of the range: two numbers, or two texts with units, such as ``"20us"`` and
        ``"1ms"``. Two integers give integers.
    log
        True to choose on a logarithmic scale: each factor of 10 is equally likely. The ends must be above 0.
    step
        Distance of the values, from `least` on, in the form of the ends. Default: 1 for integers; the finer unit of the
        ends for sizes, so ``Range("16MiB", "1GiB")`` gives whole MiB; a thousandth of the finer unit for other
        quantities with units; none for other numbers.

    Raises
    ------
    OptionError
        The range is invalid.

    Examples
    --------
    >>> fg.Range("20us", "1ms", log=True)
    Range(least='20us', greatest='1ms', log=True)
    >>> fg.Range(0.1, 0.4, step=0.05)
    Range(least=0.1, greatest=0.4, step=0.05)
    """

    least: float | str
    greatest: float | str
    log: bool = False
    step: float | str | None = None

    def __post_init__(self) -> None:
        """Check the range."""
        for name in ("least", "greatest", "step"):
            object.__setattr__(self, name, _plain(getattr(self, name)))
        least, greatest = self._ends
        if not least <= greatest:
            raise OptionError(f"{self!r}: the first end must not be greater than the second")
        if self.log and least <= 0:
            raise OptionError(f"{self!r}: a logarithmic scale needs ends above 0")
        if self._step is not None and self._step <= 0:
            raise OptionError(f"{self!r}: the step must be above 0")

    def __repr__(self) -> str:
        log = ", log=True" if self.log else ""
        step = "" if self.step is None else f", step={self.step!r}"
        return f"Range(least={self.least!r}, greatest={self.greatest!r}{log}{step})"

    def described(self) -> dict[str, Any]:
        """Return the range as a table of the command's files."""
        optional = ({"log": True} if self.log else {}) | ({} if self.step is None else {"step": self.step})
        return {"from": self.least, "to": self.greatest, **optional}

    @cached_property
    def _unit(self) -> str | None:
        """The finer unit of the ends, or None for numbers."""
        units = [self._quantity(end)[1] for end in (self.least, self.greatest)]
        if units == [None, None]:
            return None
        families = {_FAMILY_OF.get(unit) if unit else None for unit in units}
        if None in families or len(families) > 1:
            raise OptionError(f"{self!r}: both ends must be numbers, or both quantities with units of the same kind")
        return min((unit for unit in units if unit), key=self._size_of)

    @staticmethod
    def _size_of(unit: str) -> int:
        return _FAMILIES[_FAMILY_OF[unit]][unit]

    def _quantity(self, value: float | str) -> tuple[Fraction, str | None]:
        """Return the number and the unit of a value."""
        if isinstance(value, str):
            found = _QUANTITY.fullmatch(value)
            if not found or found[2] not in _FAMILY_OF:
                expected = ", ".join(_FAMILY_OF)
                raise OptionError(
                    f"the range from {self.least!r} to {self.greatest!r}: {value!r} is not a number with a unit "
                    f'such as "20us"; units: {expected}'
                )
            return Fraction(found[1]), found[2]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise OptionError(
                f"the range from {self.least!r} to {self.greatest!r}: {value!r} is neither a number nor a text with "
                'a unit, such as "20us"'
            )
        # The shortest decimal of a float is what the user wrote.
        return Fraction(repr(value)), None

    def _scaled(self, value: float | str) -> Fraction:
        """Return a value as a multiple of the finer unit."""
        number, unit = self._quantity(value)
        if (unit is None) != (self._unit is None) or _FAMILY_OF.get(unit or "") != _FAMILY_OF.get(self._unit or ""):
            raise OptionError(f"{self!r}: `{value}` must have a unit if the ends have one, and of the same kind")
        if unit is None or self._unit is None:
            return number
        return number * self._size_of(unit) / self._size_of(self._unit)

    @cached_property
    def _ends(self) -> tuple[Fraction, Fraction]:
        return self._scaled(self.least), self._scaled(self.greatest)

    @cached_property
    def _step(self) -> Fraction | None:
        """The distance of the values as a multiple of the finer unit, or None if there is none."""
        if self.step is not None:
            return self._scaled(self.step)
        if self._unit is not None:
            whole = _FAMILY_OF[self._unit] in _WHOLE and all(end.denominator == 1 for end in self._ends)
            size = self._size_of(self._unit)
            return Fraction(1) if whole else Fraction(max(1, size // 1000), size)
        return Fraction(1) if isinstance(self.least, int) and isinstance(self.greatest, int) else None

    @cached_property
    def _last(self) -> int:
        """Number of steps from the first value to the last."""
        least, greatest = self._ends
        return 0 if self._step is None else int((greatest - least) / self._step)

    def _of_step(self, step: int) -> Any:  # noqa: ANN401 (a value of the space)
        """Return a value by its number."""
        least, _ = self._ends
        exact = least + min(max(step, 0), self._last) * (self._step or 0)
        if self._unit is not None:
            return _text(exact, self._unit)
        kinds = (self.least, self.greatest, 0 if self.step is None else self.step)
        return int(exact) if all(isinstance(one, int) for one in kinds) else float(exact)

    def at(self, share: float) -> Any:  # noqa: ANN401 (a value of the space)
        """Return the value at a share of the range, from 0 to below 1."""
        least, greatest = map(float, self._ends)
        if self._step is None:
            return least * (greatest / least) ** share if self.log else least + share * (greatest - least)
        if not self.log:
            return self._of_step(int(share * (self._last + 1)))
        # Each value has the part of the scale that is nearest to it.
        half = float(self._step) / 2
        first, last = max(least - half, least / 2), least + self._last * 2 * half + half
        return self._of_step(round((first * (last / first) ** share - least) / (2 * half)))

    def suggest(self, trial: Any, path: str) -> Any:  # noqa: ANN401 (Optuna's)
        """Let Optuna choose, and return its parameter: a number, in the finer unit of the ends."""
        least, greatest = self._ends
        if self._step == 1 and self._unit is None and least.denominator == 1:
            return trial.suggest_int(path, int(least), int(greatest), log=self.log)
        if self._step is None or self.log:
            return trial.suggest_float(path, float(least), float(greatest), log=self.log)
        return trial.suggest_float(path, float(least), float(least + self._last * self._step), step=float(self._step))

    def of_parameter(self, parameter: float) -> Any:  # noqa: ANN401 (a value of the space)
        """Return the value of a parameter that Optuna has chosen."""
        if self._step is None:
            return parameter
        return self._of_step(round((Fraction(parameter) - self._ends[0]) / self._step))

    def shown(self, parameter: float) -> Any:  # noqa: ANN401 (a value of the space)
        """Return the value of a parameter for a table."""
        return self.of_parameter(parameter)

    def number(self, parameter: float) -> float:
        """Return the number of a value that Optuna has chosen, in the finer unit of the ends."""
        value = self.of_parameter(parameter)
        return float(self._scaled(value)) if isinstance(value, str) else value

    @property
    def has_numbers(self) -> bool:
        """True, because every value is a number, or a quantity with a unit."""
        return True


def number_of(value: float | str) -> float:
    """Return a number, or a quantity with a unit as a number of seconds, bytes, bytes/s, transfers/s, Hz, or shares."""
    if isinstance(value, int | float):
        return float(value)
    found = _QUANTITY.fullmatch(value)
    if not found or found[2] not in _FAMILY_OF:
        raise OptionError(f'{value!r} is not a number with a unit such as "20us"; units: {", ".join(_FAMILY_OF)}')
    family = _FAMILY_OF[found[2]]
    base = {"time": 10**12, "share": 10**4}.get(family, 1)
    return float(Fraction(found[1]) * _FAMILIES[family][found[2]] / base)


def _text(exact: Fraction, unit: str) -> str:
    """Return a quantity as a text, in its unit, or in the smallest one if it has too many digits."""
    family = _FAMILIES[_FAMILY_OF[unit]]
    for digits in range(13):
        if (exact * 10**digits).denominator == 1:
            number = f"{int(exact * 10**digits):0{digits + 1}}"
            return f"{number[: len(number) - digits]}{'.' if digits else ''}{number[len(number) - digits :]}{unit}"
    return f"{int(exact * family[unit])}{next(iter(family))}"


class Choices:
    """Values to choose from, by their labels for Optuna and its journal."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.by_label = {_label(value): value for value in values}

    def described(self) -> list[Any]:
        """Return the values as a list of the command's files."""
        return list(self.by_label.values())

    def at(self, share: float) -> Any:  # noqa: ANN401 (a value of the space)
        """Return the value at a share of the list, from 0 to below 1."""
        values = list(self.by_label.values())
        return values[int(share * len(values))]

    def suggest(self, trial: Any, path: str) -> Any:  # noqa: ANN401 (Optuna's)
        """Let Optuna choose, and return the label."""
        return trial.suggest_categorical(path, list(self.by_label))

    def of_parameter(self, parameter: str | float) -> Any:  # noqa: ANN401 (a value of the space)
        """Return the value of a label."""
        return self.by_label[parameter]

    def shown(self, parameter: str | float) -> str | float:
        """Return the label, because a column of a table cannot have compound values."""
        return parameter

    def number(self, parameter: str | float) -> float:
        """Return the value of a label, which is a number."""
        return float(self.by_label[parameter])

    @property
    def has_numbers(self) -> bool:
        """True if every value is a number."""
        return all(is_number(value) for value in self.by_label.values())


def is_number(value: object) -> bool:
    """Return True for an integer or a floating-point number, and False for a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _label(value: Any) -> str | float:  # noqa: ANN401 (a value of the space)
    """Return the label of a value for Optuna and its journal: numbers and texts unchanged."""
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, default=lambda inner: getattr(inner, "__name__", str(inner)))


#: By path: a range, or values to choose from.
Ranges: TypeAlias = "Mapping[str, Range | Iterable[Any]]"


def dimensions(space: Ranges) -> dict[str, Range | Choices]:
    """Return the ranges and choices of a space by path.

    Raises
    ------
    OptionError
        A path has neither a range nor values.
    """
    return {path: _dimension(path, where) for path, where in space.items()}


def _dimension(path: str, where: Range | Iterable[Any]) -> Range | Choices:
    if isinstance(where, Range):
        return where
    if isinstance(where, str | Mapping) or not isinstance(where, Iterable):
        raise OptionError(f"{path}: expected a range, such as fg.Range(0.1, 0.4), or a list of values, not {where!r}")
    values = [_plain(value) for value in where]
    if not values:
        raise OptionError(f"{path}: the list of values is empty")
    if isinstance(where, tuple) and len(values) == 2 and all(map(is_number, values)):
        low, high = values
        warnings.warn(
            f"{path}: a tuple is a list of values; write fg.Range({low!r}, {high!r}) for a range, or "
            f"[{low!r}, {high!r}] for two values",
            FloatgateWarning,
            stacklevel=4,
        )
    return Choices(values)
