//! The generated reference in `docs/reference` matches the code.

use super::*;

/// Fails if a generated file is out of date. With `FLOATGATE_BLESS=1`, writes it first.
fn up_to_date(name: &str, text: &str) {
    let path = repository().join("docs/reference").join(name);
    if std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{} is out of date: run the tests with FLOATGATE_BLESS=1 and check the difference",
        path.display()
    );
}

#[test]
fn the_page_is_up_to_date() {
    up_to_date("config.md", &reference_page());
}

#[test]
fn the_schema_is_up_to_date() {
    up_to_date("device.schema.json", &(serde_json::to_string_pretty(&DeviceConfig::json_schema(&[])).unwrap() + "\n"));
}

#[test]
fn the_example_is_up_to_date_and_loads() {
    up_to_date("device.example.toml", &example());
    let device = from_toml(&example(), "device.example.toml", &[]).unwrap();
    assert_eq!(device.digest(), tiny(&[]).unwrap().digest());
}

#[test]
fn the_page_has_every_key() {
    let page = reference_page();
    for figure in tiny(&[]).unwrap().figures() {
        let key = figure.path.rsplit('.').next().unwrap().to_owned();
        assert!(page.contains(&format!("| `{key}` ")), "{key} is not in the reference");
    }
}
