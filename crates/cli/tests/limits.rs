//! Tests with the real program that endless or too large input is refused quickly, with a short error.
#![cfg(feature = "live")]

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{self, Bench};

/// Calls the program, which must quickly report a mistake with a short error, and returns the error.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "bounds the time of another process")]
fn refused(bench: &Bench, arguments: &[&str]) -> String {
    let begun = Instant::now();
    let said = bench.refused(arguments);
    assert!(begun.elapsed() < Duration::from_secs(5), "{arguments:?} took {:?}", begun.elapsed());
    assert!(said.len() < 5000, "{arguments:?} printed {} bytes", said.len());
    said
}

#[test]
#[cfg(target_os = "linux")]
fn endless_files_are_refused() {
    let bench = Bench::new();
    let says = |arguments: &[&str], words: &[&str]| {
        let said = refused(&bench, arguments);
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    };
    says(&["device", "check", "/dev/zero"], &["/dev/zero", "4 MiB"]);
    says(&["run", "/dev/zero", "rw=read"], &["/dev/zero", "4 MiB"]);
    says(&["run", "tiny", "t.spc", "--columns", "/dev/zero"], &["1 MiB"]);
    for name in ["endless", "other"] {
        fs::create_dir(bench.path(name)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", bench.path(name).join("summary.json")).unwrap();
    }
    says(&["report", "endless"], &["endless/summary.json", "256 MiB"]);
    says(&["explain", "endless", "max"], &["endless/summary.json", "256 MiB"]);
    says(&["compare", "endless/summary.json", "other/summary.json"], &["endless/summary.json", "256 MiB"]);
    bench.good(&["run", "tiny", "rw=read number_ios=9", "--out", "result", "--requests", "csv"]);
    fs::remove_file(bench.path("result/requests.csv")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", bench.path("result/requests.csv")).unwrap();
    says(&["explain", "result", "max"], &["requests.csv is changed, damaged, or"]);
    fs::remove_file(bench.path("result/digests.json")).unwrap();
    says(&["explain", "result", "max"], &["requests.csv", "1 MiB"]);
    let serve = ["serve", "tiny", "--dashboard", "0", "--dashboard-token-file", "/dev/zero"];
    assert!(refused(&bench, &serve).contains("4096 bytes"));
}

#[test]
fn unknown_keys_are_counted_and_quoted_in_part() {
    let bench = Bench::new();
    let many = |key: &dyn Fn(usize) -> String| (0..50_000).map(key).collect::<String>();
    let check = |text: &str| {
        bench.file("device.toml", &format!("base = \"tiny\"\n{text}"));
        refused(&bench, &["device", "check", "device.toml"])
    };
    let said = check(&many(&|n| format!("k{n} = 1\n")));
    assert!(said.contains("unknown key `k9`") && said.contains("and 49990 more"), "{said}");
    let said = check(&format!("[gc]\n{}", many(&|n| format!("k{n} = 1\n"))));
    assert!(said.contains("unknown key `gc.k9`") && said.contains("and 49990 more"), "{said}");
    let said = check(&format!("[sources]\n{}", many(&|n| format!("k{n} = 'x'\n"))));
    assert!(said.contains("unknown key `k9`") && said.contains("and 49990 more"), "{said}");
    let said = check(&format!("[gc.victim]\n{}", many(&|n| format!("k{n} = 1\n"))));
    assert!(said.contains("and 49990 more"), "{said}");
    let long = "k".repeat(1 << 20);
    for text in [
        format!("{long} = 1"),
        format!("[gc]\n{long} = 1"),
        format!("gc.victim.{long} = 1"),
        format!("gc.victim = '{long}'"),
        format!("nand.read = '{long}'"),
        format!("{long} = 1\n{long} = 1"),
    ] {
        let said = check(&text);
        assert!(said.contains("device.toml:2") || said.contains("device.toml:3"), "{said}");
    }
    let deep = format!("a = {}1{}", "{a=".repeat(60), "}".repeat(60));
    assert!(check(&deep).contains("are nested more than 32 deep"));
    check(&format!("{}a = 1", "a.".repeat(100_000)));
    let long = "k".repeat(100_000);
    for set in [format!("{long}=1"), format!("gc.victim={long}"), long.clone()] {
        refused(&bench, &["device", "check", "tiny", "--set", &set]);
    }
    for job in [format!("rw=read {long}=1"), format!("rw={long}"), format!("rw=read bs={long}")] {
        refused(&bench, &["run", "tiny", &job]);
    }
}

#[test]
fn sources_need_existing_keys() {
    let bench = Bench::new();
    let text = "base = \"tiny\"\n[sources]\n\"gc.victim\" = \"ours\"\nnand = \"data sheet\"\n";
    bench.file("device.toml", text);
    bench.good(&["device", "check", "device.toml"]);
    bench.file("device.toml", &format!("{text}\"nand.reed\" = \"data sheet\"\n"));
    let said = refused(&bench, &["device", "check", "device.toml"]);
    assert!(said.contains("device.toml:5:1") && said.contains("did you mean `nand.read`?"), "{said}");
    let said = refused(&bench, &["device", "check", "tiny", "--set", "sources.foo=bar"]);
    assert!(said.contains("unknown key `foo`"), "{said}");
}

/// There are fourteen levels, and each includes the next one eight times.
#[test]
fn the_total_number_of_includes_is_limited() {
    let bench = Bench::new();
    for level in 0..14 {
        bench.file(&format!("{level}.fio"), &format!("include {}.fio\n", level + 1).repeat(8));
    }
    bench.file("14.fio", "# nothing\n");
    bench.file("job.fio", "[job]\nrw=read\ninclude 0.fio\n");
    assert!(refused(&bench, &["run", "tiny", "job.fio"]).contains("more than 1000 includes"));
    bench.file("long.fio", &"#\n".repeat(1 << 18));
    bench.file("job.fio", &format!("[job]\nrw=read\n{}", "include long.fio\n".repeat(999)));
    assert!(refused(&bench, &["run", "tiny", "job.fio"]).contains("more than 16 MiB"));
}

/// Names and paths that would change the colors or the title of a terminal, or the direction of a line.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    const EVIL: &str = "\u{1b}[31m\u{9b}2J\u{202e}";
    let bench = Bench::new();
    bench.file("device.toml", "base = \"tiny\"\nname = \"a\\u001b[31m\\u009b2J\\u202e\"\ndescription = \"\\u001b\"\n");
    let trace = format!("t{EVIL}.spc");
    bench.file(&trace, "0,0,4096,R,0\n0,0,4096,R,1\n");
    bench.file("bad.spc", &format!("0,0,4096,R,0\n{EVIL}\n"));
    let job = format!("rw=read number_ios=9 name=j{EVIL}");
    let words = format!("trace={trace} name=n{EVIL}");
    for arguments in [
        &["device", "show", "device.toml"][..],
        &["device", "check", "device.toml"],
        &["run", "device.toml", &job, &words, "--out", "result", "--requests", "csv"],
        &["run", "device.toml", &trace],
        &["run", "device.toml", &trace, "--set", EVIL],
        &["run", "tiny", "bad.spc", "--format", "spc"],
        &["run", EVIL, "rw=read"],
        &["run", "tiny", &format!("rw={EVIL}")],
        &["trace", "info", &trace],
        &["compare", "result", "result/summary.json"],
        &["explain", "result", "0"],
        &["run", "device.toml", "rw=read number_ios=9", "--save-state", "state"],
        &["state", "info", "state"],
    ] {
        let output = bench.run(arguments);
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        let acts = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(!said.contains(acts) && !said.is_empty(), "{arguments:?}: {said:?}");
    }
}

/// A device that needs many gigabytes, in a process limited to two, is refused before it is built.
#[test]
#[cfg(target_os = "linux")]
fn a_device_that_needs_too_much_memory_is_refused() {
    let bench = Bench::new();
    let limited = |arguments: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -v 2000000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_floatgate")]);
        let output = shell.args(arguments).current_dir(bench.path("")).output().unwrap();
        (output.status.code(), common::stderr(&output))
    };
    let job = "rw=read number_ios=9";
    let large = ["--set", "geometry.blocks=4000000"];
    for arguments in [
        &["run", "tiny", job][..],
        &["run", "tiny", job, "--precondition", "none"],
        &["run", "tiny", job, "--load-state", "state"],
        &["run", "tiny", job, "--seeds", "2", "--out", "result"],
        &["serve", "tiny"],
        &["serve", "tiny", "--image", "memory"],
    ] {
        let (status, said) = limited(&[arguments, &large].concat());
        assert_eq!(status, Some(1), "{arguments:?}: {said}");
        let words = ["simulating this device takes ", " GiB of memory, and 1.", "ulimit -v", "(--scale 1/"];
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    }
    std::fs::write(bench.path("large.toml"), "base = \"tiny\"\n[geometry]\nblocks = 4000000\n").unwrap();
    let array = "[array]\nlevel = 0\ndevice = \"large.toml\"\ncount = 2\nstripe = \"16KiB\"\n";
    std::fs::write(bench.path("array.toml"), array).unwrap();
    let (status, said) = limited(&["run", "array.toml", job]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("files of its members by 1/") && !said.contains("--scale"), "{said}");
    assert_eq!(limited(&["run", "tiny", job]).0, Some(0));
    let scaled = ["run", "tiny", job, "--precondition", "none", "--scale", "1/16"];
    assert_eq!(limited(&[&scaled[..], &large].concat()).0, Some(0));
    let checked = bench.good(&["device", "check", "tiny", large[0], large[1]]);
    assert!(checked.contains("simulating it takes ") && checked.contains(" GiB of memory"), "{checked}");
}

