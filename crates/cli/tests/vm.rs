//! Tests of `floatgate vm`: a Linux guest with the live SSD as its disk, emulated so that the tests run on any machine.
//!
//! qemu-system-x86_64 must be installed, and apt must be able to download packages. `scripts/prerequisites.sh test`
//! checks that. Downloads are kept in the build directory.
#![cfg(feature = "live")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Returns a cache directory that is kept after the test, so that packages are downloaded once.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest")
}

/// Returns the command `floatgate vm tiny` in this directory.
fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.args(["vm", "tiny"]).args(arguments).current_dir(directory).env("XDG_CACHE_HOME", cache());
    command
}

fn vm(arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    command(directory.path(), arguments).output().unwrap()
}

/// Returns the result in a directory.
fn result(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap()
}

/// Returns the number of trimmed mapping units.
fn trimmed(summary: &Value) -> u64 {
    summary["flash"]["units"]["trimmed"].as_u64().unwrap()
}

#[test]
fn a_guest_creates_writes_trims_and_checks_a_file_system() {
    let results = tempfile::tempdir().unwrap();
    let out = results.path().join("out");
    let job = "set -e
        mkfs.ext4 -q -E nodiscard $SSD
        mount $SSD /mnt
        dd if=/dev/urandom of=/mnt/kept bs=64k count=16 2>/dev/null
        dd if=/dev/urandom of=/mnt/gone bs=64k count=64 2>/dev/null
        sync
        md5sum </mnt/kept >/tmp/before
        rm /mnt/gone
        sync
        fstrim /mnt
        umount /mnt
        echo 3 >/proc/sys/vm/drop_caches
        mount $SSD /mnt
        md5sum </mnt/kept >/tmp/after
        cmp /tmp/before /tmp/after
        umount /mnt
        fsck.ext4 -f -n $SSD 2>&1
        echo whole on $SSD
        exit 7";
    let arguments = ["--accel", "tcg", "--package", "e2fsprogs", "--speed", "10", "--precondition", "fill"];
    let reported = vm(&[&arguments[..], &["--out", out.to_str().unwrap(), "--run", job]].concat());
    let (said, errors) = (String::from_utf8_lossy(&reported.stdout), String::from_utf8_lossy(&reported.stderr));
    assert_eq!(reported.status.code(), Some(7), "{said}{errors}");
    assert!(said.ends_with("whole on /dev/vda\n") && said.contains("Pass 5"), "{said}{errors}");
    assert!(errors.contains("Its performance is not realistic"), "{errors}");

    let summary = result(&out);
    let count = |kind: &str| summary["requests"][kind]["count"].as_u64().unwrap();
    let bytes = |kind: &str| summary["requests"][kind]["bytes"].as_u64().unwrap();
    // fstrim trims the 4 MiB that were deleted, and the rest of the disk, which was never written.
    assert!(count("trim") >= 1 && bytes("trim") >= 40 << 20, "{}", summary["requests"]["trim"]);
    assert!(bytes("write") >= 5 << 20 && count("flush") >= 2, "{}", summary["requests"]);
    // The device was full, so that all trimmed units were mapped. Write-zeroes requests also deallocate whole units:
    // ext4 sends them to initialize its tables in the background while the disk is mounted.
    let trimmed = trimmed(&summary) * 4096;
    let most = bytes("trim") + bytes("write_zeroes");
    assert!((40 << 20..=most).contains(&trimmed), "{trimmed} bytes of {most}, and {}", summary["requests"]);
}

