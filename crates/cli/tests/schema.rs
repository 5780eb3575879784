//! The JSON schema of device files, as published in `docs/reference`, run through a validator: it accepts what loads,
//! and says no to what an editor should underline.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn validator() -> jsonschema::Validator {
    let text = std::fs::read_to_string(repository().join("docs/reference/device.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|error| panic!("no schema at all: {error}"));
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{error}"))
}

/// A device file as the data that it stands for.
fn data(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

/// What the validator has against a file.
fn faults(validator: &jsonschema::Validator, file: &Value) -> Vec<String> {
    validator.iter_errors(file).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

#[test]
fn device_files_agree_with_the_schema() {
    let validator = validator();
    let mut files = 0;
    for directory in ["devices", "validation/devices"] {
        for entry in std::fs::read_dir(repository().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            let found = faults(&validator, &data(&std::fs::read_to_string(&path).unwrap()));
            assert!(found.is_empty(), "{}: {found:#?}", path.display());
            files += 1;
        }
    }
    assert!(files > 15);
    let example = std::fs::read_to_string(repository().join("docs/reference/device.example.toml")).unwrap();
    assert_eq!(faults(&validator, &data(&example)), [] as [String; 0]);
}

/// What stands in results is a device file too, with every default written down.
#[test]
fn resolved_devices_agree_with_the_schema() {
    let validator = validator();
    for name in floatgate_core::config::builtin_names() {
        let device = floatgate_core::config::load(name, &[]).unwrap();
        let found = faults(&validator, &serde_json::to_value(device.resolved()).unwrap());
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn broken_device_files_do_not() {
    let validator = validator();
    let based = |key: &str, value: Value| {
        let mut file = json!({ "base": "tiny" });
        let (table, key) = key.split_once('.').unwrap_or(("", key));
        match table {
            "" => file[key] = value,
            _ => file[table] = json!({ key: value }),
        }
        file
    };
    let broken = [
        json!({}),
        json!([]),
        json!({ "base": "tiny2" }),
        based("geometri", json!({})),
        based("geometry.chanels", json!(4)),
        based("geometry.channels", json!(0)),
        based("geometry.channels", json!(-1)),
        based("geometry.channels", json!(1.5)),
        based("geometry.channels", json!("4")),
        based("geometry.page_size", json!(4096)),
        based("geometry.page_size", json!("4 kilobytes")),
        based("capacity.spare", json!(1.5)),
        based("capacity", json!({ "spare": 0.1, "logical": "1GiB" })),
        based("nand.read", json!("25")),
        based("nand.read", json!(["25us", 3])),
        based("nand.cell", json!("plc")),
        based("nand.endurance", json!("many")),
        based("bus.width", json!(9)),
        based("bus.protocol", json!("sdr")),
        based("gc.victim", json!("greddy")),
        based("gc.victim", json!({ "d-choices": { "d": 0 } })),
        based("gc.victim", json!({ "d-choices": { "k": 3 } })),
        based("gc.soft_threshold", json!("5 percent")),
        based("allocation.static", json!({ "order": "s7" })),
        based("scheduler", json!(["fcfs"])),
        based("sources", json!({ "geometry": 3 })),
    ];
    let accepted: Vec<&Value> = broken.iter().filter(|file| validator.is_valid(file)).collect();
    assert!(accepted.is_empty(), "the schema says yes to {accepted:#?}");
    // Each is refused for what is broken in it: without that, it is a device.
    assert!(validator.is_valid(&json!({ "base": "tiny" })));
}

#[test]
fn a_device_without_a_base_needs_its_tables() {
    let validator = validator();
    let whole = serde_json::to_value(floatgate_core::config::load("tiny", &[]).unwrap()).unwrap();
    assert!(validator.is_valid(&whole));
    for key in ["geometry", "nand", "bus"] {
        let mut part = whole.clone();
        part.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&part), "{key}");
        let mut part = whole.clone();
        let first = part[key].as_object().unwrap().keys().next().unwrap().clone();
        part[key].as_object_mut().unwrap().remove(if key == "nand" { "read" } else { &first });
        assert!(!validator.is_valid(&part), "{key}.{first}");
    }
}
