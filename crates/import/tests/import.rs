//! Imports of the configurations that other simulators ship. The inputs have their keys and values.

use floatgate_core::device_file::{self, DeviceConfig};
use floatgate_import::{ImportError, Imported, Simulator, import, recognize};

fn input(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/inputs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Imports an input after a change of its text, and loads the device.
fn device(name: &str, changes: &[(&str, &str)]) -> (Imported, DeviceConfig) {
    let text = changes.iter().fold(input(name), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let imported = import(&text, name, 1).unwrap();
    let device = device_file::from_toml(&imported.text, "imported.toml", &[]);
    (imported.clone(), device.unwrap_or_else(|error| panic!("{error}\n{}", imported.text)))
}

fn value<'a>(device: &'a serde_json::Value, path: &str) -> &'a serde_json::Value {
    path.split('.').fold(device, |value, key| &value[key])
}

/// Checks that all keys of a device and a reference are equal, except for those that begin with a listed path.
fn assert_equal_but(device: &DeviceConfig, reference: &DeviceConfig, but: &[&str]) {
    let flat = |device: &DeviceConfig| {
        let figures = device.figures().into_iter();
        figures.map(|figure| (figure.path.to_string(), figure.value.to_string())).collect::<Vec<_>>()
    };
    let (ours, theirs) = (flat(device), flat(reference));
    let differs = |pair: &&(String, String)| !but.iter().any(|path| pair.0.starts_with(path));
    let only = |of: &[(String, String)], than: &[(String, String)]| -> Vec<String> {
        of.iter()
            .filter(differs)
            .filter(|pair| !than.contains(pair))
            .map(|(path, value)| format!("{path}={value}"))
            .collect()
    };
    assert_eq!((only(&ours, &theirs), only(&theirs, &ours)), (vec![], vec![]));
}

#[test]
fn files_are_recognized_by_their_contents() {
    let expected = [
        ("ssdconfig.xml", Some(Simulator::Mqsim)),
        ("workload.xml", Some(Simulator::MqsimWorkload)),
        ("page.parameters", Some(Simulator::Ssdsim)),
        ("ssd.parv", Some(Simulator::Disksim)),
        ("run-blackbox.sh", Some(Simulator::Femu)),
        ("femu-waf.txt", Some(Simulator::Femu)),
    ];
    for (name, simulator) in expected {
        assert_eq!(recognize(&input(name)), simulator, "{name}");
    }
    for other in ["", "base = \"tiny\"", "<svg/>", "disksim_disk D { }", "0,read,4096", "[job]\nrw=read"] {
        assert_eq!(recognize(other), None, "{other}");
        assert_eq!(import(other, "x", 1).unwrap_err(), ImportError::Unrecognized);
    }
}

