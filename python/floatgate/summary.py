"""Summary of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


class Node(Mapping[str, Any]):
    """A part of a summary: a dictionary whose keys are attributes as well.

    ``node["p99"]`` and ``node.p99`` are the same. If a key is a Python keyword, the attribute has a trailing
    underscore: ``histogram.from_``.
    """

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (JSON)
        return _wrapped(self._data[key])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (JSON)
        # An object that is being unpickled has no data yet.
        data = object.__getattribute__(self, "_data") if not name.startswith("__") else {}
        for key in (name, name.removesuffix("_")):
            if key in data:
                return _wrapped(data[key])
        raise AttributeError(f"no `{name}` in this part of the summary, which has {', '.join(data)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __repr__(self) -> str:
        return repr(self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._data,)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy as nested dictionaries and lists."""
        copy: dict[str, Any] = json.loads(json.dumps(self._data))
        return copy


def _wrapped(value: Any) -> Any:  # noqa: ANN401 (JSON)
    if isinstance(value, dict):
        return Node(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


class Document(Node):
    """A JSON file that the simulator wrote.

    Parameters
    ----------
    text
        The content of the file.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        super().__init__(json.loads(text))
        self._text = text

    def to_json(self) -> str:
        """Return the JSON that the ``floatgate`` command prints with ``--json``, byte for byte."""
        return self._text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._text,)


class Summary(Document):
    """The summary of a run: exactly the content of ``summary.json``.

    ``docs/reference/summary.md`` describes every key.

    Parameters
    ----------
    text
        The content of a ``summary.json``.

    Examples
    --------
    >>> result.summary.requests.write.latency_us.p99 == result.summary["requests"]["write"]["latency_us"]["p99"]
    True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<floatgate.Summary of {self['workload']['name']} on {self['device']['name']}, seed {self['seed']}>"
