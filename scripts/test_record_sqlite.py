"""Tests of record_sqlite.py: the conversion of strace's output to requests."""

from __future__ import annotations

import random
import unittest
from collections import Counter
from pathlib import Path

from record_sqlite import FILETIME_OF_UNIX_EPOCH, LAYOUT, MIB, Call, Request, convert, msr_line, parse_calls, skewed

DB = Path("/tmp/x/oltp.db")


def calls(*lines: str) -> list[Call]:
    """Return the calls in lines of strace's output."""
    return list(parse_calls(line + "\n" for line in lines))


def requests(*found: Call, align: int = 4096) -> tuple[list[Request], Counter[str]]:
    """Return the requests that calls are converted to, and what is dropped."""
    dropped: Counter[str] = Counter()
    return list(convert(found, DB, align, dropped)), dropped


class ParseTest(unittest.TestCase):
    """Lines of `strace -f -ttt -y -s 0`."""

    def test_reads_and_writes(self) -> None:
        """The offset comes from the arguments, the number of bytes from the result."""
        found = calls(
            '6466  1795237279.172237 pwrite64(4</tmp/x/oltp.db-wal>, ""..., 24, 4152) = 24',
            '1795237279.172238 pread64(3</tmp/x/oltp.db>, ""..., 4096, 8192) = 100',
        )
        self.assertEqual(found[0], Call(1795237279172237, "pwrite64", "/tmp/x/oltp.db-wal", 24, 4152))
        self.assertEqual(found[1], Call(1795237279172238, "pread64", "/tmp/x/oltp.db", 100, 8192))

    def test_data_that_looks_like_arguments(self) -> None:
        """The data are skipped, whatever they contain. The same goes for the duration that -T adds."""
        found = calls('1 2.000003 pwrite64(4</tmp/x/oltp.db>, "a\\", 1, 2) = 3"..., 512, 1024) = 512 <0.000010>')
        self.assertEqual(found, [Call(2000003, "pwrite64", "/tmp/x/oltp.db", 512, 1024)])

    def test_other_calls(self) -> None:
        """Flushes, truncation and deletion keep their file."""
        found = calls(
            "7 1.000001 fdatasync(4</tmp/x/oltp.db-wal>) = 0",
            "7 1.000002 ftruncate(3</tmp/x/oltp.db>, 20480) = 0",
            '7 1.000003 unlink("/tmp/x/oltp.db-wal") = 0',
        )
        self.assertEqual([call.name for call in found], ["fdatasync", "ftruncate", "unlink"])
        self.assertEqual([call.path for call in found], [f"{DB}-wal", str(DB), f"{DB}-wal"])

    def test_failures_and_empty_reads_do_nothing(self) -> None:
        """A read beyond the end moves no bytes."""
        self.assertEqual(calls('7 1.000001 pread64(3</tmp/x/oltp.db>, "", 100, 0) = 0'), [])
        self.assertEqual(calls('7 1.000001 unlink("/tmp/x") = -1 ENOENT (No such file or directory)'), [])

    def test_a_call_on_two_lines(self) -> None:
        """The time of the call is that of its start."""
        found = calls(
            "7 1.000001 pread64(3</tmp/x/oltp.db>,  <unfinished ...>",
            "8 1.000002 fsync(3</tmp/x/oltp.db>) = 0",
            '7 1.000009 <... pread64 resumed>""..., 4096, 4096) = 4096',
        )
        self.assertEqual(found[1], Call(1000001, "pread64", "/tmp/x/oltp.db", 4096, 4096))

    def test_an_unknown_line_is_an_error(self) -> None:
        """No line is silently dropped."""
        with self.assertRaisesRegex(ValueError, "not a line of strace"):
            calls("strace: Process 7 attached")
        with self.assertRaisesRegex(ValueError, "cannot read the arguments"):
            calls('7 1.000001 pread64(3, ""..., 4096, 4096) = 4096')


class ConvertTest(unittest.TestCase):
    """The conversion of calls on files to requests to one disk."""

    def test_each_file_has_its_region(self) -> None:
        """The database is followed by its log. Other files are not on the disk."""
        found, dropped = requests(
            Call(1, "pread64", str(DB), 4096, 8192),
            Call(2, "pread64", f"{DB}-wal", 4096, 8192),
            Call(3, "pwrite64", f"{DB}-shm", 1, 0),
        )
        self.assertEqual(found, [Request(1, False, 8192, 4096), Request(2, False, 256 * MIB + 8192, 4096)])
        self.assertEqual(dropped, Counter({"calls on other files": 1}))

    def test_regions_do_not_overlap(self) -> None:
        """Regions are adjacent. A request beyond the end of a region is an error."""
        ends = 0
        for start, size in LAYOUT.values():
            self.assertEqual(start, ends)
            ends = start + size
        with self.assertRaisesRegex(ValueError, "outside its region"):
            requests(Call(1, "pwrite64", f"{DB}-wal", 4096, 64 * MIB))

    def test_ranges_are_extended_to_blocks(self) -> None:
        """A page of the log can overlap two blocks."""
        found, _ = requests(Call(1, "pread64", str(DB), 16, 24), Call(2, "pread64", str(DB), 4096, 56))
        self.assertEqual(found, [Request(1, False, 0, 4096), Request(2, False, 0, 8192)])

    def test_consecutive_writes_are_merged(self) -> None:
        """Header and page of the log become one write, at the time of the last. Other calls end the sequence."""
        found, dropped = requests(
            Call(1, "pwrite64", str(DB), 24, 32),
            Call(2, "pwrite64", str(DB), 4096, 56),
            Call(3, "fdatasync", str(DB)),
            Call(4, "pwrite64", str(DB), 24, 4152),
            Call(5, "pread64", str(DB), 1, 0),
            Call(6, "pwrite64", str(DB), 4096, 4176),
            align=1,
        )
        writes = [Request(2, True, 32, 4120), Request(4, True, 4152, 24), Request(6, True, 4176, 4096)]
        self.assertEqual([request for request in found if request.write], writes)
        self.assertEqual(dropped, Counter({"fdatasync": 1, "writes joined to the one before": 1}))

    def test_lines_of_the_trace(self) -> None:
        """Times are in units of 100 ns since 1601."""
        line = msr_line(Request(5, True, 4096, 8192))
        self.assertEqual(line, f"{FILETIME_OF_UNIX_EPOCH + 50},sqlite,0,Write,4096,8192,0\n")


class WorkloadTest(unittest.TestCase):
    """The choice of rows by the workload."""

    def test_skewed_rows_exist(self) -> None:
        """Every row number is in range, and few rows get many of the choices."""
        rng = random.Random(1)
        counts = Counter(skewed(rng, 1000) for _ in range(20_000))
        self.assertTrue(all(1 <= row <= 1000 for row in counts))
        self.assertGreater(sum(count for _, count in counts.most_common(200)), 8_000)


if __name__ == "__main__":
    unittest.main()
