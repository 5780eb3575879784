//! MQSim's `workload.xml`, as a job file.

use std::fmt::Write;

use crate::draft::{Lost, write_lost};
use crate::keys::{Found, Keys};
use crate::mqsim::{leaves, parse};

/// Imports one scenario, counted from 1. Returns the job file and the keys that it does not carry over.
pub fn import(text: &str, file: &str, scenario: usize) -> Result<(String, Vec<Lost>), String> {
    let document = parse(text)?;
    let scenarios: Vec<_> = document.descendants().filter(|node| node.has_tag_name("IO_Scenario")).collect();
    let Some(node) = scenario.checked_sub(1).and_then(|index| scenarios.get(index)) else {
        return Err(format!("no scenario {scenario}: the file has {}", scenarios.len()));
    };
    let flows: Vec<_> = node.children().filter(|child| child.is_element()).collect();
    let mut out = format!(
        "# Scenario {scenario} of {} imported from MQSim's {file} by `floatgate device import`.\n\
         # MQSim divides the drive among the flows of a scenario.\n\
         [global]\nfilename=/dev/nvme0n1\n",
        scenarios.len()
    );
    let mut lost = Vec::new();
    if scenarios.len() > 1 {
        let consequence = "MQSim runs one after another, each on a new drive: import each with --scenario";
        lost.push(Lost { key: format!("{} other scenarios", scenarios.len() - 1), consequence: consequence.into() });
    }
    let mut jobs = 0;
    for (index, flow) in flows.iter().enumerate() {
        let keys = Keys::new("MQSim", leaves(*flow));
        match flow.tag_name().name() {
            "IO_Flow_Parameter_Set_Synthetic" => {
                jobs += 1;
                synthetic(&mut out, &mut lost, keys, index, flows.len())?;
            }
            "IO_Flow_Parameter_Set_Trace_Based" => trace(&mut lost, keys, index)?,
            other => return Err(format!("unknown flow <{other}>")),
        }
    }
    if jobs == 0 {
        let how = lost.last().map_or_else(String::new, |lost| format!(": {}", lost.consequence));
        return Err(format!("scenario {scenario} has no synthetic flow{how}"));
    }
    write_lost(&mut out, &lost, &[]);
    Ok((out, lost))
}

/// Adds what a flow that replays a trace needs.
fn trace(lost: &mut Vec<Lost>, mut keys: Keys, index: usize) -> Result<(), String> {
    let path = keys.read("File_Path", Some(String::new()))?.value;
    let consequence = format!("run it as a workload of its own: floatgate run DEVICE 'trace={path} format=mqsim'");
    lost.push(Lost { key: format!("flow {}, trace {path}", index + 1), consequence });
    Ok(())
}

/// Writes a key of a job with its origin.
fn line(out: &mut String, key: &str, value: impl std::fmt::Display, from: &str) {
    let _ = writeln!(out, "# {from}\n{key}={value}");
}

/// Writes the job of a synthetic flow.
fn synthetic(out: &mut String, lost: &mut Vec<Lost>, mut keys: Keys, index: usize, flows: usize) -> Result<(), String> {
    let _ = writeln!(out, "\n[flow-{}]", index + 1);
    let sectors = keys.count("Average_Request_Size", Some(8))?;
    let size = u64::from(sectors.value) * 512;
    addresses(out, lost, &mut keys)?;
    line(out, "bs", size, &format!("{} sectors of 512 B", sectors.from));
    let distribution = keys.read("Request_Size_Distribution", Some("FIXED".to_owned()))?;
    if distribution.value != "FIXED" {
        let key = format!("flow {}, {}", index + 1, distribution.from);
        lost.push(Lost { key, consequence: "all requests have the mean size".into() });
    }
    let working_set = keys.number("Working_Set_Percentage", Some(85.0))?;
    let share = 100.0 / flows as f64;
    line(out, "offset", format!("{}%", share * index as f64), &format!("the share of flow {} of {flows}", index + 1));
    line(out, "size", format!("{}%", share * working_set.value / 100.0), &working_set.from);
    pace(out, &mut keys, f64::from(sectors.value))?;
    let stop = keys.number("Stop_Time", Some(1e9))?;
    if stop.value > 0.0 {
        line(
            out,
            "runtime",
            format!("{}us\ntime_based=1", (stop.value / 1000.0).round()),
            &format!("{} ns", stop.from),
        );
    } else {
        let requests = keys.count("Total_Requests_To_Generate", Some(1000))?;
        line(out, "number_ios", format!("{}\nio_size=100t", requests.value), &requests.from);
    }
    for (name, consequence) in [
        ("Initial_Occupancy_Percentage", "the state before a run is an option of the run: --precondition"),
        ("Device_Level_Data_Caching_Mode", "a property of the device: see the comments of the imported ssdconfig.xml"),
        ("Priority_Class", "all flows have the same priority"),
    ] {
        if let Some(key) = keys.get(name) {
            let key = format!("flow {}, {name} = {}", index + 1, key.value);
            lost.push(Lost { key, consequence: consequence.into() });
        }
    }
    Ok(())
}

