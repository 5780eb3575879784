#!/usr/bin/env python3
"""Record the block trace in examples/: SQLite under an order-entry workload, traced by strace.

    python3 scripts/record_sqlite.py                 # records examples/sqlite-oltp.csv.xz, takes about three minutes

Loads a database of about 70 MB, which is not recorded. Then transactions run against it while strace logs each read,
write and flush of the database files. The log is converted to a trace in the format of the MSR Cambridge traces. The
transactions depend only on --seed, and their times on the machine. examples/README.md describes what the conversion
keeps and drops. Needs strace, and a SQLite that uses pread and pwrite, such as those of Linux distributions.
"""

from __future__ import annotations

import argparse
import lzma
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
MIB = 1 << 20

# Location of each file on the virtual disk: suffix of its name -> (first byte, size of its region).
LAYOUT = {
    "": (0, 256 * MIB),
    "-wal": (256 * MIB, 64 * MIB),
    "-journal": (320 * MIB, 64 * MIB),
}

# 100 ns from 1601-01-01, where FILETIME starts, to 1970-01-01.
FILETIME_OF_UNIX_EPOCH = 116_444_736_000_000_000


# --- The workload ----------------------------------------------------------------------------------------------------

CUSTOMERS = 80_000
ITEMS = 50_000
ORDERS = 80_000

SCHEMA = """
    CREATE TABLE customer(id INTEGER PRIMARY KEY, last TEXT, district INT, balance INT, payments INT, data TEXT);
    CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price INT, quantity INT, sold INT, data TEXT);
    CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INT, entered INT, delivered INT, lines INT);
    CREATE TABLE order_line(orders INT, number INT, item INT, quantity INT, amount INT, info TEXT,
                            PRIMARY KEY(orders, number)) WITHOUT ROWID;
    CREATE TABLE history(customer INT, entered INT, amount INT, data TEXT);
    CREATE INDEX customer_by_name ON customer(district, last, id);
    CREATE INDEX orders_by_customer ON orders(customer, id);
    CREATE INDEX orders_waiting ON orders(id) WHERE delivered IS NULL;
    CREATE INDEX history_by_customer ON history(customer);
"""

SYLLABLES = ("bar", "ought", "able", "pri", "pres", "ese", "anti", "cally", "ation", "eing")


def text(rng: random.Random, low: int, high: int) -> str:
    """Return a random text of `low` to `high` characters."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz    ", k=rng.randint(low, high)))


def last_name(number: int) -> str:
    """Return one of 1000 last names."""
    return "".join(SYLLABLES[number // place % 10] for place in (100, 10, 1))


def skewed(rng: random.Random, count: int) -> int:
    """Return a row number in 1..count. Some rows are far more frequent, after TPC-C's NURand, clause 2.1.6."""
    mask = (1 << (count.bit_length() - 3)) - 1
    return (rng.randint(0, mask) | rng.randint(1, count)) % count + 1


