//! Tests of `floatgate device` with the real program.

use std::io::Read;
use std::process::{Command, Output, Stdio};

fn floatgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    floatgate(arguments).output().unwrap()
}

/// Runs a command, which must succeed without errors or warnings, and returns its output.
fn output(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {} {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command, which must report a mistake of the user, and returns its error.
fn mistake(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something before it failed");
    assert!(errors.starts_with("error: ") && !errors.contains("backtrace"), "{errors}");
    errors
}

#[test]
fn scale_writes_a_device_file_that_says_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scaled.toml");
    let path = file.to_str().unwrap();
    let printed = output(&["device", "scale", "tlc-direct", "1/16", "--out", path]);
    let text = std::fs::read_to_string(&file).unwrap();
    for line in ["tlc-direct with 1/16 of its blocks. These options differ:", "  geometry.blocks = 57 (was 910)"] {
        assert!(printed.contains(&format!("{line}\n")) && text.contains(&format!("# {line}\n")), "{printed}\n{text}");
    }
    assert!(printed.contains("\nThese remain:\n  temperature, gc.trigger, "), "{printed}");
    assert_eq!(output(&["device", "scale", "tlc-direct", "1/16"]), text);
    let digest = |arguments: &[&str]| output(arguments).split("digest ").nth(1).unwrap()[..32].to_owned();
    let scaled = digest(&["device", "check", path]);
    assert_eq!(scaled, digest(&["device", "check", "tlc-direct", "--scale", "1/16"]));
    let shown = output(&["device", "show", path]);
    assert!(
        shown.starts_with("tlc-direct-1-16: ") && shown.contains("scaled by 1/16 from 910; assumed: 16 dies"),
        "{shown}"
    );
    let error = mistake(&["device", "scale", "tlc-direct", "1/16", "--out", path]);
    assert!(error.contains("give a path that does not exist"), "{error}");
    let error = mistake(&["device", "scale", "tlc-direct", "1/400"]);
    assert!(error.contains("the least scale of this device is 1/"), "{error}");
}

#[test]
fn list_has_a_line_for_each_device() {
    let list = output(&["device", "list"]);
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../core/devices")).unwrap().count();
    let devices = list.lines().filter(|line| line.contains("iB  "));
    assert_eq!(devices.count(), files, "{list}");
    // Present-day devices are first. In a pipe, each device has one line.
    let [head, gap, title, first] = list.lines().take(4).collect::<Vec<_>>()[..] else { panic!("{list}") };
    assert!(head.starts_with("device ") && head.ends_with(" description") && gap.is_empty(), "{list}");
    assert!(title == "Present-day drives" && first.contains("A present-day"), "{list}");
    let tiny = list.lines().find(|line| line.starts_with("tiny ")).unwrap();
    assert!(tiny.contains("51.20 MiB") && tiny.contains("2x2x1x2") && tiny.contains("slc"), "{tiny}");
}

#[test]
fn list_as_json_has_the_devices_of_the_table() {
    let list: serde_json::Value = serde_json::from_str(&output(&["device", "list", "--json"])).unwrap();
    assert_eq!(list["schema"], "floatgate-devices-1");
    let table = output(&["device", "list"]);
    let devices = list["devices"].as_array().unwrap();
    for device in devices {
        let [name, description, cell] = ["name", "description", "cell"].map(|key| device[key].as_str().unwrap());
        let line = table.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
        assert!(line.ends_with(description) && line.contains(&format!(" {cell} ")), "{line}");
    }
    let tiny = devices.iter().find(|device| device["name"] == "tiny").unwrap();
    let shown: serde_json::Value =
        serde_json::from_str(&output(&["run", "tiny", "rw=read number_ios=1", "--json"])).unwrap();
    assert_eq!(tiny["digest"], shown["device"]["digest"]);
    // 2 x 2 x 1 x 2 planes with 64 MiB in all. 20 % of them are spare.
    assert_eq!((&tiny["physical_bytes"], &tiny["logical_bytes"]), (&67_108_864.into(), &53_686_272.into()));
    assert_eq!(["channels", "chips", "dies", "planes"].map(|key| tiny[key].as_u64().unwrap()), [2, 2, 1, 2]);
}

#[test]
fn show_prints_parameters_sources_and_derived_values() {
    let shown = output(&["device", "show", "hu2011", "--set", "geometry.channels=8"]);
    let line = |key: &str| {
        let found = shown.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("no {key} in\n{shown}"));
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("geometry.channels"), "geometry.channels 8 --set");
    assert!(line("geometry.chips ").starts_with("geometry.chips 4 Hu et al. 2011, Table 2: channel-chip"));
    assert_eq!(line("host.queue_depth"), "host.queue_depth 65536 default");
    assert_eq!(line("physical"), "physical 32 GiB (34359738368 B)");
    assert_eq!(line("spare"), "spare 10.00 % of physical");
    assert_eq!(line("over-provisioning"), "over-provisioning 11.11 % of logical, as vendors specify it");
    // A transfer of 2048 B at 25 ns/B takes 51.2 us.
    assert!(line("page read").starts_with("page read 71.20 us"), "{}", line("page read"));
    assert_eq!(line("program"), "program 251.20 us");
    assert_eq!(line("erase"), "erase 1500.00 us");
    assert_eq!(line("channel"), "channel 40.0 MB/s, 320.0 MB/s over 8");
    assert!(line("free").contains("3 per plane") && line("free").ends_with("can keep 203"), "{}", line("free"));
}

