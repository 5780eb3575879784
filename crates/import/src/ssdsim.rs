//! SSDsim's `page.parameters`: lines of `key = value; #comment`. SSDsim has no defaults, except for its queue.

use crate::draft::{Draft, percent, time};
use crate::keys::{Found, Key, Keys};

/// Keys of currents and signal times, which SSDsim reads and does not use for times of requests.
const UNNEEDED: [&str; 41] = [
    "subpage page",
    "t_DBSY",
    "t_CLS",
    "t_CLH",
    "t_CS",
    "t_CH",
    "t_WP",
    "t_ALS",
    "t_ALH",
    "t_DS",
    "t_DH",
    "t_WH",
    "t_ADL",
    "t_AR",
    "t_CLR",
    "t_RR",
    "t_RP",
    "t_WB",
    "t_REA",
    "t_CEA",
    "t_RHZ",
    "t_CHZ",
    "t_RHOH",
    "t_RLOH",
    "t_COH",
    "t_REH",
    "t_IR",
    "t_RHW",
    "t_WHR",
    "t_RST",
    "flash operating current",
    "flash supply voltage",
    "dram active current",
    "dram standby current",
    "dram refresh current",
    "dram voltage",
    "gc",
    "gc threshold",
    "wear leveling",
    "buffer management",
    "aged ratio",
];

/// Returns `true` for a text with keys that only SSDsim has.
pub fn recognize(text: &str) -> bool {
    let has = |name: &str| keys(text).any(|key| key.name == name);
    has("t_PROG") && has("page capacity") && has("channel number")
}

/// Returns the keys of a file.
fn keys(text: &str) -> impl Iterator<Item = Key> {
    text.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.split('#').next().unwrap_or("");
        let (name, value) = line.split_once('=')?;
        let value = value.split(';').next().unwrap_or("").trim().to_owned();
        Some(Key { name: name.trim().to_owned(), value, line: number })
    })
}

/// Imports a parameter file.
pub fn import(text: &str, file: &str) -> Result<Draft, String> {
    let mut keys = Keys::new("SSDsim", keys(text).collect());
    let mut draft = Draft::new("SSDsim", file);
    draft.ignore(&mut keys, &UNNEEDED);
    geometry(&mut draft, &mut keys)?;
    nand(&mut draft, &mut keys)?;
    allocation(&mut draft, &mut keys)?;
    collection(&mut draft, &mut keys)?;
    buffer(&mut draft, &mut keys)?;
    let mapping = keys.read("address mapping", Some(1))?;
    if mapping.value != 1 {
        draft.lose(mapping.from, "pages are mapped");
    }
    if keys.read("aged", Some(0))?.value != 0 {
        draft.lose("aged = 1", "the state before a run is an option of the run: `--precondition`");
    }
    draft.lose_rest(&keys);
    Ok(draft)
}

fn geometry(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let channels = keys.count("channel number", None)?;
    let mut chips = Vec::new();
    for channel in 0.. {
        let Some(key) = keys.get(&format!("chip number[{channel}]")) else { break };
        chips.push(key.value.parse::<u32>().map_err(|_| format!("line {}: invalid `{}`", key.line, key.name))?);
    }
    chips.truncate(channels.value as usize);
    let total = keys.count("chip number", None)?;
    let each = total.value / channels.value;
    if each == 0 {
        return Err(format!("{} chips are fewer than {} channels", total.value, channels.value));
    }
    draft.take("geometry.channels", &channels);
    draft.set("geometry.chips", each, format!("{}, {}", total.from, channels.from));
    if each * channels.value != total.value || chips.iter().any(|chips| *chips != each) {
        let counts: Vec<String> = chips.iter().map(u32::to_string).collect();
        let why = format!("all channels have {each} chips");
        draft.lose(format!("chip number = {}, chip number[i] = {}", total.value, counts.join(" ")), why);
    }
    draft.take("geometry.dies", &keys.count("die number", None)?);
    draft.take("geometry.planes", &keys.count("plane number", None)?);
    draft.take("geometry.blocks", &keys.count("block number", None)?);
    draft.take("geometry.pages", &keys.count("page number", None)?);
    let page = keys.count("page capacity", None)?;
    draft.text("geometry.page_size", format!("{}B", page.value), page.from);
    draft.text("geometry.mapping_unit", "page", "SSDsim maps pages");
    if let Some(key) = keys.get("subpage capacity").filter(|key| key.value != "512") {
        draft.lose(format!("subpage capacity = {}", key.value), "sectors have 512 B");
    }
    draft.take("capacity.spare", &keys.number("overprovide", None)?);
    Ok(())
}

fn nand(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    for (path, name) in [("nand.read", "t_R"), ("nand.program", "t_PROG"), ("nand.erase", "t_BERS")] {
        let found = keys.number(name, None)?;
        draft.text(path, time(found.value)?, found.from);
    }
    draft.take("nand.endurance", &keys.read::<u32>("erase limit", Some(0))?);
    let from = "SSDsim: the dies of a chip work together only in an interleaved command (Hu et al. 2011, Section 2.2)";
    draft.text("nand.concurrency", "command", from);
    commands(draft, keys)?;
    let [write, read] = [keys.number("t_WC", None)?, keys.number("t_RC", None)?];
    draft.text("bus.protocol.sdr", time(write.value)?, &*write.from);
    draft.text("bus.read_cycle", time(read.value)?, read.from);
    draft.text("bus.write_cycle", time(write.value)?, write.from);
    let from =
        "SSDsim, go_one_step(): 7 cycles of t_WC for the command and address of a read or program, 5 of an erase";
    draft.set("bus.command_cycles", "{ read = 7, program = 7, erase = 5 }", from);
    draft.set("bus.partial_transfer", true, "SSDsim, go_one_step(): a read transfers the requested sectors");
    draft.set("scheduler.reads-before-writes", "{}", "SSDsim, process(): reads are served before writes");
    if let Some(key) = keys.get("scheduling algorithm").filter(|key| key.value != "1") {
        draft.lose(format!("scheduling algorithm = {}", key.value), "SSDsim implements 1 (FCFS) only, as here");
    }
    Ok(())
}

