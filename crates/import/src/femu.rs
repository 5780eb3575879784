//! FEMU's device options, in a command for QEMU or in a script. Defaults are those of `hw/femu/femu.c` at commit
//! 99ce4fb.

use std::collections::BTreeMap;

use crate::draft::{Draft, time};
use crate::keys::{Found, Key, Keys};

/// Options that do not change requests or their times.
const UNNEEDED: [&str; 13] = [
    "serial",
    "id",
    "queues",
    "multipoller_enabled",
    "poller_ratio",
    "hiops_inline",
    "debug_ftl",
    "mdts",
    "vid",
    "did",
    "entries",
    "oncs",
    "oacs",
];

/// Returns `true` for a command line or script with FEMU's device.
pub fn recognize(text: &str) -> bool {
    text.contains("-device femu") || text.contains("-device 'femu") || text.contains("-device \"femu")
}

/// Returns the options of the device. A script builds them from variables of the shell.
fn options(text: &str) -> Result<Vec<Key>, String> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        let plain = line.split([',', ' ', '\t']).next().unwrap_or("");
        if let Some((name, value)) = plain.split_once('=') {
            variables.insert(name.to_owned(), value.trim_matches(['"', '\'']).to_owned());
        }
        let is_of_femu = line.contains("-device femu") || line.contains("femu,") || line.contains("_OPTIONS}");
        if !is_of_femu && !line.starts_with(',') {
            continue;
        }
        let words = line.split([' ', '\t', '"', '\'']).filter(|word| word.contains(','));
        let others = ["virtio-scsi-pci", "scsi-hd", "file=", "user,", "nic,", "unix:"];
        for word in words.filter(|word| !others.iter().any(|other| word.starts_with(other))) {
            for option in word.split(',').skip(1) {
                let Some((name, value)) = option.split_once('=') else { continue };
                let variable = value.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
                let value = match variable {
                    Some(variable) => variables.get(variable).cloned().ok_or_else(|| {
                        format!("line {number}: `{name}` is ${variable}, which the script does not set; set it there")
                    })?,
                    None => value.trim_end_matches('\\').to_owned(),
                };
                found.push(Key { name: name.to_owned(), value, line: number });
            }
        }
    }
    Ok(found)
}

/// Imports a command line or script.
pub fn import(text: &str, file: &str) -> Result<Draft, String> {
    let mut keys = Keys::new("FEMU", options(text)?);
    let mode = keys.read("femu_mode", Some(2u32))?;
    if mode.value != 1 {
        return Err(format!("{}: expected 1, a drive with a flash translation layer (black box)", mode.from));
    }
    let mut draft = Draft::new("FEMU", file);
    draft.ignore(&mut keys, &UNNEEDED);
    let read = keys.number("pg_rd_lat", Some(40_000.0))?;
    let program = keys.number("pg_wr_lat", Some(200_000.0))?;
    let erase = keys.number("blk_er_lat", Some(2_000_000.0))?;
    let is_timed = [&read, &program, &erase].iter().any(|time| time.value > 0.0);
    let lines = geometry(&mut draft, &mut keys, is_timed)?;
    for (path, found, default) in
        [("nand.read", read, "40us"), ("nand.program", program, "200us"), ("nand.erase", erase, "2ms")]
    {
        match is_timed {
            true => draft.text(path, time(found.value)?, found.from),
            false => draft.text(path, default, format!("FEMU's default, since all times are 0 ({})", found.from)),
        }
    }
    draft.text("nand.concurrency", "die", "FEMU: each LUN works by itself");
    bus(&mut draft, &mut keys)?;
    if is_timed {
        let from = "FEMU, ssd_advance_write_pointer(): pages are written to the channels in turn, then to their LUNs";
        draft.text("allocation.dynamic.order", "channel-chip-die-plane", from);
    }
    collection(&mut draft, &mut keys, lines)?;
    memory(&mut draft, &mut keys)?;
    host(&mut draft, &mut keys)?;
    faults(&mut draft, &mut keys)?;
    draft.lose_rest(&keys);
    Ok(draft)
}

