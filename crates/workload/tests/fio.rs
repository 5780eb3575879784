//! Comparison of jobs with fio itself: addresses, sizes and order of the requests in its iolog.
//!
//! The tests run where fio is installed, and say so otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use floatgate_sim::request::{Operation, SECTOR};
use floatgate_sim::source::{Source, SourceError};
use floatgate_workload::synthetic::{self, Changes, Planned};

const MIB: u64 = 1 << 20;

/// Size of a device in these tests.
const DEVICE: u64 = 64 * MIB;

/// A request: operation, offset in its file and length in bytes.
type Io = (String, u64, u64);

/// Returns `true` if fio can be run.
fn has_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("not run: fio is not installed; `apt-get install fio` installs it");
    }
    found
}

/// Names of the sections of a job file other than [global].
fn sections(text: &str) -> Vec<String> {
    let headers = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.split(']').next());
    headers.filter(|name| *name != "global").map(str::to_owned).collect()
}

/// Inserts a line after the header of each section other than [global].
fn with_lines(text: &str, line: impl Fn(&str) -> String) -> String {
    let mut all = String::new();
    for part in text.lines() {
        all.push_str(part);
        all.push('\n');
        let name = part.trim().strip_prefix('[').and_then(|rest| rest.split(']').next());
        if let Some(name) = name.filter(|name| *name != "global") {
            all.push_str(&line(name));
            all.push('\n');
        }
    }
    all
}

/// Runs fio in a new folder, and returns the requests of each job. Names of devices must be `/dev/NAME`. Devices have
/// `device` bytes.
fn requests_of_fio(text: &str, device: u64) -> Result<BTreeMap<String, Vec<Io>>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let devices = folder.path().join("dev");
    std::fs::create_dir(&devices).unwrap();
    let text = text.replace("/dev/", &format!("{}/", devices.display()));
    for line in text.lines().filter(|line| line.trim().starts_with("filename=")) {
        for name in line.split_once('=').unwrap().1.split(':') {
            let path = folder.path().join(name.trim());
            if path.starts_with(&devices) {
                std::fs::File::create(path).unwrap().set_len(device).unwrap();
            }
        }
    }
    let log = |name: &str| folder.path().join(format!("{}.iolog", name.replace(' ', "-")));
    let text = with_lines(&text, |name| format!("write_iolog={}", log(name).display()));
    std::fs::write(folder.path().join("jobs.fio"), text).unwrap();
    let mut fio = Command::new("timeout");
    fio.args(["60", "fio", "--output=out", "jobs.fio"]).current_dir(folder.path());
    let output = fio.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let read = |path: PathBuf| {
        let log = std::fs::read_to_string(&path).map_err(|_| format!("fio wrote no iolog: {said}"))?;
        Ok::<Vec<Io>, String>(log.lines().filter_map(io_of).collect())
    };
    sections(&std::fs::read_to_string(folder.path().join("jobs.fio")).unwrap())
        .into_iter()
        .map(|name| Ok((name.clone(), read(log(&name))?)))
        .collect()
}

/// Parses a request in an iolog of version 3.
fn io_of(line: &str) -> Option<Io> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [_, _, operation @ ("read" | "write" | "trim"), offset, length] => {
            Some((operation.to_owned(), offset.parse().ok()?, length.parse().ok()?))
        }
        _ => None,
    }
}

/// Returns the requests of each job of ours, up to `most`.
fn requests_of_ours(text: &str, device: u64, most: usize) -> Result<BTreeMap<String, Vec<Io>>, SourceError> {
    let mut files = |_: &Path| Ok(text.to_owned());
    let planned = synthetic::plan_file(Path::new("jobs.fio"), &mut files, &Changes::default(), device, 1)?;
    let jobs = planned.into_iter().zip(sections(text)).map(|(planned, name)| {
        let Planned::Made(mut job) = planned else { panic!("{name} replays a trace") };
        let areas = job.areas();
        let mut all = Vec::new();
        while let Some(request) = job.next_request().unwrap()
            && all.len() < most
        {
            let operation = match request.operation {
                Operation::Read => "read",
                Operation::Write | Operation::WriteZeroes => "write",
                Operation::Trim => "trim",
                Operation::Flush => continue,
            };
            let at = request.lba * SECTOR;
            let start = areas.iter().map(|(start, _)| *start).filter(|start| *start <= at).max().unwrap_or(0);
            all.push((operation.to_owned(), at - start, request.bytes()));
        }
        (name, all)
    });
    Ok(jobs.collect())
}