/// Trimming the whole device, and a flush that programs the records, take about twice as long with the journal. With
/// records in search trees, they took twelve times as long. The bound leaves room for a busy machine.
#[test]
#[expect(clippy::disallowed_methods, reason = "bounds the time of another process")]
fn the_cost_of_the_trim_journal_is_linear() {
    let bench = Bench::new();
    let job = "[global]\nfilename=x\n[trims]\nrw=trim\nbs=64m\nnumber_ios=231\n[flush]\nstonewall\nrw=write\nbs=4k\nnumber_ios=1\nfsync=1\n";
    bench.file("trims.fio", job);
    let [with, without] = ["true", "false"].map(|journal| {
        let begun = Instant::now();
        let set = format!("durability.trim_journal={journal}");
        let text = bench.good(&["run", "hu2011", "trims.fio", "--details", "--set", &set]);
        assert_eq!(text.contains("trim journal 100.0 %"), journal == "true", "{text}");
        begun.elapsed()
    });
    assert!(with < 4 * without + Duration::from_secs(1), "it took {with:?} with the journal, {without:?} without");
}

#[test]
fn an_offset_of_the_whole_device_is_refused() {
    let bench = Bench::new();
    bench.file("t.spc", "0,0,4096,R,0\n");
    let said = refused(&bench, &["run", "tiny", "trace=t.spc offset=100%"]);
    assert!(said.contains("an offset of 51.20 MiB leaves nothing of the device"), "{said}");
    bench.good(&["run", "tiny", "trace=t.spc size=100%"]);
}