/// Imports the geometry. Returns the number of lines, and the share of them that the host's data fills.
fn geometry(draft: &mut Draft, keys: &mut Keys, is_timed: bool) -> Result<(u32, f64), String> {
    let channels = keys.count("nchs", Some(8))?;
    let luns = keys.count("luns_per_ch", Some(8))?;
    let planes = keys.count("pls_per_lun", Some(1))?;
    let blocks = keys.count("blks_per_pl", Some(256))?;
    let pages = keys.count("pgs_per_blk", Some(256))?;
    let [sectors, sector] = [keys.count("secs_per_pg", Some(8))?, keys.count("secsz", Some(512))?];
    let page = u64::from(sectors.value) * u64::from(sector.value);
    let in_line = u64::from(channels.value) * u64::from(luns.value) * u64::from(planes.value);
    let flash = in_line * u64::from(blocks.value) * u64::from(pages.value) * page;
    if is_timed {
        draft.take("geometry.channels", &channels);
        draft.take("geometry.chips", &luns);
        draft.set("geometry.dies", 1, "FEMU has no dies below LUNs");
        draft.take("geometry.planes", &planes);
        draft.take("geometry.blocks", &blocks);
        draft.take("geometry.pages", &pages);
        let why = "each plane collects blocks by itself, and FEMU collects lines of one block of each LUN, which are \
                   erased together";
        draft.lose("lines", why);
    } else {
        let from = "all times are 0, so that only lines matter: a line of FEMU, one block of each LUN, is one block";
        for path in ["geometry.channels", "geometry.chips", "geometry.dies", "geometry.planes"] {
            draft.set(path, 1, from);
        }
        draft.take("geometry.blocks", &blocks);
        let from = [&pages.from, &channels.from, &luns.from, &planes.from].map(|from| &**from).join(", ");
        draft.set("geometry.pages", u64::from(pages.value) * in_line, from);
    }
    draft.text("geometry.page_size", format!("{page}B"), format!("{}, {}", sectors.from, sector.from));
    draft.text("geometry.mapping_unit", "page", "FEMU maps pages");
    let logical = logical(draft, keys, flash, page)?;
    Ok((blocks.value, logical as f64 / flash as f64))
}

/// Imports the size that the host sees, in bytes.
fn logical(draft: &mut Draft, keys: &mut Keys, flash: u64, page: u64) -> Result<u64, String> {
    let spare = keys.read("op_pcent", Some(0u64))?;
    let size = keys.read("devsz_mb", Some(1024u64))?;
    let (bytes, from) = match spare.value {
        0 => (size.value << 20, size.from),
        spare_pcent => {
            (u64::try_from(u128::from(flash) * 100 / u128::from(100 + spare_pcent)).unwrap_or(flash), spare.from)
        }
    };
    let bytes = bytes / page * page;
    if bytes >= flash {
        return Err(format!("{from}: the drive has {flash} B of flash, and needs some of it as spare blocks"));
    }
    draft.text("capacity.logical", format!("{bytes}B"), from);
    let namespaces = keys.read("namespaces", Some(1u32))?;
    if namespaces.value != 1 {
        draft.lose(namespaces.from, "the drive has one namespace of the whole size");
    }
    draft.ignore(keys, &["namespace_sizes", "namespace_modes"]);
    Ok(bytes)
}

fn bus(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let transfer = keys.number("ch_xfer_lat", Some(0.0))?;
    let sectors = keys.count("secs_per_pg", Some(8))?.value * keys.count("secsz", Some(512))?.value;
    let cycle = (transfer.value * 1000.0 / f64::from(sectors)).max(1.0) / 1000.0;
    draft.text("bus.protocol.sdr", time(cycle)?, format!("{}: for one page, 1 ps for a byte or more", transfer.from));
    for name in ["pg_xfer_lat", "cmd_addr_lat", "status_lat", "tplpbsy", "tplrbsy", "tplebsy", "trcbsy", "trim_lat_ns"]
    {
        let found = keys.number(name, Some(0.0))?;
        if found.value > 0.0 {
            draft.lose(found.from, "these phases of FEMU's detailed timing take no time");
        }
    }
    for name in ["pgtype_lat", "cell_pages", "ecc_step_ns", "nand_cell_type"] {
        let found = keys.number(name, Some(0.0))?;
        if found.value > 0.0 {
            draft.lose(found.from, "all pages have the same times; give lists to nand.read and nand.program");
        }
    }
    draft.ignore(keys, &["flash_type"]);
    Ok(())
}

