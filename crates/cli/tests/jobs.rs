//! Tests of job files and jobs on the command line with the real program.

use std::fs;
use std::path::PathBuf;

use crate::common::{Bench, validate_summary};
use serde_json::Value;

/// Returns the number of requests of a stream.
fn count(stream: &Value) -> u64 {
    let operations = stream["requests"].as_object().unwrap();
    operations.iter().filter(|(name, _)| *name != "all").filter_map(|(_, one)| one["count"].as_u64()).sum()
}

const JOBS: &str = "; two phases\n[global]\nfilename=x\ndirect=1\nioengine=libaio\nbs=4k\n[fill]\nrw=write\nsize=1m\nwrite_iolog=fill.log\n\
                    [reads]\nstonewall\nrw=randread\nsize=1m\nnumjobs=2\nfsync=0\n";

#[test]
fn a_job_file_runs() {
    let bench = Bench::with_device();
    bench.file("jobs.fio", JOBS);
    bench.file("jobs", JOBS);
    let summary = bench.json(&["jobs.fio", "--precondition", "none"]);
    validate_summary(&summary);
    let streams: Vec<&str> =
        summary["streams"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(streams, ["fill", "reads.0", "reads.1"]);
    assert_eq!(summary["requests"]["all"]["count"], 768);
    assert_eq!(summary["unmapped_reads"], 0, "reads must start after the writes");
    assert_eq!(summary["workload"]["name"], "jobs.fio");
    assert_eq!(
        summary["warnings"][0],
        "direct has no meaning for a simulated device, which has no host; it is left out"
    );
    // A job file without the extension is recognized by its content.
    let other = bench.json(&["jobs", "--precondition", "none"]);
    assert_eq!(other["workload"]["digest"], summary["workload"]["digest"]);
    assert_eq!(other["requests"], summary["requests"]);
    let page = String::from_utf8(bench.run(&["jobs.fio", "--details"]).stdout).unwrap();
    assert!(page.contains("reads.1: randread of 4 KiB in the first 1 MiB, 1 outstanding"), "{page}");
    // A job file can also be a precondition, but not with a log, because preconditioning has no simulated time.
    let error = bench.error(2, &["rw=read number_ios=1", "--precondition", "jobs.fio"]);
    assert!(
        error.contains("`write_iolog=fill.log`: a workload for preconditioning is served without simulated time"),
        "{error}"
    );
    bench.file("state.fio", &JOBS.replace("write_iolog=fill.log", "direct=0"));
    let summary = bench.json(&["rw=read number_ios=1", "--precondition", "state.fio"]);
    assert_eq!(summary["precondition"]["requested"], "state.fio");
    // A text that looks like a file is one, also if it is missing.
    let error = bench.error(2, &["rw=read number_ios=1", "--precondition", "missing.csv"]);
    assert!(error.contains("missing.csv: cannot open the trace: No such file"), "{error}");
    let error = bench.error(2, &["rw=read number_ios=1", "--precondition", "agd=0.5"]);
    assert!(error.contains("invalid precondition `agd=0.5`"), "{error}");
}

#[test]
fn options_change_the_jobs_of_files() {
    let bench = Bench::with_device();
    bench.file(
        "jobs.fio",
        "[a]\nfilename=x\nrw=randread\nsize=1m\natomic=1\nopendir=y\nexitall=0\n[b]\nfilename=x\nsize=1m\n",
    );
    let error = bench.error(2, &["jobs.fio"]);
    assert!(error.contains("2 errors:") && error.contains("`atomic`") && error.contains("`opendir`"), "{error}");
    let summary = bench.json(&["jobs.fio", "--ignore-unknown", "--set-job", "bs=8k", "--limit", "10"]);
    assert_eq!(summary["requests"]["read"]["count"], 20);
    assert_eq!(summary["requests"]["read"]["bytes"], 20 * 8192);
    let warnings = summary["warnings"].to_string();
    assert!(warnings.contains("atomic, opendir ignored because of --ignore-unknown"), "{warnings}");
    // A text of jobs is edited instead.
    let error = bench.error(2, &["rw=randread size=1m", "--set-job", "bs=8k"]);
    assert!(error.contains("--set-job is for job files, and the workload is a job: `rw=randread size=1m`"), "{error}");
    assert!(bench.error(2, &["jobs.fio", "--ignore-unknown", "--fit", "wrap"]).contains("--fit is for traces"));
    assert!(bench.error(2, &["jobs.fio", "--set-job", "bs"]).contains("expected KEY=VALUE"));
    assert!(bench.error(2, &["jobs.fio", "--ignore-unknown", "--set-job", "bs=1"]).contains("--set-job: `bs=1`"));
}

#[test]
fn errors_in_a_job_file_have_a_position() {
    let bench = Bench::with_device();
    bench.file("jobs.fio", "[a]\nrw=randread\niodpth=4\n");
    let error = bench.error(2, &["jobs.fio"]);
    assert!(error.starts_with("error: jobs.fio:3: [a] `iodpth` is not supported; did you mean `iodepth`?"), "{error}");
    bench.file("binary.fio", "x");
    fs::write(bench.path("binary.fio"), [b'[', 0xff, b']']).unwrap();
    assert!(bench.error(2, &["binary.fio"]).contains("is not text in UTF-8"));
    bench.file("out.fio", "[a]\nrw=randread\nnumber_ios=4\nwrite_iolog=no/such/folder\n");
    assert!(bench.error(1, &["out.fio"]).contains("cannot write no/such/folder: "));
    assert!(bench.error(2, &["jobs.fio", "--fit", "wrap"]).contains("--fit is for traces"));
}

#[test]
fn errors_about_values_name_the_line_of_the_key() {
    let bench = Bench::with_device();
    let text = "[global]\nrw=read\nnumber_ios=1\n[a]\nbs=4k\n";
    bench.file("log.fio", &format!("{text}write_iolog=no/such/folder\n"));
    let error = bench.error(1, &["log.fio"]);
    assert!(error.contains("log.fio:6: [a]: `write_iolog=no/such/folder`: cannot write"), "{error}");
    bench.file("replay.fio", &format!("{text}read_iolog=none.log\n"));
    let error = bench.error(2, &["replay.fio"]);
    assert!(error.contains("replay.fio:6: [a]: `read_iolog=none.log`: none.log: cannot open the trace"), "{error}");
    bench.file("wait.fio", &format!("{text}wait_for=b\n"));
    assert!(bench.error(2, &["wait.fio"]).contains("wait.fio:6: [a]: `wait_for=b`: no job before this one"));
    let error = bench.error(1, &["rw=read number_ios=1 write_iolog=no/such/folder"]);
    assert!(error.contains("job1: `write_iolog=no/such/folder`: cannot write"), "{error}");
}

#[test]
fn issued_requests_are_logged_in_the_format_of_fio() {
    let bench = Bench::with_device();
    let job = "rw=write bs=8k number_ios=3 rate_iops=500 fsync=2 write_iolog=a.log; \
               name=b rw=trim number_ios=2 thinktime=1ms write_iolog=b.log numjobs=2";
    bench.json(&[job, "--precondition", "none"]);
    let log = |name: &str| fs::read_to_string(bench.path(name)).unwrap();
    let writes =
        "0 device write 0 8192\n2000 device write 8192 8192\n2000 device sync 0 0\n4000 device write 16384 8192\n";
    assert_eq!(log("a.log"), format!("fio version 3 iolog\n0 device add\n0 device open\n{writes}4000 device close\n"));
    let trims = "0 device trim 0 4096\n1000 device trim 4096 4096\n";
    for clone in ["b.log.0", "b.log.1"] {
        assert_eq!(log(clone), format!("fio version 3 iolog\n0 device add\n0 device open\n{trims}1000 device close\n"));
    }
    assert!(
        fs::read_dir(bench.path(""))
            .unwrap()
            .all(|file| { !file.unwrap().file_name().to_string_lossy().ends_with(".partial") })
    );
}

#[test]
fn a_trace_runs_as_a_job_among_others() {
    let bench = Bench::with_device();
    bench.file("trace.csv", "0,8192,4096,W,0.000\n0,0,4096,W,0.001\n0,16,4096,R,0.003\n");
    let text = "[replay]\nread_iolog=trace.csv\nwrite_iolog=again.log\n[reads]\nrw=read\nnumber_ios=5\n";
    bench.file("jobs.fio", text);
    let summary = bench.json(&["jobs.fio"]);
    assert_eq!(count(&summary["streams"][0]), 3);
    let digest = summary["workload"]["digest"].as_str().unwrap();
    assert_eq!(digest.split('-').count(), 2, "expected the digests of the text and the trace: {digest}");
    let log = fs::read_to_string(bench.path("again.log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(" read ") || line.contains(" write ")).count(), 3);
}

/// fio gives each clone a file of its own, which the second file does by hand. Its amplification and rate are known.
#[test]
fn clones_without_a_file_name_have_their_own_regions() {
    let bench = Bench::calling(&["run", "tiny"], &[]);
    let job = "ioengine=libaio\ndirect=1\nbs=4k\niodepth=8\nsize=10m\nnorandommap\n[writers]\nrw=randwrite\n\
               numjobs=4\nio_size=100m\n";
    bench.file("own.fio", &format!("[global]\ndirectory=/mnt/data\n{job}"));
    bench.file("shared.fio", &format!("[global]\nfilename=/dev/x\noffset_increment=10m\n{job}"));
    let [own, shared] = ["own.fio", "shared.fio"].map(|name| bench.json(&[name, "--precondition", "none"]));
    assert_eq!(own["requests"], shared["requests"]);
    let amplification = &own["write_amplification"];
    let iops = &own["requests"]["all"]["iops"];
    assert_eq!((amplification, iops), (&shared["write_amplification"], &shared["requests"]["all"]["iops"]));
    assert_eq!((amplification.as_f64().unwrap() * 1e3).floor(), 1617.0);
    assert_eq!(iops.as_f64().unwrap().round(), 9318.0);
}

#[test]
fn a_synchronous_engine_has_one_outstanding_request() {
    let bench = Bench::calling(&["run", "tiny"], &[]);
    let job = "filename=/dev/x\nbs=4k\nrw=randread\nsize=100%\niodepth=32\n";
    bench.file("none.fio", &format!("[reads]\n{job}"));
    bench.file("sync.fio", &format!("[reads]\nioengine=sync\n{job}"));
    bench.file("async.fio", &format!("[reads]\nioengine=io_uring\n{job}"));
    let iops = |summary: &Value| summary["requests"]["all"]["iops"].as_f64().unwrap().round();
    for name in ["none.fio", "sync.fio"] {
        let summary = bench.json(&[name]);
        assert_eq!(iops(&summary), 21_988.0, "{name}");
        let warning = summary["warnings"][0].as_str().unwrap();
        assert!(warning.starts_with("reads: iodepth=32 is limited to 1, as in fio, because its engine"), "{warning}");
    }
    let summary = bench.json(&["async.fio"]);
    assert_eq!((iops(&summary), summary["warnings"].as_array().unwrap().len()), (83_637.0, 0));
    // A text of jobs keeps its depth, and one note says so.
    let notes = |text: &str| {
        let output = bench.run(&[text, "--precondition", "none"]);
        String::from_utf8(output.stderr).unwrap().matches("note: iodepth applies although").count()
    };
    assert_eq!(notes("rw=randread number_ios=9 iodepth=2 ; rw=randread number_ios=9 iodepth=2"), 1);
    assert_eq!(notes("rw=randread number_ios=9 iodepth=2 ioengine=libaio size=1m"), 0);
    assert_eq!(notes("rw=randread number_ios=9"), 0);
}

#[test]
fn the_examples_run() {
    let bench = Bench::with_device();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let streams = [
        ("aging.fio", vec!["fill", "young", "wear", "old"]),
        ("database.fio", vec!["pages", "log", "backup"]),
        (
            "randread.fio",
            vec!["depth1", "depth8", "depth64", "four-hosts.0", "four-hosts.1", "four-hosts.2", "four-hosts.3"],
        ),
    ];
    let found = fs::read_dir(&folder)
        .unwrap()
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "fio"));
    assert_eq!(found.count(), streams.len(), "the list must name all examples");
    for (name, expected) in streams {
        let path = folder.join(name);
        // The regions of the database example need four times the blocks of the test device.
        let arguments = [path.to_str().unwrap(), "--set", "geometry.blocks=128"];
        let summary = bench.json(&arguments);
        validate_summary(&summary);
        let all = summary["streams"].as_array().unwrap();
        let names: Vec<&str> = all.iter().map(|stream| stream["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
        assert!(all.iter().all(|stream| count(stream) > 10), "{name}");
    }
}

/// The first lines of the example state this effect, on the same device.
#[test]
fn the_aging_example_shows_aging() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/aging.fio");
    let summary = Bench::new().json(&["run", "tiny", path.to_str().unwrap(), "--precondition", "none"]);
    let mean = |name: &str| {
        let stream = summary["streams"].as_array().unwrap().iter().find(|stream| stream["name"] == name).unwrap();
        stream["requests"]["write"]["latency_us"]["mean"].as_f64().unwrap()
    };
    assert!(mean("old") > 3.0 * mean("young"), "{} and {}", mean("young"), mean("old"));
}
