"""Compiled policies: machine code of numba, or of another compiler, that the simulator calls by its address.

The C functions are described in docs/policies.md. crates/py/src/policies/compiled.rs calls them.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from floatgate.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from floatgate.policies import Policy


class _Blocks(NamedTuple):
    """The columns of ``floatgate.policies.Blocks``, as numba has them."""

    block: Any
    valid: Any
    erases: Any
    closed: Any
    changed: Any
    order: Any


class _Queue(NamedTuple):
    """The columns of ``floatgate.policies.Queue``, as numba has them."""

    class_: Any
    rank: Any
    since: Any
    lun: Any
    plane: Any
    request: Any
    stream: Any


#: Signatures of the C functions, in numba's terms.
VICTIM = (
    "int64(uint32, int64, uint32, CPointer(uint32), CPointer(uint16), CPointer(uint32), CPointer(int64), "
    "CPointer(int64), CPointer(uint64))"
)
ALLOCATION = "int64(uint32, CPointer(uint32))"
SCHEDULER = (
    "int64(int64, uint32, CPointer(int64), CPointer(int64), CPointer(uint32), CPointer(int32), CPointer(int32), "
    "CPointer(uint8), CPointer(uint8))"
)

#: Compiled functions by their source. They keep the machine code in memory as long as the process runs.
_KEPT: dict[object, Any] = {}


def victim(policy: type[Policy]) -> int | None:
    """Return the address of the compiled ``choose`` of a victim policy, or None if it is not compiled."""

    def entry(choose: Any, carray: Any) -> Callable[..., int]:  # noqa: ANN401 (functions of numba)
        # numba infers the types.
        def call(  # type: ignore[no-untyped-def]
            plane, clock, count, block, valid, erases, closed, changed, order
        ):
            blocks = _Blocks(
                carray(block, count),
                carray(valid, count),
                carray(erases, count),
                carray(closed, count),
                carray(changed, count),
                carray(order, count),
            )
            return choose(plane, blocks, clock)

        return call

    return _address(policy, "choose", VICTIM, entry)


def allocation(policy: type[Policy]) -> int | None:
    """Return the address of the compiled ``choose`` of an allocation, or None if it is not compiled."""

    def entry(choose: Any, carray: Any) -> Callable[..., int]:  # noqa: ANN401 (functions of numba)
        # numba infers the types.
        def call(  # type: ignore[no-untyped-def]
            count, planes
        ):
            return choose(carray(planes, count))

        return call

    return _address(policy, "choose", ALLOCATION, entry)


def scheduler(policy: type[Policy]) -> int | None:
    """Return the address of the compiled ``pick`` of a scheduler, or None if it is not compiled."""

    def entry(pick: Any, carray: Any) -> Callable[..., int]:  # noqa: ANN401 (functions of numba)
        # numba infers the types.
        def call(  # type: ignore[no-untyped-def]
            now, count, since, request, lun, plane, stream, class_, rank
        ):
            queue = _Queue(
                carray(class_, count),
                carray(rank, count),
                carray(since, count),
                carray(lun, count),
                carray(plane, count),
                carray(request, count),
                carray(stream, count),
            )
            return pick(queue, now)

        return call

    return _address(policy, "pick", SCHEDULER, entry)


def _address(
    policy: type[Policy], method: str, signature: str, entry: Callable[[Any, Any], Callable[..., int]]
) -> int | None:
    found = inspect.getattr_static(policy, method)
    function = found.__func__ if isinstance(found, staticmethod) else found
    if not type(function).__module__.startswith("numba."):
        return None
    where = f"{policy.path}: the policy `{policy.name}`: `{method}`"
    if not isinstance(found, staticmethod):
        raise ConfigError(f"{where} is compiled, so it cannot use self: put @staticmethod above @numba.njit")
    numba = importlib.import_module("numba")
    if hasattr(function, "address"):
        return _own_address(function, where, numba, signature)
    if function not in _KEPT:
        try:
            _KEPT[function] = numba.cfunc(signature)(entry(function, numba.carray))
        except numba.core.errors.NumbaError as error:
            raise ConfigError(f"{where} cannot be compiled: {_reason(error)}") from error
    address: int = _KEPT[function].address
    return address


def _own_address(function: Any, where: str, numba: Any, signature: str) -> int:  # noqa: ANN401 (objects of numba)
    """Return the address of a function that ``numba.cfunc`` compiled, after a check of its signature."""
    wanted = numba.core.sigutils.normalize_signature(signature)
    given = numba.core.sigutils.normalize_signature(function._sig)
    if wanted != given:
        raise ConfigError(f"{where} has the signature {function._sig}; expected {signature}")
    address: int = function.address
    return address


def _reason(error: Exception) -> str:
    """Return the line of numba's message that names the cause."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return next((line for line in lines if not line.startswith("Failed in")), lines[0] if lines else "")
