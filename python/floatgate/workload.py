"""Workloads: synthetic jobs in fio syntax, fio job files, and traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from floatgate.exceptions import TraceError, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Workload:
    """Requests of a host. ``str(workload)`` is the argument of ``floatgate run``."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<floatgate.{type(self).__name__} {self._text}>"

    def __eq__(self, other: object) -> bool:
        """Return True if the other workload has the same text."""
        return str(self) == str(other) if isinstance(other, Workload) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self._text)


def _restored(kind: type[Workload], text: str) -> Workload:
    workload = kind.__new__(kind)
    Workload.__init__(workload, text)
    return workload


#: A workload: one of these classes, a job in fio syntax, or the path of a job file, model or trace.
WorkloadLike: TypeAlias = "Workload | str | os.PathLike[str]"


class Synthetic(Workload):
    """One or several jobs in fio syntax.

    Parameters
    ----------
    text
        Options such as ``"rw=randwrite bs=4k iodepth=32 number_ios=1m"``. A semicolon separates jobs.
    **words
        More options: ``Synthetic(rw="randread", bs="4k")``. ``True`` is 1, ``False`` is 0.

    Raises
    ------
    WorkloadError
        The text has no pattern (``rw=``). Other errors are reported by the run, because they may depend on the device.

    See Also
    --------
    ``docs/reference/synthetic.md`` : all options.
    """

    __slots__ = ()

    def __init__(self, text: str = "", **words: str | float) -> None:
        more = [f"{key}={int(word) if isinstance(word, bool) else word}" for key, word in words.items()]
        text = " ".join([text.strip(), *more]).strip()
        starts = ("rw=", "readwrite=", "read_iolog=")
        if not any(word.startswith(starts) for word in text.replace(";", " ").split()):
            raise WorkloadError(f"`{text}` is not a job: it needs a pattern, such as rw=randwrite")
        super().__init__(text)


class JobFile(Workload):
    """A fio job file.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    WorkloadError
        The file does not exist.
    """

    __slots__ = ()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not Path(path).is_file():
            raise WorkloadError(f"job file {os.fspath(path)} does not exist")
        super().__init__(os.fspath(path))


class Trace(Workload):
    """A recorded trace, plain or compressed.

    Parameters
    ----------
    path
        The file.
    format
        Format, such as ``"msr"``. Default: detected from the content. ``"delimited:columns=..."`` describes columns.
    action
        Event in blkparse and blktrace traces that represents a request: ``"D"``, ``"Q"``, ``"I"`` or ``"C"``.
    time_unit
        Unit of times, if it differs from the format's.
    time_scale
        Factor for all times: 0.5 submits the same requests twice as fast.
    max_gap
        Maximum gap between two requests, such as ``"1s"``. Longer gaps are shortened.
    replay
        ``"timed"`` (as recorded), ``"asap"``, or ``"depth=N"`` (N outstanding).
    fit
        Handling of addresses beyond the device: ``"refuse"``, ``"wrap"`` or ``"compact"``.
    devices
        Handling of a trace with several devices: ``"side-by-side"``, ``"merge"``, or ``"select=NAME,..."``.
    limit
        Maximum number of requests.
    sort_window
        Sort requests that are up to this many positions out of order.
    skip_bad_lines
        Maximum number of invalid lines to skip.
    offset, size
        Part of the device that the trace uses: bytes, or texts such as ``"10GiB"`` and ``"20%"``.
    start
        Start time, such as ``"5s"``.
    name
        Name of the stream.

    Raises
    ------
    TraceError
        The file does not exist. Errors in the file are reported by the run.

    See Also
    --------
    ``docs/reference/traces.md`` : formats and options.
    """

    __slots__ = ()

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 (the name of the command's option)
        action: Literal["D", "Q", "I", "C"] | None = None,
        time_unit: str | None = None,
        time_scale: float | None = None,
        max_gap: str | None = None,
        replay: str | None = None,
        fit: Literal["refuse", "wrap", "compact"] | None = None,
        devices: str | None = None,
        limit: int | None = None,
        sort_window: int | None = None,
        skip_bad_lines: int | None = None,
        offset: str | int | None = None,
        size: str | int | None = None,
        start: str | None = None,
        name: str | None = None,
    ) -> None:
        words = {
            "offset": offset,
            "size": size,
            "start": start,
            "name": name,
            "format": format,
            "action": action,
            "time_unit": time_unit,
            "time_scale": time_scale,
            "max_gap": max_gap,
            "replay": replay,
            "fit": fit,
            "devices": devices,
            "limit": limit,
            "sort_window": sort_window,
            "skip_bad_lines": skip_bad_lines,
        }
        given = {key: str(word) for key, word in words.items() if word is not None}
        path = os.fspath(path)
        if not Path(path).is_file():
            raise TraceError(f"trace {path} does not exist")
        # A path alone is passed unchanged, unless it looks like a job file or model.
        plain = not given and "=" not in path and not path.endswith((".fio", ".job", ".ini", ".json"))
        super().__init__(path if plain else " ".join(_word(*pair) for pair in {"trace": path, **given}.items()))


def _word(key: str, value: str) -> str:
    if '"' in value:
        raise TraceError(f"`{key}` must not contain a double quote: {value}")
    return f'{key}="{value}"' if not value or any(character.isspace() for character in value) else f"{key}={value}"


def texts_of(workload: WorkloadLike | Sequence[WorkloadLike]) -> list[str]:
    """Return the arguments of ``floatgate run`` for one or several workloads."""
    several = [workload] if isinstance(workload, Workload | str | os.PathLike) else list(workload)
    for one in several:
        if not isinstance(one, Workload | str | os.PathLike):
            raise TypeError(f"a workload must be a Synthetic, a Trace, a JobFile, a text or a path, not {one!r}")
    if not several:
        raise WorkloadError("no workload: give at least one")
    return [os.fspath(one) if isinstance(one, os.PathLike) else str(one) for one in several]
