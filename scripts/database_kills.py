#!/usr/bin/env python3
"""Kill the live device, or cut its power, while a database on it commits, and check that no commit is lost.

    scripts/database_kills.py FLOATGATE [--rounds N] [--database sqlite|postgresql]

Each round starts a server on a flash image, mounts the file system on it, and verifies every commit that was
acknowledged in earlier rounds. It then commits until a random time, and unmounts the file system. At that time the
server is killed (SIGKILL) in even rounds; in odd rounds, `floatgate ctl power-cut` cuts the power of the device, whose
server continues.

If the user is root and the kernel has loop devices, the file system is the kernel's ext4 on a loop device over nbdfuse.
Otherwise it is fuse2fs over nbdfuse, whose requests have any alignment. Needs nbdfuse and e2fsprogs, for fuse2fs also
fuse2fs, and for PostgreSQL its server. Reports missing programs.
"""

import argparse
import contextlib
import glob
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SIZE = ["--set", "geometry.blocks=128", "--set", "buffer.capacity=1MiB"]

WRITER = """
import sqlite3, sys
path, first = sys.argv[1], int(sys.argv[2])
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA synchronous = FULL")
# Commits with a write and an fsync. The default journal mode deletes the journal, which can reappear after a power cut:
# FULL does not sync the directory, and neither does fuse2fs.
connection.execute("PRAGMA journal_mode = PERSIST")
connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, v TEXT)")
for number in range(first, first + 10**9):
    connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * (number % 900)))
    print(number, flush=True)
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options)


def wait_for(what, is_there, process=None, patience=60):
    for _ in range(patience * 20):
        if is_there():
            return
        if process is not None and process.poll() is not None:
            break
        time.sleep(0.05)
    raise SystemExit(f"error: {what} did not start")


def unmount(path):
    """Unmount a file system, as soon as no program uses it. Users other than root need FUSE's own program."""
    helper = next(filter(shutil.which, ["fusermount3", "fusermount"]), None)
    command = ["umount"] if os.geteuid() == 0 or helper is None else [helper, "-u"]
    for _ in range(100):
        mounted = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        if str(path) not in mounted:
            return
        if subprocess.run([*command, str(path)], capture_output=True).returncode != 0:
            time.sleep(0.1)
    raise SystemExit(f"error: {path} cannot be unmounted")


class Device:
    """A server on an image, with a mounted file system."""

    def __init__(self, floatgate, place, use_loop, is_new):
        self.place, self.use_loop, self.processes, self.loop = place, use_loop, [], None
        self.floatgate = floatgate
        self.has_failed = False
        self.mount, self.disk = place / "mnt", place / "nbd"
        socket = place / "ssd.sock"
        command = [floatgate, "serve", "tiny", *SIZE, "--no-delay", "--image", place / "flash.img"]
        self.server = self.start(*command, "--nbd", f"unix:{socket}", log="server.log")
        wait_for("the server", lambda: "Ctrl-C ends" in (place / "server.log").read_text(), self.server)
        nbdfuse = self.start("nbdfuse", self.disk, f"nbd+unix:///?socket={socket}", log="nbdfuse.log")
        block = self.disk / "nbd"
        wait_for("nbdfuse", block.exists, nbdfuse)
        if use_loop:
            block = self.loop = run("losetup", "--find", "--show", block).stdout.strip()
        if is_new:
            run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", block)
        else:
            # As after a power cut: replay the journal, and repair what fuse2fs has left.
            check = subprocess.run(["fsck.ext4", "-y", "-f", str(block)], capture_output=True, text=True)
            if check.returncode > 1:
                raise SystemExit(f"error: the file system cannot be repaired:\n{check.stdout}{check.stderr}")
        if use_loop:
            run("mount", block, self.mount)
        else:
            fuse2fs = self.start("fuse2fs", "-f", "-o", "fakeroot,allow_other", block, self.mount, log="fuse2fs.log")
            wait_for("fuse2fs", lambda: os.path.ismount(self.mount), fuse2fs)

    def start(self, *command, log):
        with open(self.place / log, "w") as out:
            process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out)
        self.processes.append(process)
        return process

    def kill(self):
        self.has_failed = True
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()

    def cut(self):
        """Cut the power of the device, which loses what was not flushed, and ends all connections."""
        self.has_failed = True
        said = run(self.floatgate, "ctl", "--socket", self.place / "ssd.ctl", "power-cut").stdout
        if "recovered after a power cut" not in said or self.server.poll() is not None:
            raise SystemExit(f"error: the device did not recover from a power cut: {said}")

    def close(self):
        """Unmount the file system, and terminate all processes."""
        unmount(self.mount)
        if self.loop:
            subprocess.run(["losetup", "--detach", self.loop], capture_output=True)
        unmount(self.disk)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Sqlite:
    def __init__(self, device):
        self.path = device.mount / "data.db"

    def open(self):
        pass

    def numbers(self):
        if not self.path.exists():
            return []
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            if (found := connection.execute("PRAGMA integrity_check").fetchone()) != ("ok",):
                raise SystemExit(f"error: the database is corrupted: {found[0]}")
            return [row[0] for row in connection.execute("SELECT n FROM t ORDER BY n")]

    def writer(self, first):
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, str(self.path), str(first)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )

    def close(self):
        pass


