"""Tasks on the processors of this machine, or on a cluster: joblib does it, and Dask and Ray below it."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from floatgate.exceptions import OptionError, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

#: What joblib, Dask and Ray raise when a task's worker has died, with it or too often.
_DEATHS = frozenset(["BrokenExecutor", "KilledWorker", "RayActorError"])

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


def each(
    function: Callable[[_Item], _Value], items: Sequence[_Item], n_jobs: int | None
) -> Iterator[tuple[int, _Value]]:
    """Call a function with each item, and give the numbers of the items with the values, as they end.

    `n_jobs` is how many at once, as joblib has it; None is what ``joblib.parallel_config`` says, and one process for
    each processor where it says nothing. 1 needs no joblib, and gives them in order.
    """
    if n_jobs == 0:
        raise OptionError("0 jobs do nothing: give their number, or -1 for one on each processor")
    if n_jobs == 1 or not items:
        return (_numbered(function, *pair) for pair in enumerate(items))
    try:
        import joblib  # noqa: PLC0415 (an extra)
        from joblib.parallel import get_active_backend  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("runs go in parallel by joblib: pip install floatgate[joblib], or say n_jobs=1") from error
    backend, jobs = get_active_backend()
    if n_jobs is None:
        # One job of joblib's own processes, or of Ray, is what it has when nobody has said anything.
        n_jobs = -1 if jobs in (None, 1) and type(backend).__name__ in ("LokyBackend", "RayBackend") else jobs
    own = _generating(backend) if type(backend).__name__ == "RayBackend" else None
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, backend=own)
    return _taken(parallel(joblib.delayed(_numbered)(function, *pair) for pair in enumerate(items)))


def _generating(backend: Any) -> Any:  # noqa: ANN401 (a class of Ray's)
    """Let Ray's backend give results as they come, and run again what a worker that died was at.

    It inherits from joblib's backend of processes that it gives no results before the last. Its pool can: it calls back
    for each, as joblib asks of backends that give them.
    """

    class Generating(type(backend)):  # type: ignore[misc] # Ray's class, which is known only here
        supports_return_generator = True

    return Generating(ray_remote_args={"max_restarts": -1, "max_task_retries": 3, **(backend.ray_remote_args or {})})


def _taken(values: Generator[tuple[int, _Value], None, None]) -> Iterator[tuple[int, _Value]]:
    """Give values as they end. Where that is broken off, joblib warns of those that nobody took, which is known."""
    try:
        while True:
            with _without_warning():
                value = next(values)
            yield value
    except StopIteration:
        return
    except Exception as error:
        if _DEATHS.isdisjoint(kind.__name__ for kind in type(error).__mro__):
            raise
        raise SimulationError(
            "a worker process died, perhaps for want of memory: run fewer jobs at once. What had ended is in the "
            "store, where there is one, and the same call goes on with the rest"
        ) from error
    finally:
        with _without_warning():
            values.close()


@contextlib.contextmanager
def _without_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\d+ tasks ")
        yield


def _numbered(function: Callable[[_Item], _Value], number: int, item: _Item) -> tuple[int, _Value]:
    return number, function(item)


@contextlib.contextmanager
def engine(scheduler: str | None) -> Iterator[None]:
    """Let what is distributed in here run where `scheduler` says.

    ``tcp://HOST:PORT`` and ``tls://HOST:PORT`` are schedulers of Dask, ``ray://HOST:PORT`` is a cluster of Ray, and
    ``ray`` one that is made for it on this machine. None is this machine.
    """
    with contextlib.ExitStack() as stack:
        if scheduler is not None:
            stack.enter_context(_backend(scheduler, stack))
        yield


def _backend(scheduler: str, stack: contextlib.ExitStack) -> Any:  # noqa: ANN401 (a class of joblib's)
    import_joblib = "a scheduler needs joblib and its own package: pip install "
    if scheduler.startswith(("tcp://", "tls://")):
        try:
            import joblib  # noqa: PLC0415 (an extra)
            from distributed import Client  # noqa: PLC0415
        except ImportError as error:
            raise ImportError(f"{import_joblib}floatgate[dask]") from error
        try:
            stack.enter_context(Client(scheduler, timeout="10s"))
        except OSError as error:
            raise OptionError(f"no scheduler of Dask answers at {scheduler}: {error}") from error
        return joblib.parallel_config(backend="dask")
    if scheduler == "ray" or scheduler.startswith("ray://"):
        try:
            import joblib  # noqa: PLC0415 (an extra)
            import ray  # noqa: PLC0415
            from ray.util.joblib import register_ray  # noqa: PLC0415
        except ImportError as error:
            raise ImportError(f"{import_joblib}floatgate[ray]") from error
        if not ray.is_initialized():
            try:
                ray.init(
                    address=None if scheduler == "ray" else scheduler, include_dashboard=False, log_to_driver=False
                )
            except (ConnectionError, ValueError) as error:
                raise OptionError(f"no cluster of Ray answers at {scheduler}: {error}") from error
            stack.callback(ray.shutdown)
        register_ray()
        return joblib.parallel_config(backend="ray")
    raise OptionError(f"{scheduler}: a scheduler is tcp://HOST:PORT (Dask), ray://HOST:PORT, or ray")