/// Comparison of the requests of two jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Like {
    /// Equal requests in the same order.
    Order,
    /// Equal requests in any order.
    Set,
    /// Equal numbers of requests with equal sizes, distributed alike over the file.
    Spread,
    /// Each block once, with sizes that are distributed alike.
    Cover,
}

/// Fails if the requests of a job differ from those of fio.
fn compare(name: &str, text: &str, like: Like) {
    let theirs = requests_of_fio(text, DEVICE).unwrap_or_else(|why| panic!("{name}: {why}\n{text}"));
    let ours = requests_of_ours(text, DEVICE, usize::MAX).unwrap_or_else(|why| panic!("{name}: {why}\n{text}"));
    for (job, theirs) in theirs {
        let mut ours = ours[&job].clone();
        let mut theirs = theirs;
        // Sizes that are drawn make the number of requests vary.
        let allowed = if matches!(like, Like::Spread | Like::Cover) { theirs.len() / 20 } else { 0 };
        let (count, expected) = (ours.len(), theirs.len());
        assert!(count.abs_diff(expected) <= allowed, "{name}: {count} requests of [{job}], in fio {expected}\n{text}");
        match like {
            Like::Order => {}
            Like::Set => {
                ours.sort();
                theirs.sort();
            }
            Like::Spread => {
                alike(&format!("{name}: [{job}]"), &ours, &theirs);
                continue;
            }
            Like::Cover => {
                sizes_are_alike(&format!("{name}: [{job}]"), &mut ours, &mut theirs);
                continue;
            }
        }
        if let Some(at) = (0..ours.len()).find(|&at| ours[at] != theirs[at]) {
            panic!("{name}: request {at} of [{job}] is {:?}, that of fio {:?}\n{text}", ours[at], theirs[at]);
        }
    }
}

/// Fails if two samples of requests have another distribution over 16 parts of their range, or other mean sizes.
fn alike(what: &str, ours: &[Io], theirs: &[Io]) {
    let end = ours.iter().chain(theirs).map(|io| io.1 + io.2).max().unwrap_or(1);
    for operation in ["read", "write", "trim"] {
        let counts = |all: &[Io]| {
            let mut counts = [0f64; 16];
            let some = all.iter().filter(|io| io.0 == operation);
            some.for_each(|io| counts[(io.1 * 16 / end) as usize] += 1.0);
            counts
        };
        // The statistic of two samples has a mean of 15 and a standard deviation of 5.5 for equal distributions.
        let statistic: f64 = counts(ours)
            .iter()
            .zip(counts(theirs))
            .filter(|(a, b)| **a + b > 0.0)
            .map(|(a, b)| (a - b) * (a - b) / (a + b))
            .sum();
        assert!(statistic < 50.0, "{what}: {operation}s differ, {statistic}: {:?} {:?}", counts(ours), counts(theirs));
    }
    let mean = |all: &[Io]| all.iter().map(|io| io.2 as f64).sum::<f64>() / all.len().max(1) as f64;
    assert!((mean(ours) / mean(theirs) - 1.0).abs() < 0.1, "{what}: mean sizes {} {}", mean(ours), mean(theirs));
}

/// Fails if one of two jobs has not requested each block once, or if their sizes have other distributions.
fn sizes_are_alike(what: &str, ours: &mut [Io], theirs: &mut [Io]) {
    let bytes = |all: &mut [Io]| {
        all.sort_by_key(|io| io.1);
        let gap = all.windows(2).find(|pair| pair[0].1 + pair[0].2 != pair[1].1);
        assert!(gap.is_none(), "{what}: {gap:?}");
        all.iter().map(|io| io.2).sum::<u64>()
    };
    assert_eq!(bytes(ours), bytes(theirs), "{what}");
    let counts = |all: &[Io]| {
        let mut counts = [0f64; 16];
        all.iter().for_each(|io| counts[(io.2 / SECTOR).ilog2().min(15) as usize] += 1.0);
        counts
    };
    let parts = counts(ours).into_iter().zip(counts(theirs)).filter(|(a, b)| a + b > 0.0);
    let statistic: f64 = parts.map(|(a, b)| (a - b) * (a - b) / (a + b)).sum();
    assert!(statistic < 40.0, "{what}: sizes differ, {statistic}: {:?} {:?}", counts(ours), counts(theirs));
}