#[test]
fn the_output_of_show_is_a_file_of_the_same_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.toml");
    let path = path.to_str().unwrap();
    for name in ["mqsim-default", "vssim-e"] {
        std::fs::write(path, output(&["device", "show", name, "--toml"])).unwrap();
        assert_eq!(output(&["device", "show", path]), output(&["device", "show", name]));
        let json: serde_json::Value = serde_json::from_str(&output(&["device", "show", name, "--json"])).unwrap();
        assert_eq!(json["name"], name);
    }
}

#[test]
fn check_accepts_and_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let file = path.to_str().unwrap();
    std::fs::write(&path, "base = \"tiny\"\n[gc]\nsoft_threshold = 4\n").unwrap();
    assert!(output(&["device", "check", file]).contains("mine is a valid device, digest "));
    assert!(output(&["device", "show", file]).starts_with("mine: based on tiny\n"));
    let error = mistake(&["device", "check", file, "--set", "capacity.spare=0.1"]);
    assert!(
        error.contains("--set capacity.spare=0.1: gc.soft_threshold = 4: 4 of 32 blocks cannot be kept"),
        "{error}"
    );
    assert!(error.contains("mine.toml:3:18, and conflicts with this"), "{error}");
    std::fs::write(&path, "base = \"tiny\"\n[geometry]\nchanels = 4\n").unwrap();
    let error = mistake(&["device", "check", file]);
    assert!(error.contains(":3:1: unknown key `geometry.chanels`, did you mean `channels`?"), "{error}");
    assert!(error.contains("\n3 | chanels = 4\n  | ^^^^^^^\n"), "{error}");
}

#[test]
fn mistakes_have_status_2() {
    assert!(mistake(&["device", "show", "tinny"]).contains("did you mean `tiny`?"));
    let missing = mistake(&["device", "show", "./tinny.toml"]);
    assert!(missing.contains("cannot read the device file ./tinny.toml"));
    assert_eq!(missing.matches("No such file").count(), 1, "{missing}");
    for value in ["8.0", "-1", "eight"] {
        let error = mistake(&["device", "show", "tiny", "--set", &format!("geometry.channels={value}")]);
        assert!(error.contains("expected a whole number, 1 or more") && !error.contains("u32"), "{error}");
    }
    assert!(mistake(&["device", "show", "tiny", "--set", "gc.victim=fifoo"]).contains("did you mean `fifo`?"));
    assert!(mistake(&["device", "show", "tiny", "--set", "gc.victim"]).contains("no `=`"));
    assert!(mistake(&["device", "show", "tiny", "--toml", "--json"]).contains("cannot be used with"));
    assert!(mistake(&["device", "shwo"]).contains("show"));
}

/// If an override does not fit a built-in device, the error is about the override, not about a line of the device.
#[test]
fn errors_about_overrides_that_do_not_fit_name_the_override() {
    let cell = mistake(&["device", "check", "tlc-direct", "--set", "nand.cell=qlc"]);
    assert!(
        cell.starts_with("error: --set nand.cell=qlc: nand.read = [45us, 60us, 55us]: must be one time,"),
        "{cell}"
    );
    assert!(cell.contains("built-in device tlc-direct, and conflicts with this"), "{cell}");
    assert!(cell.contains("with --set nand.read=...\n | nand.cell=qlc\n | ^^^^^^^^^^^^^\n"), "{cell}");
    // If there are several overrides, the error names the one without which the device is valid.
    let both = ["device", "check", "tlc-direct", "--set", "geometry.blocks=10", "--set", "gc.victim=fifo"];
    let blocks = mistake(&both);
    assert!(blocks.starts_with("error: --set geometry.blocks=10: capacity.logical = "), "{blocks}");
    assert!(blocks.contains("with --set capacity.logical=..."), "{blocks}");
    // An error in the override itself, or one that exists without overrides, is reported at its own position.
    let own = mistake(&["device", "check", "tiny", "--set", "geometry.mapping_unit=3KiB"]);
    assert!(own.contains(" |                       ^^^^\n") && !own.contains("conflicts with this"), "{own}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "base = \"tiny\"\n[gc]\nsoft_threshold = 0\n").unwrap();
    let file = mistake(&["device", "check", path.to_str().unwrap(), "--set", "gc.victim=fifo"]);
    assert!(file.contains("mine.toml:3:18: gc.soft_threshold = 0"), "{file}");
}

