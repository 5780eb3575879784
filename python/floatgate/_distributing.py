"""Parallel tasks: runs them on the processors of this machine by joblib, or on a cluster by Dask or Ray."""

from __future__ import annotations

import contextlib
import signal
import threading
import warnings
from functools import partial
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, TypeVar

from floatgate.exceptions import FloatgateWarning, OptionError, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from contextlib import AbstractContextManager

#: Exceptions of joblib, Dask and Ray if the worker of a task has died.
_DEATHS = frozenset(["BrokenExecutor", "KilledWorker", "RayActorError"])

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


def available(n_jobs: int | None, count: int, *, calls: int = 1) -> int | None:
    """Return the number of jobs for `count` items: 1, with a warning, if it is not set and joblib is not installed.

    The warning is for the line of the user, who is `calls` calls away from the caller.
    """
    if n_jobs is not None or count == 0:
        return n_jobs
    try:
        import joblib  # noqa: F401, PLC0415 (an extra)
    except ImportError:
        if count > 1:
            warnings.warn(
                "joblib is not installed, so one process does all runs; for parallel runs: "
                "pip install 'floatgate[joblib]'",
                FloatgateWarning,
                stacklevel=2 + calls,
            )
        return 1
    return None


def each(
    function: Callable[[_Item], _Value], items: Sequence[_Item], n_jobs: int | None
) -> Iterator[tuple[int, _Value]]:
    """Call a function with each item, and yield the numbers of the items with the values, in order of completion.

    `n_jobs` is the number of parallel jobs, as in joblib. None is the setting of ``joblib.parallel_config``, or one
    process per processor if there is none. 1 does not need joblib, and yields the items in order.
    """
    if n_jobs == 0:
        raise OptionError("invalid number of jobs `0`: expected 1 or more, or -1 for one per processor")
    if n_jobs == 1 or not items:
        return (_numbered(function, *pair) for pair in enumerate(items))
    try:
        import joblib  # noqa: PLC0415 (an extra)
        from joblib.parallel import get_active_backend  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("parallel runs need joblib: pip install 'floatgate[joblib]', or set n_jobs=1") from error
    backend, jobs = get_active_backend()
    if n_jobs is None:
        # Without a configuration, joblib reports one job for its own processes and for Ray.
        n_jobs = -1 if jobs in (None, 1) and type(backend).__name__ in ("LokyBackend", "RayBackend") else jobs
    own = _generating(backend) if type(backend).__name__ == "RayBackend" else None
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, backend=own)
    start = partial(parallel, (joblib.delayed(_numbered)(function, *pair) for pair in enumerate(items)))
    is_local = type(backend).__name__ == "LokyBackend"
    return _taken(start, _starting() if is_local else contextlib.nullcontext())


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Start processes of joblib within this context: they never get Ctrl-C, and this process gets it at the end.

    Ctrl-C in a terminal reaches all processes. One that is starting, or waits for a task, would print a traceback. This
    process ends them instead, which it can only if none of them is half started.
    """
    # These processes would change the mask when joblib starts them.
    resource_tracker.ensure_running()
    with contextlib.suppress(ImportError):  # Some systems do not have loky within joblib.
        from joblib.externals.loky.backend import resource_tracker as of_loky  # noqa: PLC0415 (an extra)

        of_loky.ensure_running()
    with late_interrupts():
        yield


@contextlib.contextmanager
def late_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of this context."""
    arrived: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    # Other threads may get the signal in spite of the mask, and then the main thread handles it.
    is_ours = handler is not None and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    # Processes inherit the mask.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_ours:
            signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)


def _generating(backend: Any) -> Any:  # noqa: ANN401 (a class of Ray's)
    """Return Ray's backend with results in order of completion, and with repeated tasks for workers that died.

    The backend inherits a flag from joblib's process backend, by which it returns no results before the last. Its pool
    calls back for each result, as joblib requires of backends that yield results.
    """

    class Generating(type(backend)):  # type: ignore[misc] # Ray's class is known only at run time
        supports_return_generator = True

    return Generating(ray_remote_args={"max_restarts": -1, "max_task_retries": 3, **(backend.ray_remote_args or {})})


def _taken(
    start: Callable[[], Generator[tuple[int, _Value], None, None]], starting: AbstractContextManager[None]
) -> Iterator[tuple[int, _Value]]:
    """Start tasks, and yield their values in order of completion.

    Suppresses joblib's warning about unused values if iteration stops early.
    """
    values = None
    try:
        with starting:
            values = start()
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
            "a worker process died, perhaps because memory ran out: run fewer jobs at once. Completed runs are in the "
            "store, if there is one, and the same call continues with the rest"
        ) from error
    finally:
        if values is not None:
            with _without_warning(), _cancelling():
                values.close()


@contextlib.contextmanager
def _without_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\d+ tasks ")
        yield


@contextlib.contextmanager
def _cancelling() -> Iterator[None]:
    """Do not print an exception of joblib's thread that hands out tasks, because it may miss tasks being cancelled."""
    usual = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.thread is None or arguments.thread.name != "ExecutorManagerThread":
            usual(arguments)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = usual


def _numbered(function: Callable[[_Item], _Value], number: int, item: _Item) -> tuple[int, _Value]:
    return number, function(item)


@contextlib.contextmanager
def engine(scheduler: str | None) -> Iterator[None]:
    """Run parallel tasks within this context on `scheduler`.

    ``tcp://HOST:PORT`` and ``tls://HOST:PORT`` are Dask schedulers, and ``ray://HOST:PORT`` is a Ray cluster. ``ray``
    starts a Ray cluster on this machine. None is this machine without a cluster.
    """
    with contextlib.ExitStack() as stack:
        if scheduler is not None:
            stack.enter_context(_backend(scheduler, stack))
        yield


def _backend(scheduler: str, stack: contextlib.ExitStack) -> Any:  # noqa: ANN401 (a class of joblib's)
    import_joblib = "a scheduler needs joblib and a package of its own: pip install "
    if scheduler.startswith(("tcp://", "tls://")):
        try:
            import joblib  # noqa: PLC0415 (an extra)
            from distributed import Client  # noqa: PLC0415
        except ImportError as error:
            raise ImportError(f"{import_joblib}'floatgate[dask]'") from error
        try:
            stack.enter_context(Client(scheduler, timeout="10s"))
        except OSError as error:
            raise OptionError(f"no Dask scheduler at {scheduler}: {error}") from error
        return joblib.parallel_config(backend="dask")
    if scheduler == "ray" or scheduler.startswith("ray://"):
        try:
            import joblib  # noqa: PLC0415 (an extra)
            import ray  # noqa: PLC0415
            from ray.util.joblib import register_ray  # noqa: PLC0415
        except ImportError as error:
            raise ImportError(f"{import_joblib}'floatgate[ray]'") from error
        if not ray.is_initialized():
            try:
                ray.init(
                    address=None if scheduler == "ray" else scheduler, include_dashboard=False, log_to_driver=False
                )
            except (ConnectionError, ValueError) as error:
                raise OptionError(f"no Ray cluster at {scheduler}: {error}") from error
            stack.callback(ray.shutdown)
        register_ray()
        return joblib.parallel_config(backend="ray")
    raise OptionError(f"invalid scheduler `{scheduler}`: expected tcp://HOST:PORT (Dask), ray://HOST:PORT, or ray")