/// Jobs with their comparison. All access `/dev/x` of 64 MiB, unless they name another file.
const JOBS: &[(Like, &str)] = &[
    (Like::Order, "rw=write\nsize=100k\nbs=12k"),
    (Like::Order, "rw=read\nsize=100k\nbs=12k\nloops=2"),
    (Like::Order, "rw=write\nsize=100k\nbs=12k\nio_size=250k"),
    (Like::Order, "rw=read\nsize=1m\noffset=63m\nbs=48k"),
    (Like::Order, "rw=read:-8k\nsize=100k\nbs=4k"),
    (Like::Order, "rw=read:-8k\nsize=100k\nbs=4k\noffset=40k"),
    (Like::Order, "rw=write:4k\nsize=100k\nbs=12k"),
    (Like::Order, "rw=read\nsize=1m\nbs=4k\nzonemode=strided\nzonesize=16k\nzonerange=64k\nzoneskip=960k"),
    (Like::Order, "rw=read\nsize=256k\nbs=12k\nzonemode=strided\nzonesize=100k\nzonerange=40k\nzoneskip=8k"),
    (Like::Order, "rw=read\nio_size=200m\nbs=1m\nzonemode=strided\nzonesize=20m\nzonerange=24m\nzoneskip=1m"),
    (Like::Order, "rw=read\nio_size=200m\nbs=1m\nzonemode=strided\nzonesize=30m\nzonerange=24m\nzoneskip=1m"),
    (Like::Order, "rw=write\nsize=10%\noffset=1%\nbs=64k"),
    (Like::Order, "rw=read\nsize=10%\noffset=1%\noffset_align=1m\nbs=64k"),
    (Like::Order, "rw=write\nsize=64k\nbs=16k\nverify=crc32c\nloops=2"),
    (Like::Order, "rw=write\nsize=64k\nbs=8k\nverify=md5\nverify_backlog=2"),
    (Like::Order, "rw=write\nsize=64k\nbs=8k\nverify=md5\ndo_verify=0"),
    (Like::Order, "rw=write\nsize=64k\nbs=8k\nverify=md5\nnumber_ios=5"),
    (Like::Order, "rw=read\nsize=64k\nbs=16k\nnumber_ios=3"),
    (Like::Order, "rw=read\nfilename=/dev/p:/dev/q:/dev/r\nsize=96k\nbs=8k"),
    (Like::Order, "rw=read\nfilename=/dev/p:/dev/q:/dev/r\nsize=96k\nbs=8k\nfile_service_type=sequential"),
    (Like::Order, "rw=read\nfilename=/dev/p:/dev/q\nsize=100k\nbs=8k\nfile_service_type=roundrobin:3"),
    (Like::Order, "rw=write\nfilename_format=f.$filenum\nnrfiles=4\nfilesize=16k\nsize=64k\nbs=4k"),
    (Like::Set, "rw=randread\nsize=1m\nbs=4k"),
    (Like::Set, "rw=randwrite\nsize=100k\nbs=12k"),
    (Like::Set, "rw=randwrite\nsize=100k\nbs=12k\nloops=3"),
    (Like::Set, "rw=randwrite\nsize=1m\nbs=4k\nverify=crc32c"),
    (Like::Set, "rw=randwrite\nsize=256k\nbs=64k\nverify=md5\nio_size=896k"),
    (Like::Order, "rw=read\nfilesize=1m\nsize=256k\nbs=64k\nloops=2"),
    (Like::Order, "rw=read\nfilesize=1m\nsize=2m\nbs=256k\noffset=512k"),
    (Like::Set, "rw=randread\nfilesize=1m\nsize=2m\nbs=64k"),
    (Like::Set, "rw=randread\nfilename=/dev/p:/dev/q\nsize=1m\nbs=4k\nfile_service_type=random"),
    (Like::Set, "rw=randread\nsize=1m\nbs=4k\nrandom_generator=lfsr"),
    (Like::Spread, "rw=randread\nsize=8m\nbs=4k\nnorandommap"),
    (Like::Spread, "rw=randread\nsize=100k\nbs=12k\nnorandommap"),
    (Like::Spread, "rw=randread\nsize=8m\nbs=4k\nnorandommap\nrandom_distribution=zoned:50/5:30/15:20/"),
    (Like::Spread, "rw=randread\nsize=16m\nbssplit=4k/60:8k/40\nnorandommap"),
    (Like::Cover, "rw=randread\nsize=16m\nbssplit=4k/60:8k/40"),
    (Like::Cover, "rw=randwrite\nsize=16m\nbssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10"),
    (Like::Cover, "rw=randrw\nsize=16m\nbsrange=4k-32k\nrwmixread=80"),
    (Like::Spread, "rw=randread\nsize=8m\nbs=4k\nzonemode=strided\nzonesize=16k\nzonerange=64k\nzoneskip=64k"),
];

