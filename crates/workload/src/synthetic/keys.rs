//! Table of all job keys: names, parsers, and texts for the reference.
//!
//! The reference of fio is its HOWTO, "Job file parameters", which lists each key under the same name.

use super::options::Options;
use super::values::*;
use crate::sim::text::shown;

/// A key of a job.
pub struct Key {
    /// Name, followed by aliases.
    pub names: &'static [&'static str],
    /// True if the key may be given without a value, which means 1.
    flag: bool,
    /// Group in the reference.
    pub group: Group,
    /// Default, in Markdown. Empty if there is none.
    pub default: &'static str,
    /// Meaning, in Markdown.
    pub meaning: &'static str,
    /// Difference from fio, in Markdown. Empty if there is none.
    pub in_fio: &'static str,
    /// Parses the value into the options. The error states what is allowed.
    set: fn(&mut Options, &str, Base) -> Result<(), String>,
}

/// Groups of the reference, each with its own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Operations and addresses.
    Where,
    /// Strides.
    Strides,
    /// Amount and duration.
    HowMuch,
    /// Pace.
    HowFast,
    /// Durability.
    Flushes,
    /// Order of jobs.
    Jobs,
    /// Logs of requests.
    Logs,
    /// Random numbers and names.
    Again,
}

/// Parses a value into its field.
macro_rules! into {
    ($field:ident, $read:expr) => {
        |options, value, base| {
            options.$field = Some($read(value, base)?);
            Ok(())
        }
    };
}

/// Sets a switch.
macro_rules! switch {
    ($field:ident) => {
        |options, value, base| switch(value, base).map(|on| options.$field = on)
    };
}

/// Declares the keys with names, default, meaning, difference from fio, and parser.
macro_rules! keys {
    ($($group:ident {
        $($kind:ident [$($name:literal),+] $default:literal $meaning:literal $in_fio:literal $set:expr;)+
    })+) => {
        /// The keys, in the order of the reference.
        pub const KEYS: &[Key] = &[$($(Key {
            names: &[$($name),+],
            flag: keys!(@ $kind),
            group: Group::$group,
            default: $default,
            meaning: $meaning,
            in_fio: $in_fio,
            set: $set,
        }),+),+];
    };
    (@ key) => { false };
    (@ flag) => { true };
}

