"""Live devices: serve a device as a block device, with policies in Python."""

from __future__ import annotations

import atexit
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from floatgate import _floatgate
from floatgate import policies as _policies
from floatgate.device import Device
from floatgate.exceptions import OptionError, PolicyError, SimulationError
from floatgate.summary import Summary

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from typing_extensions import Self

#: Time between two checks for Ctrl-C, in seconds.
_EVERY = 0.1


class Server:
    """A live device, which :func:`serve` starts. As a context manager, it stops at the end of the block."""

    def __init__(self, device: Device, arguments: list[str]) -> None:
        self._device = device
        self._arguments = arguments
        self._ending = _floatgate.Ending()
        self._settled = threading.Event()
        self._done: tuple[int, str] | PolicyError | None = None
        self._clients = ""
        # A thread of Python, so that policies can be called in it. At the end of the program, the server stops.
        self._thread = threading.Thread(target=self._serve, name="floatgate-serve", daemon=True)
        self._thread.start()
        atexit.register(self._end)
        try:
            while not self._settled.wait(_EVERY):
                pass
        except BaseException:
            self._end()
            raise
        if self._done is not None:
            self._end()
            self._check()

    def _serve(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            source = self._device._source
            if self._device._text is not None:
                source = str(Path(directory, Path(source).name))
                Path(source).write_text(self._device._text, encoding="utf-8")
            changes = [word for change in self._device.overrides for word in ("--set", change)]
            arguments = [source, *changes, *self._arguments]
            try:
                self._done = _floatgate.serve(self._device._handle, arguments, self._ending, self._ready)
            except PolicyError as error:
                self._done = error
            except BaseException as error:
                self._done = (1, f"{type(error).__name__}: {error}")
            self._settled.set()

    def _ready(self, clients: str) -> None:
        self._clients = clients
        self._settled.set()

    def _end(self) -> None:
        self._ending.request()
        self._thread.join()
        atexit.unregister(self._end)

    def _check(self) -> Summary:
        if isinstance(self._done, PolicyError):
            raise self._done
        status, text = self._done or (1, "the server did not start")
        if status == 0:
            return Summary(text)
        raise (OptionError if status == 2 else SimulationError)(text)

    @property
    def clients(self) -> str:
        """Commands of clients with the addresses of this server, as ``floatgate ctl clients`` prints them."""
        return self._clients

    def wait(self) -> Summary:
        """Serve until Ctrl-C, and return the result.

        Raises
        ------
        PolicyError
            A policy in Python failed.
        SimulationError
            The server failed for another reason.
        """
        try:
            while self._thread.is_alive():
                self._thread.join(_EVERY)
        except KeyboardInterrupt:
            pass
        return self.stop()

    def stop(self) -> Summary:
        """Complete the outstanding requests, end the server, and return the result. A second call returns it again.

        Raises
        ------
        PolicyError
            A policy in Python failed.
        SimulationError
            The server failed for another reason.
        """
        self._end()
        return self._check()

    def __enter__(self) -> Self:
        """Return the server, which is ready for clients."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server."""
        if kind is None:
            self.stop()
        else:
            self._end()

    def __repr__(self) -> str:
        state = "live" if self._thread.is_alive() else "stopped"
        return f"<floatgate.Server of {self._device.name}, {state}>"


def serve(
    device: Device | str | os.PathLike[str],
    *,
    policies: Iterable[type[_policies.Policy]] = (),
    nbd: str | Sequence[str] = (),
    nvme: str | Sequence[str] = (),
    precondition: str | None = None,
    speed: float | None = None,
    no_delay: bool = False,
    arguments: Sequence[str] = (),
) -> Server:
    """Serve a device as a block device in real time, to fio, QEMU and the kernel (Linux only).

    Equivalent to ``floatgate serve``, in this process. ``docs/live.md`` describes live devices.

    Parameters
    ----------
    device
        The device, its name, or the path of its file.
    policies
        Classes of policies in Python. Each replaces the policy of its family in the device.
    nbd
        Address for NBD clients, or several: ``"unix:PATH"`` or ``"HOST:PORT"``. Default: ``unix:NAME.sock`` with the
        name of the device, unless there is another frontend.
    nvme
        Address for NVMe hosts, or several: ``"tcp://HOST:PORT"``. See ``docs/nvme.md``.
    precondition
        Initial state: see ``floatgate serve --help``. Default: ``"fill"``.
    speed
        Simulated time per real time. A policy in Python may need a speed below 1. Default: 1.
    no_delay
        Complete requests as fast as possible instead of in real time.
    arguments
        Other arguments of ``floatgate serve``, such as ``["--image", "disk.img", "--dashboard"]``.

    Returns
    -------
    Server
        The live device, which is ready for clients.

    Raises
    ------
    ConfigError, OptionError
        The device or an argument is invalid.
    PolicyError
        A policy in Python failed during preconditioning.
    SimulationError
        The server failed.

    Examples
    --------
    Serve until the end of the block, with a client of NBD::

        with fg.serve("tiny", policies=[Oldest], nbd="unix:ssd.sock") as server:
            subprocess.run(["nbdinfo", "nbd+unix:///?socket=ssd.sock"], check=True)
        server.stop().live.faithful
    """
    if not hasattr(_floatgate, "serve"):
        raise OptionError("live devices need Linux, and an extension module with the command")
    chosen = device if isinstance(device, Device) else Device(device)
    named: dict[str, type[_policies.Policy]] = {}
    for policy in policies:
        if not (isinstance(policy, type) and issubclass(policy, _policies.Policy) and policy.path):
            raise OptionError(f"policies: {policy!r} is not a class of a policy in Python (fg.policies)")
        if policy.path in named:
            raise OptionError(
                f"policies: {named[policy.path].__name__} and {policy.__name__} are both for {policy.path}"
            )
        named[policy.path] = policy
    if named:
        chosen = chosen.with_options(named)
    frontends = {"--nbd": nbd, "--nvme": nvme}
    words = [
        word
        for option, addresses in frontends.items()
        for address in ([addresses] if isinstance(addresses, str) else addresses)
        for word in (option, address)
    ]
    words += [] if precondition is None else ["--precondition", precondition]
    words += [] if speed is None else ["--speed", format(speed, "f")]
    words += ["--no-delay"] if no_delay else []
    return Server(chosen, [*words, *arguments])