def connect(path: Path) -> sqlite3.Connection:
    """Open the database with the settings of the workload."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA cache_size=-2048")
    db.execute("PRAGMA temp_store=MEMORY")
    return db


def load(path: Path, seed: int) -> None:
    """Create the initial database."""
    rng = random.Random(f"load {seed}")
    db = connect(path)
    db.executescript(SCHEMA)
    db.execute("BEGIN")
    for i in range(1, CUSTOMERS + 1):
        row = (i, last_name(rng.randrange(1000)), i % 10, -1000, 1, text(rng, 200, 400))
        db.execute("INSERT INTO customer VALUES(?, ?, ?, ?, ?, ?)", row)
    for i in range(1, ITEMS + 1):
        row = (i, text(rng, 14, 24), rng.randint(100, 10_000), rng.randint(10, 100), 0, text(rng, 150, 300))
        db.execute("INSERT INTO item VALUES(?, ?, ?, ?, ?, ?)", row)
    for i in range(1, ORDERS + 1):
        delivered = i if i <= ORDERS - 1000 else None
        insert_order(db, rng, i, rng.randint(1, CUSTOMERS), delivered)
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def insert_order(db: sqlite3.Connection, rng: random.Random, order: int, customer: int, delivered: int | None) -> None:
    """Insert an order and its lines."""
    lines = rng.randint(3, 8)
    db.execute("INSERT INTO orders VALUES(?, ?, ?, ?, ?)", (order, customer, order, delivered, lines))
    for number in range(lines):
        row = (order, number, skewed(rng, ITEMS), rng.randint(1, 10), rng.randint(100, 99_999), text(rng, 24, 24))
        db.execute("INSERT INTO order_line VALUES(?, ?, ?, ?, ?, ?)", row)


def new_order(db: sqlite3.Connection, rng: random.Random) -> None:
    """Order a few items: look-ups, inserts, updates of the stock."""
    customer = skewed(rng, CUSTOMERS)
    db.execute("SELECT last, balance FROM customer WHERE id = ?", (customer,)).fetchone()
    (order,) = db.execute("SELECT max(id) + 1 FROM orders").fetchone()
    insert_order(db, rng, order, customer, None)
    lines = db.execute("SELECT item, quantity FROM order_line WHERE orders = ?", (order,)).fetchall()
    for item, quantity in lines:
        db.execute("SELECT name, price, quantity FROM item WHERE id = ?", (item,)).fetchone()
        db.execute("UPDATE item SET quantity = quantity - ?, sold = sold + ? WHERE id = ?", (quantity, quantity, item))


def payment(db: sqlite3.Connection, rng: random.Random) -> None:
    """Make a payment of a customer, who is usually found by name."""
    if rng.random() < 0.6:
        key = (rng.randrange(10), last_name(skewed(rng, 1000) - 1))
        found = db.execute("SELECT id FROM customer WHERE district = ? AND last = ? ORDER BY id", key).fetchall()
        customer = found[len(found) // 2][0] if found else skewed(rng, CUSTOMERS)
    else:
        customer = skewed(rng, CUSTOMERS)
    amount = rng.randint(100, 500_000)
    update = "UPDATE customer SET balance = balance - ?, payments = payments + 1 WHERE id = ?"
    db.execute(update, (amount, customer))
    db.execute("INSERT INTO history VALUES(?, ?, ?, ?)", (customer, amount, amount, text(rng, 12, 24)))


def order_status(db: sqlite3.Connection, rng: random.Random) -> None:
    """Look up the last order of a customer. Reads only."""
    customer = skewed(rng, CUSTOMERS)
    db.execute("SELECT last, balance FROM customer WHERE id = ?", (customer,)).fetchone()
    last = db.execute("SELECT id FROM orders WHERE customer = ? ORDER BY id DESC LIMIT 1", (customer,)).fetchone()
    if last:
        db.execute("SELECT * FROM order_line WHERE orders = ?", last).fetchall()


def delivery(db: sqlite3.Connection, rng: random.Random) -> None:
    """Deliver the oldest waiting orders, and now and then delete an old order."""
    waiting = db.execute("SELECT id, customer FROM orders WHERE delivered IS NULL ORDER BY id LIMIT 5").fetchall()
    for order, customer in waiting:
        db.execute("UPDATE orders SET delivered = ? WHERE id = ?", (order, order))
        (amount,) = db.execute("SELECT sum(amount) FROM order_line WHERE orders = ?", (order,)).fetchone()
        db.execute("UPDATE customer SET balance = balance + ? WHERE id = ?", (amount or 0, customer))
    if rng.random() < 0.5:
        old = rng.randint(1, ORDERS // 2)
        db.execute("DELETE FROM order_line WHERE orders = ?", (old,))
        db.execute("DELETE FROM orders WHERE id = ?", (old,))


def free_level(db: sqlite3.Connection, rng: random.Random) -> None:
    """Count the recently sold items that run short. Reads only: a range and many look-ups."""
    query = """SELECT count(DISTINCT item.id) FROM order_line JOIN item ON item.id = order_line.item
               WHERE order_line.orders > (SELECT max(id) - 20 FROM orders) AND item.quantity < ?"""
    db.execute(query, (rng.randint(10, 20),)).fetchone()


# The shares are those of TPC-C, clause 5.2.3, rounded.
TRANSACTIONS = ((new_order, 45), (payment, 43), (order_status, 4), (delivery, 4), (free_level, 4))


def run_workload(path: Path, seed: int, transactions: int, gap_ms: float) -> None:
    """Run transactions at random times, `gap_ms` apart on average. A slow transaction delays the next ones."""
    kinds = random.Random(f"kinds {seed}")
    gaps = random.Random(f"gaps {seed}")
    rows = random.Random(f"rows {seed}")
    chosen = kinds.choices([t for t, _ in TRANSACTIONS], [share for _, share in TRANSACTIONS], k=transactions)
    db = connect(path)
    due = time.monotonic()
    for transaction in chosen:
        due += gaps.expovariate(1000 / gap_ms)
        time.sleep(max(0.0, due - time.monotonic()))
        db.execute("BEGIN")
        transaction(db, rows)
        db.execute("COMMIT")
    db.close()


# --- From strace's lines to requests ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A finished system call on a file."""

    microseconds: int
    name: str
    path: str
    bytes: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Request:
    """A request to the virtual disk."""

    microseconds: int
    write: bool
    offset: int
    bytes: int


