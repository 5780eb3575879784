//! Where results go, and what must not be lost by that.

mod common;

use std::fs;

use common::Bench;

const JOB: &str = "rw=randrw bs=4k iodepth=8 number_ios=500 norandommap=1";

const TRACE: &str = "0,0,4096,R,0\n0,8,4096,W,0.001\n";

/// A device of its own in a file, a trace, a saved state and a result.
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
fn outputs_leave_links_and_pipes_what_they_are() {
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
        let fifo = bench.path(name);
        let reader = std::thread::spawn(move || fs::read(fifo).unwrap());
        bench.good(arguments);
        assert!(fs::metadata(bench.path(name)).unwrap().file_type().is_fifo(), "{arguments:?}");
        assert!(reader.join().unwrap() == whole, "{arguments:?}");
        fs::remove_file(bench.path(name)).unwrap();
    }
    assert_eq!(fs::read_dir(bench.path("far")).unwrap().count(), 2, "nothing is left");
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

/// Words as they are given to a command.
trait Each {
    fn each(&self) -> Vec<&str>;
}

impl Each for Vec<String> {
    fn each(&self) -> Vec<&str> {
        self.iter().map(String::as_str).collect()
    }
}
