//! Tests of job files in fio syntax: accepted and rejected input, compared with fio's documentation and with fio
//! itself.

use std::path::Path;

use floatgate_sim::request::{Operation, SECTOR};
use floatgate_sim::source::{Source, SourceError};
use floatgate_workload::synthetic::{self, Changes, Planned};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// Plans a job file without included files.
fn plan(text: &str) -> Result<Vec<Planned>, SourceError> {
    plan_with(text, &[])
}

fn plan_with(text: &str, included: &[(&str, &str)]) -> Result<Vec<Planned>, SourceError> {
    let mut files = |path: &Path| {
        let path = path.to_str().unwrap();
        if path == "dir/jobs.fio" {
            return Ok(text.to_owned());
        }
        let found = included.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{path} does not exist"))
    };
    synthetic::plan_file(Path::new("dir/jobs.fio"), &mut files, &Changes::default(), 256 * MIB, 1)
}

fn made(planned: Vec<Planned>) -> Vec<synthetic::Synthetic> {
    let made = |planned| match planned {
        Planned::Made(job) => *job,
        Planned::Replayed(recipe) => panic!("{recipe:?}"),
    };
    planned.into_iter().map(made).collect()
}

fn error(text: &str) -> String {
    plan(text).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn files_are_parsed_like_in_fio() {
    let text = "\u{feff}; a comment\r\n[global]\nfilename=x\nioengine=io_uring\n  bs = 8k  # behind a value\nrw=randread\n\
                time_based=0\n\n[first]\nrw=write\niodepth=4 ; and here\n[global]\nsize=50%\n[second]\nbs=4k\nname=other\n";
    let jobs = made(plan(text).unwrap());
    let said: Vec<&str> = jobs.iter().map(|job| job.description()).collect();
    assert_eq!(
        said,
        [
            "first: write of 8 KiB in the first 256 MiB, 4 outstanding",
            "other: randread of 4 KiB in the first 128 MiB, 1 outstanding"
        ]
    );
}

#[test]
fn includes_insert_their_lines() {
    let files = [("dir/sub/common.fio", "bs=8k\ninclude deeper.fio\n"), ("dir/sub/deeper.fio", "size=1m\n")];
    let jobs = made(plan_with("[a]\nrw=write\ninclude sub/common.fio\n[b]\nrw=read\nsize=9m\n", &files).unwrap());
    assert_eq!(jobs[0].description(), "a: write of 8 KiB in the first 1 MiB, 1 outstanding");
    assert_eq!(jobs[1].description(), "b: read of 4 KiB in 9 MiB from 1 MiB on, 1 outstanding");
    let error = |files: &[(&str, &str)]| plan_with("[a]\ninclude x.fio\n", files).unwrap_err().to_string();
    assert_eq!(error(&[]), "dir/jobs.fio:2: include: dir/x.fio does not exist");
    assert_eq!(
        error(&[("dir/x.fio", "rw=read\n[b]\n")]),
        "dir/x.fio:2: an included file has no sections; move them to the file that includes it"
    );
    assert_eq!(error(&[("dir/x.fio", "include x.fio\n")]), "dir/x.fio:1: files include each other more than 16 deep");
    let twice = "include x.fio\n".repeat(2);
    assert!(error(&[("dir/x.fio", twice.as_str())]).contains("more than 16 deep"));
    assert!(error(&[("dir/x.fio", "bs=5\n")]).starts_with("dir/x.fio:1: [a] `bs=5`: must be a multiple of 512"));
}

#[test]
fn errors_name_file_line_section_and_key() {
    let cases = [
        (
            "rw=read\n",
            "dir/jobs.fio:1: `rw=read` is outside of a section; start one before it, such as [global] or [reads]",
        ),
        ("[a]\n\nbs=1000\n", "dir/jobs.fio:3: [a] `bs=1000`: must be a multiple of 512 bytes, is 1000"),
        ("[a\nrw=read", "dir/jobs.fio:1: a section's name ends with `]`"),
        ("[]\nrw=read", "dir/jobs.fio:1: a section's name has 1 to 255 bytes"),
        (
            "[globals]\nrw=read",
            "dir/jobs.fio:1: fio takes every section whose name begins with `global` for [global]; give [globals] \
             another name",
        ),
        (
            "[a]\nsize=${SIZE}",
            "dir/jobs.fio:2: [a] `size`: variables of the environment are not read, so that a file means the same \
             everywhere; write the value, or put it in with `envsubst`",
        ),
        ("[a]\nnumjobs=$ncpus", "dir/jobs.fio:2: [a] `numjobs`: `$ncpus` is a figure of the machine; write the number"),
        ("[a]\nbs=4k\\\nrw=read", "dir/jobs.fio:2: [a] `bs`: lines are not continued in fio; write it in one line"),
        (
            "[a]\nrw=read\n[b]\nnumjobs=1000000000\n",
            "dir/jobs.fio:4: [b]: `numjobs`: there are more than 4096 jobs, clones by numjobs included; that is the most, as in fio",
        ),
        (
            "[a]\nsize=1g\n",
            "dir/jobs.fio:2: [a]: `size` of 1 GiB does not fit the device, which has 256 MiB after the offset",
        ),
        ("[global]\nbs=4k\n", "dir/jobs.fio: no jobs; a job is a section such as [reads] with its keys"),
        (
            "[a]\nwait_for=b\nfilename=x\n[b]\nfilename=x\n",
            "dir/jobs.fio:2: [a]: `wait_for=b`: no job before this one has that name",
        ),
        (
            "[a]\nwrite_iolog=x\nfilename=x\n[b]\nwrite_iolog=x\nfilename=x",
            "dir/jobs.fio:5: [b]: `write_iolog=x` is that of `a` too; give each job its own",
        ),
        (
            "[a]\nrate=1m\nrate_iops=4\n",
            "dir/jobs.fio:2: [a]: `rate` and `rate_iops` exclude each other; leave one out",
        ),
        (
            "[a]\nrw=randrw\nrate=1m,\n",
            "dir/jobs.fio:3: [a]: `rate` says nothing of the writes of rw; without a rate, give the writes a job of their own",
        ),
        (
            "[a]\noffset=200m\noffset_increment=100m\nnumjobs=2\nfilename=x\n",
            "dir/jobs.fio:2: [a]: `offset` and `offset_increment` leave nothing of the device of 256 MiB",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected);
    }
}

#[test]
fn all_errors_of_a_file_are_reported() {
    let cases = [
        (
            "[a]\natomic=1\n",
            "dir/jobs.fio:2: [a] `atomic` of fio is not supported: writes are not split by their atomicity; leave it out",
        ),
        (
            "[a]\natomic=1\nbs=1000\n[global]\nopendir=x\n",
            "3 errors:\n  dir/jobs.fio:2: [a] `atomic` of fio is not supported: writes are not split by their \
             atomicity; leave it out\n  dir/jobs.fio:3: [a] `bs=1000`: must be a multiple of 512 bytes, is 1000\n  \
             dir/jobs.fio:5: [global] `opendir` of fio is not supported: name what is read with filename",
        ),
        (
            "[a]\nsize=1g\nfilename=x\n[b]\noffset=1g\nfilename=x\n",
            "2 errors:\n  dir/jobs.fio:2: [a]: `size` of 1 GiB does not fit the device, which has 256 MiB after the \
             offset\n  dir/jobs.fio:5: [b]: `offset` leaves nothing of the device of 256 MiB",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected);
    }
}

#[test]
fn errors_suggest_keys_and_name_limits() {
    assert!(
        error("[a]\nrw=read\niodetph=4\n")
            .starts_with("dir/jobs.fio:3: [a] `iodetph` is not supported; did you mean `iodepth`?")
    );
    assert!(error("[a]\nioengin=x\n").contains("did you mean `ioengine`?"));
    assert!(error("[a]\nnumjobs=4000\n[b]\nnumjobs=97\n").contains("more than 4096 jobs"));
}

#[test]
fn host_keys_are_reported_once() {
    let jobs = made(plan("[global]\nfilename=x\ninvalidate=0\ndirect=1\n[a]\nthread\nbs=4k\nbs=8k\n[b]\n").unwrap());
    assert_eq!(
        jobs[0].warnings(),
        [
            "dir/jobs.fio:8: [a] `bs` replaces that of dir/jobs.fio:7",
            "direct, invalidate, thread have no meaning for a simulated device, which has no host; they are left out"
        ]
    );
    assert_eq!(jobs[1].warnings(), [""; 0]);
}

/// A value that switches an option off, or is its default in fio, needs no note.
#[test]
fn defaults_of_fio_are_accepted_silently() {
    for keys in [
        "verify=0",
        "do_verify=0",
        "verify_fatal=0",
        "verify_async=0",
        "verify_backlog=0",
        "nrfiles=1",
        "iodepth_batch=1",
        "iodepth_batch_complete_min=1",
        "io_submit_mode=inline",
        "continue_on_error=none",
        "rate_min=0",
        "disable_bw=0",
        "create_only=0",
        "lockfile=none",
        "trim_verify_zero=1",
        "exitall=0",
        "flow=0",
        "latency_target=0",
        "fdp=0",
        "rate=0",
        "runtime=0",
        "number_ios=0",
        "size=0",
        "io_size=0",
        "zonemode=none",
        "replay_align=0",
        "unlink=0",
        "thinktime_blocks_type=issue",
        "num_range=1",
        "write_mode=write",
        "bs_unaligned=0",
        "cmdprio_percentage=0",
    ] {
        let jobs = made(
            plan(&format!("[a]\nfilename=x\nioengine=libaio\n{keys}\n")).unwrap_or_else(|why| panic!("{keys}: {why}")),
        );
        assert_eq!(jobs[0].warnings(), [""; 0], "{keys}");
    }
    // Keys that concern the host get one note, also with variables of the environment.
    let keys = "openfiles=4\nunique_filename=0\nuid=5\nmax_latency=1s\nspdk_json_conf=${X}\ndisable_bw=1\nthreads=1";
    let jobs = made(plan(&format!("[a]\nfilename=x\n{keys}\n")).unwrap());
    let names = "disable_bw, max_latency, openfiles, spdk_json_conf, threads, uid, unique_filename";
    assert_eq!(jobs[0].warnings().len(), 1);
    assert!(jobs[0].warnings()[0].starts_with(names), "{:?}", jobs[0].warnings());
}

/// Every option of fio that is not a key has one of the effects in the reference, and each is parsed as it says.
#[test]
fn every_option_of_fio_is_parsed() {
    let page = synthetic::reference_page();
    let (effects, refused) = page.split_once("## Refused").unwrap();
    let effects = effects.split_once("## Without effect").unwrap().1;
    let names = |text: &str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).filter(|name| !name.starts_with('-')).map(str::to_owned).collect()
    };
    let without = names(effects);
    assert!(without.len() > 200, "{}", without.len());
    for name in without {
        assert!(plan(&format!("[a]\nfilename=x\n{name}=1\n")).is_ok(), "{name}");
    }
    let rows: Vec<&str> = refused.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() > 40, "{}", rows.len());
    for row in rows {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = columns[1].trim_matches('`');
        for value in names(columns[2]) {
            assert!(plan(&format!("[a]\nfilename=x\n{name}={value}\n")).is_ok(), "{name}={value}");
        }
        let why = error(&format!("[a]\nfilename=x\n{name}=7\n"));
        assert_eq!(why, format!("dir/jobs.fio:3: [a] `{name}` of fio is not supported: {}", columns[3]));
    }
    // Without the options that are unknown or refused, the job runs, with a warning.
    let mut files = |_: &Path| Ok("[a]\nfilename=x\natomic=1\nno_key=3\nbs=4k\n".to_owned());
    let changes = Changes { ignore_unknown: true, limit: Some(3), set: vec![("bs".to_owned(), "8k".to_owned())] };
    let planned = synthetic::plan_file(Path::new("x.fio"), &mut files, &changes, MIB, 1).unwrap();
    let mut job = made(planned).remove(0);
    assert!(
        job.warnings()[0].starts_with("atomic, no_key ignored because of --ignore-unknown"),
        "{:?}",
        job.warnings()
    );
    let sizes: Vec<u32> = std::iter::from_fn(|| job.next_request().unwrap()).map(|request| request.sectors).collect();
    assert_eq!(sizes, [16; 3]);
}

