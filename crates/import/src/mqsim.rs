//! MQSim's `ssdconfig.xml`. Defaults are those of its sources (`src/exec/*_Parameter_Set.cpp` at commit 7ec40e3).

use roxmltree::{Document, Node};

use crate::draft::{Draft, percent, time};
use crate::keys::{Found, Key, Keys};

/// Keys that do not change requests or their times.
const UNNEEDED: [&str; 5] = [
    "Enable_ResponseTime_Logging",
    "ResponseTime_Logging_Period_Length",
    "Enabled_Preconditioning",
    "Memory_Type",
    "Seed",
];

/// Parses XML, and describes an error with its line.
pub fn parse(text: &str) -> Result<Document<'_>, String> {
    Document::parse(text).map_err(|error| format!("line {}: not well-formed XML: {error}", error.pos().row))
}

/// Returns the elements without child elements below a node, as keys.
pub fn leaves(node: Node<'_, '_>) -> Vec<Key> {
    let is_leaf = |node: &Node<'_, '_>| node.is_element() && !node.children().any(|child| child.is_element());
    let key = |node: Node<'_, '_>| Key {
        name: node.tag_name().name().to_owned(),
        value: node.text().unwrap_or("").trim().to_owned(),
        line: node.document().text_pos_at(node.range().start).row as usize,
    };
    node.descendants().filter(is_leaf).map(key).collect()
}

/// Imports a configuration.
pub fn import(text: &str, file: &str) -> Result<Draft, String> {
    let document = parse(text)?;
    let mut keys = Keys::new("MQSim", leaves(document.root()));
    let mut draft = Draft::new("MQSim", file);
    draft.ignore(&mut keys, &UNNEEDED);
    geometry(&mut draft, &mut keys)?;
    nand(&mut draft, &mut keys)?;
    bus(&mut draft, &mut keys)?;
    allocation(&mut draft, &mut keys)?;
    collection(&mut draft, &mut keys)?;
    let policy = keys.read("Transaction_Scheduling_Policy", Some("OUT_OF_ORDER".to_owned()))?;
    draft.set("scheduler.read-first", "{}", &*policy.from);
    if policy.value == "FLIN" {
        draft.lose(policy.from, "reads take priority, but flows do not get equal slowdowns");
    }
    memory(&mut draft, &mut keys)?;
    host(&mut draft, &mut keys)?;
    draft.lose_rest(&keys);
    Ok(draft)
}

fn geometry(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    draft.take("geometry.channels", &keys.count("Flash_Channel_Count", Some(8))?);
    draft.take("geometry.chips", &keys.count("Chip_No_Per_Channel", Some(4))?);
    draft.take("geometry.dies", &keys.count("Die_No_Per_Chip", Some(2))?);
    draft.take("geometry.planes", &keys.count("Plane_No_Per_Die", Some(2))?);
    draft.take("geometry.blocks", &blocks(keys)?);
    draft.take("geometry.pages", &keys.count("Page_No_Per_Block", Some(256))?);
    let page = keys.count("Page_Capacity", Some(8192))?;
    draft.text("geometry.page_size", format!("{}B", page.value), &*page.from);
    let spare = keys.read::<u32>("Page_Metadat_Capacity", Some(1872))?;
    draft.text("geometry.spare_size", format!("{}B", spare.value), spare.from);
    if page.value > 4096 && page.value.is_multiple_of(4096) {
        let from = "assumed: MQSim maps pages, but reads and transfers only the requested sectors; parts of a page \
                    have the same effect for requests of 4 KiB";
        draft.text("geometry.mapping_unit", "4KiB", from);
    } else {
        draft.text("geometry.mapping_unit", "page", "MQSim maps pages");
    }
    draft.take("capacity.spare", &keys.number("Overprovisioning_Ratio", Some(0.07))?);
    Ok(())
}

fn blocks(keys: &mut Keys) -> Result<Found<u32>, String> {
    keys.count("Block_No_Per_Plane", Some(2048))
}

fn nand(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let cell = keys.read("Flash_Technology", Some("MLC".to_owned()))?;
    let types: &[&str] = match &*cell.value {
        "SLC" => &["LSB"],
        "MLC" => &["LSB", "MSB"],
        "TLC" => &["LSB", "CSB", "MSB"],
        other => return Err(format!("invalid `Flash_Technology` {other}: expected SLC, MLC or TLC")),
    };
    draft.text("nand.cell", cell.value.to_lowercase(), &*cell.from);
    for (path, name, default) in
        [("nand.read", "Page_Read_Latency", 75_000.0), ("nand.program", "Page_Program_Latency", 750_000.0)]
    {
        let (mut times, mut origins) = (Vec::new(), Vec::new());
        for kind in types {
            let found = keys.number(&format!("{name}_{kind}"), Some(default))?;
            times.push(format!("\"{}\"", time(found.value)?));
            origins.push(found.from);
        }
        draft.set(path, format!("[{}]", times.join(", ")), origins.join(", "));
        draft.ignore(keys, &[&*format!("{name}_CSB"), &*format!("{name}_MSB")]);
    }
    let erase = keys.number("Block_Erase_Latency", Some(3_800_000.0))?;
    draft.text("nand.erase", time(erase.value)?, erase.from);
    draft.take("nand.endurance", &keys.read::<u32>("Block_PE_Cycles_Limit", Some(10_000))?);
    draft.text("nand.concurrency", "die", "MQSim, NVM_PHY_ONFI_NVDDR2: the dies of a chip work independently");
    suspension(draft, keys)
}