LINE = re.compile(r"^(?:(?P<pid>\d+) +)?(?P<s>\d+)\.(?P<us>\d{6}) (?P<rest>.*)$")
FINISHED = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
TRANSFER = re.compile(r'^\d+<(?P<path>[^>]*)>(?:\(deleted\))?, ".*"(?:\.\.\.)?, \d+, (?P<offset>\d+)$', re.DOTALL)
ON_DESCRIPTOR = re.compile(r"^\d+<(?P<path>[^>]*)>")
ON_PATH = re.compile(r'^"(?P<path>[^"]*)"')
UNFINISHED = " <unfinished ...>"
RESUMED = re.compile(r"^<\.\.\. \w+ resumed>")


def parse_calls(lines: Iterable[str]) -> Iterator[Call]:
    """Yield the successful calls in the output of `strace -f -ttt -y`, in the order in which they end.

    A call that another thread interrupts in the log takes two lines. Its time is that of the first line.
    """
    begun: dict[str, tuple[str, str, str]] = {}
    for line in lines:
        parts = LINE.match(line.rstrip("\n"))
        if not parts:
            raise ValueError(f"not a line of strace -ttt: {line!r}")
        pid, seconds, us, rest = parts["pid"] or "", parts["s"], parts["us"], parts["rest"]
        if rest.endswith(UNFINISHED):
            begun[pid] = (seconds, us, rest.removesuffix(UNFINISHED))
            continue
        if (resumed := RESUMED.match(rest)) and pid in begun:
            seconds, us, head = begun.pop(pid)
            rest = head + rest[resumed.end() :]
        call = parse_call(int(seconds) * 1_000_000 + int(us), rest)
        if call:
            yield call


def parse_call(microseconds: int, rest: str) -> Call | None:
    """Parse a call without process and time. Return None if it failed or transferred nothing."""
    finished = FINISHED.match(rest)
    if not finished or int(finished["result"]) < 0:
        return None
    name, arguments = finished["name"], finished["arguments"]
    if name in ("pread64", "pwrite64"):
        transfer = TRANSFER.match(arguments)
        if not transfer:
            raise ValueError(f"cannot read the arguments of {rest!r}")
        done = int(finished["result"])
        return Call(microseconds, name, transfer["path"], done, int(transfer["offset"])) if done else None
    target = ON_DESCRIPTOR.match(arguments) or ON_PATH.match(arguments)
    return Call(microseconds, name, target["path"] if target else "")


def place(database: Path, path: str) -> tuple[int, int] | None:
    """Return the region of a file of the database, or None for any other file."""
    prefix = str(database)
    return LAYOUT.get(path.removeprefix(prefix)) if path.startswith(prefix) else None


def convert(calls: Iterable[Call], database: Path, align: int, dropped: Counter[str]) -> Iterator[Request]:
    """Yield requests to the virtual disk, and count in `dropped` what a trace of reads and writes cannot express.

    A write that continues the previous one is merged with it, because SQLite writes a page of its log in two calls.
    Ranges are extended to whole blocks of `align` bytes.
    """
    pending: Request | None = None
    for call in calls:
        region = place(database, call.path)
        if region is None:
            dropped["calls on other files"] += 1
            continue
        if call.name not in ("pread64", "pwrite64"):
            dropped[call.name] += 1
            request = None
        else:
            start, size = region
            if call.offset + call.bytes > size:
                raise ValueError(f"{call.path}: byte {call.offset + call.bytes} is outside its region of {size} bytes")
            request = Request(call.microseconds, call.name == "pwrite64", start + call.offset, call.bytes)
        if pending and request and request.write and request.offset == pending.offset + pending.bytes:
            dropped["writes joined to the one before"] += 1
            pending = Request(request.microseconds, True, pending.offset, pending.bytes + request.bytes)
            continue
        if pending:
            yield widen(pending, align)
        pending = None
        if request and request.write:
            pending = request
        elif request:
            yield widen(request, align)
    if pending:
        yield widen(pending, align)


