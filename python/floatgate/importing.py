"""Configurations of other simulators, as device files and job files."""

from __future__ import annotations

import os
from dataclasses import dataclass

from floatgate import _floatgate


@dataclass(frozen=True)
class Import:
    """A configuration of another simulator, converted by :func:`import_config`."""

    #: Name of the simulator.
    simulator: str
    #: Device file, or job file for a workload of MQSim. Its comments name the key of each value.
    text: str
    #: Keys that the text does not carry over, each with the consequence.
    lost: dict[str, str]


def import_config(text_or_path: str | os.PathLike[str], *, scenario: int = 1) -> Import:
    r"""Convert a configuration of MQSim, SSDsim, DiskSim or FEMU, which is recognized by its contents.

    Parameters
    ----------
    text_or_path
        The text, or the path of a file. A :class:`str` with a newline is a text.
    scenario
        Scenario of MQSim's ``workload.xml``, counted from 1.

    Returns
    -------
    Import

    Raises
    ------
    ConfigError
        The file cannot be read, or is not a configuration of one of these simulators.

    Examples
    --------
    >>> command = "qemu-system-x86_64 -device femu,femu_mode=1,nchs=2,devsz_mb=2048"
    >>> fg.import_config(command + "\n").simulator
    'FEMU'
    """
    if isinstance(text_or_path, str) and "\n" in text_or_path:
        simulator, text, lost = _floatgate.import_config(text_or_path, "imported", scenario)
    else:
        simulator, text, lost = _floatgate.import_config(None, os.fspath(text_or_path), scenario)
    return Import(simulator, text, dict(lost))