/// Imports the advanced commands: bits of 1 random, 2 copy-back, 4 two-plane program, 8 interleave, 16 two-plane read.
fn commands(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let commands = keys.read("advanced command", Some(0u32))?;
    let has = |bit: u32| commands.value & bit != 0;
    let greedy = |found: &Found<u32>| if found.value == 1 { "blind" } else { "wise" };
    let copy_back = keys.read("greed CB command", Some(0))?;
    let multi_plane = keys.read("greed MPW command", Some(0))?;
    if has(2) {
        draft.text("nand.advanced.copy_back", greedy(&copy_back), format!("{}, {}", commands.from, copy_back.from));
    }
    if has(4) {
        let from = format!("{}, {}", commands.from, multi_plane.from);
        draft.text("nand.advanced.multi_plane_program", greedy(&multi_plane), from);
    }
    if has(16) {
        draft.set("nand.advanced.multi_plane_read", true, &*commands.from);
    }
    if has(4) || has(16) {
        draft.set("nand.advanced.strict", true, "SSDsim: two-plane commands need equal block and page addresses");
    }
    if has(8) {
        draft.set("nand.advanced.interleave", true, &*commands.from);
    }
    let priority = keys.read("advanced command priority", Some(0))?;
    if has(8) && (has(4) || has(16)) {
        draft.lose(priority.from, "a command joins planes and dies at once, where addresses allow it");
    }
    draft.ignore(keys, &["advanced command priority2"]);
    Ok(())
}

fn allocation(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let scheme = keys.read("allocation", Some(0u32))?;
    let [of_static, of_dynamic] =
        [keys.read("static_allocation", Some(1u32))?, keys.read("dynamic_allocation", Some(0u32))?];
    if scheme.value == 0 {
        let scope = match of_dynamic.value {
            0 => "device",
            1 => "channel",
            other => return Err(format!("`dynamic_allocation` {other} does nothing in SSDsim: expected 0 or 1")),
        };
        draft.text("allocation.dynamic.scope", scope, format!("{}, {}", scheme.from, of_dynamic.from));
        return Ok(());
    }
    let orders = [
        "chip-die-plane-channel",
        "channel-chip-die-plane",
        "channel-plane-chip-die",
        "channel-die-chip-plane",
        "channel-plane-die-chip",
        "channel-die-plane-chip",
    ];
    let Some(order) = orders.get(of_static.value as usize) else {
        return Err(format!("invalid `static_allocation` {}: expected 0 to 5", of_static.value));
    };
    draft.text("allocation.static.order", order, format!("{}, {}", scheme.from, of_static.from));
    Ok(())
}

fn collection(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let threshold = keys.number("gc hard threshold", None)?;
    let blocks = keys.count("block number", None)?.value;
    let spare = keys.number("overprovide", None)?;
    draft.text("gc.soft_threshold", percent(threshold.value), &*threshold.from);
    // A full drive keeps the spare blocks free, less those that are being written and collected.
    let reachable = (spare.value * f64::from(blocks)) as u32;
    if threshold.value * f64::from(blocks) + 3.0 < f64::from(reachable) {
        draft.text("gc.pace", "exclusive", "SSDsim, process(): a channel with garbage collection serves nothing else");
    } else {
        let from =
            format!("{}: a full drive never has as many free pages, and SSDsim then always collects", spare.from);
        draft.set("gc.trigger.lazy.invalid", "0.0", &*from);
        draft.set("gc.hard_threshold", reachable.saturating_sub(2).max(1), from);
        let why = "above `gc.hard_threshold`, garbage collection queues with the requests of the host, and SSDsim's \
                   always takes priority";
        draft.lose(&*threshold.from, why);
    }
    draft.text("gc.victim", "greedy", "SSDsim, gc(): the block of the plane with the most invalid pages");
    draft.text("gc.frontiers", "single", "SSDsim, get_ppn_for_gc(): copies go to the plane's active block");
    let why = "SSDsim compares free pages with it, and Floatgate free blocks, so that collection starts up to a block \
               earlier";
    draft.lose(threshold.from, why);
    Ok(())
}

fn buffer(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let capacity = keys.read::<u64>("dram capacity", Some(0))?;
    if capacity.value > 0 {
        draft.text("buffer.capacity", format!("{}B", capacity.value), &*capacity.from);
        draft.set("buffer.read", false, "SSDsim: reads do not enter the buffer");
        draft.lose(capacity.from, "the buffer holds whole pages: the size is rounded down, and SSDsim's has sectors");
    }
    draft.set("host.queue_depth", keys.count("queue_length", Some(5))?.value, "SSDsim: queue_length, by default 5");
    Ok(())
}
