#!/usr/bin/env python3
"""Record block traces of real workloads in a guest on a live device: examples/install.csv.xz, tree and media.

    python3 scripts/record_workloads.py --floatgate target/release/floatgate        # all, takes 40 minutes
    python3 scripts/record_workloads.py tree --floatgate target/release/floatgate   # one of them

`floatgate vm` boots a guest with the simulated SSD as its IDE disk, which is how guests of VSSIM see theirs. The guest
makes a file system on it and works. `--record` writes the requests to the disk. The study of Yoo et al. 2013 replays
the traces. Needs apt and qemu-system-x86_64, like `floatgate vm`; apt also downloads the packages to be installed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent

#: Packages that the guest installs. None of them has scripts that run before the files are unpacked.
PACKAGES = (
    "cpp-12", "libgcc-12-dev", "libicu72", "libperl5.36", "libpython3.11-stdlib", "libstdc++-12-dev",
    "perl-modules-5.36",
)  # fmt: skip

#: Makes and mounts a file system, and unmounts it at the end. $SSD is the disk. Its requests have at most 128 KiB, as
#: those of VSSIM's IDE disk.
FRAME = """set -e
echo 128 >/sys/block/${{SSD#/dev/}}/queue/max_sectors_kb
mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 $SSD {size}
mount -o discard $SSD /mnt
{job}
sync
umount /mnt
"""

#: Package with the source tree of a kernel, which takes 1.4 GB on a disk.
SOURCE = "linux-source-6.1"


class Job(NamedTuple):
    """A workload of the guest."""

    #: Its work on the file system at /mnt.
    command: str
    #: Debian packages that it unpacks.
    packages: tuple[str, ...] = ()
    #: Size of the file system.
    size: str = "1G"
    #: Simulated time relative to real time.
    speed: str = "0.1"

    def script(self) -> str:
        """Return the command line of the guest."""
        return FRAME.format(job=self.command, size=self.size)


#: Workload by name. Without a path, the shell of busybox would run its own dpkg.
JOBS = {
    "install": Job(
        """mkdir -p /mnt/var/lib/dpkg/info /mnt/var/lib/dpkg/updates
touch /mnt/var/lib/dpkg/status
/usr/bin/dpkg --root=/mnt --force-all --unpack *.deb >/tmp/log 2>&1 || { tail -n 5 /tmp/log; exit 1; }""",
        packages=PACKAGES,
    ),
    "tree": Job(
        """/usr/bin/dpkg-deb --fsys-tarfile *.deb | tar -xOf - ./usr/src/{source}.tar.xz |
    xz -dc | tar -xf - -C /mnt
sync
echo 3 >/proc/sys/vm/drop_caches
cp -r /mnt/{source} /mnt/copy
sync
rm -r /mnt/{source}
sync
rm -r /mnt/copy""".replace("{source}", SOURCE),
        packages=(SOURCE,),
        size="4G",
        speed="0.5",
    ),
    "media": Job("""dd if=/dev/zero of=/tmp/song bs=64k count=80 2>/dev/null
for song in $(seq 24); do cp /tmp/song /mnt/$song.mp3; done
sync
for part in $(seq 24); do cat /tmp/song; done >/mnt/video.avi"""),
}


def record(name: str, options: argparse.Namespace, floatgate: str, directory: Path) -> None:
    """Run a workload in a guest, and record its requests."""
    job = JOBS[name]
    if job.packages:
        subprocess.run(["apt-get", "download", "--quiet", *job.packages], check=True, cwd=directory)
    output = options.output / f"{name}.csv.xz"
    command = [floatgate, "vm", options.device, "--interface", "ide", "--precondition", "none"]
    command += ["--accel", options.accel, "--speed", options.speed or job.speed, "--guest-memory", "768MiB"]
    command += ["--package", "dpkg", "--package", "tar", "--package", "xz-utils"]
    command += [word for file in sorted(directory.glob("*.deb")) for word in ("--copy", str(file))]
    command += ["--record", str(output), "--run", job.script()]
    print(f"{name}: {output}", flush=True)
    (REPOSITORY / output).unlink(missing_ok=True)
    # The first lines of the trace contain its path: make it relative to the repository.
    subprocess.run(command, check=True, cwd=REPOSITORY)


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Record real workloads on a live device as block traces.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"workloads: {', '.join(JOBS)} (default: all)")
    told = "directory of the traces, relative to the repository (default: %(default)s)"
    parser.add_argument("--output", type=Path, default=Path("examples"), help=told)
    parser.add_argument("--floatgate", default="floatgate", help="the program (default: %(default)s)")
    parser.add_argument("--device", default="vssim-d", help="the SSD (default: %(default)s)")
    parser.add_argument("--accel", default="tcg", help="kvm or tcg, which is emulation (default: %(default)s)")
    parser.add_argument("--speed", help="simulated time relative to real time (default: 0.1, and 0.5 for tree)")
    options = parser.parse_args()
    for name in options.names:
        if name not in JOBS:
            parser.error(f"unknown workload `{name}`: expected {', '.join(JOBS)}")
    return options


def main() -> None:
    """Record the traces."""
    options = parse_options()
    floatgate = shutil.which(options.floatgate)
    if not floatgate:
        sys.exit(f"error: program not found: {options.floatgate}; build it, or give its path with --floatgate")
    for name in options.names or JOBS:
        with tempfile.TemporaryDirectory(prefix="floatgate-record-") as directory:
            try:
                record(name, options, str(Path(floatgate).resolve()), Path(directory))
            except (OSError, subprocess.CalledProcessError) as error:
                sys.exit(f"error: {name}: {error}")


if __name__ == "__main__":
    main()