keys! {
    Where {
        key ["rw", "readwrite"] "`read`"
            "`read`, `write`, `trim`: sequential. `randread`, `randwrite`, `randtrim`: at random. `rw` or `readwrite`, \
             `randrw`: reads and writes. `trimwrite`, `randtrimwrite`: trims a block, then writes it. Random: \
             `randread:8` takes a new random address only every 8 requests. Sequential: `write:4k` leaves 4 KiB out \
             after each request, `read:-8k` goes back by 8 KiB from where the last one ended."
            "" into!(rw, rw);
        key ["rw_sequencer"] "`sequential`"
            "Requests between two addresses of `randread:8`: each starts where the last one ended, or (`identical`) \
             all have the same address." "" into!(rw_sequencer, sequencer);
        key ["bs", "blocksize"] "`4k`" "Size of the requests; `read,write,trim` for each direction (see below)." ""
            into!(bs, |value, base| by_direction(value, |part| block_size(part, base)));
        key ["bsrange", "blocksize_range"] ""
            "Sizes from a range, `4k-64k`: the smallest plus a random part of the largest, rounded down to a multiple \
             of the smallest; `read,write,trim`. Overrides `bs`." ""
            into!(bsrange, |value, base| by_direction(value, |part| size_range(part, base)));
        key ["bssplit"] ""
            "Several sizes: `4k/10:64k/50:32k/40` is 10 % of the requests with 4 KiB, and so on. Omitted percentages \
             share the remainder. At most 64 sizes; `read,write,trim`. Overrides `bs` and `bsrange`." ""
            into!(bssplit, |value, base| by_direction(value, |part| size_shares(part, base)));
        key ["blockalign", "ba"] "smallest `bs`"
            "Random requests start at multiples of this, counted from the start of the region; `read,write,trim`. \
             Other than `bs`, it turns the random map off." ""
            into!(blockalign, |value, base| by_direction(value, |part| block_size(part, base)));
        key ["rwmixread"] "`50`" "Percent of reads in a mix. Each request is drawn independently." ""
            into!(rwmixread, percent);
        key ["rwmixwrite"] "`50`" "Percent of writes in a mix. If both are given, the later one applies." ""
            into!(rwmixread, |value, base| percent(value, base).map(|write| 100 - write));
        key ["percentage_random"] "`100`"
            "Percent of a random job's requests that are at random addresses; the others start where the last request \
             of their direction ended. `read,write,trim`." ""
            into!(percentage_random, |value, base| by_direction(value, |part| percent(part, base)));
        key ["random_distribution"] "`random`" "Distribution of random requests over the blocks (see below)." ""
            into!(random_distribution, distribution);
        flag ["norandommap"] "off"
            "Do not track used blocks. Without it, every block is used once before any is used again."
            "" switch!(norandommap);
        key ["filename"] "in a job file a file for each clone, otherwise the device"
            "Area that a job accesses. If all jobs and clones have the same, it is the whole device. Different areas \
             are placed in the order of the jobs, each at a multiple of 1 MiB. They are as large as `filesize`, or \
             else as the largest `offset` + `size` of their jobs (see below)."
            "A file or a device; a list is possible." into!(filename, file);
        key ["filename_format"] "`$jobname.$jobnum.$filenum`"
            "Name of the area of a job without `filename`, in a job file. `$jobnum` is the number of the clone, and \
             `$filenum` is 0. Without `$jobnum`, clones share an area." "" into!(filename_format, text);
        key ["directory"] ""
            "First part of the name of the area. Clones are distributed over a list `a:b`." ""
            into!(directory, text);
        key ["filesize"] "the device"
            "Size of the area that `offset` and `size` refer to." "Also a range, from which it draws."
            into!(filesize, block_size);
        key ["offset", "fileoffset"] "`0`"
            "Start of the job's region: bytes, or percent of the device or `filesize` (then rounded up to a whole \
             block)." "" into!(offset, offset);
        key ["offset_increment"] "`0`" "The region of clone *n* of `numjobs`, from 0, starts *n* times this later." ""
            into!(offset_increment, offset);
        key ["size"] "to the end"
            "Size of the region: bytes, or percent of the device or `filesize` (limited to the space after `offset`). \
             Also the amount of data to transfer (see below)." "" into!(size, region_size);
    }
    Strides {
        key ["zonemode"] "`none`; `strided` with `zonesize`"
            "`strided`: transfer `zonesize` bytes in a zone of `zonerange` bytes, then skip `zoneskip` bytes to the \
             next zone." "Also `zbd`." into!(zonemode, zone_mode);
        key ["zonesize"] ""
            "Bytes to transfer in a zone. Less than `zonerange` leaves a part of each zone alone, more goes over it \
             again." "" into!(zonesize, block_size);
        key ["zonerange"] "`zonesize`" "Size of a zone." "" into!(zonerange, block_size);
        key ["zoneskip"] "`0`" "Bytes between two zones." "" into!(zoneskip, sectors_or_none);
    }
    HowMuch {
        key ["io_size", "io_limit"] "`size`"
            "End after this much instead of `size`: bytes, or percent of `size`, also more than 100 %." ""
            into!(io_size, io_size);
        key ["number_ios"] ""
            "End after this number of requests. A pair of `trimwrite` counts once, a flush does not count."
            "`size`, even if not given, may end the job before." into!(number_ios, count);
        key ["loops"] "`1`" "Repeat `size`, `io_size` and `number_ios` this number of times." "" into!(loops, count_32);
        key ["runtime", "timeout"] "" "Issue nothing after this time, counted from the job's start; seconds." ""
            into!(runtime, |value, _| time(value, SECOND, 1));
        flag ["time_based"] "off" "`size` and `io_size` do not end the job, `runtime` does." "" switch!(time_based);
        key ["ramp_time"] "`0`"
            "Exclude requests that complete within this time after the job's start from the results; it precedes \
             `runtime`. Seconds." "" into!(ramp_time, |value, _| time(value, SECOND, 0));
    }
    HowFast {
        key ["iodepth"] "`1`; no limit with `rate`, `rate_iops` or `read_iolog`"
            "Outstanding requests of each clone. A synchronous engine limits it to 1 (see below)."
            "Always `1`." into!(iodepth, depth);
        key ["ioengine"] "`psync` in a job file, otherwise none"
            "Engine of fio. A synchronous one has one outstanding request (see below)." ""
            into!(ioengine, engine);
        key ["thinktime"] "`0`"
            "After `thinktime_blocks` requests, wait until all have completed, and then for this time; microseconds." ""
            into!(thinktime, |value, _| time(value, MICROSECOND, 0));
        key ["thinktime_blocks"] "`1`; no limit with `thinktime_iotime`" "Requests between two think times."
            "Counted as `thinktime_blocks_type` says; here at the issue." into!(thinktime_blocks, count_32);
        key ["thinktime_iotime"] ""
            "Also think when this time has passed since the last think time; seconds." ""
            into!(thinktime_iotime, |value, _| time(value, SECOND, 1));
        key ["rate"] ""
            "Bytes per second of each direction of a mix; `read,write,trim` sets them separately. Each request \
             arrives after the time that the requests before it take at this rate."
            "A limit: a device that falls behind slows the arrivals down."
            into!(rate, |value, base| by_direction(value, |part| bandwidth(part, base)));
        key ["rate_iops"] ""
            "Requests per second of each direction of a mix; `read,write,trim` sets them separately."
            "A limit, as above. With several sizes, it is one of bytes: the rate times the smallest size."
            into!(rate_iops, |value, base| by_direction(value, |part| rate(part, base)));
        key ["rate_process"] "`linear`"
            "`linear`: the first request at 0, with `rate_iops` equal gaps. `poisson`: exponential gaps; with `rate`, \
             of `rate` divided by the smallest size." "" into!(rate_process, process);
    }
    Flushes {
        key ["fsync"] "`0`" "Flush after this number of writes; 0 for never." "" into!(fsync, period);
        key ["fdatasync"] "`0`" "Like `fsync`; if both are due, there is one flush." "Leaves out metadata of the file."
            into!(fdatasync, period);
        flag ["end_fsync"] "off" "Flush as the last request of a job that writes." "" switch!(end_fsync);
        key ["sync"] "`none`"
            "`sync` or `dsync`, also `1`: writes carry the flag *force unit access* and are durable when they complete. \
             `none` or `0`: they are not." "`sync` is `O_SYNC`, `dsync` is `O_DSYNC`." into!(sync, sync);
        key ["write_hint"] "`none`"
            "Lifetime of the data that the job writes: `none`, `short`, `medium`, `long` or `extreme`. A device with \
             `temperature = \"hints\"` uses it as the placement hint 0, 2, 3, 4 or 5." "Sets it with `fcntl`."
            into!(write_hint, write_hint);
    }
    Jobs {
        key ["numjobs"] "`1`"
            "Run this number of clones of the job, named `name.0`, `name.1`, and so on. Each is a stream with its own \
             depth and random numbers." "All clones have one name." into!(numjobs, count_32);
        flag ["stonewall", "wait_for_previous"] "off"
            "Wait until all previous jobs have ended. Later jobs wait with this one. Clones start together." "" switch!(stonewall);
        key ["wait_for"] "" "Start after the job of this name, with all its clones, has ended." ""
            into!(wait_for, text);
        key ["startdelay"] "`0`"
            "Time from the start of the run, or the end of the jobs waited for, to the start of the job; seconds."
            "Always counts from the start of the run; also a range." into!(startdelay, |value, _| time(value, SECOND, 0));
    }
    Logs {
        key ["write_iolog"] ""
            "Write the requests that are issued to this file, as a fio iolog of version 3. With `numjobs`, clone *n* \
             writes to `file.n`." "All clones write to one file." into!(write_iolog, text);
        key ["read_iolog"] ""
            "Replay this trace, in any format of `docs/reference/traces.md`. Only keys for times and counts apply \
             to it: see below." "Its own logs, and those of blktrace."
            into!(read_iolog, file);
        key ["replay_time_scale"] "`100`" "Speed of the replay in percent: 200 is twice as fast." ""
            into!(replay_time_scale, scale);
        flag ["replay_no_stall"] "off" "Ignore the times of the trace: `iodepth` requests are outstanding." ""
            switch!(replay_no_stall);
        key ["replay_redirect"] "" "Merge all devices of the trace into one address space; otherwise they are placed side by side."
            "Names the device." |options, _, _| {
                options.replay_redirect = true;
                Ok(())
            };
    }
    Again {
        key ["randseed"] "the run's seed" "Seed of everything random in the job." "" into!(randseed, seed);
        key ["name"] "the section, or `job1`, `job2`, ..."
            "Name of the stream. It is part of the seed, so that two equal jobs issue different requests." ""
            into!(name, text);
        key ["description"] "" "Description of the job; printed with the results." "" into!(description, text);
        key ["kb_base"] "`1024`" "Meaning of the suffixes of numbers (see above): 1024 or 1000." ""
            into!(kb_base, base);
    }
}

