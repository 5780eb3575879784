"""Conversion of Python values to the syntax of device files, traces and the command line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

#: A value of a device file: a number, a text, a list, or a table of values.
Value = Any

_TIME_UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_SIZE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def to_toml(value: Value) -> str:  # noqa: PLR0911 (a line for each type)
    """Format a value as TOML, on one line."""
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        return "{ " + ", ".join(f"{_key(key)} = {to_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    raise TypeError(f"a value must be a number, a text, a list or a dictionary, not {type(value).__name__}: {value!r}")


def overrides(options: Mapping[str, Value]) -> Iterator[str]:
    """Format options as ``path=value``, like ``floatgate run --set``."""
    for path, value in options.items():
        if not isinstance(path, str):
            raise TypeError(f"the path of an option must be a text such as 'gc.victim', not {path!r}")
        text = to_toml(value)
        yield f"{path}={value if isinstance(value, str) and _is_bare(value) else text}"


def _is_bare(text: str) -> bool:
    """Return True if a text can be written without quotes, as a user would write it."""
    if text != text.strip() or not text or "\n" in text or "\r" in text or text[0] in "\"'[{":
        return False
    # A text that starts with a digit or is a truth value may be another type in TOML. A unit after it prevents that.
    return bool(re.fullmatch(r"[A-Za-z][\w.=-]*|\d+(?:\.\d+)?[A-Za-z%][A-Za-z/]*", text)) and text not in (
        "true",
        "false",
        "inf",
        "nan",
    )


def _plain(value: Value) -> Value:
    """Convert a NumPy scalar or array to a plain Python value."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", None) == 0:
        return item()
    tolist = getattr(value, "tolist", None)
    return tolist() if callable(tolist) else value


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _key(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key of a table must be a text, not {key!r}")
    return key if _BARE_KEY.fullmatch(key) else to_toml(key)


def picoseconds(value: int | str) -> int:
    """Parse a time: integer picoseconds, or a text with a unit, such as ``"25us"``."""
    return _quantity(value, _TIME_UNITS, "a time", "25us", "picoseconds")


def size_in_bytes(value: int | str) -> int:
    """Parse a size: integer bytes, or a text with a unit, such as ``"4KiB"``."""
    return _quantity(value, _SIZE_UNITS, "a size", "4KiB", "bytes")


def _quantity(value: int | str, units: Mapping[str, int], what: str, example: str, unit: str) -> int:
    value = _plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"{what} must not be negative: {value}")
        return value
    if not isinstance(value, str):
        raise TypeError(f'{what} must be an integer number of {unit} or a text such as "{example}", not {value!r}')
    found = _QUANTITY.fullmatch(value)
    if not found or found[2] not in units:
        raise ValueError(f'{what} must be a text such as "{example}", with one of {", ".join(units)}, not {value!r}')
    exact = Fraction(found[1]) * units[found[2]]
    if exact.denominator != 1:
        raise ValueError(f"{value!r} is not an integer number of {unit}")
    return int(exact)
