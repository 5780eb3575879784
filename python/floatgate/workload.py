"""Workloads: synthetic jobs in fio's words, fio's job files, and traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from floatgate.exceptions import TraceError, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Workload:
    """What a host asks of a device. ``str(workload)`` is what ``floatgate run`` has for it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<floatgate.{type(self).__name__} {self._text}>"

    def __eq__(self, other: object) -> bool:
        """Whether the other one is the same workload, word for word."""
        return str(self) == str(other) if isinstance(other, Workload) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self._text)


def _restored(kind: type[Workload], text: str) -> Workload:
    workload = kind.__new__(kind)
    Workload.__init__(workload, text)
    return workload


#: What stands for a workload: one of these classes, a job in fio's words, or the path of a job file, model or trace.
WorkloadLike: TypeAlias = "Workload | str | os.PathLike[str]"


class Synthetic(Workload):
    """A job, or several, in fio's words.

    Parameters
    ----------
    text
        The words, like ``"rw=randwrite bs=4k iodepth=32 number_ios=1m"``; a semicolon separates jobs.
    **words
        More words: ``Synthetic(rw="randread", bs="4k")``. ``True`` is 1, ``False`` is 0.

    Raises
    ------
    WorkloadError
        There is no pattern (``rw=``) in it. What else is wrong is told when it is run: much depends on the device.

    See Also
    --------
    ``docs/reference/synthetic.md`` : all words.
    """

    __slots__ = ()

    def __init__(self, text: str = "", **words: str | float) -> None:
        more = [f"{key}={int(word) if isinstance(word, bool) else word}" for key, word in words.items()]
        text = " ".join([text.strip(), *more]).strip()
        starts = ("rw=", "readwrite=", "read_iolog=")
        if not any(word.startswith(starts) for word in text.replace(";", " ").split()):
            raise WorkloadError(f"`{text}` is no job: it has to say what to do, with rw=randwrite or the like")
        super().__init__(text)


class JobFile(Workload):
    """A job file of fio's.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    WorkloadError
        There is no such file.
    """

    __slots__ = ()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not Path(path).is_file():
            raise WorkloadError(f"there is no job file {os.fspath(path)}")
        super().__init__(os.fspath(path))


class Trace(Workload):
    """A recorded trace, plain or compressed.

    Parameters
    ----------
    path
        The file.
    format
        Its format, like ``"msr"``; found out from its content where not given. ``"delimited:columns=..."`` describes
        columns.
    action
        The event of blkparse and blktrace traces that is the request: ``"D"``, ``"Q"``, ``"I"`` or ``"C"``.
    time_unit
        The unit of its times, where that is not the format's.
    time_scale
        What its times are multiplied by: 0.5 offers the same requests twice as fast.
    max_gap
        What longer gaps between two requests are shortened to, like ``"1s"``.
    replay
        ``"timed"`` (as recorded), ``"asap"``, or ``"depth=N"`` (N outstanding).
    fit
        What is done with addresses that the device does not have: ``"refuse"``, ``"wrap"`` or ``"compact"``.
    devices
        Of a trace of several devices: ``"side-by-side"``, ``"merge"``, or ``"select=NAME,..."``.
    limit
        Requests after which it ends.
    sort_window
        Put requests in order that come up to so many requests too late.
    skip_bad_lines
        Leave out up to so many lines that cannot be read.
    offset, size
        The part of the device that it works on: bytes, or texts like ``"10GiB"`` and ``"20%"``.
    start
        When it starts, like ``"5s"``.
    name
        What its stream is called.

    Raises
    ------
    TraceError
        There is no such file. What is wrong in it is told when it is run.

    See Also
    --------
    ``docs/reference/traces.md`` : the formats, and what these options do.
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
            raise TraceError(f"there is no trace {path}")
        # A path by itself is a trace where it does not look like a job.
        plain = not given and "=" not in path and not path.endswith((".fio", ".job", ".ini", ".json"))
        super().__init__(path if plain else " ".join(_word(*pair) for pair in {"trace": path, **given}.items()))


def _word(key: str, value: str) -> str:
    if '"' in value:
        raise TraceError(f"`{key}` may not have a double quote in it: {value}")
    return f'{key}="{value}"' if not value or any(character.isspace() for character in value) else f"{key}={value}"


def texts_of(workload: WorkloadLike | Sequence[WorkloadLike]) -> list[str]:
    """Say what ``floatgate run`` has for one workload or several."""
    several = [workload] if isinstance(workload, Workload | str | os.PathLike) else list(workload)
    for one in several:
        if not isinstance(one, Workload | str | os.PathLike):
            raise TypeError(f"a workload is a Synthetic, a Trace, a JobFile, a text or a path, not {one!r}")
    if not several:
        raise WorkloadError("there is no workload: give at least one")
    return [os.fspath(one) if isinstance(one, os.PathLike) else str(one) for one in several]
