//! Imported configurations of other simulators give the recorded results of the devices that were written by hand.

use floatgate_validation::{case, record, repository};

/// Checks that a case gives its recorded results on the device that is imported from a text.
fn check(text: &str, file: &str, name: &str, set: &[&str]) {
    let root = repository();
    let folder = std::env::temp_dir().join(format!("floatgate-imports-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{}.toml", name.replace([' ', '%', ','], "-")));
    std::fs::write(&path, floatgate_import::import(text, file, 1).unwrap().text).unwrap();
    let results = record::read(&root).unwrap();
    let groups = case::read(&root).unwrap();
    let found = groups.iter().flat_map(|group| group.cases.iter().map(move |case| (group, case)));
    let (group, original) = found.into_iter().find(|(_, case)| case.name == name).unwrap();
    let mut imported = original.clone();
    imported.own.device = Some(path.to_str().unwrap().to_owned());
    imported.own.set = set.iter().map(|option| (*option).to_owned()).collect();
    let taken = record::take(&root, group, &imported).unwrap();
    assert_eq!(taken.metrics, results[&record::key(group, original)].metrics, "{name}");
    std::fs::remove_file(&path).ok();
}

fn input(name: &str) -> String {
    std::fs::read_to_string(repository().join("crates/import/tests/inputs").join(name)).unwrap()
}

#[test]
fn the_import_of_mqsim_has_the_figures_of_the_built_in_device() {
    let text = input("ssdconfig.xml");
    // The overrides are those of the cases, which shorten them.
    let shorter = ["geometry.blocks=64", "capacity.spare=0.2", "gc.hard_threshold=1"];
    check(&text, "ssdconfig.xml", "MQSim, read of 4 KiB", &shorter);
    let page = text.replace("<Page_Capacity>8192", "<Page_Capacity>4096");
    check(&page, "ssdconfig.xml", "MQSim, write of 4 KiB", &shorter);
}

#[test]
fn the_import_of_ssdsim_has_the_figures_of_its_page() {
    // The cases measure one page of 4 KiB without a buffer.
    let changes = [
        ("page capacity = 2048", "page capacity = 4096"),
        ("dram capacity = 131074", "dram capacity = 0"),
        ("block number = 2048", "block number = 64"),
        ("advanced command=31", "advanced command=0"),
    ];
    let text = changes.iter().fold(input("page.parameters"), |text, (from, to)| text.replace(from, to));
    check(&text, "page.parameters", "SSDsim, read of a page", &[]);
    check(&text, "page.parameters", "SSDsim, write of a page", &[]);
}

#[test]
fn the_import_of_disksim_has_the_figures_of_the_device_file() {
    let text = input("ssd.parv");
    check(&text, "ssd.parv", "DiskSim, ssd-rr250k", &[]);
    check(&text, "ssd.parv", "DiskSim, ssd-rw250k", &[]);
}

#[test]
fn the_import_of_femu_has_the_figures_of_the_device_file() {
    check(&input("femu-waf.txt"), "femu-waf.txt", "Over-provisioning 100 %", &[]);
}
