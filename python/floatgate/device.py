"""Devices: built-in devices, device files, and variations of them."""

from __future__ import annotations

import json
import os
import warnings
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate import _floatgate, _html, _values
from floatgate import policies as _policies
from floatgate._files import LARGEST_TOML, read_limited
from floatgate.exceptions import ConfigError, FloatgateWarning
from floatgate.importing import import_config

if TYPE_CHECKING:
    from collections.abc import Mapping


class Device:
    """An SSD to simulate. It is immutable: :meth:`with_options` creates another device.

    Parameters
    ----------
    name_or_path
        A built-in device, as :func:`devices` lists them, or the path of a device file.
    options
        Parameters to change: see :meth:`with_options`.

    Raises
    ------
    ConfigError
        The device does not exist, or its configuration is invalid. Lists all problems.

    Examples
    --------
    >>> import floatgate as fg
    >>> device = fg.Device("hu2011").with_options({"gc.victim": "greedy", "geometry.channels": 8})
    >>> device.config["geometry"]["channels"]
    8
    """

    __slots__ = ("_handle", "_overrides", "_policies", "_source", "_text")

    def __init__(self, name_or_path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        plain, known = _policies._resolve(options or {})
        self._open(os.fspath(name_or_path), None, tuple(_values.overrides(plain)), known)

    def _open(
        self,
        source: str,
        text: str | None,
        overrides: tuple[str, ...],
        known: Mapping[str, type[_policies.Policy]],
    ) -> None:
        self._source = source
        self._text = _of_pipe(source) if text is None else text
        self._overrides = overrides
        self._handle = self._load()
        self._policies: dict[str, type[_policies.Policy]] = {}
        named = self._handle.externals()
        for path, name, digest, _ in named:
            self._policies[path] = _policies._find(path, name, digest, known)
        if any(not digest for _, _, digest, _ in named):
            # Store the source of each policy, so that the device records the code that ran.
            sources = {
                f"{path}.external.source": _policies._source(self._policies[path])
                for path, _, digest, _ in named
                if not digest
            }
            self._overrides += tuple(_values.overrides(sources))
            self._handle = self._load()
        for policy in self._policies.values():
            policy._address()  # A function that cannot be compiled is an error of the device, not of its runs.
        if named:
            config = self.config
            makers = {path: _policies._maker(policy, config) for path, policy in self._policies.items()}
            self._handle = self._handle.with_policies(makers)

    def _load(self) -> _floatgate.DeviceConfig:
        overrides = list(self._overrides)
        try:
            if self._text is None:
                return _floatgate.DeviceConfig.load(self._source, overrides)
            return _floatgate.DeviceConfig.from_toml(self._text, self._source, overrides)
        except ConfigError as error:
            raise _policies._with_names(error) from None

    @classmethod
    def _of(
        cls,
        source: str,
        text: str | None,
        overrides: tuple[str, ...],
        known: Mapping[str, type[_policies.Policy]] | None = None,
    ) -> Device:
        device = cls.__new__(cls)
        device._open(source, text, overrides, known or {})
        return device

    @classmethod
    def from_toml(cls, text_or_path: str | os.PathLike[str], *, name: str = "device") -> Device:
        r"""Read a device from the text or the path of a device file.

        Parameters
        ----------
        text_or_path
            The text, or the path of a file. A :class:`str` with a newline or an equals sign is a text.
        name
            Name of the device if the text has no ``name``.

        Returns
        -------
        Device

        Raises
        ------
        ConfigError
            The device is invalid.

        Examples
        --------
        >>> fg.Device.from_toml('base = "tiny"\ngc.victim = "fifo"').config["gc"]["victim"]
        'fifo'
        """
        if isinstance(text_or_path, str) and ("\n" in text_or_path or "=" in text_or_path):
            return cls._of(f"{name}.toml", text_or_path, ())
        path = os.fspath(text_or_path)
        # A name without a directory would be the name of a built-in device.
        return cls._of(path if Path(path).name != path else str(Path(os.curdir, path).absolute()), None, ())

    @classmethod
    def from_import(cls, text_or_path: str | os.PathLike[str]) -> Device:
        r"""Read a device from a configuration of MQSim, SSDsim, DiskSim or FEMU.

        :func:`import_config` also returns the device file, and the keys that it does not carry over.

        Parameters
        ----------
        text_or_path
            The text, or the path of a file. A :class:`str` with a newline is a text.

        Returns
        -------
        Device

        Raises
        ------
        ConfigError
            The file is not such a configuration, or the device is invalid.

        Examples
        --------
        >>> command = "qemu-system-x86_64 -device femu,femu_mode=1,nchs=2,devsz_mb=2048"
        >>> fg.Device.from_import(command + "\n").config["geometry"]["channels"]
        2
        """
        imported = import_config(text_or_path)
        return cls._of("imported.toml", imported.text, ())

    def with_options(self, options: Mapping[str, Any]) -> Device:
        """Create a device with some parameters changed.

        Parameters
        ----------
        options
            Parameters by their paths, as in ``floatgate run --set``: ``"geometry.channels"``. A value is a number, a
            text with its unit (``"25us"``), or a dictionary: ``{"gc.victim": {"d-choices": {"d": 10}}}``. A policy in
            Python is given by its registered name or its class: see :mod:`floatgate.policies`.

        Returns
        -------
        Device
            The new device. Later options override earlier ones.

        Raises
        ------
        ConfigError
            A parameter does not exist, or conflicts with others.
        """
        plain, known = _policies._resolve(options)
        overrides = self._overrides + tuple(_values.overrides(plain))
        return Device._of(self._source, self._text, overrides, self._policies | known)

    def scaled(self, scale: str) -> Device:
        """Create a device with a share of the blocks, and the same rates, latencies and steady state.

        The parallel units remain, and the capacity shrinks with the blocks that hold data. The page on device files
        lists how each option scales. A steady state is reached sooner. Options that are changed later are those of the
        scaled device.

        Parameters
        ----------
        scale
            A fraction of at most 1, such as ``"1/16"``.

        Returns
        -------
        Device

        Raises
        ------
        ConfigError
            Too few blocks would remain, or the device is an array.

        Warns
        -----
        FloatgateWarning
            An effect does not scale, such as the hits of a large buffer.

        Examples
        --------
        >>> device = fg.Device("tlc-direct").scaled("1/16")
        >>> device.overrides[0]
        'geometry.blocks=57'
        """
        overrides, notes = self._handle.scaling(scale)
        for note in notes:
            warnings.warn(note, FloatgateWarning, stacklevel=2)
        return Device._of(self._source, self._text, self._overrides + tuple(overrides), self._policies)

    @property
    def name(self) -> str:
        """Name of the device."""
        return self._handle.name

    @property
    def description(self) -> str:
        """Description, in one line."""
        return self._handle.description

    @property
    def digest(self) -> str:
        """Digest of the parameters, without the name: 32 hexadecimal digits."""
        return self._handle.digest

    @property
    def state_digest(self) -> str:
        """Digest of the parameters that saved states depend on (:meth:`Simulator.save`): 32 hexadecimal digits.

        Devices that differ only in times, bus, scheduler, controller, buffer or host have the same digest.
        """
        return self._handle.state_digest

    @property
    def base(self) -> str | None:
        """Built-in device that this device is, or is based on."""
        return self._handle.base

    @property
    def array(self) -> dict[str, Any] | None:
        r"""Options of an array, or None for a single SSD.

        The ``config`` of an array is an SSD with the flash of all members.

        Examples
        --------
        >>> text = '[array]\nlevel = 5\ndevice = "tiny"\ncount = 4'
        >>> fg.Device.from_toml(text).array["level"]
        5
        """
        options = self._handle.array
        return None if options is None else json.loads(options)

    @property
    def overrides(self) -> tuple[str, ...]:
        """Changes by :meth:`with_options`, in the syntax of ``--set``."""
        return self._overrides

    @property
    def policies(self) -> dict[str, type[_policies.Policy]]:
        """Policies in Python, by the parameter that names them. Returns a copy."""
        return dict(self._policies)

    @property
    def config(self) -> dict[str, Any]:
        """All parameters as nested dictionaries, in the structure of a device file. Returns a copy."""
        config: dict[str, Any] = json.loads(self._handle.to_json())
        return config

    @property
    def figures(self) -> list[tuple[str, Any, str | None]]:
        """Each parameter with its path, its value, and its source, which is None for a default."""
        return [(path, json.loads(value), source) for path, value, source in self._handle.figures()]

    @property
    def logical_bytes(self) -> int:
        """Capacity that the host sees, in bytes."""
        return self._handle.logical_bytes

    @property
    def physical_bytes(self) -> int:
        """Capacity of the flash, in bytes."""
        return self._handle.physical_bytes

    def to_toml(self) -> str:
        """Return the device as the text of a device file, with all parameters."""
        return self._handle.to_toml()

    def __eq__(self, other: object) -> bool:
        """Return True if the other device has the same parameters."""
        return self.digest == other.digest if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # The text of a file is included, so that another machine does not need the file. Policies are pickled by the
        # name of their module or, with cloudpickle, by value.
        is_file = self._text is None and Path(self._source).name != self._source and Path(self._source).is_file()
        source = str(Path(self._source).absolute()) if is_file else self._source
        return Device._of, (source, self._text, self._overrides, self._policies)

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


def _of_pipe(source: str) -> str | None:
    """Return the text of a device file that is a pipe. A pipe can be read only once, and Ctrl-C must end the wait."""
    if source in _floatgate.builtin_names() or not Path(source).is_fifo():
        return None
    try:
        return read_limited(source, LARGEST_TOML)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {source}: {error}") from error


def devices() -> list[Device]:
    """List the built-in devices.

    Returns
    -------
    list of Device
        Their names are valid arguments of :class:`Device`.
    """
    return [Device(name) for name in _floatgate.builtin_names()]