/// Programs are installed with all their dependencies, and each file system keeps a file on an NVMe disk. One boot
/// tests all of this.
#[test]
fn programs_run_and_every_file_system_keeps_a_file() {
    let job = "set -e
        nvme version | head -n 1
        python3 -c 'print([sum(range(5))])'
        sqlite3 /tmp/a.db 'create table t(a); insert into t values(7); select a from t'
        for kind in ext4 xfs btrfs; do
            force=-f; [ $kind = ext4 ] && force=-F
            mkfs.$kind -q $force $SSD >/dev/null 2>&1
            mount $SSD /mnt
            echo kept by $kind >/mnt/file
            umount /mnt
            echo 3 >/proc/sys/vm/drop_caches
            mount -t $kind $SSD /mnt
            cat /mnt/file
            umount /mnt
        done";
    let packages = ["nvme-cli", "python3-minimal", "sqlite3", "xfsprogs", "btrfs-progs"];
    let with: Vec<&str> = packages.iter().flat_map(|package| ["--package", package]).collect();
    // mkfs.xfs needs at least 300 MB.
    let device = ["--set", "geometry.blocks=512", "--precondition", "none", "--no-delay", "--accel", "tcg"];
    let reported = vm(&[&device[..], &with, &["--interface", "nvme", "--run", job]].concat());
    let (said, errors) = (String::from_utf8_lossy(&reported.stdout), String::from_utf8_lossy(&reported.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert!(reported.status.success() && lines[0].starts_with("nvme version"), "{said}{errors}");
    assert_eq!(lines[1..], ["[10]", "7", "kept by ext4", "kept by xfs", "kept by btrfs"], "{errors}");
    assert!(!errors.contains("no package provides the libraries"), "{errors}");
}

/// Written data is read from the device, not from the guest's memory. Discarded units are removed from the map of the
/// device, which was full.
#[test]
#[ignore = "boots four guests; `make soak` runs it"]
fn every_disk_interface_reads_writes_flushes_and_trims() {
    let results = tempfile::tempdir().unwrap();
    let job = "set -e
        dd if=/dev/urandom of=/tmp/pattern bs=64k count=32 2>/dev/null
        dd if=/tmp/pattern of=$SSD bs=64k seek=16 conv=notrunc,fsync 2>/dev/null
        echo 3 >/proc/sys/vm/drop_caches
        dd if=$SSD bs=64k skip=16 count=32 2>/dev/null | cmp - /tmp/pattern
        blkdiscard -o 1048576 -l 1048576 $SSD
        echo 3 >/proc/sys/vm/drop_caches
        dd if=/dev/zero of=/tmp/pattern bs=64k count=16 conv=notrunc 2>/dev/null
        dd if=$SSD bs=64k skip=16 count=32 2>/dev/null | cmp - /tmp/pattern
        echo as written on $SSD";
    let frontends = [("nvme", "/dev/nvme0n1"), ("ide", "/dev/sda"), ("vhost-user", "/dev/vda"), ("nbd", "/dev/nbd0")];
    // The guests run concurrently, because an emulated machine boots slowly.
    let guests = frontends.map(|(frontend, device)| {
        let out = results.path().join(frontend);
        let arguments = ["--accel", "tcg", "--package", "e2fsprogs", "--guest-memory", "256MiB", "--no-delay"];
        let mut command = command(results.path(), &arguments);
        command.args(["--interface", frontend, "--run", job, "--out"]).arg(&out);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        (frontend, device, out, child)
    });
    for (frontend, device, out, child) in guests {
        let reported = child.wait_with_output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&reported.stdout), String::from_utf8_lossy(&reported.stderr));
        assert!(reported.status.success() && said == format!("as written on {device}\n"), "{frontend}: {said}{errors}");
        let summary = result(&out);
        let requests = &summary["requests"];
        let bytes = |kind: &str| requests[kind]["bytes"].as_u64().unwrap();
        assert!(bytes("read") >= 4 << 20 && bytes("write") >= 2 << 20, "{frontend}: {requests}");
        assert!(requests["flush"]["count"].as_u64().unwrap() >= 1, "{frontend}: {requests}");
        assert_eq!((bytes("trim"), trimmed(&summary)), (1 << 20, 256), "{frontend}: {requests}");
    }
}

/// Guest and SSD lose power at the same time during writes. Afterwards, the file system can be repaired, and synced
/// data exists. This is tested once, plus once for every hundred kills of `FLOATGATE_KILLS`, which `make soak` sets.
#[test]
fn a_file_system_survives_power_cuts_in_the_middle_of_writes() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("flash.img");
    let guest = ["--accel", "tcg", "--package", "e2fsprogs", "--no-delay", "--image"];
    let guest = [&guest[..], &[image.to_str().unwrap()]].concat();
    let check = "fsck.ext4 -p -f $SSD >/tmp/said; test $? -le 1 || { cat /tmp/said; exit 9; }
        mount $SSD /mnt && test \"$(md5sum </mnt/kept)\" = \"$(cat /mnt/sum)\" || exit 10
        echo checked";
    let kills = std::env::var("FLOATGATE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for round in 0..1 + kills / 100 {
        let make = "mkfs.ext4 -q -E nodiscard $SSD && mount $SSD /mnt || exit 8; echo checked";
        let job = format!(
            "{}
            dd if=/dev/urandom of=/mnt/kept bs=64k count=16 2>/dev/null
            md5sum </mnt/kept >/mnt/sum
            sync
            while dd if=/dev/urandom of=/mnt/torn bs=64k count=8 conv=fsync 2>/dev/null; do echo written; done",
            if round == 0 { make } else { check }
        );
        let mut command = command(directory.path(), &[&guest[..], &["--run", &job]].concat());
        // Temporary files of the killed program are removed with the directory of the test.
        command.env("TMPDIR", directory.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said: Vec<String> = said.take(4).collect();
        // The kernel also kills QEMU when its parent dies.
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(said, ["checked", "written", "written", "written"], "round {round}");
    }
    let litter = || {
        let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("floatgate-")).count()
    };
    // Two directories are left, for sockets and for the guest's files, because each start removes older ones.
    assert_eq!(litter(), 2);
    let arguments = [&guest[..], &["--run", check]].concat();
    let reported = command(directory.path(), &arguments).env("TMPDIR", directory.path()).output().unwrap();
    assert_eq!(litter(), 0);
    let (said, errors) = (String::from_utf8_lossy(&reported.stdout), String::from_utf8_lossy(&reported.stderr));
    assert!(reported.status.success() && said.ends_with("checked\n"), "{said}{errors}");
    assert!(errors.contains("recovered after a power cut"), "{errors}");
}

