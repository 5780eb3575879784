//! DiskSim's `.parv` files with an `ssdmodel_ssd` of Microsoft's SSD extension.

use crate::draft::{Draft, percent, time};
use crate::keys::{Found, Key, Keys};

/// Keys that do not change requests or their times.
const UNNEEDED: [&str; 5] =
    ["Print stats", "Never disconnect", "Timing model", "Element stride pages", "Blocks per element"];

/// Returns `true` for a file with a solid-state drive.
pub fn recognize(text: &str) -> bool {
    text.contains("disksim_") && block(text, "ssdmodel_ssd").is_some()
}

/// Returns the text inside the braces of the first block of a type, and the line on which it starts.
fn block<'t>(text: &'t str, kind: &str) -> Option<(&'t str, usize)> {
    let mut from = 0;
    while let Some(at) = text[from..].find(kind).map(|at| from + at) {
        from = at + kind.len();
        let line = text[..at].rsplit('\n').next().unwrap_or("");
        let open = text[from..].find(['{', '[', ',']).map(|open| from + open)?;
        if line.contains('#') || !text[open..].starts_with('{') {
            continue;
        }
        let mut depth = 0;
        let close = text[open..].char_indices().find_map(|(index, c)| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            (depth == 0).then_some(open + index)
        })?;
        return Some((&text[open + 1..close], text[..open].matches('\n').count() + 1));
    }
    None
}

/// Returns the keys of a block, without those of blocks in it.
fn keys(text: &str, first_line: usize) -> Vec<Key> {
    let mut found = Vec::new();
    let mut depth = 0;
    for (line, number) in text.lines().zip(first_line..) {
        let line = line.split('#').next().unwrap_or("");
        for item in line.split(',') {
            if let (0, Some((name, value))) = (depth, item.split_once('=')) {
                let value = value.trim().to_owned();
                if !value.contains('{') {
                    found.push(Key { name: name.trim().to_owned(), value, line: number });
                }
            }
            depth += item.matches('{').count();
            depth = depth.saturating_sub(item.matches('}').count());
        }
    }
    found
}

/// Imports a parameter file.
pub fn import(text: &str, file: &str) -> Result<Draft, String> {
    let (inside, line) = block(text, "ssdmodel_ssd").ok_or("no ssdmodel_ssd")?;
    let mut keys_of_ssd = Keys::new("DiskSim", keys(inside, line));
    let keys = &mut keys_of_ssd;
    let mut draft = Draft::new("DiskSim", file);
    draft.ignore(keys, &UNNEEDED);
    geometry(&mut draft, keys)?;
    nand(&mut draft, keys)?;
    allocation(&mut draft, keys)?;
    collection(&mut draft, keys)?;
    for name in ["Command overhead", "Bus transaction latency", "Bulk sector transfer time"] {
        let found = keys.number(name, Some(0.0))?;
        if found.value > 0.0 {
            draft.lose(found.from, "this part of a transfer takes no time");
        }
    }
    if let Some(key) = keys.get("Max queue length") {
        let why = "requests enter the drive up to `host.queue_depth`, whose default is higher";
        draft.lose(format!("Max queue length = {}", key.value), why);
    }
    link(&mut draft, text)?;
    draft.lose_rest(keys);
    Ok(draft)
}

fn geometry(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let packages = keys.count("Flash chip elements", None)?;
    let planes = keys.count("Planes per package", None)?;
    let dies = if planes.value.is_multiple_of(2) { 2 } else { 1 };
    draft.take("geometry.channels", &packages);
    let from = format!("{}: two dies (Agrawal et al. 2008, Figure 1), which Floatgate calls chips", planes.from);
    draft.set("geometry.chips", dies, &*from);
    let parallel = keys.count("Number of parallel units", Some(1))?;
    if parallel.value == 1 {
        draft.set("geometry.chips_per_package", dies, from);
    }
    draft.set("geometry.dies", 1, "as above");
    draft.set("geometry.planes", planes.value / dies, &*planes.from);
    draft.take("geometry.blocks", &keys.count("Blocks per plane", None)?);
    draft.take("geometry.pages", &keys.count("Pages per block", None)?);
    let sectors = keys.count("Page size", None)?;
    draft.text("geometry.page_size", format!("{}B", u64::from(sectors.value) * 512), &*sectors.from);
    let from = "DiskSim's SSD extension: 16 B of metadata for each sector";
    draft.text("geometry.spare_size", format!("{}B", u64::from(sectors.value) * 16), from);
    draft.text("geometry.mapping_unit", "page", "DiskSim's SSD extension maps pages");
    let spare = keys.number("Reserve pages percentage", None)?;
    draft.set("capacity.spare", spare.value / 100.0, spare.from);
    let concurrency = match parallel.value {
        1 => "chip",
        2 => "die",
        4 => "plane-pair",
        other => return Err(format!("invalid `Number of parallel units` {other}: expected 1, 2 or 4")),
    };
    draft.text("nand.concurrency", concurrency, parallel.from);
    let gang = keys.count("Elements per gang", Some(1))?;
    let share = keys.count("Gang share", Some(1))?;
    if gang.value > 1 {
        draft.take("gang.width", &gang);
        draft.text("gang.mode", if share.value == 2 { "asynchronous" } else { "interleaved" }, share.from);
    }
    Ok(())
}