/// Returns operation, offset in KiB, and size in KiB of the requests of the first job.
fn all(text: &str) -> Vec<(Operation, u64, u64)> {
    let mut job = made(plan(text).unwrap()).remove(0);
    let requests = std::iter::from_fn(|| job.next_request().unwrap());
    requests.map(|request| (request.operation, request.lba / 2, u64::from(request.sectors) / 2)).collect()
}

/// fio 3.33 issues the same requests, with a flush before the reads of a pass that its iolog does not contain.
#[test]
fn what_was_written_is_verified() {
    use Operation::{Flush, Read, Write};
    let job = |keys: &str| all(&format!("[a]\nfilename=x\nrw=write\nbs=16k\nsize=32k\nverify=crc32c\n{keys}\n"));
    let pass = [(Write, 0, 16), (Write, 16, 16), (Flush, 0, 0), (Read, 0, 16), (Read, 16, 16)];
    assert_eq!(job(""), pass);
    assert_eq!(job("loops=2"), [pass, pass].concat());
    assert_eq!(job("io_size=64k"), pass);
    assert_eq!(job("do_verify=0"), pass[..2]);
    assert_eq!(job("verify_only"), pass[2..]);
    let backlog = [(Write, 0, 16), (Read, 0, 16), (Write, 16, 16), (Read, 16, 16), (Flush, 0, 0)];
    assert_eq!(job("verify_backlog=1")[..4], backlog[..4]);
    // Blocks that were written twice are read once, in the order of addresses.
    let mut again = job("rw=randwrite\nbs=4k\nnorandommap\nio_size=64k");
    let reads: Vec<u64> = again.split_off(16).into_iter().filter(|one| one.0 == Read).map(|one| one.1).collect();
    assert!(reads.is_sorted_by(|a, b| a < b), "{reads:?}");
    let mut written: Vec<u64> = again.iter().map(|one| one.1).collect();
    written.sort_unstable();
    written.dedup();
    assert_eq!(reads, written);
    // A job that reads is not affected.
    assert_eq!(job("rw=read").len(), 2);
    // A job with a time limit writes and reads by turns.
    let mut endless =
        made(plan("[a]\nfilename=x\nrw=write\nbs=16k\nsize=32k\nverify=md5\ntime_based\nruntime=1\n").unwrap());
    let first = std::iter::from_fn(|| endless[0].next_request().unwrap()).take(12).map(|one| one.operation);
    let pass = pass.map(|one| one.0);
    assert!(first.eq([&pass[..], &pass, &pass[..2]].concat()));
}

