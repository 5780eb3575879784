//! Tests of `floatgate trace convert` with the real program.

use std::fs;

use crate::common::Bench;

const SPC: &str = "0,0,4096,R,0\n1,8,512,W,0.5\n0,2147483648,512,W,1.25\n";

/// Creates a directory with a trace, for `floatgate trace convert`.
fn bench() -> Bench {
    Bench::calling(&["trace", "convert"], &[("in.spc", SPC)])
}

fn files(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.path("")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_conversion_warns_of_values_that_the_format_cannot_hold() {
    let bench = bench();
    let output = bench.run(&["in.spc", "out.txt", "--to", "ssdsim"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(bench.path("out.txt")).unwrap();
    assert_eq!(written, "0 0 0 8 1\n500000000 1 8 1 0\n1250000000 0 2147483648 1 0\n");
    assert!(text(&output.stdout).starts_with("3 requests written as ssdsim; read as format spc (certain"));
    assert!(text(&output.stderr).contains("warning: 1 request written with an address beyond 2^31 sectors"));
    assert_eq!(files(&bench), ["in.spc", "out.txt"]);
}

#[test]
fn the_output_is_compressed_according_to_its_name() {
    let bench = bench();
    for end in ["gz", "xz", "zst", "bz2"] {
        let packed = format!("out.spc.{end}");
        assert!(bench.run(&["in.spc", &packed, "--to", "spc"]).status.success());
        assert_ne!(fs::read(bench.path(&packed)).unwrap(), SPC.as_bytes(), "{end}");
        let back = bench.run(&[&packed, "-", "--to", "spc"]);
        assert_eq!(text(&back.stdout), SPC, "{end}");
        assert!(text(&back.stderr).contains("3 requests written as spc"), "{end}");
    }
}

#[test]
fn columns_are_described_in_a_line_or_a_file() {
    let bench = bench();
    fs::write(bench.path("own.csv"), "when,what,where\n5,get,4\n7,put,8\n").unwrap();
    let toml = "columns = [\"time\", \"op\", \"offset\"]\ntime = \"us\"\noffset = \"sectors\"\nsize = \"sectors\"\nlength = 8\n\
                read = \"get\"\nwrite = \"put\"\nheader = 1\n";
    fs::write(bench.path("own.toml"), toml).unwrap();
    let line =
        "delimited:columns=time,op,offset;time=us;offset=sectors;size=sectors;length=8;read=get;write=put;header=1";
    for arguments in [["--columns", "own.toml"], ["--format", line]] {
        let output = bench.run(&[&["own.csv", "-", "--to", "spc"][..], &arguments].concat());
        assert_eq!(text(&output.stdout), "0,4,4096,R,0\n0,8,4096,W,0.000002\n", "{}", text(&output.stderr));
    }
    let mistakes: [(&[&str], &str); 5] = [
        (&["--columns", "own.toml", "--format", line], "described twice"),
        (&["--columns", "own.toml", "--format", "spc"], "not for `spc`"),
        (&["--format", "delimited"], "needs its columns"),
        (&["--columns", "in.spc"], "in.spc"),
        (
            &["--columns", "own.toml", "--action", "D"],
            "`--action` is for traces of events (blkparse, blktrace, ftrace)",
        ),
    ];
    for (arguments, words) in mistakes {
        let output = bench.run(&[&["own.csv", "-", "--to", "spc"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[test]
fn failures_leave_nothing_behind() {
    let bench = bench();
    fs::write(bench.path("bad.spc"), "0,0,4096,R,0\n0,0,4096,R,1\n0,0,4096,X,2\n").unwrap();
    fs::write(bench.path("old.txt"), "old").unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["bad.spc", "old.txt", "--to", "fio"], 2, "bad.spc: line 3: `0,0,4096,X,2`: expected the operation"),
        (&["in.spc", "none/out.txt", "--to", "fio"], 1, "cannot write none/out.txt"),
        (&["in.spc", "old.txt", "--to", "vscsi"], 2, "choose one of spc, msr"),
        (&["in.spc", "old.txt", "--to", "fio", "--fit", "wrap"], 2, "--fit is for running a trace"),
        (&["none.spc", "old.txt", "--to", "fio"], 2, "none.spc: cannot open the trace"),
    ];
    for (arguments, status, words) in cases {
        let output = bench.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{words}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
    assert_eq!(files(&bench), ["bad.spc", "in.spc", "old.txt"]);
    assert_eq!(fs::read_to_string(bench.path("old.txt")).unwrap(), "old");
}