#[test]
fn jobs_issue_the_requests_of_fio() {
    if !has_fio() {
        return;
    }
    for (like, keys) in JOBS {
        let file = if keys.contains("filename") { "" } else { "filename=/dev/x\n" };
        compare(keys, &format!("[job]\nioengine=psync\n{file}{keys}\n"), *like);
    }
}

/// Returns a copy of a job file with sizes and times that a test can run: the requests of each job are compared, not
/// their pace. Clones of a job issue like it.
fn small(text: &str) -> String {
    let size = |value: &str| match value.trim_end_matches(['b', 'B']).chars().last() {
        Some('g' | 'G' | 't' | 'T') => "32m".to_owned(),
        _ => value.to_owned(),
    };
    let mut all = String::new();
    for line in text.lines() {
        let line = line.split([';', '#']).next().unwrap_or("").trim();
        let (key, value) = line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
        let line = match key {
            // These affect the pace, the host, the number of clones, or the time at which a job ends.
            "exitall"
            | "exit_what"
            | "flow"
            | "iodepth_low"
            | "iodepth_batch_complete"
            | "iodepth_batch_complete_min" => {
                continue;
            }
            "steadystate"
            | "steadystate_duration"
            | "steadystate_ramp_time"
            | "ss"
            | "ss_dur"
            | "ss_ramp"
            | "latency_target"
            | "latency_window"
            | "latency_percentile"
            | "latency_run" => continue,
            "ioengine" | "direct" | "buffered" | "runtime" | "timeout" | "time_based" | "ramp_time" | "startdelay"
            | "rate" | "rate_iops" | "ratemin" | "rate_min" | "rate_process" | "thinktime" | "numjobs" | "iodepth"
            | "io_submit_mode" | "cpus_allowed" | "numa_cpu_nodes" | "numa_mem_policy" | "invalidate" | "name" => {
                continue;
            }
            "size" | "io_size" | "filesize" | "offset" | "offset_increment" | "zonesize" | "zoneskip" => {
                format!("{key}={}", if value.ends_with('%') { value.to_owned() } else { size(value) })
            }
            "loops" => "loops=2".to_owned(),
            "directory" => continue,
            "filename" if !value.starts_with("/dev/") => {
                format!("filename=/dev/{}", value.replace(['/', '.', '$', '{', '}'], "_"))
            }
            _ => line.to_owned(),
        };
        all.push_str(&line);
        all.push('\n');
    }
    all
}

/// Keys of the jobs whose requests are compared as a distribution, because they may overlap.
const SPREAD: &[&str] = &["norandommap", "random_distribution", "bssplit", "bsrange", "randrw", "rw=rw", "rwmixread"];

/// Runs fio's own examples here and in fio. `FLOATGATE_FIO_EXAMPLES` names their folder: Debian's package
/// `fio-examples` puts them into /usr/share/doc/fio/examples. `make soak` runs this test.
#[test]
#[ignore = "runs fio for minutes; `make soak` runs it"]
fn examples_of_fio_are_accepted_and_right_or_refused_with_a_reason() {
    let folder = std::env::var("FLOATGATE_FIO_EXAMPLES").unwrap_or("/usr/share/doc/fio/examples".to_owned());
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("not run: {folder} does not exist; `apt-get install fio-examples` installs it");
        return;
    };
    if !has_fio() {
        return;
    }
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    paths.sort();
    let (mut right, mut refused, mut not_run, mut wrong) = (0, 0, 0, Vec::new());
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        // On a device on which everything fits.
        if let Err(why) = plan_with_some_size(&text) {
            println!("{name}: refused: {}", why.to_string().replace('\n', " "));
            refused += 1;
            continue;
        }
        match outcome(&text) {
            Ok(()) => {
                println!("{name}: accepted, the same requests");
                right += 1;
            }
            Err(why) if why.starts_with("fio") => {
                println!("{name}: accepted, but not run by fio here: {}", why.replace('\n', " "));
                not_run += 1;
            }
            Err(why) => {
                println!("{name}: accepted, and WRONG: {why}");
                wrong.push(name);
            }
        }
    }
    println!("{right} right, {refused} refused, {not_run} not run by fio, {} wrong of {}", wrong.len(), paths.len());
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(right >= 40 || paths.len() < 86, "{right} right");
}