/// Keys that concern the host. They are in every job file, but have no effect on a simulated device.
pub const WITHOUT_MEANING: &[&str] = &[
    "allow_file_create",
    "allow_mounted_write",
    "allrandrepeat",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "buffered",
    "bwavgtime",
    "clat_percentiles",
    "clocksource",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_serialize",
    "dedupe_percentage",
    "direct",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "exec_postrun",
    "exec_prerun",
    "fadvise_hint",
    "fallocate",
    "fixedbufs",
    "force_async",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "hugepage-size",
    "invalidate",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "ioscheduler",
    "lat_percentiles",
    "libaio_nonvectored",
    "lockmem",
    "log_avg_msec",
    "log_compression",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "log_store_compressed",
    "log_unix_epoch",
    "mem",
    "mem_align",
    "new_group",
    "nice",
    "nonvectored",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "overwrite",
    "per_job_logs",
    "percentile_list",
    "pre_read",
    "prio",
    "prioclass",
    "random_generator",
    "randrepeat",
    "refill_buffers",
    "registerfiles",
    "scramble_buffers",
    "significant_figures",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "sqthread_poll_cpu",
    "stats",
    "thinktime_spin",
    "thread",
    "uncached",
    "unified_rw_reporting",
    "unit_base",
    "unlink",
    "userspace_reap",
    "write_bw_log",
    "write_hist_log",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
];