#[test]
fn a_job_may_have_several_files() {
    let offsets = |keys: &str| -> Vec<u64> {
        all(&format!("[a]\nrw=write\nbs=4k\n{keys}\n")).into_iter().map(|(_, offset, _)| offset).collect()
    };
    // Areas are placed at multiples of 1 MiB.
    assert_eq!(offsets("filename=p:q\nsize=16k"), [0, 1024, 4, 1028]);
    assert_eq!(offsets("filename=p:q\nsize=16k\nfile_service_type=sequential"), [0, 4, 1024, 1028]);
    assert_eq!(offsets("filename=p:q\nsize=24k\nfile_service_type=roundrobin:2"), [0, 4, 1024, 1028, 8, 1032]);
    assert_eq!(offsets("nrfiles=3\nsize=12k"), [0, 1024, 2048]);
    assert_eq!(offsets("nrfiles=2\nfilesize=8k\nsize=16k"), [0, 1024, 4, 1028]);
    assert_eq!(offsets("filename=p\\:q\nsize=8k"), [0, 4]);
    // The size is divided evenly, and a file ends before a block that does not fit, unless it is a device.
    assert_eq!(offsets("filename=p:q\nsize=12k\nfile_service_type=sequential"), [0, 1024]);
    assert_eq!(offsets("filename=/dev/p:/dev/q\nsize=12k\nfile_service_type=sequential"), [0, 4, 1024]);
    let random = offsets("filename=p:q\nsize=1m\nfile_service_type=random\nrw=randread");
    let mut sorted = random.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq((0..128).map(|i| i * 4).chain((0..128).map(|i| 1024 + i * 4))));
    assert_ne!(random, sorted);
    assert!(error("[a]\nfilename=p:q\n").contains("give filesize, or size in bytes"));
}

