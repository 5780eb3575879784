"""``floatgate sweep``: sweeps defined in a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate import _files
from floatgate._distributing import engine
from floatgate._metrics import full_name
from floatgate.exceptions import OptionError
from floatgate.ranges import Range
from floatgate.seeds import seeds_of
from floatgate.sweeping import Sobol, Space, columns_of, files_in, sweep
from floatgate.tables import text

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Keys that all kinds of files have for their runs.
RUN_KEYS: dict[str, type | tuple[type, ...]] = {
    "device": str,
    "workload": (str, list),
    "precondition": str,
    "prewrite": str,
    "attribution": bool,
    "scale": str,
    "seeds": (int, str, list),
    "store": str,
    "output": str,
    "columns": list,
}

_KEYS = {**RUN_KEYS, "space": dict, "points": list, "sobol": dict}

_HELP = """\
FILE specifies the runs:

  device = "tiny"                  # or one per point
  workload = "rw=randwrite bs=4k iodepth=4 number_ios=5k"
  seeds = 3                        # or "5..9", or [1, 2, 3]
  precondition = "steady"
  scale = "1/2"                    # share of the blocks of each device
  columns = ["write_amplification", "write.latency_us.p99"]

  [space]                          # every combination; or [[points]], or [sobol] with n and space
  gc.victim = ["greedy", "fifo"]
  geometry.channels = [2, 4]

After Ctrl-C, finished runs are kept, and the same command continues. See docs/sweeps.md.
"""


def parser(word: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Create the parser of a command that reads such a file."""
    made = argparse.ArgumentParser(
        prog=f"floatgate {word}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("file", metavar="FILE", help="TOML file with the runs")
    made.add_argument("--store", metavar="DIR", help=f"keep runs in DIR [default: FILE's name with .{word}]")
    made.add_argument("--scale", metavar="SCALE", help="share of the blocks of each device, overriding the file")
    made.add_argument("--out", metavar="TABLE", help="write the whole table, as .csv or .parquet")
    _files.add_engine(made)
    return made


def options_of(file: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return the options of :func:`floatgate.sweep` that a file sets for all runs."""
    keys = ("device", "workload", "precondition", "prewrite", "attribution", "scale")
    options: dict[str, Any] = {key: said[key] for key in keys if key in said}
    if isinstance(options.get("workload"), list) and not all(isinstance(one, str) for one in options["workload"]):
        raise OptionError(f"{file}: workload must be a text, or a list of texts that run concurrently")
    if "seeds" in said:
        try:
            options["seeds"] = seeds_of(said["seeds"])
        except OptionError as error:
            raise OptionError(f"{file}: {error}") from error
    return options


def scale_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the scale of a command line, as the key of a file."""
    return {} if arguments.scale is None else {"scale": arguments.scale}


def place_of(word: str, arguments: argparse.Namespace, said: dict[str, Any]) -> str:
    """Return the directory for the runs."""
    store: str = arguments.store or said.get("store") or f"{Path(arguments.file).stem}.{word}"
    return store


def inputs_of(file: str, said: dict[str, Any]) -> list[str]:
    """Return the paths of the input files of runs: the file itself, and the files that its texts name."""
    texts = _texts({key: value for key, value in said.items() if key not in ("output", "store")})
    return [file, *(name for text in texts for name in files_in(text))]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def space_of(file: str, said: dict[str, Any]) -> Space:
    """Return the points that a file defines."""
    ways = [key for key in ("space", "points", "sobol") if key in said]
    if len(ways) != 1:
        raise OptionError(f"{file}: give one of [space], [[points]] and [sobol], not {' and '.join(ways) or 'none'}")
    if "space" in said:
        return _files.flat(said["space"])
    if "points" in said:
        for point in said["points"]:
            if not isinstance(point, dict):
                raise OptionError(f"{file}: a point must be a table, not {point!r}")
        return [_files.flat(point) for point in said["points"]]
    _files.check_keys(f"{file}, [sobol]", said["sobol"], {"n": int, "seed": int, "space": dict})
    if "n" not in said["sobol"] or "space" not in said["sobol"]:
        raise OptionError(f"{file}: [sobol] needs n, the number of points, and space")
    ranges = ranges_of(f"{file}, [sobol.space]", said["sobol"]["space"])
    return Sobol(ranges, n=said["sobol"]["n"], seed=said["sobol"].get("seed", 0))


def ranges_of(where: str, space: dict[str, Any]) -> dict[str, Range | list[Any]]:
    """Return a space: `{ from = "20us", to = "1ms", log = true }` is a range, and a list contains choices."""
    found: dict[str, Range | list[Any]] = {}

    def walk(table: dict[str, Any], path: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict) and {"from", "to"} <= set(value) <= {"from", "to", "log", "step"}:
                found[path + key] = _range_of(f"{where}: {path}{key}", value)
            elif isinstance(value, dict):
                walk(value, f"{path}{key}.")
            elif isinstance(value, list) and value:
                found[path + key] = value
            else:
                raise OptionError(f"{where}: {path}{key} must be a list or {{ from = ..., to = ... }}, not {value!r}")

    walk(space, "")
    if not found:
        raise OptionError(f"{where}: the space is empty")
    return found


def _range_of(where: str, value: dict[str, Any]) -> Range:
    if not isinstance(value.get("log", False), bool):
        raise OptionError(f"{where}: `log` must be true or false, not {value['log']!r}")
    try:
        return Range(value["from"], value["to"], log=value.get("log", False), step=value.get("step"))
    except OptionError as error:
        raise OptionError(f"{where}: {error}") from error


def command(arguments: list[str]) -> int:
    """Run ``floatgate sweep``, and return the exit status."""
    made = parser("sweep", "Run many devices, workloads and seeds from a file.", _HELP)
    made.add_argument("--columns", metavar="A,B,...", help="columns to print, overriding the file")
    chosen = made.parse_args(arguments)
    said = _files.read_toml(chosen.file, _KEYS)
    options = options_of(chosen.file, said | scale_of(chosen))
    space = space_of(chosen.file, said)
    store = place_of("sweep", chosen, said)
    output = chosen.out or said.get("output")
    if output:
        _files.check_output(output, inputs_of(chosen.file, said))
    columns = chosen.columns.split(",") if chosen.columns else said.get("columns")
    known = columns_of(space)
    columns = None if columns is None else [full_name(str(name), known) for name in columns]
    _files.check_columns(columns or [], known)
    try:
        with engine(chosen.scheduler):
            table = sweep(space, **options, store=store, n_jobs=chosen.jobs, progress=False if chosen.quiet else None)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{_files.runs_in(store)} runs are kept in {store}; the same command continues with the others"
        ) from None
    if output:
        _files.write_table(table.wide(), output)
    sys.stdout.write(text(table.narrow() if columns is None else _printed(table.wide(), columns, store)) + "\n")
    failed = sum(error is not None for error in table["error"].to_pylist())
    if failed:
        sys.stderr.write(f"{failed} of {table.num_rows} runs failed; see the column `error`\n")
    return 1 if failed == table.num_rows else 0


def _printed(table: Any, columns: list[str], store: str) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Select the columns to print: those that identify a row, and the requested columns."""
    first = table.column_names[: table.column_names.index("seed") + 1]
    some_failed = table["error"].null_count < table.num_rows
    all_failed = table["error"].null_count == 0
    columns = [] if all_failed else columns
    for name in columns:
        if name not in table.column_names:
            raise OptionError(f"no run has a value for the column `{name}`; the results are kept in {store}")
    return _files.select(table, list(dict.fromkeys([*first, *columns, *(["error"] if some_failed else [])])))