/// Imports garbage collection. `lines` is the number of lines, and the share of them that the host's data fills.
fn collection(draft: &mut Draft, keys: &mut Keys, (lines, filled): (u32, f64)) -> Result<(), String> {
    let free = |found: &Found<f64>| ((1.0 - found.value / 100.0) * f64::from(lines)).max(0.0) as u32;
    let soft = keys.number("gc_thres_pcent", Some(75.0))?;
    let hard = keys.number("gc_thres_pcent_high", Some(95.0))?;
    // A full drive keeps the spare lines free, less those that are being written and collected.
    let reachable = (f64::from(lines) * (1.0 - filled)) as u32;
    let wanted = free(&soft).max(free(&hard)).max(1);
    if wanted + 3 > reachable {
        let from = format!("{}: FEMU collects a line if an eighth of its pages is invalid", soft.from);
        draft.set("gc.trigger.lazy.invalid", 0.125, from);
        draft.set("gc.soft_threshold", wanted, &*soft.from);
        draft.set("gc.hard_threshold", free(&hard).clamp(1, reachable.saturating_sub(3).max(1)), hard.from);
        draft.lose(
            soft.from,
            "a full drive always has fewer free lines. FEMU then collects any line of which an eighth is invalid, and \
             Floatgate the best one while an eighth of all closed blocks is",
        );
    } else {
        draft.set("gc.soft_threshold", wanted, &*soft.from);
        draft.set("gc.hard_threshold", wanted, format!("{}: FEMU collects before the next request", soft.from));
    }
    let policy = keys.read("gc_policy", Some("greedy".to_owned()))?;
    match &*policy.value {
        "d-choice" => draft.set("gc.victim.d-choices.d", 4, format!("{}: FEMU_DCHOICE_D", policy.from)),
        "greedy" | "fifo" | "random" | "cost-benefit" => draft.text("gc.victim", &policy.value, &*policy.from),
        other => return Err(format!("invalid `gc_policy` {other}")),
    }
    if policy.value == "random" {
        let why = "FEMU refuses a random line with less than an eighth of invalid pages once, and Floatgate takes it";
        draft.lose(policy.from, why);
    }
    draft.text("gc.frontiers", "single", "FEMU: copies go to the line of host writes");
    draft.ignore(keys, &["gc_strategy", "fdp_trim_erase_all"]);
    Ok(())
}

fn memory(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let cache = keys.read("read_cache_mb", Some(0u32))?;
    if cache.value > 0 {
        draft.text("buffer.capacity", format!("{}MiB", cache.value), cache.from);
        draft.text("buffer.write", "write-through", "FEMU: a cache for reads");
        let eviction = keys.read("cache_evict", Some("clock".to_owned()))?;
        match &*eviction.value {
            "clock" | "lru" => draft.text("buffer.eviction", &eviction.value, &*eviction.from),
            _ => draft.lose(eviction.from, "the least recently used page is evicted"),
        }
    }
    let scheme = keys.read("mapping", Some("page".to_owned()))?;
    let entries = keys.read("mapping_cache_mb", Some(0u32))?;
    match &*scheme.value {
        "page" => {}
        "dftl" => draft.text("mapping.scheme.dftl.cache", format!("{}MiB", entries.value.max(1)), entries.from),
        _ => draft.lose(scheme.from, "pages are mapped; compare `mapping.scheme` in docs/reference/config.md"),
    }
    Ok(())
}

fn host(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let bandwidth = keys.read("pcie_bandwidth_mbps", Some(0u32))?;
    if bandwidth.value > 0 {
        draft.text("host.link_bandwidth", format!("{}MB/s", bandwidth.value), bandwidth.from);
    }
    let delay = keys.number("pcie_prop_delay_ns", Some(0.0))?;
    if delay.value > 0.0 {
        draft.text("host.link_latency", time(delay.value / 2.0)?, format!("{}: half in each direction", delay.from));
    }
    let firmware = keys.number("fw_cpu_ns", Some(0.0))?;
    if firmware.value > 0.0 {
        let from = format!("{}: half before a request and half after it", firmware.from);
        draft.text("controller.firmware.interrupt", time(firmware.value / 2.0)?, from);
    }
    Ok(())
}

fn faults(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    for (path, name) in [("faults.read_rate", "err_read_unc_ppm"), ("faults.program_rate", "err_write_fail_ppm")] {
        let found = keys.number(name, Some(0.0))?;
        if found.value > 0.0 {
            draft.set(path, found.value / 1e6, found.from);
        }
    }
    let bad = keys.number("nand_bad_blocks", Some(0.0))?;
    if bad.value > 0.0 {
        draft.lose(bad.from, "no block is bad; set `faults.factory_bad`");
    }
    Ok(())
}