#[test]
fn sequences_and_commands_follow_fio() {
    let offsets = |keys: &str| -> Vec<u64> {
        let text = format!("[a]\nfilename=x\nrw=randread\nbs=4k\nsize=24k\n{keys}\n");
        all(&text).into_iter().map(|(_, offset, _)| offset / 4).collect()
    };
    assert_eq!(offsets("random_distribution=sequence:2,0,1"), [2, 0, 1, 2, 0, 1]);
    assert_eq!(offsets("random_distribution=sequence:2,0,1\nrandom_sequence_stride=1"), [2, 0, 1, 5, 3, 4]);
    assert!(error("[a]\nrw=randread\nbs=4k\nsize=8k\nrandom_distribution=sequence:2").contains("block 2 is beyond"));
    let zeroes = all("[a]\nfilename=x\nrw=write\nbs=4k\nsize=8k\nwrite_mode=zeroes\n");
    assert_eq!(zeroes[0].0, Operation::WriteZeroes);
    assert!(error("[a]\nwrite_mode=uncor\n").contains("must be write or zeroes"));
    assert!(error("[a]\nnum_range=4\n").contains("a trim has one range"));
}

/// `offload` has threads that submit requests, one for each of `iodepth`.
#[test]
fn requests_are_submitted_by_threads() {
    use floatgate_sim::source::Pace;
    let pace =
        |keys: &str| made(plan(&format!("[a]\nfilename=x\nio_submit_mode=offload\n{keys}\n")).unwrap())[0].pace();
    assert_eq!(pace("rate_iops=1000\niodepth=8"), Pace::Timed { depth: Some(8) });
    assert_eq!(pace("rate_iops=1000"), Pace::Timed { depth: Some(1) });
    assert_eq!(pace("iodepth=8"), Pace::Depth { depth: 8, think: floatgate_sim::time::Time::ZERO });
}

