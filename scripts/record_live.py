#!/usr/bin/env python3
"""Record the block trace examples/sqlite-ext4.csv.xz: SQLite on ext4 on a live device, below a real kernel.

    python3 scripts/record_live.py --floatgate target/release/floatgate        # takes three minutes

`floatgate vm` boots a guest with the simulated SSD as its disk, and with SQLite. The guest makes a file system, fills
the database of a shop, drops the page cache, and runs orders, payments and look-ups. `--record` writes the requests to
the disk. The statements depend only on --seed, but the guest determines the times of requests. Needs apt and
qemu-system-x86_64, like `floatgate vm`.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

CUSTOMERS = 15_000
ITEMS = 8_000

#: Script that the guest runs. $SSD is the disk. The file system is small, so that the trace fits small devices.
JOB = """set -e
mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 $SSD 256M
mount -o discard $SSD /mnt
sqlite3 /mnt/shop.db <fill.sql >/dev/null
sync
echo 3 >/proc/sys/vm/drop_caches
sqlite3 /mnt/shop.db <work.sql >/dev/null
cp /mnt/shop.db /mnt/copy.db
sync
rm /mnt/copy.db
sync
umount /mnt
fsck.ext4 -f -n $SSD
"""

SETTINGS = """PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
PRAGMA cache_size=-1024;
PRAGMA temp_store=MEMORY;
"""

SCHEMA = """CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, balance INT, data TEXT);
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price INT, stock INT, data TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INT, item INT, quantity INT, note TEXT);
CREATE INDEX customer_by_name ON customer(name);
CREATE INDEX orders_by_customer ON orders(customer);
"""


def text(rng: random.Random, low: int, high: int) -> str:
    """Return a random text of `low` to `high` characters."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(low, high)))


def skewed(rng: random.Random, count: int) -> int:
    """Return a number in 1..count. Small numbers are far more frequent."""
    return min(count, 1 + int(count * rng.random() ** 3))


def filling(seed: int) -> Iterator[str]:
    """Yield the statements that create the database."""
    rng = random.Random(f"fill {seed}")
    yield SETTINGS + SCHEMA + "BEGIN;\n"
    for number in range(1, CUSTOMERS + 1):
        yield f"INSERT INTO customer VALUES({number}, '{text(rng, 6, 12)}', 0, '{text(rng, 150, 350)}');\n"
    for number in range(1, ITEMS + 1):
        price = rng.randint(100, 10_000)
        yield f"INSERT INTO item VALUES({number}, '{text(rng, 8, 20)}', {price}, 1000, '{text(rng, 100, 300)}');\n"
    yield "COMMIT;\nPRAGMA wal_checkpoint(TRUNCATE);\n"


def working(seed: int, transactions: int) -> Iterator[str]:
    """Yield the statements of the recorded workload: half orders, a quarter payments, a quarter look-ups."""
    rng = random.Random(f"work {seed}")
    yield SETTINGS
    for _ in range(transactions):
        customer = skewed(rng, CUSTOMERS)
        kind = rng.random()
        if kind < 0.5:
            yield "BEGIN;\n"
            for _ in range(rng.randint(1, 5)):
                item = skewed(rng, ITEMS)
                quantity = rng.randint(1, 9)
                yield f"UPDATE item SET stock = stock - {quantity} WHERE id = {item};\n"
                note = text(rng, 20, 80)
                columns = "orders(customer, item, quantity, note)"
                yield f"INSERT INTO {columns} VALUES({customer}, {item}, {quantity}, '{note}');\n"
            yield "COMMIT;\n"
        elif kind < 0.75:
            paid, payer = rng.randint(1, 1000), rng.randint(1, CUSTOMERS)
            yield f"UPDATE customer SET balance = balance + {paid} WHERE id = {payer};\n"
        else:
            yield f"SELECT count(*), sum(quantity) FROM orders WHERE customer = {customer};\n"
            yield f"SELECT name, price FROM item WHERE id = {rng.randint(1, ITEMS)};\n"


def record(options: argparse.Namespace, directory: Path) -> None:
    """Write the statements, and run them in a guest."""
    fill, work = directory / "fill.sql", directory / "work.sql"
    fill.write_text("".join(filling(options.seed)))
    work.write_text("".join(working(options.seed, options.transactions)))
    floatgate = shutil.which(options.floatgate)
    if not floatgate:
        sys.exit(f"error: program not found: {options.floatgate}; build it, or give its path with --floatgate")
    command = [str(Path(floatgate).resolve()), "vm", options.device, "--precondition", "none", "--package", "sqlite3"]
    command += ["--accel", "tcg", "--speed", options.speed, "--guest-memory", "256MiB"]
    command += ["--copy", str(fill), "--copy", str(work), "--record", str(options.output), "--run", JOB]
    print(" ".join(command[:-2]), flush=True)
    (REPOSITORY / options.output).unlink(missing_ok=True)
    # The first lines of the trace contain its path: make it relative to the repository.
    subprocess.run(command, check=True, cwd=REPOSITORY)


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Record SQLite on ext4 on a live device as a block trace.")
    default = Path("examples/sqlite-ext4.csv.xz")
    told = "trace file, relative to the repository (default: %(default)s)"
    parser.add_argument("--output", type=Path, default=default, help=told)
    parser.add_argument("--floatgate", default="floatgate", help="the program (default: %(default)s)")
    parser.add_argument("--device", default="tlc-nvme", help="the SSD (default: %(default)s)")
    parser.add_argument("--speed", default="0.1", help="simulated time relative to real time (default: %(default)s)")
    parser.add_argument("--transactions", type=int, default=1500, help="number of transactions (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the statements (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Record the trace."""
    options = parse_options()
    with tempfile.TemporaryDirectory(prefix="floatgate-record-") as directory:
        try:
            record(options, Path(directory))
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