def widen(request: Request, align: int) -> Request:
    """Return the request, extended to whole blocks."""
    start = request.offset // align * align
    end = -(-(request.offset + request.bytes) // align) * align
    return Request(request.microseconds, request.write, start, end - start)


def msr_line(request: Request) -> str:
    """Return the request as a line of an MSR Cambridge trace. The response time is unknown, and written as 0."""
    filetime = request.microseconds * 10 + FILETIME_OF_UNIX_EPOCH
    return f"{filetime},sqlite,0,{'Write' if request.write else 'Read'},{request.offset},{request.bytes},0\n"


# --- The command -----------------------------------------------------------------------------------------------------


def record(options: argparse.Namespace, directory: Path) -> None:
    """Load the database, run the workload under strace, and convert the log."""
    database, log = directory / "oltp.db", directory / "strace.log"
    print(f"SQLite {sqlite3.sqlite_version}; loading the database in {directory} ...", flush=True)
    load(database, options.seed)
    print(f"{database.stat().st_size / 1e6:.1f} MB; recording {options.transactions} transactions ...", flush=True)
    child = [sys.executable, __file__, "--run-workload", str(database), "--seed", str(options.seed)]
    child += ["--transactions", str(options.transactions), "--gap-ms", str(options.gap_ms)]
    traced = "trace=pread64,pwrite64,fsync,fdatasync,ftruncate,unlink"
    strace = ["strace", "-f", "--seccomp-bpf", "-ttt", "-y", "-s", "0", "-e", traced, "-e", "signal=none"]
    subprocess.run([*strace, "-o", str(log), *child], check=True)

    dropped: Counter[str] = Counter()
    with log.open(errors="replace") as lines:
        calls = parse_calls(line for line in lines if "+++" not in line)
        requests = sorted(convert(calls, database, options.align, dropped), key=lambda r: r.microseconds)
    if not requests:
        sys.exit("error: the log has no pread or pwrite of the database: this SQLite was built without USE_PREAD")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(options.output, "wt", preset=9 | lzma.PRESET_EXTREME, newline="\n") as trace:
        trace.writelines(msr_line(request) for request in requests)
    reads = sum(not request.write for request in requests)
    print(f"{options.output}: {len(requests)} requests, of which {reads} reads, {options.output.stat().st_size} bytes")
    print("not in the trace: " + ", ".join(f"{count} {name}" for name, count in sorted(dropped.items())))


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Record SQLite's reads and writes as a block trace.")
    default = REPOSITORY / "examples" / "sqlite-oltp.csv.xz"
    parser.add_argument("--output", type=Path, default=default, help="trace file (default: %(default)s)")
    parser.add_argument("--transactions", type=int, default=6500, help="number of transactions (default: %(default)s)")
    parser.add_argument("--gap-ms", type=float, default=20.0, help="mean gap in ms (default: %(default)s)")
    parser.add_argument("--align", type=int, default=4096, help="block size of the virtual disk (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the transactions (default: %(default)s)")
    parser.add_argument("--directory", type=Path, help="parent of a new directory for the database, on a real disk")
    parser.add_argument("--run-workload", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Record the trace or, under strace, run the workload."""
    options = parse_options()
    if options.run_workload:
        run_workload(options.run_workload, options.seed, options.transactions, options.gap_ms)
        return
    if not shutil.which("strace"):
        sys.exit("error: strace is not installed. On Debian and Ubuntu: apt-get update && apt-get install -y strace")
    with tempfile.TemporaryDirectory(prefix="floatgate-record-", dir=options.directory) as directory:
        record(options, Path(os.path.realpath(directory)))


if __name__ == "__main__":
    main()
