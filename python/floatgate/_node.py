"""Parts of JSON documents: dictionaries whose keys are attributes as well."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from floatgate import _floatgate, _html
from floatgate._files import near
from floatgate._words import in_python

#: Methods of a mapping, which completion shows with the keys.
_METHODS = ("get", "items", "keys", "to_dict", "values")


class Node(Mapping[str, Any]):
    """A part of a document: a dictionary whose keys are attributes as well.

    ``node["p99"]`` and ``node.p99`` are the same. If a key is a Python keyword, the attribute has a trailing
    underscore: ``histogram.from_``. The attribute of a key that the document leaves out is None, 0 or an empty list.
    The attribute of a number that does not exist, such as a latency without requests, is NaN, and the key is None.
    """

    __slots__ = ("_data",)

    #: Names of the classes of keys whose values are objects, or lists of objects.
    _kinds: ClassVar[Mapping[str, str]] = {}
    #: Values of keys that the document may leave out.
    _absent: ClassVar[Mapping[str, Any]] = {}
    #: Keys of numbers that may be null.
    _numbers: ClassVar[Collection[str]] = frozenset()

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    @classmethod
    def _keys(cls) -> list[str]:
        """Return the attributes that the schema declares."""
        return list(cls._declared())

    @classmethod
    def _declared(cls) -> dict[str, str]:
        """Return the types of the attributes that the schema declares, as texts."""
        found = [pair for one in cls.__mro__ for pair in inspect.get_annotations(one).items()]
        return {name: kind for name, kind in found if not name.startswith("_")}

    def _wrapped(self, key: str, value: Any) -> Any:  # noqa: ANN401 (JSON)
        if isinstance(value, list):
            return [self._wrapped(key, item) for item in value]
        if not isinstance(value, dict):
            return value
        kind: type[Node] = getattr(sys.modules[type(self).__module__], self._kinds.get(key, "Free"), Free)
        node = kind.__new__(kind)
        Node.__init__(node, value)
        return node

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (JSON)
        if key not in self._data:
            raise KeyError(f"no key `{key}`{near(key, self._data)} in this part, which has {', '.join(self._data)}")
        return self._wrapped(key, self._data[key])

    # Type checkers see the attributes that subclasses declare, and no others.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (JSON)
            # An object that is being unpickled has no data yet.
            data = object.__getattribute__(self, "_data") if not name.startswith("__") else {}
            for key in (name, name.removesuffix("_")):
                if key in data or key in self._absent:
                    value = data[key] if key in data else self._absent[key]
                    return math.nan if value is None and key in self._numbers else self._wrapped(key, value)
            known = dict.fromkeys([*self._keys(), *data])
            raise AttributeError(
                f"no `{name}` in this part ({type(self).__name__}){near(name, known)}; it has {', '.join(known)}"
            )

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        own = (name for name in dir(type(self)) if name.startswith("__") or name in self._shown())
        return sorted({*own, *self._keys(), *(key for key in self._data if key.isidentifier())})

    def _shown(self) -> tuple[str, ...]:
        return _METHODS

    def __repr__(self) -> str:
        return repr(self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._data)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy as nested dictionaries and lists."""
        copy: dict[str, Any] = json.loads(json.dumps(self._data))
        return copy


def _restored(kind: type[Node], data: dict[str, Any]) -> Node:
    node = kind.__new__(kind)
    Node.__init__(node, data)
    return node


class Free(Node):
    """A part with any keys, such as the parameters of a device."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401 (JSON)


class Document(Node):
    """A JSON file that the simulator wrote. `printed` is its text for people, if it has one."""

    __slots__ = ("_printed", "_text")

    def __init__(self, text: str, printed: str = "") -> None:
        super().__init__(json.loads(text))
        self._text = text
        self._printed = printed

    def _shown(self) -> tuple[str, ...]:
        return (*_METHODS, "to_json")

    def to_json(self) -> str:
        """Return the JSON that the ``floatgate`` command prints with ``--json``, byte for byte."""
        # A part of another document, such as a member of an array, has no text of its own.
        text: str | None = getattr(self, "_text", None)
        return json.dumps(self._data, indent=2, ensure_ascii=False) if text is None else text

    def __str__(self) -> str:
        return getattr(self, "_printed", "").rstrip("\n") or repr(self)

    def _repr_html_(self) -> str | None:
        text = str(self)
        return _html.text(text) if "\n" in text else None

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._text, self._printed)) if hasattr(self, "_text") else super().__reduce__()


class SummaryText(Node):
    """Texts of a summary."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<floatgate.Summary of {self['workload']['name']} on {self['device']['name']}, seed {self['seed']}>"

    def __str__(self) -> str:
        return self.text()

    def _shown(self) -> tuple[str, ...]:
        return (*super()._shown(), "text")

    def text(self, *, details: bool = False) -> str:
        """Return the text of ``floatgate run``, with `details` that of ``floatgate run --details``."""
        return in_python(_floatgate.summary_text(json.dumps(self._data), details).rstrip("\n"))


class ProfileText(Node):
    """Texts of a profile."""

    __slots__ = ()

    def __repr__(self) -> str:
        trace = self._data.get("trace") or {}
        return f"<floatgate.Profile of {trace.get('file', 'requests')}: {self['requests']} requests>"
