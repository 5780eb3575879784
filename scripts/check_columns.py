#!/usr/bin/env python3
"""Check the Parquet files of a run with pyarrow and DuckDB.

    check_columns.py FLOATGATE

Runs the program FLOATGATE, and fails unless the values in these files agree with the summary. Needs pyarrow and duckdb:
`make columns` installs them in the build directory.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import duckdb
import pyarrow
import pyarrow.parquet

JOBS = "rw=randrw bs=4k iodepth=16 number_ios=20000 name=a,b; rw=write name=c bs=32k rate_iops=900 number_ios=900"
PARTS = ["host_queue", "link", "buffer", "order", "die", "channel", "gc", "rmw", "bus", "cell"]


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found}, expected {expected}")
    print(f"{what}: {found}")


def close(what, found, expected):
    if abs(found - expected) > 1e-9 * abs(expected):
        sys.exit(f"{what}: {found}, expected {expected}")
    print(f"{what}: {found}")


def check_requests(path, summary):
    table = pyarrow.parquet.read_table(path)
    texts = {"stream", "operation", "status"}
    for field in table.schema:
        expect(f"type of {field.name}", field.type, pyarrow.string() if field.name in texts else pyarrow.uint64())
    told = summary["requests"]
    expect("rows", len(table), told["all"]["count"])
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    expect("config digest", metadata["floatgate.config_digest"], summary["config_digest"])
    expect("seed", metadata["floatgate.seed"], str(summary["seed"]))
    figures = "count(*), sum(sectors) * 512, avg(latency_ps) / 1e6, max(latency_ps) / 1e6"
    query = f"SELECT operation, {figures} FROM '{path}' GROUP BY 1"
    for operation, count, size, mean, most in duckdb.sql(query).fetchall():
        expect(f"{operation} requests", count, told[operation]["count"])
        expect(f"{operation} bytes", size, told[operation]["bytes"])
        close(f"{operation} mean latency", mean, told[operation]["latency_us"]["mean"])
        close(f"{operation} longest latency", most, told[operation]["latency_us"]["max"])
    told = duckdb.sql(f"SELECT count(channels) FROM '{path}'").fetchall()[0][0]
    print(f"requests with a latency breakdown: {told}")
    total = " + ".join(f"{part}_ps" for part in PARTS)
    off = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {total} != latency_ps").fetchall()[0][0]
    expect("requests whose parts do not add up to their latency", off, 0)


def check_series(path, summary):
    table = pyarrow.parquet.read_table(path)
    for name in ["channel_data", "channel_command", "die_cell", "die_held"]:
        expect(f"type of {name}", pyarrow.types.is_list(table.schema.field(name).type), True)
    sums = "sum(read_count), sum(write_bytes), sum(erases), sum(victims), sum(pages_programmed_gc)"
    found = duckdb.sql(f"SELECT {sums} FROM '{path}'").fetchall()[0]
    flash = summary["flash"]
    expected = (
        summary["requests"]["read"]["count"],
        summary["requests"]["write"]["bytes"],
        flash["blocks_erased"],
        summary["gc"]["victims"],
        flash["programs_by_cause"]["gc"],
    )
    expect("reads, bytes written, erases, victims, pages moved", tuple(map(int, found)), expected)
    steps = f"SELECT start_ps - lag(end_ps) OVER (ORDER BY start_ps) AS gap FROM '{path}'"
    gaps = duckdb.sql(f"SELECT count(*) FROM ({steps}) WHERE gap != 0").fetchall()[0][0]
    expect("gaps between windows", gaps, 0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        options = ["--out", directory, "--requests=parquet"]
        subprocess.run([sys.argv[1], "run", "tiny", JOBS, *options], check=True, stdout=subprocess.DEVNULL)
        result = pathlib.Path(directory)
        summary = json.loads((result / "summary.json").read_text())
        check_requests(result / "requests.parquet", summary)
        check_series(result / "series.parquet", summary)
    print("All values agree.")


if __name__ == "__main__":
    main()
