#!/usr/bin/env python3
"""Record the block trace examples/sqlite-ext4.csv.xz: SQLite on ext4 on a live device, below a real kernel.

    python3 scripts/record_live.py --floatgate target/release/floatgate        # in three minutes

`floatgate vm` boots a guest with the simulated SSD as its disk and SQLite in it. A file system is made, a shop's
database is filled, the page cache is dropped, and orders, payments and look-ups run against it; `--record` has written
what the disk was asked for. The statements follow from --seed; when requests come is up to the guest. Needs what
`floatgate vm` needs: apt, and qemu-system-x86_64.
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

#: What the guest does: $SSD is the disk. The file system is small, so that the trace fits small devices.
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
    """Filler of `low` to `high` characters."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(low, high)))


def skewed(rng: random.Random, count: int) -> int:
    """A number in 1..count, the small ones far more often."""
    return min(count, 1 + int(count * rng.random() ** 3))


def filling(seed: int) -> Iterator[str]:
    """The statements that make the database."""
    rng = random.Random(f"fill {seed}")
    yield SETTINGS + SCHEMA + "BEGIN;\n"
    for number in range(1, CUSTOMERS + 1):
        yield f"INSERT INTO customer VALUES({number}, '{text(rng, 6, 12)}', 0, '{text(rng, 150, 350)}');\n"
    for number in range(1, ITEMS + 1):
        price = rng.randint(100, 10_000)
        yield f"INSERT INTO item VALUES({number}, '{text(rng, 8, 20)}', {price}, 1000, '{text(rng, 100, 300)}');\n"
    yield "COMMIT;\nPRAGMA wal_checkpoint(TRUNCATE);\n"


def working(seed: int, transactions: int) -> Iterator[str]:
    """The statements of the recorded work: half orders, a quarter payments, a quarter look-ups."""
    rng = random.Random(f"work {seed}")
    yield SETTINGS
    for _ in range(transactions):
        customer, kind = skewed(rng, CUSTOMERS), rng.random()
        if kind < 0.5:
            yield "BEGIN;\n"
            for _ in range(rng.randint(1, 5)):
                item, quantity = skewed(rng, ITEMS), rng.randint(1, 9)
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
    """Writes the statements, and has them run in a guest."""
    fill, work = directory / "fill.sql", directory / "work.sql"
    fill.write_text("".join(filling(options.seed)))
    work.write_text("".join(working(options.seed, options.transactions)))
    floatgate = shutil.which(options.floatgate)
    if not floatgate:
        sys.exit(f"error: there is no program {options.floatgate}; build it, and name it with --floatgate")
    command = [str(Path(floatgate).resolve()), "vm", options.device, "--precondition", "none", "--package", "sqlite3"]
    command += ["--accel", "tcg", "--speed", options.speed, "--guest-memory", "256MiB"]
    command += ["--copy", str(fill), "--copy", str(work), "--record", str(options.output), "--run", JOB]
    print(" ".join(command[:-2]), flush=True)
    # Where the trace is said to be, in its first lines, is where it is in the repository.
    subprocess.run(command, check=True, cwd=REPOSITORY)


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record SQLite on ext4 on a live device as a block trace.")
    default = Path("examples/sqlite-ext4.csv.xz")
    told = "the trace, from the repository (default: %(default)s)"
    parser.add_argument("--output", type=Path, default=default, help=told)
    parser.add_argument("--floatgate", default="floatgate", help="the program (default: %(default)s)")
    parser.add_argument("--device", default="tlc-nvme", help="the SSD (default: %(default)s)")
    parser.add_argument("--speed", default="0.1", help="simulated time in the clock's (default: %(default)s)")
    parser.add_argument("--transactions", type=int, default=1500, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the statements (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Records the trace."""
    options = parse_options()
    with tempfile.TemporaryDirectory(prefix="floatgate-record-") as directory:
        try:
            record(options, Path(directory))
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