#[test]
fn suffixes_follow_kb_base() {
    let block =
        |base: &str, bs: &str| made(plan(&format!("[a]\nbs={bs}\n{base}\n")).unwrap())[0].description().to_owned();
    assert!(block("", "4k").contains("of 4 KiB"));
    assert!(block("kb_base=1024", "4kb").contains("of 4 KiB"));
    assert!(block("kb_base=1000", "4ki").contains("of 4 KiB"));
    assert!(block("kb_base=1000", "512k").contains("of 500 KiB"));
    assert!(error("[a]\nbs=4k\nkb_base=1000\n").ends_with("is 4000 (with kb_base=1000, k is 1000 and ki is 1024)"));
}

#[test]
fn named_files_are_placed_side_by_side() {
    let text = "[global]\nrw=write\nbs=4k\nnumber_ios=2\n[a]\nfilename=x\nsize=1m\n[b]\nfilename=y\nsize=5k\noffset=4k\n\
                bs=512\n[c]\nfilename=x\nsize=4k\noffset=3m\n[d]\nfilename=z\nfilesize=8m\noffset=50%\n";
    let first: Vec<u64> =
        made(plan(text).unwrap()).iter_mut().map(|job| job.next_request().unwrap().unwrap().lba * SECTOR).collect();
    // x has 3 MiB and 4 KiB, so y starts at 4 MiB, and z at 5 MiB.
    assert_eq!(first, [0, 4 * MIB + 4096, 3 * MIB, 5 * MIB + 4 * MIB]);
    // A job without a name has an area of its own.
    let text = "[a]\nfilename=x\nsize=1m\n[b]\nsize=2m\n";
    assert_eq!(made(plan(text).unwrap())[1].description(), "b: read of 4 KiB in 2 MiB from 1 MiB on, 1 outstanding");
    assert!(error("[a]\nfilename=x\nsize=1m\n[b]\nfilename=y\n").contains("give filesize, or size in bytes"));
    assert!(
        error("[a]\nfilename=x\nsize=200m\n[b]\nfilename=y\nsize=100m").contains("do not fit the device of 256 MiB")
    );
    // A single name refers to the device.
    assert_eq!(
        made(plan("[a]\nfilename=/dev/sda\n").unwrap())[0].description(),
        "a: read of 4 KiB in the first 256 MiB, 1 outstanding"
    );
}

/// Returns the first sector of each job's first request, in MiB.
fn starts(text: &str) -> Vec<u64> {
    let first = |job: &mut synthetic::Synthetic| job.next_request().unwrap().unwrap().lba * SECTOR;
    made(plan(text).unwrap()).iter_mut().map(|job| first(job) / MIB).collect()
}