fn suspension(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let support = keys.read("CMD_Suspension_Support", Some("ERASE".to_owned()))?;
    let suspends = |what| support.value.split('_').any(|word| word == what);
    let times = [keys.number("Suspend_Erase_Time", Some(7e5))?, keys.number("Suspend_Program_Time", Some(1e5))?];
    if suspends("ERASE") || suspends("PROGRAM") {
        draft.set("nand.advanced.suspend.program", suspends("PROGRAM"), &*support.from);
        draft.set("nand.advanced.suspend.erase", suspends("ERASE"), &*support.from);
        let found = &times[usize::from(!suspends("ERASE"))];
        draft.text("nand.advanced.suspend.latency", time(found.value)?, &*found.from);
        for name in [
            "Preferred_suspend_erase_time_for_read",
            "Preferred_suspend_erase_time_for_write",
            "Preferred_suspend_write_time_for_read",
        ] {
            if let Some(key) = keys.get(name) {
                let why = "a host read suspends whatever time is left, up to `nand.advanced.suspend.limit` times, and \
                           writes do not suspend";
                draft.lose(format!("{name} = {}", key.value), why);
            }
        }
    } else {
        draft.ignore(keys, &["Preferred_suspend_erase_time_for_read", "Preferred_suspend_erase_time_for_write"]);
        draft.ignore(keys, &["Preferred_suspend_write_time_for_read"]);
    }
    Ok(())
}

fn bus(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let protocol = keys.read("Flash_Comm_Protocol", Some("NVDDR2".to_owned()))?;
    if protocol.value != "NVDDR2" {
        return Err(format!("invalid `Flash_Comm_Protocol` {}: MQSim implements NVDDR2 only", protocol.value));
    }
    let rate = keys.count("Channel_Transfer_Rate", Some(300))?;
    draft.text("bus.protocol.nv-ddr", format!("{}MT/s", rate.value), format!("{}, {}", protocol.from, rate.from));
    let width = keys.count("Flash_Channel_Width", Some(1))?;
    let lines = match width.value {
        1 => 8,
        2 => 16,
        other => return Err(format!("invalid `Flash_Channel_Width` {other}: expected 1 or 2 bytes")),
    };
    draft.set("bus.width", lines, width.from);
    draft.set("bus.transfer_spare", false, "MQSim transfers user data only");
    draft.text("bus.command_cycle", "1ns", "assumed: the unit of the command times");
    let from = "MQSim, ONFI_Channel_NVDDR2.cpp: ReadCommandTime, ProgramCommandTime and EraseCommandTime in ns";
    draft.set("bus.command_cycles", "{ read = 290, program = 361, erase = 220 }", from);
    draft.text("bus.order", "fcfs", "MQSim, NVM_PHY_ONFI_NVDDR2: commands queue behind data of reads");
    Ok(())
}

fn allocation(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let scheme = keys.read("Plane_Allocation_Scheme", Some("CWDP".to_owned()))?;
    let level = |letter| match letter {
        'C' => Some("channel"),
        'W' => Some("chip"),
        'D' => Some("die"),
        'P' => Some("plane"),
        _ => None,
    };
    let levels: Option<Vec<&str>> = scheme.value.chars().map(level).collect();
    let Some(levels) = levels.filter(|levels| levels.len() == 4) else {
        return Err(format!("invalid `Plane_Allocation_Scheme` {}: expected an order such as CWDP", scheme.value));
    };
    draft.text("allocation.static.order", levels.join("-"), scheme.from);
    Ok(())
}

fn collection(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let soft = keys.number("GC_Exec_Threshold", Some(0.05))?;
    draft.text("gc.soft_threshold", percent(soft.value), soft.from);
    let hard = keys.number("GC_Hard_Threshold", Some(0.005))?;
    draft.text("gc.hard_threshold", percent(hard.value), hard.from);
    let policy = keys.read("GC_Block_Selection_Policy", Some("RGA".to_owned()))?;
    let from = policy.from.clone();
    match &*policy.value {
        "GREEDY" => draft.text("gc.victim", "greedy", from),
        "FIFO" => draft.text("gc.victim", "fifo", from),
        "RGA" => {
            let choices = blocks(keys)?.value.ilog2().max(1);
            draft.set("gc.victim.d-choices.d", choices, format!("{from}: the best of log2(blocks) random blocks"));
        }
        "RANDOM" | "RANDOM_P" | "RANDOM_PP" => {
            draft.text("gc.victim", "random", from);
            if policy.value == "RANDOM_PP" {
                draft.lose(policy.from, "a victim may have any number of invalid pages");
            }
        }
        other => return Err(format!("invalid `GC_Block_Selection_Policy` {other}")),
    }
    draft.text("gc.frontiers", "separate", "MQSim, Flash_Block_Manager_Base: write frontiers Data_wf and GC_wf");
    let copy_back = keys.read("Use_Copyback_for_GC", Some("false".to_owned()))?;
    if copy_back.value == "true" {
        draft.text("nand.advanced.copy_back", "wise", &*copy_back.from);
        draft.set("nand.advanced.copy_back_parity", false, &*copy_back.from);
    }
    if let Some(key) = keys.get("Preemptible_GC_Enabled") {
        let why = "above `gc.hard_threshold`, garbage collection always queues with the requests of the host";
        draft.lose(format!("Preemptible_GC_Enabled = {}", key.value), why);
    }
    wear_leveling(draft, keys)
}

