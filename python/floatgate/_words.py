"""Words of messages: the command names its options, and the package its parameters."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Options of the command, with the parameters of the package that correspond to them.
_PARAMETERS = {
    "action": "action", "attribution": "attribution", "columns": "format", "details": "details",
    "devices": "devices",
    "endurance-scale": "endurance_scale", "fit": "fit", "format": "format", "limit": "limit",
    "load-state": "precondition", "max-gap": "max_gap", "out": "out", "precondition": "precondition",
    "prewrite": "prewrite", "replay": "replay", "requests": "requests", "save-state": "Simulator.save",
    "scale-footprint": "scale_footprint", "scale-rate": "scale_rate", "seed": "seed", "seeds": "seeds",
    "series": "series", "set": "with_options", "size": "size", "skip-bad-lines": "skip_bad_lines",
    "sort-window": "sort_window", "time-scale": "time_scale", "time-unit": "time_unit", "timeline": "timeline",
    "title": "title", "until": "until",
}  # fmt: skip

#: Parameters that are True if the text names no other value.
_SWITCHES = frozenset({"attribution", "details", "requests", "series", "timeline"})

#: Words that are a value if they follow an option. Any other word may belong to the sentence.
_WORDS = "none|fill|steady|asap|timed|refuse|wrap|compact|merge|worn-out|ns|us|ms"

#: An option with its value. Anything after ``=`` is a value, up to the punctuation of the sentence. After a space, a
#: value is the rest of a span in backticks, what the message is about (``--seed 7: too large``), a known word, a
#: placeholder, or a number with or without a unit.
_OPTION = re.compile(
    r"(?P<subject>(?:^|(?<=error: )))?(?P<tick>`)?(?<![\w-])--(?P<name>[a-z][a-z-]*[a-z])(?:"
    r"=(?P<given>[^\s`,;()]*[^\s`,;():.])"
    r"|(?(subject) (?P<about>\S+)(?=: )|(?!))"
    r"|(?(tick) (?P<span>[^`]+)(?=`)|(?!))"
    rf"|[ ](?P<word>(?:{_WORDS})\b|(?:aged|invalid|depth)=[\w.%]+|[A-Z]+\b|\d[\w.]*(?:\.\.\d[\w.]*)?)"
    r")?"
)

#: A command on its own, or in backticks.
_COMMAND_LINE = re.compile(r"^\s*floatgate .*|`floatgate [^`]*`", re.MULTILINE)

#: True if texts keep the words of the command, because its user reads them.
_kept = False


@contextlib.contextmanager
def words_of_command() -> Iterator[None]:
    """Let :func:`in_python` return texts without changes, within this context."""
    global _kept  # noqa: PLW0603 (a process has one reader)
    _kept = True
    try:
        yield
    finally:
        _kept = False


def in_python(text: str) -> str:
    """Name the options of the command in a text by the parameters of the package.

    Command lines stay as they are, because they are to be run as commands.

    Examples
    --------
    >>> in_python("--prewrite is for new data; give --precondition none")
    'prewrite= is for new data; give precondition="none"'
    >>> in_python("--out results: a file of that name exists; `--format delimited:time,lba` reads it")
    'out=results: a file of that name exists; `format="delimited:time,lba"` reads it'
    >>> in_python("run again with --requests=parquet --timeline, as in `floatgate run tiny rw=read --timeline`")
    'run again with requests=True timeline=True, as in `floatgate run tiny rw=read --timeline`'
    >>> in_python("and 2 others; --details shows all")
    'and 2 others; details=True shows all'
    """
    if _kept:
        return text
    lines = _COMMAND_LINE.findall(text)
    parts = [_OPTION.sub(_parameter, part) for part in _COMMAND_LINE.split(text)]
    return "".join(part + line for part, line in zip(parts, [*lines, ""], strict=True))


def _parameter(found: re.Match[str]) -> str:
    """Return the parameter, with its value, for an option."""
    option, name = found["name"], _PARAMETERS.get(found["name"])
    if name is None:
        return found[0]
    if name in {"with_options", "Simulator.save"}:
        return found[0].replace(f"--{option}", name)
    tick, value = found["tick"] or "", found["given"] or found["span"] or found["word"]
    if found["about"]:
        return f"{name}={found['about']}"
    if value is None:
        named_only = name not in _SWITCHES or found.string.startswith(":", found.end())
        return f"{tick}{name}={'' if named_only else True}"
    if name == "requests":
        return f"{tick}{name}=True"
    plain = value.isupper() or (value.isdecimal() and name not in {"timeline", "series"})
    return f"{tick}{name}={value}" if plain else f'{tick}{name}="{value}"'


def in_command(text: str) -> str:
    """Name the number of parallel runs in a text by the option of the command.

    Examples
    --------
    >>> in_command("set n_jobs=1")
    'set --jobs 1'
    """
    return text.replace("n_jobs=", "--jobs ")
