//! Options of fio that are not keys of a simulated job: names, defaults, and effect on the requests.
//!
//! Together with the table in `keys`, this is the complete list of fio's options, from its documentation (HOWTO.rst)
//! and the option tables of its engines, up to version 3.41. An option of an engine has the effect that it has on the
//! requests with this engine.

use super::options::Options;

/// Effect of an option on the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None: the option concerns the host, contents, or the output of fio. A value other than the default gets a note.
    None,
    /// The option would change the requests, so that it is refused unless its value is the default or in `off`.
    UnlessOff {
        /// Further values that switch the option off.
        off: &'static [&'static str],
        /// Advice for the error.
        instead: &'static str,
    },
    /// The option is always refused.
    Refused {
        /// Reason, and what to do instead.
        instead: &'static str,
    },
}

/// An option of fio that is not a key of a simulated job.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    /// Name.
    pub name: &'static str,
    /// Default. Empty if there is none.
    pub default: &'static str,
    /// Effect on the requests.
    pub effect: Effect,
}

/// Returns an option without effect on the requests.
const fn none(name: &'static str, default: &'static str) -> Other {
    Other { name, default, effect: Effect::None }
}

/// Returns an option that is refused unless it is off.
const fn off(name: &'static str, default: &'static str, off: &'static [&'static str], instead: &'static str) -> Other {
    Other { name, default, effect: Effect::UnlessOff { off, instead } }
}

/// Returns an option that is always refused.
const fn refused(name: &'static str, instead: &'static str) -> Other {
    Other { name, default: "", effect: Effect::Refused { instead } }
}

const ZBD: &str = "zoned devices are not simulated by jobs; use zonemode=strided for strides";
const FDP: &str = "give the writes a placement hint with write_hint";
const MERGE: &str = "merge the traces before, or give each a job of its own with read_iolog";
const PRIORITY: &str = "give the share of the requests with high priority with cmdprio_percentage";
const ARBITRATION: &str = "queues and their priorities are options of the device (host.queues)";
const REPLAY: &str = "prepare the trace, or use `--fit` with the trace as the workload";
const FLUSH: &str = "use fsync, or end_fsync for a flush at the end";
const TRIM: &str = "use rw=randtrim, or rw=trimwrite";
const OBJECTS: &str = "the engine addresses objects; describe their blocks with rw, bs and size";
const METADATA: &str = "metadata of blocks is not simulated; leave it out";