#[test]
fn errors_about_invalid_device_files_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    for nothing in ["", "\n# nothing\n"] {
        std::fs::write(&path, nothing).unwrap();
        let error = mistake(&["device", "check", path.to_str().unwrap()]);
        assert!(error.contains("mine.toml: the device file is empty") && error.contains("base = "), "{error}");
    }
    std::fs::write(&path, "name = \"mine\"\n").unwrap();
    let error = mistake(&["device", "check", path.to_str().unwrap()]);
    assert!(error.contains("mine.toml: missing key `geometry`"), "{error}");
    let error = mistake(&["device", "check", folder.path().to_str().unwrap()]);
    assert!(error.contains("it is a directory; give the path of a file in it"), "{error}");
}

/// Returns the path of an input of the importer.
fn import_input(name: &str) -> String {
    format!("{}/../import/tests/inputs/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn import_prints_a_device_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("imported.toml");
    let path = path.to_str().unwrap();
    for name in ["ssdconfig.xml", "page.parameters", "ssd.parv", "run-blackbox.sh"] {
        let text = output(&["device", "import", &import_input(name)]);
        assert!(text.contains("\n# Not carried over:\n# * "), "{text}");
        std::fs::write(path, text).unwrap();
        assert!(output(&["device", "check", path]).contains("is a valid device"));
    }
    let jobs = output(&["device", "import", &import_input("workload.xml"), "--scenario", "2"]);
    assert!(jobs.contains("\nrate_iops=700,300\n"), "{jobs}");
    let error = mistake(&["device", "import", "/dev/null"]);
    assert!(error.contains("/dev/null: not a configuration that can be imported: expected MQSim's"), "{error}");
    // The device file is printed even if the device is invalid.
    let shell = folder.path().join("run.sh");
    std::fs::write(&shell, "qemu -device femu,femu_mode=1,devsz_mb=16380\n").unwrap();
    let invalid = run(&["device", "import", shell.to_str().unwrap()]);
    assert_eq!(invalid.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&invalid.stdout).contains("[sources]"), "{invalid:?}");
    assert!(String::from_utf8_lossy(&invalid.stderr).contains("imported.toml:"), "{invalid:?}");
}

#[test]
fn files_of_other_simulators_name_the_importer() {
    let [device, jobs] = ["ssdconfig.xml", "workload.xml"].map(import_input);
    let error = mistake(&["run", &device, "rw=read number_ios=1"]);
    let expected = format!("run `floatgate device import {device} > mine.toml`");
    assert!(error.contains("ssdconfig.xml is a configuration of MQSim; to convert it into a device file"), "{error}");
    assert!(error.contains(&expected), "{error}");
    let error = mistake(&["run", "tiny", &jobs]);
    assert!(error.contains("to convert it into jobs, run `floatgate device import"), "{error}");
    // Comments of SSDsim are not in UTF-8.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.parameters");
    let text = std::fs::read(import_input("page.parameters")).unwrap();
    std::fs::write(&path, [&text[..], b"\n#\xa3\xac\n"].concat()).unwrap();
    let error = mistake(&["device", "check", path.to_str().unwrap()]);
    assert!(error.contains("page.parameters is a parameter file of SSDsim"), "{error}");
    output(&["device", "import", path.to_str().unwrap()]);
}

#[test]
fn schema_is_json() {
    let schema: serde_json::Value = serde_json::from_str(&output(&["device", "schema"])).unwrap();
    assert!(schema["properties"]["geometry"].is_object());
}

#[test]
fn a_closed_output_is_not_a_failure() {
    for arguments in [&["device", "schema"][..], &["device", "list"], &["device", "show", "mqsim-default"]] {
        let mut child = floatgate(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(child.wait().unwrap().success() && errors.is_empty(), "{arguments:?}: {errors}");
    }
}