/// Keys of fio that would affect a device, and what to use instead.
pub const NOT_SUPPORTED: &[(&str, &str)] = &[
    ("bs_is_seq_rand", "give reads and writes sizes of their own with bs=read,write"),
    ("bs_unaligned", "sizes are multiples of the smallest; list others in bssplit"),
    ("exitall", "end each job with runtime, size or number_ios"),
    ("exit_what", "end each job with runtime, size or number_ios"),
    ("file_service_type", "give each file a job of its own"),
    ("flow", "give each job a rate of its own with rate_iops"),
    ("io_submit_mode", "for requests that arrive whatever the device does, give rate_iops"),
    ("iodepth_batch", "requests are issued one by one; leave it out"),
    ("iodepth_batch_complete_max", "requests are issued one by one; leave it out"),
    ("iodepth_batch_complete_min", "requests are issued one by one; leave it out"),
    ("iodepth_batch_submit", "requests are issued one by one; leave it out"),
    ("iodepth_low", "requests are issued one by one; leave it out"),
    ("latency_target", "run the job with several values of iodepth"),
    ("nrfiles", "give each file a job of its own"),
    ("offset_align", "give offset in bytes"),
    ("opendir", "name what is read with filename"),
    ("profile", "write its jobs out"),
    ("rate_cycle", "rates hold for each request; leave it out"),
    ("rate_iops_min", "compare the rate in the results with it"),
    ("rate_min", "compare the rate in the results with it"),
    ("replay_align", "prepare the trace"),
    ("replay_scale", "prepare the trace, or use `--fit` with the trace as the workload"),
    ("replay_skip", "prepare the trace"),
    ("steadystate", "precondition the device with --precondition steady"),
    ("sync_file_range", "use fsync"),
    ("thinktime_blocks_type", "requests are counted when they are issued; leave it out"),
    ("trim_percentage", "use rw=randtrim, or rw=trimwrite"),
    ("verify", "the simulator checks contents in its own tests; leave it out"),
    ("write_barrier", "use fsync"),
];

