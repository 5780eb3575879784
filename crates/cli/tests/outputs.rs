//! Tests of output files: links and pipes, full disks, conflicts with other files, and locks.

use std::fs;

use crate::common::{self, Bench, partial_of};

const JOB: &str = "rw=randrw bs=4k iodepth=8 number_ios=500 norandommap=1";

const TRACE: &str = "0,0,4096,R,0\n0,8,4096,W,0.001\n";

/// Creates a directory with a device file, a trace, a saved state and a result.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("d.toml", common::DEVICE);
    bench.file("t.spc", TRACE);
    bench.file("columns.toml", "time = \"us\"\ncolumns = [\"time\", \"offset\", \"size\", \"op\"]\noffset = \"sectors\"\nsize = \"bytes\"\nread = \"R\"\nwrite = \"W\"\n");
    bench.good(&["run", "d.toml", JOB, "--save-state", "old", "--out", "R", "--requests=parquet", "--timeline"]);
    bench
}

#[cfg(unix)]
#[test]
fn outputs_do_not_replace_links_and_pipes() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let bench = bench();
    fs::create_dir(bench.path("far")).unwrap();
    let convert = ["trace", "convert", "t.spc", "link", "--to", "msr"];
    let synth = ["trace", "synth", "--moments", "msn", "-o", "link.json"];
    let log = format!("{JOB} write_iolog=link");
    let commands: [(&[&str], &str); 7] = [
        (&convert, "link"),
        (&synth, "link.json"),
        (&["run", "tiny", &log], "link"),
        (&["run", "tiny", JOB, "--save-state", "link"], "link"),
        (&["report", "R", "--out", "link"], "link"),
        (&["compare", "a=R", "b=R", "--out", "link"], "link"),
        (&["draw", "R", "..100us", "--out", "link"], "link"),
    ];
    for (arguments, name) in commands {
        let target = format!("far/{name}");
        bench.file(&target, "stale");
        symlink(&target, bench.path(name)).unwrap();
        bench.good(arguments);
        assert!(bench.path(name).is_symlink(), "{arguments:?}");
        let whole = fs::read(bench.path(&target)).unwrap();
        assert!(whole.len() > 20, "{arguments:?}");
        fs::remove_file(bench.path(name)).unwrap();
        if name == "link.json" {
            continue;
        }
        let made = std::process::Command::new("mkfifo").arg(bench.path(name)).status().unwrap();
        assert!(made.success());
        let mut reader = std::process::Command::new("cat");
        let received = fs::File::create(bench.path("heard")).unwrap();
        let mut reader = reader.arg(bench.path(name)).stdout(received).spawn().unwrap();
        bench.good(arguments);
        assert!(fs::metadata(bench.path(name)).unwrap().file_type().is_fifo(), "{arguments:?}");
        assert!(reader.wait().unwrap().success());
        assert!(fs::read(bench.path("heard")).unwrap() == whole, "{arguments:?}");
        fs::remove_file(bench.path(name)).unwrap();
    }
    assert_eq!(fs::read_dir(bench.path("far")).unwrap().count(), 2, "no other files may be left");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_and_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;
    let bench = bench();
    if !(common::node(&bench.path("full"), "7") && common::node(&bench.path("null"), "3")) {
        return;
    }
    let log = format!("{JOB} write_iolog=full");
    let commands: [&[&str]; 6] = [
        &["run", "tiny", &log],
        &["run", "tiny", JOB, "--save-state", "full"],
        &["trace", "convert", "t.spc", "full", "--to", "msr"],
        &["report", "R", "--out", "full"],
        &["compare", "a=R", "b=R", "--out", "full"],
        &["draw", "R", "..100us", "--out", "full"],
    ];
    for arguments in commands {
        let error = bench.error(1, arguments);
        assert!(error.contains("full: No space left on device"), "{arguments:?}: {error}");
        bench.good(&arguments.iter().map(|word| word.replace("full", "null")).collect::<Vec<_>>().each());
    }
    for node in ["full", "null"] {
        assert!(fs::metadata(bench.path(node)).unwrap().file_type().is_char_device(), "{node}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_named() {
    let bench = bench();
    bench.good(&["run", "tiny", JOB, "--save-state", "s"]);
    for arguments in [
        &["run", "tiny", JOB][..],
        &["device", "list"],
        &["device", "show", "tiny"],
        &["device", "schema"],
        &["trace", "info", "t.spc"],
        &["compare", "a=R", "b=R"],
        &["state", "info", "s"],
        &["completions", "bash"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = bench.command(arguments).stdout(full).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let named = error.contains("error: cannot write to standard output: No space left on device");
        assert!(named && output.status.code() == Some(1), "{arguments:?}: {error}");
    }
}

/// Conversion of arguments for [`Bench`].
trait Each {
    fn each(&self) -> Vec<&str>;
}

impl Each for Vec<String> {
    fn each(&self) -> Vec<&str> {
        self.iter().map(String::as_str).collect()
    }
}

#[test]
fn no_output_overwrites_an_input_or_another_output() {
    let bench = bench();
    bench.file("jobs.fio", "[a]\nrw=read\nnumber_ios=4\ninclude more.inc\n");
    bench.file("more.inc", "bs=8k\nwrite_iolog=more.inc\n");
    fs::hard_link(bench.path("t.spc"), bench.path("hard")).unwrap();
    let replay = "read_iolog=t.spc write_iolog=t.spc";
    let two = format!("{JOB} write_iolog=s; name=b {JOB} write_iolog=./s");
    let logged = |path: &str| format!("{JOB} write_iolog={path}");
    let (log, in_result, in_state) = (logged("s"), logged("R/series.parquet"), logged("old"));
    let commands: [&[&str]; 19] = [
        &["run", "d.toml", JOB, "--save-state", "d.toml"],
        &["run", "d.toml", JOB, "--save-state", "./d.toml"],
        &["run", "d.toml", "t.spc", "--save-state", "hard"],
        &["run", "d.toml", "trace=t.spc offset=1MiB", "--save-state", "t.spc"],
        &["run", "d.toml", JOB, "--precondition", "t.spc", "--save-state", "t.spc"],
        &["run", "d.toml", &log, "--save-state", "s"],
        &["run", "d.toml", &two],
        &["run", "d.toml", replay],
        &["run", "d.toml", "jobs.fio"],
        &["run", "d.toml", &in_state, "--load-state", "old"],
        &["run", "d.toml", &in_result, "--out", "R"],
        &["run", "d.toml", JOB, "--out", "R", "--save-state", "R/summary.json"],
        &["run", "d.toml", &log, "--seeds", "2", "--out", "S"],
        &["trace", "convert", "t.spc", "t.spc", "--to", "msr"],
        &["trace", "convert", "t.spc", "hard", "--to", "msr"],
        &["report", "R", "--out", "R/summary.json"],
        &["report", "R", "--out", "R/requests.parquet"],
        &["compare", "a=R", "b=R", "--out", "R/summary.json"],
        &["draw", "R", "..100us", "--out", "R/timeline.pftrace.gz"],
    ];
    let before = contents(&bench);
    for arguments in commands {
        let error = bench.refused(arguments);
        let said = ["would overwrite", "are the same file", "each of the seeds would write it"];
        assert!(said.iter().any(|said| error.contains(said)), "{arguments:?}: {error}");
        assert!(contents(&bench) == before, "{arguments:?}");
    }
    let model = bench.file("m.json", &bench.good(&["trace", "synth", "--moments", "msn", "-o", "made.json"]));
    let _ = fs::copy(bench.path("made.json"), &model).unwrap();
    assert!(bench.refused(&["run", "d.toml", "m.json", "--save-state", "m.json"]).contains("would overwrite"));
    let columns = ["trace", "convert", "t.spc", "columns.toml", "--to", "msr", "--columns", "columns.toml"];
    let error = bench.refused(&columns);
    assert!(error.contains("the output columns.toml would overwrite --columns columns.toml"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_on_standard_input_is_not_overwritten() {
    let bench = bench();
    let mut command = bench.command(&["trace", "convert", "-", "t.spc", "--to", "msr"]);
    let output = command.stdin(fs::File::open(bench.path("t.spc")).unwrap()).output().unwrap();
    let error = common::stderr(&output);
    assert!(error.contains("the output t.spc would overwrite the trace /dev/stdin"), "{error}");
    assert_eq!(fs::read_to_string(bench.path("t.spc")).unwrap(), TRACE);
}

/// Returns all files of the directory and their contents.
fn contents(bench: &Bench) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![bench.path("")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push((path.clone(), fs::read(path).unwrap())) }
        }
    }
    found.sort();
    found
}

#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "waits for another process")]
#[test]
fn two_runs_do_not_write_into_one_directory() {
    let bench = bench();
    let long = "rw=randrw bs=4k iodepth=8 number_ios=100m norandommap=1";
    let begun = |out: &str| {
        let child = bench.command(&["run", "tiny", long, "--out", "D", "--requests", "csv"]).spawn().unwrap();
        let file = bench.path(out).join("requests.csv");
        while !partial_of(&file).is_some_and(|path| fs::metadata(path).is_ok_and(|file| file.len() > 0)) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        child
    };
    let mut first = begun("D");
    for arguments in [&["run", "tiny", JOB, "--out", "D"][..], &["run", "tiny", JOB, "--out", "D", "--seeds", "2"]] {
        let error = bench.error(1, arguments);
        assert!(error.contains("--out D: another run is writing its result there"), "{error}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // The next run that succeeds removes what the killed one has left.
    assert!(partial_of(&bench.path("D/requests.csv")).is_some());
    bench.good(&["run", "tiny", JOB, "--out", "D"]);
    assert_eq!(partial_of(&bench.path("D/requests.csv")), None);
    bench.good(&["run", "tiny", JOB, "--out", "D", "--requests", "csv"]);
    let mut files: Vec<_> = fs::read_dir(bench.path("D")).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert!(files.iter().all(|name| !name.to_string_lossy().contains("partial")), "{files:?}");
}

#[test]
fn results_of_other_seeds_and_runs_are_not_mixed() {
    let bench = Bench::new();
    let with = |seeds: &str, job: &str| {
        let words = ["run", "tiny", job, "--precondition", "none", "--seeds", seeds, "--out", "D"];
        words.map(str::to_owned).to_vec()
    };
    let other = JOB.replace("500", "400");
    bench.good(&with("3", JOB).each());
    // Further seeds of the same run are accepted, and so is repeating seeds.
    bench.good(&with("4..5", JOB).each());
    bench.good(&with("2", JOB).each());
    let error = bench.refused(&with("4", &other).each());
    assert!(error.contains("--out D has D/seed-5 of another run, which this one would not replace"), "{error}");
    let error = bench.refused(&with("3", &other).each());
    assert!(error.contains("D/seed-4 and 1 more of another run"), "{error}");
    let error = bench.error(1, &["run", "tiny", JOB, "--out", "D"]);
    assert!(error.contains("--out D has results of a run with --seeds, such as D/seed-1"), "{error}");
    assert!(bench.json(&["compare", "D"])["warnings"].as_array().unwrap().is_empty());
    // A run that was stopped after its first seed leaves this state.
    bench.good(&["run", "tiny", &other, "--precondition", "none", "--out", "D/seed-1"]);
    let warnings = bench.json(&["compare", "D"])["warnings"].to_string();
    assert!(warnings.contains("D/seed-1/summary.json and D/seed-2/summary.json differ in more than"), "{warnings}");
    bench.good(&["run", "tiny", JOB, "--out", "E"]);
    let error = bench.refused(&["run", "tiny", JOB, "--seeds", "2", "--out", "E"]);
    assert!(error.contains("--out E has the result of a run without --seeds"), "{error}");
}