/// fio 3.33 writes the same files for these jobs, with the same sizes.
#[test]
fn each_job_and_clone_has_its_own_file() {
    let rest = "rw=write\nsize=3m\n";
    assert_eq!(starts(&format!("[global]\n{rest}[a]\nnumjobs=2\n[b]\n[c]\nfilename=a.1.0\n")), [0, 3, 6, 3]);
    // The file of clone n ends after `offset` + n * `offset_increment` + `size`.
    let text = format!("[global]\n{rest}[a]\nnumjobs=3\noffset=1m\noffset_increment=1m\n[b]\n");
    assert_eq!(starts(&text), [1, 6, 12, 15]);
    assert_eq!(starts(&format!("[global]\n{rest}filesize=4m\n[a]\nnumjobs=2\n[b]\n")), [0, 4, 8]);
    // Files can be shared by their directory and their format.
    assert_eq!(starts(&format!("[a]\n{rest}numjobs=4\nfilename=x\ndirectory=/p:/q\n")), [0, 3, 0, 3]);
    assert_eq!(starts(&format!("[a]\n{rest}numjobs=3\nfilename_format=$jobname.$filenum\n")), [0, 0, 0]);
    // A job that is alone works on the device, and clones of one name share it.
    assert_eq!(starts("[a]\nrw=write\noffset=100%\nfilesize=4m\noffset=25%\n"), [1]);
    assert_eq!(starts("[a]\nrw=write\nnumjobs=2\nfilename=/dev/sda\n"), [0, 0]);
    let own = "dir/jobs.fio:1: [a]: no `filename`, so that the job and each of its clones has a file of its own, as in \
               fio: ";
    let shared = "; to let all jobs work on the whole device, give [global] a filename such as /dev/nvme0n1";
    for (keys, why) in [
        ("", "areas of several names need a size; give filesize, or size in bytes"),
        ("size=50%", "`size` in percent needs `filesize`"),
        (
            "size=100m\nnumjobs=3",
            "the areas lie side by side, and 100 MiB from 200 MiB on do not fit the device of 256 MiB",
        ),
    ] {
        assert_eq!(error(&format!("[a]\n{keys}\n[b]\nsize=1m\n")), format!("{own}{why}{shared}"));
    }
}

/// fio 3.33 prints "queue depth will be capped at 1" for these engines, unless `iodepth` is 1.
#[test]
fn synchronous_engines_have_a_depth_of_1() {
    use floatgate_sim::source::Pace;
    let planned = |text: &str| {
        let job = made(plan(text).unwrap()).remove(0);
        let depth = match job.pace() {
            Pace::Depth { depth, .. } | Pace::Batch { depth, .. } => Some(depth),
            Pace::Timed { depth } => depth,
        };
        (depth, job.warnings())
    };
    for engine in ["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "libpmem", "sg"] {
        let (depth, warnings) = planned(&format!("[a]\nioengine={engine}\niodepth=32\n"));
        assert_eq!(depth, Some(1), "{engine}");
        assert_eq!(
            warnings,
            [format!(
                "a: iodepth=32 is limited to 1, as in fio, because its engine {engine} is synchronous; for a larger \
                 depth, set ioengine=libaio"
            )]
        );
        assert_eq!(planned(&format!("[a]\nioengine={engine}\niodepth=1\n")), (Some(1), vec![]));
    }
    for engine in ["libaio", "io_uring", "posixaio", "null", "nbd", "external:/x/y.so"] {
        assert_eq!(planned(&format!("[a]\nioengine={engine}\niodepth=32\n")), (Some(32), vec![]), "{engine}");
        assert_eq!(planned(&format!("[a]\nioengine={engine}\nrate_iops=9\n")), (None, vec![]), "{engine}");
    }
    let (depth, warnings) = planned("[global]\nthinktime=1\n[a]\nnumjobs=2\niodepth=4\nfilename=x\n");
    assert_eq!(depth, Some(1));
    assert!(warnings[0].contains("its engine psync, which a job without ioengine has, is synchronous"), "{warnings:?}");
    let (depth, warnings) = planned("[a]\nrate_iops=9\n");
    assert_eq!(depth, Some(1));
    assert!(warnings[0].starts_with("a: one request is outstanding at a time, as in fio"), "{warnings:?}");
    // A text of jobs follows fio only if it names an engine.
    let depth = |text: &str| match &synthetic::plan_text(text, MIB, 1).unwrap()[0] {
        Planned::Made(job) => job.pace(),
        Planned::Replayed(recipe) => panic!("{recipe:?}"),
    };
    let rest = "rw=read iodepth=8";
    let think = floatgate_sim::time::Time::ZERO;
    assert_eq!(depth(rest), Pace::Depth { depth: 8, think });
    assert_eq!(depth(&format!("{rest} ioengine=libaio")), Pace::Depth { depth: 8, think });
    assert_eq!(depth(&format!("{rest} ioengine=psync")), Pace::Depth { depth: 1, think });
}