fn wear_leveling(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let dynamic = keys.read("Dynamic_Wearleveling_Enabled", Some("true".to_owned()))?;
    let enabled = keys.read("Static_Wearleveling_Enabled", Some("true".to_owned()))?;
    let threshold = keys.count("Static_Wearleveling_Threshold", Some(100))?;
    if enabled.value == "true" {
        draft.set(
            "gc.wear.static-threshold.threshold",
            threshold.value,
            format!("{}, {}", enabled.from, threshold.from),
        );
        if dynamic.value == "true" {
            let why = "free blocks are opened in the order in which they were erased, except for migrations";
            draft.lose(dynamic.from, why);
        }
    } else if dynamic.value == "true" {
        draft.text("gc.wear", "least-erased", dynamic.from);
    }
    Ok(())
}

/// Imports the keys of the controller's memory: the data cache and the mapping table.
fn memory(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let caching = keys.read("Caching_Mechanism", Some("ADVANCED".to_owned()))?;
    let capacity = keys.read::<u64>("Data_Cache_Capacity", Some(512 << 20))?;
    let why = "no buffer: a write completes when flash has it. MQSim's flows choose to use the cache \
               (Device_Level_Data_Caching_Mode of the workload): see the lines above for flows that do";
    draft.lose(format!("{}, {}", capacity.from, caching.from), why);
    let condition = "For flows with Device_Level_Data_Caching_Mode WRITE_CACHE";
    draft.offer(condition, &[format!("buffer.capacity={}B", capacity.value), "buffer.read=false".into()]);
    draft.ignore(
        keys,
        &[
            "Data_Cache_Sharing_Mode",
            "Data_Cache_DRAM_Row_Size",
            "Data_Cache_DRAM_Data_Rate",
            "Data_Cache_DRAM_Data_Busrt_Size",
            "Data_Cache_DRAM_tRCD",
            "Data_Cache_DRAM_tCL",
            "Data_Cache_DRAM_tRP",
        ],
    );
    let mapping = keys.read("Address_Mapping", Some("PAGE_LEVEL".to_owned()))?;
    if mapping.value != "PAGE_LEVEL" {
        draft.lose(mapping.from, "pages are mapped");
    }
    let ideal = keys.read("Ideal_Mapping_Table", Some("false".to_owned()))?;
    let cached = keys.read::<u64>("CMT_Capacity", Some(2 << 20))?;
    if ideal.value != "true" {
        let why = "the whole map is in memory: no request waits for a translation page. MQSim loads missing entries \
                   from flash: see the lines above for requests over more than the cached entries";
        draft.lose(format!("{}, {}", ideal.from, cached.from), why);
        let condition = "For requests that miss in MQSim's cached mapping table";
        draft.offer(condition, &[format!("mapping.scheme.dftl.cache={}B", cached.value)]);
    }
    if let Some(key) = keys.get("CMT_Sharing_Mode").filter(|key| key.value != "SHARED") {
        draft.lose(format!("CMT_Sharing_Mode = {}", key.value), "all flows share one map");
    }
    Ok(())
}

fn host(draft: &mut Draft, keys: &mut Keys) -> Result<(), String> {
    let bandwidth = keys.number("PCIe_Lane_Bandwidth", Some(0.4))?;
    let lanes = keys.count("PCIe_Lane_Count", Some(4))?;
    let total = bandwidth.value * f64::from(lanes.value);
    draft.lose(format!("{}, {}", bandwidth.from, lanes.from), "the link to the host takes no time");
    draft.offer("For a link to the host", &[format!("host.link_bandwidth={}MB/s", (total * 1000.0).round())]);
    let interface = keys.read("HostInterface_Type", Some("NVME".to_owned()))?;
    if interface.value != "NVME" {
        let delay = keys.read::<u64>("SATA_Processing_Delay", Some(0))?;
        draft
            .lose(format!("{}, {}", interface.from, delay.from), "SATA's delays are left out; set `host.link_latency`");
    }
    draft.ignore(keys, &["SATA_Processing_Delay"]);
    let depth = keys.count("IO_Queue_Depth", Some(1024))?;
    draft.take("host.queue_depth", &depth);
    if let Some(key) = keys.get("Queue_Fetch_Size") {
        let why = "requests of a flow enter the device up to `host.queue_depth`, not in rounds";
        draft.lose(format!("Queue_Fetch_Size = {}", key.value), why);
    }
    Ok(())
}