/// Result of setting a key.
pub enum Set {
    /// The key has this index in [`KEYS`].
    Key(usize),
    /// The key has no meaning for a simulated device.
    WithoutMeaning,
}

/// Returns the index of the key with a name.
pub fn find(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.names.contains(&name))
}

/// Sets a key. The error gives the key, the value, and what is allowed.
pub fn set(options: &mut Options, name: &str, value: Option<&str>) -> Result<Set, String> {
    if let Some(known) = WITHOUT_MEANING.iter().find(|known| **known == name) {
        options.without_meaning.insert(known);
        return Ok(Set::WithoutMeaning);
    }
    let index = find(name).ok_or_else(|| unknown(name))?;
    let key = &KEYS[index];
    let value = match value {
        Some("") | None if !key.flag => return Err(format!("`{name}` needs a value: write {name}=...")),
        Some(value) => value,
        None => "1",
    };
    let base = options.kb_base.unwrap_or_default();
    (key.set)(options, value, base).map_err(|allowed| format!("`{name}={}`: {allowed}", shown(value)))?;
    options.given.insert(key.names[0]);
    Ok(Set::Key(index))
}

/// Maximum number of suggested keys.
const MAX_NEAR: usize = 3;

/// Returns the error for an unsupported key.
fn unknown(name: &str) -> String {
    let without = |(known, _): &&(&str, &str)| {
        *known == name || (*known == "verify" && (name.starts_with("verify_") || name == "do_verify"))
    };
    if let Some((_, instead)) = NOT_SUPPORTED.iter().find(without) {
        return format!("`{name}` of fio is not supported: {instead}");
    }
    let names = || KEYS.iter().flat_map(|key| key.names.iter().copied());
    // The distance takes time proportional to the product of the lengths, and long names do not resemble a key.
    let mut near: Vec<(usize, &str)> = names()
        .chain(WITHOUT_MEANING.iter().copied())
        .filter(|_| name.len() <= 32)
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= known.len().min(name.len()) / 2)
        .collect();
    near.sort_unstable();
    // Suggest only the nearest keys and those that are nearly as close.
    let least = near.first().map_or(0, |(distance, _)| *distance);
    near.retain(|(distance, _)| *distance <= least + 1);
    let near: Vec<String> = near.into_iter().take(MAX_NEAR).map(|(_, known)| format!("`{known}`")).collect();
    let near = match &near[..] {
        [] => ".".to_owned(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    };
    format!("`{}` is not supported{near} The keys are in docs/reference/synthetic.md", shown(name))
}

/// Returns all names of all keys.
#[cfg(test)]
pub fn all_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().flat_map(|key| key.names.iter().copied())
}