/// Writes the directions, and the distribution and alignment of addresses.
fn addresses(out: &mut String, lost: &mut Vec<Lost>, keys: &mut Keys) -> Result<(), String> {
    let reads = keys.number("Read_Percentage", Some(100.0))?;
    let distribution = keys.read("Address_Distribution", Some("RANDOM_UNIFORM".to_owned()))?;
    let is_random = distribution.value != "STREAMING";
    let pattern = match (reads.value, is_random) {
        (100.0, true) => "randread",
        (0.0, true) => "randwrite",
        (_, true) => "randrw",
        (100.0, false) => "read",
        (0.0, false) => "write",
        (_, false) => "rw",
    };
    line(out, "rw", pattern, &format!("{}, {}", reads.from, distribution.from));
    let has_rates = keys.read("Synthetic_Generator_Type", Some(String::new()))?.value == "BANDWIDTH";
    if pattern.ends_with("rw") && !has_rates {
        line(out, "rwmixread", reads.value, &reads.from);
    }
    if is_random {
        line(out, "norandommap", 1, "MQSim draws each address by itself");
        let aligned = keys.read("Generated_Aligned_Addresses", Some("true".to_owned()))?;
        let unit = keys.count("Address_Alignment_Unit", Some(16))?;
        if !aligned.value.eq_ignore_ascii_case("false") {
            line(out, "blockalign", u64::from(unit.value) * 512, &format!("{} sectors of 512 B", unit.from));
        } else {
            line(out, "blockalign", 512, &aligned.from);
        }
    }
    let hot: Found<f64> = keys.number("Percentage_of_Hot_Region", Some(0.0))?;
    if distribution.value == "RANDOM_HOTCOLD" && hot.value > 0.0 && hot.value < 100.0 {
        let zones = format!("zoned:{0}/{1}:{1}/{0}", 100.0 - hot.value, hot.value);
        line(out, "random_distribution", zones, &hot.from);
    } else if distribution.value == "RANDOM_HOTCOLD" {
        lost.push(Lost { key: hot.from, consequence: "all addresses are equally likely".into() });
    }
    Ok(())
}

/// Writes the queue depth, or the rate of arrivals.
fn pace(out: &mut String, keys: &mut Keys, sectors: f64) -> Result<(), String> {
    let kind = keys.read("Synthetic_Generator_Type", Some("QUEUE_DEPTH".to_owned()))?;
    line(out, "ioengine", "libaio", "requests are asynchronous");
    if kind.value == "QUEUE_DEPTH" {
        let depth = keys.count("Average_No_of_Reqs_in_Queue", Some(2))?;
        line(out, "iodepth", depth.value, &depth.from);
        return Ok(());
    }
    let bandwidth = keys.number("Bandwidth", Some(262_144.0))?;
    let rate = bandwidth.value / 512.0 / sectors;
    let share = keys.number("Read_Percentage", Some(100.0))?.value / 100.0;
    let of = |share: f64| (rate * share).round().max(1.0);
    line(out, "rate_process", "poisson", &format!("{}: exponential times between arrivals", kind.from));
    let from = format!("{} B/s", bandwidth.from);
    match share == 0.0 || share == 1.0 {
        true => line(out, "rate_iops", of(1.0), &from),
        false => line(out, "rate_iops", format!("{},{}", of(share), of(1.0 - share)), &from),
    }
    Ok(())
}