#[test]
fn engines_without_data_are_refused() {
    for engine in ["ftruncate", "falloc", "filecreate", "filestat", "filedelete", "dirstat", "cpuio", "exec", "net"] {
        let expected = format!("dir/jobs.fio:2: [a] `ioengine={engine}`: this engine transfers no data to or from");
        assert!(error(&format!("[a]\nioengine={engine}\n")).starts_with(&expected), "{engine}");
        assert!(synthetic::plan_text(&format!("rw=write ioengine={engine}"), MIB, 1).is_err(), "{engine}");
    }
    assert!(error("[a]\nioengine=iouring\n").contains("; did you mean `io_uring`?"));
}

/// Returns the corpus of job files: name and text. Files whose name starts with `wrong` are refused.
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/fio");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8);
    let read = |path: &std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
    };
    files.iter().map(read).collect()
}

/// Plans a text, and checks some requests of the accepted jobs.
fn survives(text: &str, device_bytes: u64) {
    let mut files = |path: &Path| match path.to_str() {
        Some("x.fio") => Ok(text.to_owned()),
        _ => Err("not there".to_owned()),
    };
    let Ok(planned) = synthetic::plan_file(Path::new("x.fio"), &mut files, &Changes::default(), device_bytes, 1) else {
        return;
    };
    assert!(planned.len() <= synthetic::MAX_JOBS);
    for planned in planned.into_iter().take(50) {
        let Planned::Made(mut job) = planned else { continue };
        let _ = (job.warnings(), job.pace(), job.progress(), job.stop_at());
        for _ in 0..50 {
            let Ok(Some(request)) = job.next_request() else { break };
            assert!(request.sectors > 0 || request.operation == Operation::Flush);
            assert!(request.lba + u64::from(request.sectors) <= device_bytes / SECTOR, "{text}: {request:?}");
        }
    }
}

#[test]
fn the_corpus_is_accepted() {
    for (name, text) in corpus() {
        let planned = plan(&text);
        if name.starts_with("wrong") {
            assert!(planned.is_err(), "{name}");
        } else if let Err(error) = planned {
            panic!("{name}: {error}");
        }
        survives(&text, 256 * MIB);
    }
}

/// Parts of job files, for mutations.
const TOKENS: &[&str] = &[
    "\n",
    "[global]\n",
    "[x]\n",
    "=",
    "%",
    "18446744073709551615",
    "0",
    "-1",
    "1e9",
    "k",
    "p",
    "numjobs=1000000000\n",
    "include x.fio\n",
    "stonewall\n",
    ":",
    "/",
    ",",
    "rw=randrw:3\n",
    "bs=1p\n",
    "offset=100%\n",
    "size=1%\n",
    "loops=4294967295\n",
    "io_size=16383p\n",
    "rate=1\n",
    "startdelay=213d\n",
    "runtime=213d\n",
    "kb_base=1000\n",
    "random_distribution=normal:0.0000001:0\n",
    "bsrange=512-1t\n",
    "zonesize=4k\n",
    "filename=y\n",
    "${X}",
    "bssplit=4k/1:8k\n",
    "rw=write:-1p\n",
    "offset_increment=50%\n",
    "thinktime_iotime=1us\n",
    "\u{0}",
    "\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_are_planned_or_refused(
        file: prop::sample::Index,
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..3u8, any::<prop::sample::Index>(), any::<u8>()), 1..8,
        ),
        device_bytes in prop_oneof![Just(256 * MIB), 0..MIB, any::<u64>()],
    ) {
        let corpus = corpus();
        let mut bytes = file.get(&corpus).1.clone().into_bytes();
        for (place, kind, token, byte) in edits {
            let at = place.index(bytes.len() + 1).min(bytes.len());
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => {
                    let end = (at + usize::from(byte % 16)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    bytes.splice(at..at, token.get(TOKENS).bytes());
                }
            }
        }
        survives(&String::from_utf8_lossy(&bytes), device_bytes);
    }

    #[test]
    fn files_of_tokens_are_planned_or_refused(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..30)) {
        survives(&tokens.concat(), 256 * MIB);
        survives(&format!("[a]\n{}", tokens.concat()), 256 * MIB);
    }
}