class Postgresql:
    """A cluster owned by the user `nobody` if we are root, because the server refuses to run as root."""

    def __init__(self, device):
        self.bin = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1]).parent
        self.data, self.log = device.mount / "pg", device.place / "postgresql.log"
        self.sockets = pathlib.Path(tempfile.mkdtemp(prefix="sockets-", dir=device.place))
        self.user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []

    def call(self, program, *arguments):
        return [*self.user, str(self.bin / program), *map(str, arguments)]

    def open(self):
        self.log.touch()
        for path in [self.sockets, self.log]:
            path.chmod(0o777)
        if not self.data.exists():
            self.data.mkdir()
            if self.user:
                os.chown(self.data, 65534, 65534)
            run(*self.call("initdb", "-D", self.data, "--no-locale", "-A", "trust", "-U", "test"), cwd="/")
            is_new = True
        else:
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            is_new = False
        options = f"-k {self.sockets} -c listen_addresses= -c shared_buffers=16MB -c max_wal_size=64MB"
        start = self.call("pg_ctl", "-D", self.data, "-w", "-t", "120", "-l", self.log, "-o", options, "start")
        if subprocess.run(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/").returncode != 0:
            raise SystemExit(f"error: PostgreSQL did not start:\n{self.log.read_text()[-3000:]}")
        if is_new:
            self.query("CREATE TABLE t (n bigint PRIMARY KEY, v text)")

    def psql(self):
        return self.call("psql", "-h", self.sockets, "-U", "test", "-d", "postgres", "-qAtX")

    def query(self, text):
        return run(*self.psql(), "-c", text, cwd="/").stdout

    def numbers(self):
        return [int(line) for line in self.query("SELECT n FROM t ORDER BY n").split()]

    def writer(self, first):
        insert = "INSERT INTO t VALUES ({0}, repeat('x', {0} % 900)) RETURNING n;\n"
        process = subprocess.Popen(
            self.psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/",
        )
        # Sends each insert only after the previous one was acknowledged.
        self.next = lambda number: (process.stdin.write(insert.format(number)), process.stdin.flush())
        self.next(first)
        return process

    def close(self):
        try:
            server = int((self.sockets / ".s.PGSQL.5432.lock").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return
        # Stop the whole cluster immediately, so that it holds no locks when the next one starts.
        for number, end in enumerate([signal.SIGQUIT] * 100 + [signal.SIGKILL] * 100):
            try:
                os.kill(server, end if number % 100 == 0 else 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)


def commit(database, device, first, delay, fail):
    """Commit until `fail` ended the device after `delay` seconds, and return the last acknowledged number."""
    writer = database.writer(first)
    last = first - 1
    end = None
    step = getattr(database, "next", None)
    for line in writer.stdout:
        last = int(line)
        end = end or time.monotonic() + delay
        if time.monotonic() >= end and not device.has_failed:
            fail()
        if step:
            try:
                step(last + 1)
            except OSError:
                break
    writer.kill()
    writer.wait()
    if not device.has_failed:
        raise SystemExit("error: the database failed before the device did")
    return last


def check(numbers, acknowledged):
    lost = sorted(acknowledged.difference(numbers))
    if lost:
        raise SystemExit(f"error: {len(lost)} of {len(acknowledged)} acknowledged commits are lost: {lost[:10]}")


def test(kind, floatgate, rounds, use_loop, seed):
    choice = random.Random(seed)
    acknowledged = set()
    first = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="floatgate-databases-", ignore_cleanup_errors=True) as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        (place / "mnt").mkdir()
        (place / "nbd").mkdir()
        for number in range(rounds + 1):
            device = Device(floatgate, place, use_loop, is_new=number == 0)
            database = kind(device)
            try:
                database.open()
                numbers = database.numbers()
                check(numbers, acknowledged)
                # A commit that was not acknowledged may exist all the same.
                first = max([first, *(number + 1 for number in numbers)])
                if number < rounds:
                    fail = device.cut if number % 2 else device.kill
                    last = commit(database, device, first, choice.uniform(0.2, 2.0), fail)
                    acknowledged.update(range(first, last + 1))
                    first = last + 1
            finally:
                database.close()
                device.close()
    how = "ext4 on a loop device" if use_loop else "fuse2fs"
    seconds = time.monotonic() - began
    counts = f"{rounds - rounds // 2} kills, {rounds // 2} power cuts"
    done = f"{counts}, {len(acknowledged)} commits, 0 lost ({seconds:.0f} s)"
    print(f"{kind.__name__} on {how}: {done}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("floatgate")
    parser.add_argument("--rounds", type=int, default=20, help="number of kills and power cuts for each database")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], help="test only this database")
    parser.add_argument("--fuse2fs", action="store_true", help="use fuse2fs even as root")
    parser.add_argument("--seed", type=int, default=1, help="seed of the kill times")
    arguments = parser.parse_args()
    use_loop = os.geteuid() == 0 and os.path.exists("/dev/loop-control") and not arguments.fuse2fs
    needed = ["nbdfuse", "mkfs.ext4", *([] if use_loop else ["fuse2fs"])]
    missing = [program for program in needed if not shutil.which(program)]
    if missing:
        debian = "libnbd-bin e2fsprogs fuse2fs fuse3"
        raise SystemExit(f"error: not installed: {', '.join(missing)}; Debian: {debian}")
    floatgate = os.path.abspath(arguments.floatgate)
    if arguments.database != "postgresql":
        test(Sqlite, floatgate, arguments.rounds, use_loop, arguments.seed)
    if arguments.database != "sqlite":
        if not use_loop:
            # PostgreSQL needs a directory owned by its own user, and a file system with a journal.
            print("PostgreSQL needs root and a loop device: not tested")
        elif glob.glob("/usr/lib/postgresql/*/bin/initdb"):
            test(Postgresql, floatgate, arguments.rounds, use_loop, arguments.seed)
        else:
            print("PostgreSQL is not installed (Debian: postgresql): not tested")


if __name__ == "__main__":
    main()