/// Imports times, which DiskSim has in milliseconds.
fn nand(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let times = [
        ("nand.read", "Page read latency"),
        ("nand.program", "Page write latency"),
        ("nand.erase", "Block erase latency"),
        ("bus.protocol.sdr", "Chip xfer latency"),
    ];
    for (path, name) in times {
        let found: Found<f64> = keys.number(name, None)?;
        draft.text(path, time(found.value * 1e6)?, format!("{} (ms)", found.from));
    }
    draft.set("bus.transfer_spare", true, "DiskSim's SSD extension transfers 528 B for each sector");
    let copy_back = keys.read("Copy back", Some(0u32))?;
    if copy_back.value == 1 {
        draft.text("nand.advanced.copy_back", "wise", &*copy_back.from);
    }
    draft.set("nand.advanced.copy_back_parity", false, "Agrawal et al. 2008, Section 2.2: no rule for parity");
    Ok(())
}

fn allocation(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let pool = keys.read("Allocation pool logic", Some(1u32))?;
    let from = format!("{}: pages are striped over the elements", pool.from);
    draft.text("allocation.static.order", "channel-chip-die-plane", from);
    if pool.value != 2 {
        draft.lose(pool.from, "the address determines the plane, too; DiskSim takes any plane of the pool");
    }
    let mapping = keys.read("Plane block mapping", Some(3u32))?;
    if mapping.value != 3 {
        draft.lose(mapping.from, "pages are striped over the planes");
    }
    let policy = keys.read("Write policy", Some(2u32))?;
    if policy.value != 2 {
        draft.lose(policy.from, "pages are written to the active block, as with 2");
    }
    let from = "DiskSim's SSD extension: the last page of a block has its summary; assumed: 528 B of it, which gives \
                the 309 us of Agrawal et al. 2008, Table 3";
    draft.text("mapping.block_summary.last_page", "528B", from);
    Ok(())
}

fn collection(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let free = keys.number("Minimum free blocks percentage", None)?;
    let blocks = keys.count("Blocks per plane", None)?;
    let threshold = (free.value / 100.0 * f64::from(blocks.value)).max(1.0) as u32;
    let from = format!("{}: {} of the blocks of a plane", free.from, percent(free.value / 100.0));
    draft.set("gc.soft_threshold", threshold, &*from);
    draft.set("gc.hard_threshold", threshold, format!("{from}; cleaning precedes the next request"));
    let policy = keys.read("Cleaning policy", Some(2u32))?;
    match policy.value {
        1 => draft.text("gc.victim", "random", policy.from),
        2 => draft.text("gc.victim", "greedy", policy.from),
        3 => {
            draft.text("gc.victim", "greedy", &*policy.from);
            draft.text("gc.wear", "agrawal", policy.from);
        }
        other => return Err(format!("invalid `Cleaning policy` {other}: expected 1, 2 or 3")),
    }
    draft.text("gc.frontiers", "single", "Agrawal et al. 2008, Section 3.2: one active block of each plane");
    let background = keys.read("Cleaning in background", Some(0u32))?;
    if background.value != 0 {
        draft.lose(background.from, "no collection in idle time; add [gc.background] with `idle` and `until`");
    }
    Ok(())
}

/// Imports the slowest bus of the system as the link to the host.
fn link(draft: &mut Draft, text: &str) -> Result<(), String> {
    let mut slowest: Option<(Found<f64>, f64)> = None;
    let mut rest = text;
    while let Some((inside, line)) = block(rest, "disksim_bus ") {
        let mut keys = Keys::new("DiskSim", keys(inside, line));
        let transfer = keys.number("Read block transfer time", Some(0.0))?;
        let arbitration = keys.number("Arbitration time", Some(0.0))?.value;
        if transfer.value > slowest.as_ref().map_or(0.0, |(slowest, _)| slowest.value) {
            slowest = Some((transfer, arbitration));
        }
        let end = inside.as_ptr() as usize - rest.as_ptr() as usize + inside.len();
        rest = &rest[end..];
    }
    if let Some((transfer, arbitration)) = slowest {
        let bandwidth = (512.0 / (transfer.value / 1000.0)).floor();
        let from = format!("{} (ms for 512 B)", transfer.from);
        draft.text("host.link_bandwidth", format!("{bandwidth}B/s"), from);
        let from = format!("Arbitration time = {arbitration} (ms); assumed: half of it in each direction");
        draft.text("host.link_latency", time(arbitration * 1e6 / 2.0)?, from);
    }
    Ok(())
}
