"""Names of metrics: the numbers of a summary by their paths, with titles for axes."""

from __future__ import annotations

import fnmatch
from functools import lru_cache
from typing import TYPE_CHECKING

from floatgate import _floatgate, summary
from floatgate._node import Free, Node

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Parts of a summary that identify the run or are not single numbers. They are not metrics.
NO_METRICS = ("schema", "version", "seed", "device", "workload", "config", "config_digest", "changes", "arguments",
              "precondition", "warnings", "streams", "distributions")  # fmt: skip

#: Key results of an operation, and of a device.
KEY_RESULTS = ("iops", "latency_us.mean", "latency_us.p99")

#: Start of the names of the metrics of requests, which may be left out.
_REQUESTS = "requests."


def full_name(name: str, columns: Collection[str] = ()) -> str:
    """Return the full name of a metric: ``read.latency_us.p99`` is short for ``requests.read.latency_us.p99``.

    A name in `columns` is full.
    """
    return name if name in columns else _floatgate.metric(name)[0]


def short_name(name: str) -> str:
    """Return the shortest name of a metric."""
    return name.removeprefix(_REQUESTS)


def title(name: str) -> str:
    """Return the title of an axis: the label and the unit of a metric. Parameters keep their paths."""
    path, label, unit = _floatgate.metric(name.removeprefix("summary."))
    if not any(fnmatch.fnmatchcase(path, known) if "*" in known else path == known for known in declared()):
        return name
    return titled(label, unit)


def titled(label: str, unit: str) -> str:
    """Return a label with its unit, if it has one."""
    return f"{label}, {unit}" if unit else label


@lru_cache(maxsize=1)
def declared() -> tuple[str, ...]:
    """Return the path of every metric. An asterisk is for names that depend on the device."""
    return tuple(_declared(summary.Summary))


def _declared(kind: type[Node], path: str = "") -> Iterator[str]:
    """Yield the path of every single value that a part of a summary can have."""
    if kind is Free:
        yield f"{path}*"
    for name, annotation in kind._declared().items():
        key = name.removesuffix("_")  # of a Python keyword
        part = kind._kinds.get(key)
        if f"{path}{key}" == "gc.log_blocks.writes":
            yield f"{path}{key}.*.units"
        if (not path and key in NO_METRICS) or annotation.startswith("list["):
            continue
        if part is None or annotation.endswith("| None"):
            yield path + key
        if part is not None:
            yield from _declared(getattr(summary, part), f"{path}{key}.")
