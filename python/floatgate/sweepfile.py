"""``floatgate sweep``: a sweep that is written in a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate import _files
from floatgate._distributing import engine
from floatgate.exceptions import OptionError
from floatgate.sweeping import Sobol, Space, files_in, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a run of the file has, whatever it is run for.
RUN_KEYS: dict[str, type | tuple[type, ...]] = {
    "device": str,
    "workload": (str, list),
    "precondition": str,
    "prewrite": str,
    "attribution": bool,
    "seeds": (int, list),
    "store": str,
    "output": str,
    "columns": list,
}

_KEYS = {**RUN_KEYS, "space": dict, "points": list, "sobol": dict}

_HELP = """\
FILE says what to run:

  device = "tiny"                  # or each point says its own
  workload = "rw=randwrite bs=4k iodepth=4 number_ios=5k"
  seeds = [1, 2, 3]                # or 3
  precondition = "steady"
  columns = ["write_amplification", "requests.write.latency_us.p99"]

  [space]                          # every combination; or [[points]], or [sobol] with n and space
  gc.victim = ["greedy", "fifo"]
  geometry.channels = [2, 4]

Ctrl-C ends it; what has been run is kept, and the same command goes on. See docs/sweeps.md.
"""


def parser(word: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Make the parser of a command that reads such a file."""
    made = argparse.ArgumentParser(
        prog=f"floatgate {word}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("file", metavar="FILE", help="what to run, in TOML")
    made.add_argument("--store", metavar="DIR", help=f"where runs are kept [default: FILE's name with .{word}]")
    made.add_argument("--out", metavar="TABLE", help="write the whole table, as .csv or .parquet")
    _files.add_engine(made)
    return made


def options_of(file: str, said: dict[str, Any]) -> dict[str, Any]:
    """Give what a file says of each run as the options of :func:`floatgate.sweep`."""
    options: dict[str, Any] = {
        key: said[key] for key in ("device", "workload", "precondition", "prewrite", "attribution") if key in said
    }
    if isinstance(options.get("workload"), list) and not all(isinstance(one, str) for one in options["workload"]):
        raise OptionError(f"{file}: workload is a text, or a list of texts that run beside each other")
    if "seeds" in said:
        options["seeds"] = seeds_of(file, said["seeds"])
    return options


def seeds_of(file: str, seeds: int | list[Any]) -> list[int]:
    """Give the seeds: a list of them, or so many from 1 on."""
    found = list(range(1, seeds + 1)) if isinstance(seeds, int) else seeds
    if not found or not all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in found):
        raise OptionError(f"{file}: seeds are whole numbers, or how many there are, at least one: not {seeds!r}")
    return found


def place_of(word: str, arguments: argparse.Namespace, said: dict[str, Any]) -> str:
    """Say where runs are kept."""
    store: str = arguments.store or said.get("store") or f"{Path(arguments.file).stem}.{word}"
    return store


def inputs_of(file: str, said: dict[str, Any]) -> list[str]:
    """Return the paths of what runs read: the file itself, and the files that its texts name."""
    texts = _texts({key: value for key, value in said.items() if key not in ("output", "store")})
    return [file, *(name for text in texts for name in files_in(text))]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def space_of(file: str, said: dict[str, Any]) -> Space:
    """Give the points that a file says."""
    ways = [key for key in ("space", "points", "sobol") if key in said]
    if len(ways) != 1:
        raise OptionError(f"{file}: give one of [space], [[points]] and [sobol], not {' and '.join(ways) or 'none'}")
    if "space" in said:
        return _files.flat(said["space"])
    if "points" in said:
        for point in said["points"]:
            if not isinstance(point, dict):
                raise OptionError(f"{file}: a point is a table, not {point!r}")
        return [_files.flat(point) for point in said["points"]]
    _files.check_keys(f"{file}, [sobol]", said["sobol"], {"n": int, "seed": int, "space": dict})
    if "n" not in said["sobol"] or "space" not in said["sobol"]:
        raise OptionError(f"{file}: [sobol] has n, how many points there are, and space")
    ranges = ranges_of(f"{file}, [sobol.space]", said["sobol"]["space"])
    return Sobol(ranges, n=said["sobol"]["n"], seed=said["sobol"].get("seed", 0))


def ranges_of(where: str, space: dict[str, Any]) -> dict[str, Any]:
    """Give a space of ranges: `{ from = 0.1, to = 0.4 }` from one value to another, or a list to choose from."""
    found: dict[str, Any] = {}

    def walk(table: dict[str, Any], path: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict) and set(value) == {"from", "to"}:
                ends = (value["from"], value["to"])
                if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
                    raise OptionError(f"{where}: {path}{key} goes from a number to a number, not {value!r}")
                if not ends[0] <= ends[1]:
                    raise OptionError(f"{where}: {path}{key} goes from the least to the greatest value, not {value!r}")
                found[path + key] = ends
            elif isinstance(value, dict):
                walk(value, f"{path}{key}.")
            elif isinstance(value, list) and value:
                found[path + key] = value
            else:
                raise OptionError(f"{where}: {path}{key} is a list or {{ from = ..., to = ... }}, not {value!r}")

    walk(space, "")
    if not found:
        raise OptionError(f"{where}: the space is empty")
    return found


def command(arguments: list[str]) -> int:
    """Run ``floatgate sweep``, and return the status to exit with."""
    made = parser("sweep", "Run many devices, workloads and seeds from a file.", _HELP)
    made.add_argument("--columns", metavar="A,B,...", help="columns to print, in place of the file's")
    chosen = made.parse_args(arguments)
    said = _files.read_toml(chosen.file, _KEYS)
    options = options_of(chosen.file, said)
    space = space_of(chosen.file, said)
    store = place_of("sweep", chosen, said)
    output = chosen.out or said.get("output")
    if output:
        _files.check_output(output, inputs_of(chosen.file, said))
    try:
        with engine(chosen.scheduler):
            table = sweep(space, **options, store=store, n_jobs=chosen.jobs, progress=False if chosen.quiet else None)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{_files.runs_in(store)} runs are kept in {store}; the same command goes on with the others"
        ) from None
    if output:
        _files.write_table(table, output)
    columns = chosen.columns.split(",") if chosen.columns else said.get("columns")
    sys.stdout.write(_files.text_table(_printed(table, columns)))
    failed = sum(error is not None for error in table["error"].to_pylist())
    if failed:
        sys.stderr.write(f"{failed} of {table.num_rows} runs failed: the column error says why\n")
    return 1 if failed == table.num_rows else 0


def _printed(table: Any, columns: list[str] | None) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Take what is printed: what a row is, and the columns that were asked for."""
    first = table.column_names[: table.column_names.index("seed") + 1]
    some_failed = table["error"].null_count < table.num_rows
    all_failed = table["error"].null_count == 0
    if columns is None:
        usual = ("write_amplification", "requests.all.latency_us.mean", "requests.all.latency_us.p99")
        columns = [name for name in usual if name in table.column_names]
    columns = [] if all_failed else columns
    return _files.select(table, list(dict.fromkeys([*first, *columns, *(["error"] if some_failed else [])])))