/// Plans a text on a device of 8 TiB, and with a size for jobs without one.
fn plan_with_some_size(text: &str) -> Result<(), SourceError> {
    let plan = |changes: &Changes| {
        let mut files = |_: &Path| Ok(text.to_owned());
        synthetic::plan_file(Path::new("jobs.fio"), &mut files, changes, 1 << 43, 1).map(|_| ())
    };
    let sized = Changes { set: vec![("size".to_owned(), "1g".to_owned())], ..Changes::default() };
    plan(&Changes::default()).or_else(|why| plan(&sized).map_err(|_| why))
}

/// Size of the devices of examples.
const LARGE: u64 = 1 << 34;

/// Returns the requests of a text in fio. Options of engines that this fio does not have are left out.
fn requests_without_bad_options(text: &str) -> Result<BTreeMap<String, Vec<Io>>, String> {
    requests_of_fio(text, LARGE).or_else(|why| {
        let bad: Vec<&str> = why.split("Bad option <").skip(1).filter_map(|rest| rest.split('>').next()).collect();
        let left: Vec<&str> = text.lines().filter(|line| !bad.contains(line)).collect();
        // fio reports those of one section.
        if bad.is_empty() { Err(why) } else { requests_without_bad_options(&left.join("\n")) }
    })
}

/// Compares the requests of an accepted example.
fn outcome(text: &str) -> Result<(), String> {
    let text = small(text);
    let sized = text.lines().any(|line| line.starts_with("size=") || line.starts_with("io_size="));
    let size = if text.contains("zonesize") { "size=512m" } else { "size=32m" };
    let text = if sized { text } else { with_lines(&text, |_| size.to_owned()) };
    let theirs = requests_without_bad_options(&text).map_err(|why| format!("fio: {why}"))?;
    let ours = requests_of_ours(&text, LARGE, 1 << 20).map_err(|why| why.to_string())?;
    let cover = text.contains("=rand") && text.contains("bssplit") && !text.contains("norandommap");
    let spread = !cover && SPREAD.iter().any(|key| text.contains(key));
    for (job, mut theirs) in theirs {
        let mut ours = ours[&job].clone();
        // Regular files cannot be trimmed here.
        if theirs.len() == 1 && theirs[0].0 == "trim" {
            continue;
        }
        if theirs.is_empty() {
            return Err(format!("fio issued no requests of [{job}]"));
        }
        let allowed = if spread || cover { theirs.len() / 20 + 1 } else { 0 };
        if ours.len().abs_diff(theirs.len()) > allowed {
            return Err(format!("[{job}] has {} requests, in fio {}", ours.len(), theirs.len()));
        }
        if spread {
            let what = format!("[{job}]");
            std::panic::catch_unwind(|| alike(&what, &ours, &theirs)).map_err(|_| "another distribution".to_owned())?;
            continue;
        }
        if cover {
            let what = format!("[{job}]");
            let compared = std::panic::catch_unwind(move || sizes_are_alike(&what, &mut ours, &mut theirs));
            compared.map_err(|_| "other sizes".to_owned())?;
            continue;
        }
        ours.sort();
        theirs.sort();
        // A part of a random pass has other blocks.
        let part = ["io_size", "filesize"].iter().any(|key| text.contains(key)) && text.contains("=rand");
        let sizes = |all: &[Io]| all.iter().map(|io| (io.0.clone(), io.2)).collect::<Vec<_>>();
        if ours != theirs && !(part && sizes(&ours) == sizes(&theirs)) {
            return Err(format!("[{job}] has other requests"));
        }
    }
    Ok(())
}

/// Files with the keys of benchmarks and tests of other projects run.
#[test]
fn files_with_the_keys_of_other_projects_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/others");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let jobs = requests_of_ours(&text, 256 * MIB, 1000).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(jobs.values().all(|requests| !requests.is_empty()), "{}: {:?}", path.display(), jobs.keys());
        count += 1;
    }
    assert_eq!(count, 4);
}
