//! Engines of fio, and the number of outstanding requests that each allows.
//!
//! A synchronous engine (`FIO_SYNCIO` in fio's `engines/`) returns from a request when it has completed, so fio limits
//! `iodepth` to 1. Engines that transfer no data to or from a file or device have no meaning for a simulated device.

use super::section::Section;
use super::values::one_of;

/// Kind of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One request is outstanding at a time.
    Synchronous,
    /// `iodepth` requests are outstanding.
    Asynchronous,
    /// No data is transferred to or from a device.
    NoData,
}

/// An engine of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Name, the value of `ioengine`.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
}

/// Prefix of the engines that fio loads from a file.
const EXTERNAL: &str = "external:";

/// Engine of a job that names none.
const DEFAULT: Engine = Engine { name: "psync", kind: Kind::Synchronous };

/// Names of the engines by kind, from the sources of fio 3.33 to 3.41. `null` is asynchronous, because its requests
/// are those of a device.
pub const ENGINES: &[(Kind, &[&str])] = &[
    (
        Kind::Synchronous,
        &[
            "psync",
            "sync",
            "vsync",
            "pvsync",
            "pvsync2",
            "mmap",
            "splice",
            "sg",
            "mtd",
            "libzbc",
            "libpmem",
            "pmemblk",
            "dev-dax",
            "libcufile",
            "libhipfile",
            "libiscsi",
            "libhdfs",
            "http",
            "gfapi",
            "ime_psync",
            "ime_psyncv",
        ],
    ),
    (
        Kind::Asynchronous,
        &[
            "libaio",
            "linuxaio",
            "io_uring",
            "io_uring_cmd",
            "posixaio",
            "solarisaio",
            "windowsaio",
            "libblkio",
            "xnvme",
            "nbd",
            "nfs",
            "rados",
            "rbd",
            "dfs",
            "gfapi_async",
            "ime_aio",
            "null",
            "external",
        ],
    ),
    (
        Kind::NoData,
        &[
            "cpuio",
            "exec",
            "net",
            "netsplice",
            "rdma",
            "falloc",
            "ftruncate",
            "e4defrag",
            "filecreate",
            "filestat",
            "filedelete",
            "dircreate",
            "dirstat",
            "dirdelete",
            "page_fault",
        ],
    ),
];

/// Parses the name of an engine. Refuses engines that transfer no data.
pub fn engine(text: &str) -> Result<Engine, String> {
    let name = if text.starts_with(EXTERNAL) { "external" } else { text };
    let all = || ENGINES.iter().flat_map(|(kind, names)| names.iter().map(|name| Engine { name, kind: *kind }));
    match all().find(|engine| engine.name == name) {
        Some(Engine { kind: Kind::NoData, .. }) => Err("this engine transfers no data to or from a device, so there \
             is nothing to simulate; remove the job, or choose an engine that reads and writes, such as libaio"
            .to_owned()),
        Some(engine) => Ok(engine),
        None => {
            let names: Vec<&str> = all().filter(|engine| engine.kind != Kind::NoData).map(|one| one.name).collect();
            Err(one_of(text, &names))
        }
    }
}

/// Limits the job to one outstanding request if its engine is synchronous, and adds a warning if that changes the
/// depth. A job that does not follow fio has no engine, and keeps its depth.
pub(super) fn limit_depth(section: &mut Section) {
    if !section.follows_fio() {
        return;
    }
    let options = &mut section.options;
    let engine = options.ioengine.unwrap_or(DEFAULT);
    if engine.kind != Kind::Synchronous {
        return;
    }
    let open = options.rate.is_some() || options.rate_iops.is_some();
    let open = open || (options.read_iolog.is_some() && !options.replay_no_stall);
    let limited = match options.iodepth {
        Some(1) => None,
        Some(depth) => Some(format!("iodepth={depth} is limited to 1")),
        None if open => Some("one request is outstanding at a time".to_owned()),
        None => None,
    };
    let origin = if options.ioengine.is_none() { ", which a job without ioengine has," } else { "" };
    options.iodepth = Some(1);
    let Some(limited) = limited else { return };
    let (name, engine) = (options.name.as_ref().unwrap_or(&section.name), engine.name);
    let keep = if open { "requests that do not wait for each other" } else { "a larger depth" };
    section.warnings.push(format!(
        "{name}: {limited}, as in fio, because its engine {engine}{origin} is synchronous; for {keep}, set \
         ioengine=libaio"
    ));
}
