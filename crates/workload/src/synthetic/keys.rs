//! Table of all job keys: names, parsers, and texts for the reference.
//!
//! The reference of fio is its HOWTO, "Job file parameters", which lists each key under the same name.

use super::catalog::{self, OTHERS};
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
    /// Verification.
    Verify,
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

/// Parses a value into its field. As in fio, 0 has the same effect as no value.
macro_rules! unless_zero {
    ($field:ident, $read:expr) => {
        |options, value, base| {
            options.$field = if value == "0" { None } else { Some($read(value, base)?) };
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
        key ["cmdprio_percentage"] "`0`"
            "Percent of the reads and writes with high priority, which form a stream of their own in the results; \
             `read,write`. The scheduler `priority-first` serves them first." ""
            unless_zero!(cmdprio_percentage, |value, base| by_direction(value, |part| percent(part, base)));
        key ["cmdprio_class"] "`1`" "Class of these requests: `1`, real time, has high priority; 2 and 3 have not." ""
            into!(cmdprio_class, real_time);
        key ["prioclass"] "`0`" "Class of all requests of the job. `1`, real time: they have high priority." ""
            into!(prioclass, real_time);
        key ["random_distribution"] "`random`" "Distribution of random requests over the blocks (see below)." ""
            into!(random_distribution, distribution);
        flag ["random_sequence_stride"] "off"
            "Move the blocks of `random_distribution=sequence:...` by their number after each round." ""
            switch!(random_sequence_stride);
        flag ["norandommap"] "off"
            "Do not track used blocks. Without it, every block is used once before any is used again."
            "" switch!(norandommap);
        flag ["sprandom"] "off"
            "Write the physical space of the device once, at random, so that its blocks have as many valid pages as in \
             the steady state of random writes (see below)." "Needs `random_generator=lfsr`." switch!(sprandom);
        key ["spr_num_regions"] "`100`" "Number of regions of `sprandom`." "" into!(spr_num_regions, count_32);
        key ["spr_op"] "`0.15`" "Over-provisioning for `sprandom`, as a share of the logical space." ""
            into!(spr_op, part);
        key ["spr_cs"] "`0`"
            "Cache of the device in bytes. Above 0, `sprandom` writes blocks again one region later." ""
            unless_zero!(spr_cs, block_size);
        key ["filename"] "in a job file a file for each clone, otherwise the device"
            "Area that a job accesses, or several, separated by colons. If all jobs and clones have the same, it is \
             the whole device. Different areas are placed in the order of the jobs, each at a multiple of 1 MiB. They \
             are as large as `filesize`, or else as the largest `offset` + `size` of their jobs (see below)."
            "A file or a device." into!(filename, text);
        key ["nrfiles", "nr_files"] "`1`"
            "Number of files of a job without `filename`, in a job file, or the number of names used of a list. `size` \
             is divided among them." "" into!(nrfiles, count_32);
        key ["file_service_type"] "`roundrobin`"
            "Choice of the file of the next request: `roundrobin`, `sequential` (one file after the other) or `random`; \
             `roundrobin:8` stays with a file for 8 requests." "Also `zipf`, `pareto` and `normal`."
            into!(file_service_type, service);
        key ["filename_format"] "`$jobname.$jobnum.$filenum`"
            "Name of the area of a job without `filename`, in a job file. `$jobnum` is the number of the clone, and \
             `$filenum` is 0. Without `$jobnum`, clones share an area." "" into!(filename_format, text);
        key ["directory"] ""
            "First part of the name of the area. Clones are distributed over a list `a:b`." ""
            into!(directory, text);
        key ["filesize"] "the device"
            "Size of the area that `offset` and `size` refer to." "Also a range, from which it draws."
            unless_zero!(filesize, block_size);
        key ["offset", "fileoffset"] "`0`"
            "Start of the job's region: bytes, or percent of the device or `filesize` (then rounded up to a whole \
             block)." "" into!(offset, offset);
        key ["offset_align"] "smallest `bs`" "Multiple to which an offset in percent is rounded up." ""
            unless_zero!(offset_align, block_size);
        key ["offset_increment"] "`0`" "The region of clone *n* of `numjobs`, from 0, starts *n* times this later." ""
            into!(offset_increment, offset);
        key ["size"] "to the end"
            "Size of the region: bytes, or percent of the device or `filesize` (limited to the space after `offset`). \
             Also the amount of data to transfer (see below)." "" unless_zero!(size, region_size);
    }
    Strides {
        key ["zonemode"] "`none`; `strided` with `zonesize`"
            "`strided`: transfer `zonesize` bytes in a zone of `zonerange` bytes, then skip `zoneskip` bytes to the \
             next zone." "Also `zbd`." into!(zonemode, zone_mode);
        key ["zonesize"] ""
            "Bytes to transfer in a zone. Less than `zonerange` leaves a part of each zone alone, more goes over it \
             again." "" unless_zero!(zonesize, block_size);
        key ["zonerange"] "`zonesize`" "Size of a zone." "" unless_zero!(zonerange, block_size);
        key ["zoneskip"] "`0`" "Bytes between two zones." "" into!(zoneskip, sectors_or_none);
    }
    HowMuch {
        key ["io_size", "io_limit"] "`size`"
            "End after this much instead of `size`: bytes, or percent of `size`, also more than 100 %." ""
            unless_zero!(io_size, io_size);
        key ["number_ios"] ""
            "End after this number of requests. A pair of `trimwrite` counts once, a flush does not count."
            "`size`, even if not given, may end the job before." unless_zero!(number_ios, count);
        key ["loops"] "`1`" "Repeat `size`, `io_size` and `number_ios` this number of times." "" into!(loops, count_32);
        key ["runtime", "timeout"] "" "Issue nothing after this time, counted from the job's start; seconds." ""
            unless_zero!(runtime, |value, _| time(value, SECOND, 1));
        flag ["time_based"] "off" "`size` and `io_size` do not end the job, `runtime` does." "" switch!(time_based);
        key ["ramp_time"] "`0`"
            "Exclude requests that complete within this time after the job's start from the results; it precedes \
             `runtime`. Seconds." "" into!(ramp_time, |value, _| time(value, SECOND, 0));
        key ["steadystate", "ss"] ""
            "End the job when its rate or mean latency is steady: `iops`, `bw` or `lat` when no interval deviates more \
             from the mean than the limit, `iops_slope`, `bw_slope` or `lat_slope` when a line through the values has a \
             smaller slope for each interval; `iops_slope:0.3%` is relative to the mean. A limit of `lat` is in \
             microseconds." "Compares a limit of `lat` in microseconds with nanoseconds."
            into!(steadystate, steady);
        key ["steadystate_duration", "ss_dur"] "" "Time over which the rate is judged; seconds." ""
            unless_zero!(ss_dur, |value, _| time(value, SECOND, 1));
        flag ["group_reporting"] "off"
            "Judge the steady state of the jobs from a `stonewall` or `new_group` to the next together."
            "Also groups the report." switch!(group_reporting);
        key ["steadystate_ramp_time", "ss_ramp"] "`0`" "Time before the rate is judged; seconds." ""
            unless_zero!(ss_ramp, |value, _| time(value, SECOND, 1));
        key ["steadystate_check_interval", "ss_interval"] "`1`" "Length of the intervals; seconds." ""
            unless_zero!(ss_interval, |value, _| time(value, SECOND, 1));
    }
    HowFast {
        key ["iodepth"] "`1`; no limit with `rate`, `rate_iops` or `read_iolog`"
            "Outstanding requests of each clone. A synchronous engine limits it to 1 (see below)."
            "Always `1`." into!(iodepth, depth);
        key ["io_submit_mode"] "`inline`"
            "`offload`: a synchronous engine has `iodepth` outstanding requests, too." "Threads submit the requests."
            into!(io_submit_mode, submit_mode);
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
            unless_zero!(thinktime_iotime, |value, _| time(value, SECOND, 1));
        key ["rate"] ""
            "Bytes per second of each direction of a mix; `read,write,trim` sets them separately. Each request \
             arrives after the time that the requests before it take at this rate."
            "A limit: a device that falls behind slows the arrivals down."
            unless_zero!(rate, |value, base| by_direction(value, |part| bandwidth(part, base)));
        key ["rate_iops"] ""
            "Requests per second of each direction of a mix; `read,write,trim` sets them separately."
            "A limit, as above. With several sizes, it is one of bytes: the rate times the smallest size."
            unless_zero!(rate_iops, |value, base| by_direction(value, |part| rate(part, base)));
        key ["rate_process"] "`linear`"
            "`linear`: the first request at 0, with `rate_iops` equal gaps. `poisson`: exponential gaps; with `rate`, \
             of `rate` divided by the smallest size." "" into!(rate_process, process);
        key ["iodepth_batch_complete_min", "iodepth_batch_complete"] "`1`"
            "After `iodepth` requests are outstanding, wait for this number of completions before the next request."
            "Latencies include the wait for the other completions."
            unless_zero!(batch_complete, count_32);
        key ["iodepth_low"] "`iodepth`"
            "After `iodepth` requests are outstanding, wait until at most this number is." ""
            unless_zero!(iodepth_low, count_32);
        key ["latency_target"] "`0`"
            "Search for the largest depth up to `iodepth` at which requests complete within this time; microseconds \
             (see below)." ""
            unless_zero!(latency_target, |value, _| time(value, MICROSECOND, 1));
        key ["latency_window"] "" "Time for which each depth is tried; microseconds." ""
            unless_zero!(latency_window, |value, _| time(value, MICROSECOND, 1));
        key ["latency_percentile"] "`100`" "Percentage of the requests that must complete within `latency_target`." ""
            into!(latency_percentile, percentile);
        flag ["latency_run"] "off" "Continue with the search until the job ends otherwise." "" switch!(latency_run);
        key ["flow"] "`0`"
            "Jobs with the same `flow_id` issue requests in proportion to these weights; 0 for none."
            "Jobs that wait may also sleep (`flow_sleep`)." unless_zero!(flow, count_32);
        key ["flow_id"] "`0`" "Number of the flow." "" into!(flow_id, period);
    }
    Flushes {
        key ["fsync"] "`0`" "Flush after this number of writes; 0 for never." "" into!(fsync, period);
        key ["fdatasync"] "`0`" "Like `fsync`; if both are due, there is one flush." "Leaves out metadata of the file."
            into!(fdatasync, period);
        flag ["end_fsync"] "off" "Flush as the last request of a job that writes." "" switch!(end_fsync);
        key ["sync"] "`none`"
            "`sync` or `dsync`, also `1`: writes carry the flag *force unit access* and are durable when they complete. \
             `none` or `0`: they are not." "`sync` is `O_SYNC`, `dsync` is `O_DSYNC`." into!(sync, sync);
        flag ["writefua"] "off" "The same as `sync=dsync`." "" |options, value, base| {
            options.sync = Some(switch(value, base)?);
            Ok(())
        };
        key ["write_mode", "sg_write_mode"] "`write`"
            "`zeroes` (`write_zeroes`, `write_same_ndob`): the writes are commands that write zeroes without data."
            "Also commands for uncorrectable blocks and verification."
            into!(write_mode, write_mode);
        key ["write_hint"] "`none`"
            "Lifetime of the data that the job writes: `none`, `short`, `medium`, `long` or `extreme`. A device with \
             `temperature = \"hints\"` uses it as the placement hint 0, 2, 3, 4 or 5." "Sets it with `fcntl`."
            into!(write_hint, write_hint);
    }
    Verify {
        key ["verify"] "`0`"
            "Read everything that the job has written, after each pass over its region: any of fio's methods, such as \
             `crc32c`. `0` is off. A job that only reads is not affected." "Checks the contents."
            into!(verify, verify);
        flag ["do_verify"] "on" "`0` leaves the reads out." "" into!(do_verify, switch);
        flag ["verify_only"] "off" "Only read, without the writes." "" switch!(verify_only);
        key ["verify_backlog"] "`0`"
            "Read after this number of writes already, instead of at the end of the pass." ""
            unless_zero!(verify_backlog, count);
        key ["verify_backlog_batch"] "`verify_backlog`" "Number of writes that are read at a time." ""
            unless_zero!(verify_backlog_batch, count);
    }
    Jobs {
        key ["numjobs"] "`1`"
            "Run this number of clones of the job, named `name.0`, `name.1`, and so on. Each is a stream with its own \
             depth and random numbers." "All clones have one name." into!(numjobs, count_32);
        flag ["stonewall", "wait_for_previous"] "off"
            "Wait until all previous jobs have ended. Later jobs wait with this one. Clones start together." ""
            switch!(stonewall);
        key ["wait_for"] "" "Start after the job of this name, with all its clones, has ended." ""
            into!(wait_for, text);
        key ["startdelay"] "`0`"
            "Time from the start of the run, or the end of the jobs waited for, to the start of the job; seconds."
            "Always counts from the start of the run; also a range."
            into!(startdelay, |value, _| time(value, SECOND, 0));
        flag ["exitall"] "off" "When a job ends, the other jobs of its group end, too. Holds for all jobs." ""
            switch!(exitall);
        key ["exit_what"] "`group`"
            "Jobs that `exitall` ends: those of the `group`, from a `stonewall` or `new_group` to the next; those from a \
             `stonewall` to the next; or `all`." "" into!(exit_what, exit_what);
        flag ["new_group"] "off" "Start a group of `exitall` with this job." "Also a group of the report."
            switch!(new_group);
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
        key ["replay_redirect"] ""
            "Merge all devices of the trace into one address space; otherwise they are placed side by side."
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

/// Result of setting a key.
pub enum Set {
    /// The key has this index in [`KEYS`].
    Key(usize),
    /// The key has no effect on the requests.
    WithoutEffect,
}

/// Reason for refusing a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key is unknown or not supported.
    Key(String),
    /// The value is invalid.
    Value(String),
}

impl Refusal {
    /// Returns the text of the error.
    pub fn text(self) -> String {
        match self {
            Refusal::Key(text) | Refusal::Value(text) => text,
        }
    }
}

/// Returns the index of the key with a name.
pub fn find(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.names.contains(&name))
}

/// Sets a key. The error gives the key, the value, and what is allowed.
pub fn set(options: &mut Options, name: &str, value: Option<&str>) -> Result<Set, Refusal> {
    let Some(index) = find(name) else {
        let other = catalog::find(name).ok_or_else(|| Refusal::Key(unknown(name)))?;
        return catalog::set(options, other, value).map(|()| Set::WithoutEffect).map_err(Refusal::Key);
    };
    let key = &KEYS[index];
    let value = match value {
        Some("") | None if !key.flag => {
            return Err(Refusal::Value(format!("`{name}` needs a value: write {name}=...")));
        }
        Some(value) => value,
        None => "1",
    };
    let base = options.kb_base.unwrap_or_default();
    let error = |allowed| Refusal::Value(format!("`{name}={}`: {allowed}", shown(value)));
    (key.set)(options, value, base).map_err(error)?;
    options.given.insert(key.names[0]);
    Ok(Set::Key(index))
}

/// Maximum number of suggested keys.
const MAX_NEAR: usize = 3;

/// Returns the error for an unknown key.
fn unknown(name: &str) -> String {
    let names = || KEYS.iter().flat_map(|key| key.names.iter().copied());
    // The distance takes time proportional to the product of the lengths, and long names do not resemble a key.
    let mut near: Vec<(usize, &str)> = names()
        .chain(OTHERS.iter().map(|other| other.name))
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