#[test]
fn invalid_arguments_are_errors_before_any_download() {
    for (arguments, expected) in [
        (&["--package", "--option"][..], "unexpected argument"),
        (&["--package", "Not_A_Package"], "invalid package name"),
        (&["--with", "xfsprogs"], "'--package'"),
        (&["--front", "nvme"], "'--interface'"),
        (&["--kernel", "vmlinuz"], "--initrd"),
        (&["--guest-memory", "1MiB"], "from 64 MiB to 1 TiB"),
        (&["--cpus", "0"], "0 is not in 1..=64"),
    ] {
        let reported = vm(arguments);
        let errors = String::from_utf8_lossy(&reported.stderr);
        assert!(reported.status.code() == Some(2) && errors.contains(expected), "{arguments:?}: {errors}");
    }
}

/// Reading a pipe would wait for its writer.
#[test]
fn files_of_a_guest_must_be_regular_files() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    assert!(Command::new("mkfifo").arg(directory.path().join("pipe")).status().unwrap().success());
    let guest = |kernel, initrd| vec!["--kernel", kernel, "--initrd", initrd, "--accel", "tcg", "--run", "true"];
    for (arguments, expected) in [
        (guest("pipe", "file"), "--kernel pipe: it is not a regular file"),
        (guest("file", "pipe"), "--initrd pipe: it is not a regular file"),
        (guest("file", "absent"), "--initrd absent: No such file"),
        ([&["--copy", "pipe"][..], &guest("file", "file")].concat(), "--copy pipe: it is not a regular file"),
    ] {
        let reported = command(directory.path(), &arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&reported.stderr);
        assert!(reported.status.code() == Some(2) && errors.contains(expected), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_kernel_that_does_not_boot_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (kernel, initrd) = (directory.path().join("vmlinuz"), directory.path().join("initrd"));
    std::fs::write(&kernel, "no kernel").unwrap();
    std::fs::write(&initrd, "").unwrap();
    let (kernel, initrd) = (kernel.to_str().unwrap(), initrd.to_str().unwrap());
    let reported = vm(&["--accel", "tcg", "--no-delay", "--kernel", kernel, "--initrd", initrd, "--run", "true"]);
    let errors = String::from_utf8_lossy(&reported.stderr);
    assert_eq!(reported.status.code(), Some(1), "{errors}");
    assert!(errors.contains("error: qemu-system-x86_64 failed"), "{errors}");
}

/// A signal ends the guest before it boots and while it runs, with the exit status of shells. A script replaces QEMU,
/// so that no guest boots.
#[test]
fn a_signal_gives_the_exit_status_of_shells() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (kernel, initrd) = (file("vmlinuz", "no kernel"), file("initrd", ""));
    let script = "#!/bin/sh\ntest \"$1\" = --version || exec sleep 600\n";
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(file("qemu-system-x86_64", script), permissions).unwrap();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let guest = ["--accel", "tcg", "--no-delay", "--kernel", &kernel, "--initrd", &initrd, "--run", "true"];
    let endless = "rw=randwrite bs=32m norandommap=1 io_size=100t";
    let running = "guest: booting an emulated machine";
    let preparing = "preconditioning the device: ";
    for (state, words, signal, status) in [
        ("none", running, Signal::TERM, 143),
        ("none", running, Signal::INT, 130),
        (endless, preparing, Signal::TERM, 143),
    ] {
        let mut command = command(directory.path(), &[&guest[..], &["--precondition", state]].concat());
        command.env("PATH", &path).env("TMPDIR", directory.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.starts_with(words)), "{words}");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let rest: Vec<String> = said.collect();
        assert_eq!(child.wait().unwrap().code(), Some(status), "{words} {signal:?}: {rest:?}");
    }
}

#[test]
fn the_examples_that_were_recorded_in_a_guest_replay() {
    // examples/README.md states these counts.
    for (name, device, counts) in [
        ("sqlite-ext4", "tlc-nvme", [5162, 1040, 2649, 1461, 12]),
        ("install", "vssim-d", [4247, 19, 3922, 276, 30]),
        ("tree", "vssim-d", [127_826, 87_936, 35_869, 603, 3418]),
        ("media", "vssim-d", [2453, 19, 2380, 54, 0]),
    ] {
        let example = format!("{}/../../examples/{name}.csv.xz", env!("CARGO_MANIFEST_DIR"));
        let arguments = ["run", device, &example, "--precondition", "none", "--seed", "1", "--json"];
        let reported = Command::new(env!("CARGO_BIN_EXE_floatgate")).args(arguments).output().unwrap();
        assert!(reported.status.success(), "{}", String::from_utf8_lossy(&reported.stderr));
        let summary: Value = serde_json::from_slice(&reported.stdout).unwrap();
        let count = |kind: &str| summary["requests"][kind]["count"].as_u64().unwrap();
        assert_eq!(["all", "read", "write", "flush", "trim"].map(count), counts, "{name}");
    }
}