#[test]
fn mqsim_gives_the_built_in_device() {
    let (imported, device) = device("ssdconfig.xml", &[]);
    let built_in = device_file::load("mqsim-default", &[]).unwrap();
    // The built-in device has neither wear leveling nor suspended erases, which its validated runs do not need.
    assert_equal_but(
        &device,
        &built_in,
        &["name", "description", "gc.wear", "nand.advanced.suspend", "host.queue_depth"],
    );
    for line in [
        "channels = 8 # Flash_Channel_Count = 8",
        "erase = \"3800us\" # Block_Erase_Latency = 3800000",
        "soft_threshold = \"5%\" # GC_Exec_Threshold = 0.05000",
        "wear.static-threshold.threshold = 100 # Static_Wearleveling_Enabled = true, Static_Wearleveling_Threshold = 100",
        "#   --set buffer.capacity=268435456B --set buffer.read=false",
    ] {
        assert!(imported.text.lines().any(|found| found == line), "{line}\n{}", imported.text);
    }
    let lost: Vec<&str> = imported.lost.iter().map(|lost| lost.key.as_str()).collect();
    assert!(lost.contains(&"Data_Cache_Capacity = 268435456, Caching_Mechanism = ADVANCED"), "{lost:?}");
    assert!(imported.lost.iter().all(|lost| !lost.consequence.contains("unknown")), "{:?}", imported.lost);
    // The options that are offered are valid.
    let offered = imported.text.lines().filter_map(|line| line.strip_prefix("#   --set "));
    let offered: Vec<String> = offered.flat_map(|line| line.split(" --set ")).map(str::to_owned).collect();
    assert_eq!(offered.len(), 4);
    device_file::from_toml(&imported.text, "x", &offered).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn keys_of_mqsim_change_the_device() {
    let changes = [
        ("<GC_Block_Selection_Policy>RGA", "<GC_Block_Selection_Policy>GREEDY"),
        ("<Plane_Allocation_Scheme>CWDP", "<Plane_Allocation_Scheme>PDWC"),
        ("<Flash_Technology>MLC", "<Flash_Technology>TLC"),
        ("_Latency_CSB>75000<", "_Latency_CSB>80000<"),
        ("<Use_Copyback_for_GC>false", "<Use_Copyback_for_GC>true"),
        ("<CMD_Suspension_Support>ERASE", "<CMD_Suspension_Support>NONE"),
        ("<Static_Wearleveling_Enabled>true", "<Static_Wearleveling_Enabled>false"),
        ("<Page_Capacity>8192", "<Page_Capacity>4096"),
    ];
    let (_, device) = device("ssdconfig.xml", &changes);
    let json = serde_json::to_value(device.resolved()).unwrap();
    assert_eq!(value(&json, "gc.victim"), "greedy");
    assert_eq!(value(&json, "gc.wear"), "least-erased");
    assert_eq!(value(&json, "allocation.static.order"), "plane-die-chip-channel");
    assert_eq!(value(&json, "nand.read").to_string(), r#"["75us","80us","75us"]"#);
    assert_eq!(value(&json, "nand.advanced.copy_back"), "wise");
    assert_eq!(value(&json, "nand.advanced.suspend.erase"), false);
    let (imported, _) = self::device("ssdconfig.xml", &[("Queue_Fetch_Size>", "Queue_Fetch_Sizes>")]);
    let lost = imported.lost.iter().find(|lost| lost.key == "Queue_Fetch_Sizes = 512").unwrap();
    assert!(lost.consequence.contains("unknown"), "{lost:?}");
}

#[test]
fn flows_of_mqsim_are_jobs() {
    let text = input("workload.xml");
    let imported = import(&text, "workload.xml", 1).unwrap();
    let jobs: Vec<&str> = imported.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let expected = "[global]|filename=/dev/nvme0n1|[flow-1]|rw=randwrite|norandommap=1|blockalign=8192|bs=4096|offset=0%|size=25%|ioengine=libaio|\
                    iodepth=16|runtime=10000000us|time_based=1|[flow-2]|rw=randwrite|norandommap=1|blockalign=8192|\
                    bs=4096|offset=50%|size=25%|ioengine=libaio|iodepth=2|runtime=10000000us|time_based=1";
    assert_eq!(jobs.join("|"), expected);
    let hot = import(&text, "workload.xml", 2).unwrap().text;
    for line in ["random_distribution=zoned:80/20:20/80", "rate_iops=700,300", "number_ios=500"] {
        assert!(hot.lines().any(|found| found == line), "{line}\n{hot}");
    }
    let trace = import(&text, "workload.xml", 3).unwrap_err().to_string();
    assert!(trace.contains("floatgate run DEVICE 'trace=traces/tpcc-small.trace format=mqsim'"), "{trace}");
    let missing = import(&text, "workload.xml", 4).unwrap_err().to_string();
    assert_eq!(missing, "a workload of MQSim: no scenario 4: the file has 3");
    for scenario in [1, 2] {
        let text = import(&text, "workload.xml", scenario).unwrap().text;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.fio");
        std::fs::write(&path, &text).unwrap();
        let changes = floatgate_workload::synthetic::Changes::default();
        let read = floatgate_workload::synthetic::read_file(&path, &changes, 1 << 30, 1, &Default::default());
        assert!(read.is_ok(), "{}\n{text}", read.err().unwrap());
    }
}

#[test]
fn ssdsim_gives_its_device() {
    let (imported, device) = device("page.parameters", &[]);
    let json = serde_json::to_value(device.resolved()).unwrap();
    assert_eq!((device.geometry.channels, device.geometry.chips, device.physical_bytes()), (2, 2, 4 << 30));
    assert_eq!(value(&json, "gc.soft_threshold"), "30%");
    assert_eq!(value(&json, "buffer.capacity"), "131074B");
    assert_eq!(value(&json, "nand.advanced.multi_plane_program"), "blind");
    let key = "gc hard threshold = 0.30";
    assert!(imported.lost.iter().any(|lost| lost.key == key), "{:?}", imported.lost);
    assert_eq!((value(&json, "gc.hard_threshold"), value(&json, "gc.pace")), (&202.into(), &serde_json::Value::Null));
    let (_, within_reach) = self::device("page.parameters", &[("gc hard threshold=0.30", "gc hard threshold=0.05")]);
    assert_eq!(serde_json::to_value(within_reach.resolved()).unwrap()["gc"]["pace"], "exclusive");
    let statics = [
        ("allocation=0;", "allocation=1;"),
        ("static_allocation=2", "static_allocation=5"),
        ("chip number[1] = 2", "chip number[1] = 1"),
        ("chip number = 4", "chip number = 3"),
    ];
    let (imported, device) = self::device("page.parameters", &statics);
    let json = serde_json::to_value(device.resolved()).unwrap();
    assert_eq!(value(&json, "allocation.static.order"), "channel-die-plane-chip");
    assert_eq!(device.geometry.chips, 1);
    assert!(
        imported.lost.iter().any(|lost| lost.key == "chip number = 3, chip number[i] = 2 1"),
        "{:?}",
        imported.lost
    );
    let broken = import(&input("page.parameters").replace("t_R = 20000;", ""), "page.parameters", 1);
    assert_eq!(broken.unwrap_err().to_string(), "a parameter file of SSDsim: missing key `t_R`");
}

#[test]
fn disksim_gives_the_device_of_the_validation() {
    let (_, device) = device("ssd.parv", &[]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/devices/disksim-ssd.toml");
    let ours = device_file::load(path, &[]).unwrap();
    // The paper of the validated device describes copy-back, which no validated run needs, without using it.
    assert_equal_but(
        &device,
        &ours,
        &["name", "description", "version", "nand.advanced.copy_back", "geometry.mapping_unit", "nand.endurance"],
    );
    let changes = [
        ("Number of parallel units = 1", "Number of parallel units = 4"),
        ("Cleaning policy = 2", "Cleaning policy = 3"),
    ];
    let (_, device) = self::device("ssd.parv", &changes);
    let json = serde_json::to_value(device.resolved()).unwrap();
    assert_eq!(value(&json, "nand.concurrency"), "plane-pair");
    assert!(json["gc"]["wear"].to_string().contains("agrawal"), "{json}");
}

#[test]
fn femu_gives_its_device() {
    let (imported, device) = device("run-blackbox.sh", &[]);
    assert_eq!((device.physical_bytes(), device.logical_bytes()), (16 << 30, 12 << 30));
    let json = serde_json::to_value(device.resolved()).unwrap();
    assert_eq!(value(&json, "gc.trigger.lazy.invalid"), 0.125);
    assert_eq!((value(&json, "gc.soft_threshold"), value(&json, "gc.hard_threshold")), (&64.into(), &12.into()));
    assert!(imported.lost.iter().any(|lost| lost.key == "lines"), "{:?}", imported.lost);
    assert!(imported.lost.iter().all(|lost| !lost.consequence.contains("unknown")), "{:?}", imported.lost);
    let (_, device) =
        self::device("femu-waf.txt", &[("gc_thres_pcent=90,op_pcent=100", "gc_thres_pcent=95,op_pcent=25")]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/devices/femu.toml");
    let ours = device_file::load(path, &[]).unwrap();
    assert_equal_but(&device, &ours, &["name", "description", "bus.protocol", "bus.command_cycle"]);
    let zns = import("qemu -device femu,femu_mode=3", "x", 1).unwrap_err().to_string();
    assert!(zns.contains("femu_mode = 3: expected 1"), "{zns}");
    let unset = import("-device femu,femu_mode=1,nchs=${n}", "x", 1).unwrap_err().to_string();
    assert!(unset.contains("line 1: `nchs` is $n, which the script does not set"), "{unset}");
}

#[test]
fn broken_files_are_errors_with_their_line() {
    let xml = import("<Device_Parameter_Set>\n<a></b>", "x.xml", 1).unwrap_err().to_string();
    assert!(xml.starts_with("a configuration of MQSim: line 2: not well-formed XML"), "{xml}");
    let text = input("ssdconfig.xml").replace("<Flash_Channel_Count>8", "<Flash_Channel_Count>many");
    let count = import(&text, "x.xml", 1).unwrap_err().to_string();
    assert!(count.contains("invalid `Flash_Channel_Count` many") && count.contains("line "), "{count}");
    // Every prefix of every input is refused or imported, without a panic.
    for name in ["ssdconfig.xml", "workload.xml", "page.parameters", "ssd.parv", "run-blackbox.sh"] {
        let text = input(name);
        for end in (0..text.len()).step_by(7) {
            let _ = import(&text[..end], name, 1);
        }
    }
}
