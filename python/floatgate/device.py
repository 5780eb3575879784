"""Devices: built-in ones, files, and variations of them."""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate import _floatgate, _html, _values

if TYPE_CHECKING:
    from collections.abc import Mapping


class Device:
    """An SSD that can be simulated. It does not change: :meth:`with_options` makes another one.

    Parameters
    ----------
    name_or_path
        A built-in device, as :func:`devices` lists them, or the path of a device file.
    options
        Figures to change: see :meth:`with_options`.

    Raises
    ------
    ConfigError
        There is no such device, or it cannot be built; with all that is wrong.

    Examples
    --------
    >>> import floatgate as fg
    >>> device = fg.Device("hu2011").with_options({"gc.victim": "greedy", "geometry.channels": 8})
    >>> device.config["geometry"]["channels"]
    8
    """

    __slots__ = ("_handle", "_overrides", "_source", "_text")

    def __init__(self, name_or_path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        self._open(os.fspath(name_or_path), None, tuple(_values.overrides(options or {})))

    def _open(self, source: str, text: str | None, overrides: tuple[str, ...]) -> None:
        self._source = source
        self._text = text
        self._overrides = overrides
        if text is None:
            self._handle = _floatgate.DeviceConfig.load(source, list(overrides))
        else:
            self._handle = _floatgate.DeviceConfig.from_toml(text, source, list(overrides))

    @classmethod
    def _of(cls, source: str, text: str | None, overrides: tuple[str, ...]) -> Device:
        device = cls.__new__(cls)
        device._open(source, text, overrides)
        return device

    @classmethod
    def from_toml(cls, text_or_path: str | os.PathLike[str], *, name: str = "device") -> Device:
        r"""Read a device from the text of a device file, or from such a file.

        Parameters
        ----------
        text_or_path
            The text, or the path of a file. A :class:`str` with a line feed or an equals sign is a text.
        name
            What a device is called whose text has no ``name``.

        Returns
        -------
        Device

        Raises
        ------
        ConfigError
            It is no device.

        Examples
        --------
        >>> fg.Device.from_toml('base = "tiny"\ngc.victim = "fifo"').config["gc"]["victim"]
        'fifo'
        """
        if isinstance(text_or_path, str) and ("\n" in text_or_path or "=" in text_or_path):
            return cls._of(f"{name}.toml", text_or_path, ())
        path = os.fspath(text_or_path)
        # A name alone would be that of a built-in device.
        return cls._of(path if Path(path).name != path else str(Path(os.curdir, path).absolute()), None, ())

    def with_options(self, options: Mapping[str, Any]) -> Device:
        """Make a device that differs in some figures.

        Parameters
        ----------
        options
            Figures by their paths, which are those of ``floatgate run --set``: ``"geometry.channels"``. A value is a
            number, a text with its unit (``"25us"``), or a dictionary: ``{"gc.victim": {"d-choices": {"d": 10}}}``.

        Returns
        -------
        Device
            The other device; later options come on top of earlier ones.

        Raises
        ------
        ConfigError
            A figure does not exist, or does not go with the others.
        """
        return Device._of(self._source, self._text, self._overrides + tuple(_values.overrides(options)))

    @property
    def name(self) -> str:
        """What it is called."""
        return self._handle.name

    @property
    def description(self) -> str:
        """What it is, in a line."""
        return self._handle.description

    @property
    def digest(self) -> str:
        """32 hexadecimal digits, which are equal for devices of equal figures, whatever they are called."""
        return self._handle.digest

    @property
    def base(self) -> str | None:
        """The built-in device that it is, or is based on."""
        return self._handle.base

    @property
    def overrides(self) -> tuple[str, ...]:
        """What was changed by :meth:`with_options`, as ``--set`` has it."""
        return self._overrides

    @property
    def config(self) -> dict[str, Any]:
        """All figures as nested dictionaries, in the form of a device file; a copy each time."""
        config: dict[str, Any] = json.loads(self._handle.to_json())
        return config

    @property
    def figures(self) -> list[tuple[str, Any, str | None]]:
        """Each figure with its path, its value, and its source; None where it is a default."""
        return [(path, json.loads(value), source) for path, value, source in self._handle.figures()]

    @property
    def logical_bytes(self) -> int:
        """Bytes that the host sees."""
        return self._handle.logical_bytes

    @property
    def physical_bytes(self) -> int:
        """Bytes of the flash."""
        return self._handle.physical_bytes

    def to_toml(self) -> str:
        """Write it as a device file, with all figures."""
        return self._handle.to_toml()

    def __eq__(self, other: object) -> bool:
        """Whether the other one is a device of the same figures."""
        return self.digest == other.digest if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # A text goes along; a file is found from everywhere, where other machines reach it.
        is_file = self._text is None and Path(self._source).name != self._source and Path(self._source).is_file()
        source = str(Path(self._source).absolute()) if is_file else self._source
        return Device._of, (source, self._text, self._overrides)

    def __repr__(self) -> str:
        options = "".join(f", {text}" for text in self._overrides)
        return f"<floatgate.Device {self.name}{options}>"

    def _repr_html_(self) -> str:
        geometry = self.config["geometry"]
        rows = [
            ("size", f"{_html.readable(self.logical_bytes)} of {_html.readable(self.physical_bytes)} physical"),
            ("array", " &times; ".join(f"{geometry[key]} {key}" for key in ("channels", "chips", "dies", "planes"))),
            ("blocks", f"{geometry['blocks']} of {geometry['pages']} pages in each plane"),
            ("digest", f"<code>{self.digest}</code>"),
        ]
        rows += [("option", f"<code>{escape(text)}</code>") for text in self._overrides]
        return _html.card(escape(self.name), escape(self.description), _html.pairs(rows))


def devices() -> list[Device]:
    """List the built-in devices.

    Returns
    -------
    list of Device
        Their names are what :class:`Device` takes.
    """
    return [Device(name) for name in _floatgate.builtin_names()]