/// The options, in the order of fio's documentation, followed by those of engines.
pub const OTHERS: &[Other] = &[
    none("filetype", "none"),
    none("unique_filename", "1"),
    off("lockfile", "none", &["0"], "jobs do not exclude each other; use wait_for or stonewall"),
    refused("opendir", "name what is read with filename"),
    none("iodepth_batch", "1"),
    none("iodepth_batch_submit", "1"),
    none("iodepth_batch_complete_max", "1"),
    none("serialize_overlap", "0"),
    none("fill_device", "0"),
    none("fill_fs", "0"),
    off("file_append", "0", &[], "give the job an offset"),
    off("bs_unaligned", "0", &[], "sizes are multiples of the smallest; list others in bssplit"),
    off("blocksize_unaligned", "0", &[], "sizes are multiples of the smallest; list others in bssplit"),
    off("bs_is_seq_rand", "0", &[], "give reads and writes sizes of their own with bs=read,write"),
    none("randrepeat", "1"),
    none("allrandrepeat", "1"),
    none("softrandommap", "0"),
    off("num_range", "1", &["0"], "a trim has one range; use more requests, or a larger bs"),
    none("random_generator", "tausworthe"),
    none("openfiles", ""),
    none("fallocate", "native"),
    none("fadvise_hint", "1"),
    off("write_barrier", "0", &[], FLUSH),
    refused("sync_file_range", FLUSH),
    none("direct", "0"),
    off("atomic", "0", &[], "writes are not split by their atomicity; leave it out"),
    none("buffered", "1"),
    none("overwrite", "0"),
    off("ramp_size", "", &["0"], "give ramp_time"),
    none("clocksource", ""),
    none("mem", "malloc"),
    none("iomem", "malloc"),
    none("iomem_align", "0"),
    none("mem_align", "0"),
    none("verify_policy", "completed"),
    none("verifysort", "1"),
    none("verifysort_nr", "1024"),
    none("verify_interval", ""),
    none("verify_offset", ""),
    none("verify_pattern", ""),
    none("verify_pattern_interval", "0"),
    none("verify_fatal", "0"),
    none("verify_dump", "0"),
    none("verify_async", "0"),
    none("verify_async_cpus", ""),
    off("experimental_verify", "0", &[], "leave it out; verify reads all that was written"),
    off("verify_state_load", "0", &[], "leave it out; verify reads all that was written"),
    none("verify_state_save", "1"),
    none("verify_write_sequence", "1"),
    none("verify_header_seed", "1"),
    off("trim_percentage", "0", &[], TRIM),
    none("trim_verify_zero", "1"),
    off("trim_backlog", "0", &[], TRIM),
    off("trim_backlog_batch", "0", &[], TRIM),
    none("read_iolog_chunked", "0"),
    off("replay_scale", "1", &["0"], REPLAY),
    off("replay_align", "0", &["1"], REPLAY),
    refused("replay_skip", REPLAY),
    refused("merge_blktrace_file", MERGE),
    refused("merge_blktrace_scalars", MERGE),
    refused("merge_blktrace_iters", MERGE),
    none("exec_prerun", ""),
    none("exec_postrun", ""),
    none("ioscheduler", ""),
    off("zonecapacity", "0", &[], ZBD),
    none("read_beyond_wp", "0"),
    none("max_open_zones", "0"),
    none("job_max_open_zones", "0"),
    none("ignore_zone_limits", "0"),
    off("zone_reset_threshold", "0", &[], ZBD),
    off("zone_reset_frequency", "0", &[], ZBD),
    off("recover_zbd_write_error", "0", &[], ZBD),
    off("write_zone_remainder", "0", &[], ZBD),
    off("fdp", "0", &[], FDP),
    off("dataplacement", "none", &[], FDP),
    off("data_placement", "none", &[], FDP),
    none("plid_select", "roundrobin"),
    none("fdp_pli_select", "roundrobin"),
    none("plids", ""),
    none("fdp_pli", ""),
    none("dp_scheme", ""),
    none("lockmem", "0"),
    none("comm", ""),
    none("nice", "0"),
    none("prio", ""),
    none("priohint", ""),
    none("thinktime_spin", "0"),
    none("thinkcycles", "0"),
    off("thinktime_blocks_type", "complete", &["issue"], "give complete or issue"),
    none("rate_min", "0"),
    none("ratemin", "0"),
    none("rate_iops_min", "0"),
    none("rate_cycle", "1000"),
    none("ratecycle", "1000"),
    off("rate_ignore_thinktime", "0", &[], "a rate has no think times; leave it out"),
    none("max_latency", "0"),
    none("invalidate", "1"),
    none("create_serialize", "1"),
    none("create_fsync", "1"),
    none("create_on_open", "0"),
    off("create_only", "0", &[], "a job that only creates its files has no requests; remove it"),
    none("allow_file_create", "1"),
    none("allow_mounted_write", "0"),
    none("pre_read", "0"),
    none("cpumask", ""),
    none("cpus_allowed", ""),
    none("cpus_allowed_policy", "shared"),
    none("numa_cpu_nodes", ""),
    none("numa_mem_policy", ""),
    none("gpu_dev_id", "0"),
    off("fsync_on_close", "0", &[], FLUSH),
    off("end_syncfs", "0", &[], FLUSH),
    none("unlink", "0"),
    none("unlink_each_loop", "0"),
    none("exitall_on_error", "0"),
    none("thread", "0"),
    none("threads", "0"),
    none("per_job_logs", "1"),
    none("write_bw_log", ""),
    none("write_lat_log", ""),
    none("write_iops_log", ""),
    none("write_hist_log", ""),
    none("log_entries", "1024"),
    none("log_avg_msec", "0"),
    none("log_hist_msec", "0"),
    none("log_hist_coarseness", "0"),
    none("log_window_value", "avg"),
    none("log_max_value", "0"),
    none("log_offset", "0"),
    none("log_prio", "0"),
    none("log_issue_time", "0"),
    none("log_compression", "0"),
    none("log_compression_cpus", ""),
    none("log_store_compressed", "0"),
    none("log_alternate_epoch", "0"),
    none("log_unix_epoch", "0"),
    none("log_alternate_epoch_clock_id", "0"),
    none("job_start_clock_id", "0"),
    none("block_error_percentiles", "0"),
    none("bwavgtime", "500"),
    none("iopsavgtime", "500"),
    none("stats", "1"),
    none("zero_buffers", "0"),
    none("refill_buffers", "0"),
    none("scramble_buffers", "1"),
    none("buffer_pattern", ""),
    none("buffer_compress_percentage", "0"),
    none("buffer_compress_chunk", "512"),
    none("dedupe_percentage", "0"),
    none("dedupe_global", "0"),
    none("dedupe_mode", "repeat"),
    none("dedupe_working_set_percentage", "5"),
    none("clat_percentiles", "1"),
    none("lat_percentiles", "0"),
    none("slat_percentiles", "0"),
    none("percentile_list", "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
    none("significant_figures", "4"),
    none("disk_util", "1"),
    none("gtod_reduce", "0"),
    none("gtod_cpu", "0"),
    none("disable_lat", "0"),
    none("disable_clat", "0"),
    none("disable_slat", "0"),
    none("disable_bw_measurement", "0"),
    none("disable_bw", "0"),
    none("unified_rw_reporting", "none"),
    none("continue_on_error", "none"),
    none("ignore_error", ""),
    none("error_dump", "0"),
    refused("profile", "write its jobs out"),
    none("cgroup", ""),
    none("cgroup_nodelete", "0"),
    none("cgroup_weight", "0"),
    none("uid", ""),
    none("gid", ""),
    none("unit_base", "0"),
    none("hugepage-size", ""),
    none("flow_watermark", "1024"),
    none("flow_sleep", "0"),
    // Engines of Linux.
    none("userspace_reap", "0"),
    none("libaio_vectored", "0"),
    none("libaio_nonvectored", "0"),
    none("nowait", "0"),
    none("hipri", "0"),
    none("hipri_percentage", "100"),
    none("fixedbufs", "0"),
    none("registerfiles", "0"),
    none("sqthread_poll", "0"),
    none("sqthread_poll_cpu", ""),
    none("nonvectored", "-1"),
    none("uncached", "0"),
    none("force_async", "0"),
    none("thp", "0"),
    none("cmd_type", "nvme"),
    none("cdb_len", "0"),
    none("cmdprio_hint", "0"),
    none("cmdprio", "0"),
    off("cmdprio_bssplit", "", &["0"], PRIORITY),
    off("readfua", "0", &[], "reads do not force earlier writes out; use fsync"),
    off("verify_mode", "read", &[], "verify with reads"),
    none("verify_bytchk", "0"),
    off("read_mode", "read", &[], "read with read commands"),
    off("md_per_io_size", "0", &[], METADATA),
    none("pi_act", "1"),
    none("pi_chk", ""),
    none("apptag", "0x1234"),
    none("apptag_mask", "0xffff"),
    none("deac", "0"),
    off("stream_id", "0", &[], FDP),
    // Windows.
    none("no_completion_thread", "0"),
    // libblkio, xnvme and SPDK.
    none("libblkio_driver", ""),
    none("libblkio_path", ""),
    none("libblkio_pre_connect_props", ""),
    none("libblkio_num_entries", ""),
    none("libblkio_queue_size", ""),
    none("libblkio_pre_start_props", ""),
    none("libblkio_vectored", "0"),
    off("libblkio_write_zeroes_on_trim", "0", &[], "write zeroes with write_mode=zeroes"),
    none("libblkio_wait_mode", "block"),
    none("libblkio_force_enable_completion_eventfd", "0"),
    none("xnvme_be", ""),
    none("xnvme_mem", ""),
    none("xnvme_async", ""),
    none("xnvme_sync", ""),
    none("xnvme_admin", ""),
    none("xnvme_dev_nsid", ""),
    none("xnvme_dev_subnqn", ""),
    none("xnvme_iovec", "0"),
    none("spdk_conf", ""),
    none("spdk_json_conf", ""),
    none("spdk_mem", ""),
    none("spdk_single_seg", "0"),
    none("spdk_rpc_listen_addr", ""),
    none("mem_size_mb", ""),
    none("shm_id", ""),
    none("env_context", ""),
    none("log_flags", ""),
    none("enable_sgl", "0"),
    none("sge_size", "4096"),
    none("disable_pcie_sgl_merge", "0"),
    none("bit_bucket_data_len", "0"),
    none("hostnqn", ""),
    none("digest_enable", "NONE"),
    none("enable_vmd", "0"),
    none("print_qid_mappings", "0"),
    off("enable_wrr", "0", &[], ARBITRATION),
    none("arb_mechanism", "rr"),
    none("arbitration_burst", "0"),
    none("low_weight", "0"),
    none("medium_weight", "0"),
    none("high_weight", "0"),
    none("wrr_priority", "0"),
    off("initial_zone_reset", "0", &[], ZBD),
    off("zone_append", "0", &[], ZBD),
    // Engines of other systems and services.
    none("skip_bad", "0"),
    none("uri", ""),
    none("nfs_url", ""),
    none("pool", ""),
    none("cont", ""),
    none("chunk_size", "0"),
    none("object_class", ""),
    none("svcl", ""),
    none("volume", ""),
    none("brick", ""),
    none("single-instance", ""),
    none("clustername", ""),
    none("clientname", ""),
    none("conf", "/etc/ceph/ceph.conf"),
    none("busy_poll", "0"),
    none("touch_objects", "1"),
    none("rbdname", ""),
    none("rbd_encryption_format", ""),
    none("rbd_encryption_passphrase", ""),
    none("initiator", "iqn.2019-04.org.fio:fio"),
    none("namenode", "localhost"),
    none("hostname", "localhost"),
    none("port", ""),
    none("hdfsdirectory", "/"),
    none("single_instance", "1"),
    none("hdfs_use_direct", "0"),
    none("gpu_dev_ids", ""),
    none("cuda_io", "cufile"),
    none("rocm_io", "hipfile"),
    none("https", "off"),
    none("http_host", "localhost"),
    none("http_user", ""),
    none("http_pass", ""),
    none("http_s3_key", ""),
    none("http_s3_keyid", ""),
    none("http_s3_security_token", ""),
    none("http_swift_auth_token", ""),
    none("http_s3_region", "us-east-1"),
    none("http_s3_sse_customer_key", ""),
    none("http_s3_sse_customer_algorithm", "AES256"),
    none("http_s3_storage_class", "STANDARD"),
    none("http_mode", "webdav"),
    none("http_verbose", "0"),
    off("http_object_mode", "block", &[], OBJECTS),
    none("dummy", "0"),
    // Engines that transfer no data, whose jobs are refused.
    none("cpuload", ""),
    none("cpumode", "noop"),
    none("cpuchunks", "50000"),
    none("exit_on_io_done", "0"),
    none("donorname", ""),
    none("inplace", "0"),
    none("program", ""),
    none("arguments", ""),
    none("grace_time", "1"),
    none("std_redirect", "1"),
    none("stat_type", "stat"),
    none("protocol", "tcp"),
    none("proto", "tcp"),
    none("nodelay", "0"),
    none("listen", "0"),
    none("pingpong", "0"),
    none("interface", ""),
    none("ttl", "1"),
    none("window_size", "0"),
    none("mss", "0"),
    none("bindname", ""),
    none("verb", "write"),
    none("serverip", ""),
    none("direct_write_to_pmem", "0"),
    none("busy_wait_polling", "1"),
];

/// Returns the option of a name.
pub fn find(name: &str) -> Option<&'static Other> {
    OTHERS.iter().find(|other| other.name == name)
}

/// Returns `true` if two values are equal, as texts or as numbers.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || a.parse::<u64>().is_ok_and(|a| b.parse() == Ok(a))
}

/// Sets an option. Its value may be missing, which means 1. The error gives what to do instead.
pub fn set(options: &mut Options, other: &'static Other, value: Option<&str>) -> Result<(), String> {
    let value = value.unwrap_or("1");
    let default = !other.default.is_empty() && same(value, other.default);
    match other.effect {
        Effect::None => {
            if !default {
                options.without_meaning.insert(other.name);
            }
            Ok(())
        }
        Effect::UnlessOff { off, .. } if default || off.iter().any(|off| same(value, off)) => Ok(()),
        Effect::UnlessOff { instead, .. } | Effect::Refused { instead } => {
            Err(format!("`{}` of fio is not supported: {instead}", other.name))
        }
    }
}
