//! Engines of fio, and the number of outstanding requests that each allows.
//!
//! A synchronous engine (`FIO_SYNCIO` in fio's `engines/`) returns from a request when it has completed, so fio limits
//! `iodepth` to 1. Engines that transfer no data to or from a file or device have no meaning for a simulated device.

/// Kind of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A single request is outstanding at a time.
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
pub const EXTERNAL: &str = "external:";

/// Engine of a job that names none.
pub const DEFAULT: Engine = Engine { name: "psync", kind: Kind::Synchronous };

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
            "cpp_null",
            "external",
            "spdk",
            "spdk_bdev",
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
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
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
