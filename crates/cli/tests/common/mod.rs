//! What the tests share: a directory in which the real program is called.
#![allow(dead_code)] // Each test file is a crate of its own and uses a part of this.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use floatgate_core::metrics::summary::Summary;
use serde_json::Value;
use tempfile::TempDir;

/// A small device, of 2 channels with 2 chips each.
pub const DEVICE: &str = r#"
name = "test-drive"
[geometry]
channels = 2
chips = 2
dies = 1
planes = 2
blocks = 32
pages = 64
page_size = "4KiB"
[capacity]
spare = 0.25
[nand]
read = "25us"
program = "200us"
erase = "1500us"
[bus]
protocol = { nv-ddr = "200MT/s" }
[gc]
soft_threshold = 2
hard_threshold = 1
"#;

/// A directory in which `floatgate` is called.
pub struct Bench {
    directory: TempDir,
    /// What each call begins with.
    first: &'static [&'static str],
}

impl Bench {
    /// An empty one.
    pub fn new() -> Bench {
        Bench::calling(&[], &[])
    }

    /// For `floatgate run` on [`DEVICE`].
    pub fn with_device() -> Bench {
        Bench::calling(&["run", "device.toml"], &[("device.toml", DEVICE)])
    }

    /// With files, for calls that begin with these words.
    pub fn calling(first: &'static [&'static str], files: &[(&str, &str)]) -> Bench {
        let bench = Bench { directory: tempfile::tempdir().unwrap(), first };
        files.iter().for_each(|(name, text)| {
            bench.file(name, text);
        });
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
        command.args(self.first).args(arguments).current_dir(self.directory.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it prints, where it ends well.
    #[track_caller]
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same as JSON.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// What it says, where it ends with a status other than 0.
    #[track_caller]
    pub fn error(&self, status: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?} printed something before it failed");
        assert!(!text.contains("panicked"), "{text}");
        text
    }

    /// What it says of a mistake of the user.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        self.error(2, arguments)
    }

    /// What comes of it when Ctrl-C is pressed as soon as a file has more than a few bytes.
    #[cfg(unix)]
    #[expect(clippy::disallowed_methods, reason = "waits for another process")]
    pub fn interrupted(&self, arguments: &[&str], growing: &str) -> Output {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        for _ in 0..6000 {
            if fs::metadata(self.path(growing)).is_ok_and(|file| file.len() > 1000) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        output
    }
}

/// Makes a node of a character device of memory, such as 7, `/dev/full`. One of its own: a program that replaces the
/// node, as root, must not replace that of the machine. Returns `false`, and says so, where that cannot be done.
#[cfg(target_os = "linux")]
pub fn node(path: &std::path::Path, minor: &str) -> bool {
    let made = Command::new("mknod").arg(path).args(["c", "1", minor]).stderr(Stdio::null()).status();
    let can = made.is_ok_and(|made| made.success()) && fs::OpenOptions::new().write(true).open(path).is_ok();
    if !can {
        println!("no device node can be made and opened here, so that is not tested");
    }
    can
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Checks the part of JSON schema that ours uses; there is no key that the schema does not have.
fn validate(value: &Value, schema: &Value, root: &Value, path: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return validate(value, root.pointer(name.trim_start_matches('#')).unwrap(), root, path);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let choice = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return validate(value, choice.unwrap_or_else(|| panic!("{path}: {value}")), root, path);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    assert!(kinds.iter().any(|allowed| allowed == kind), "{path} is {kind}, the schema has {kinds:?}");
    assert!(schema.get("const").is_none_or(|only| only == value), "{path} is {value}");
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        validate(item, &schema["items"], root, &format!("{path}[{index}]"));
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    for key in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(key.as_str().unwrap()).is_some(), "{path} has no {key}");
    }
    for (key, value) in value.as_object().unwrap() {
        let property = properties.get(key).unwrap_or_else(|| panic!("{path}.{key} is not in the schema"));
        validate(value, property, root, &format!("{path}.{key}"));
    }
}

/// Checks that a result has the form of its schema.
pub fn validate_summary(summary: &Value) {
    // That docs/reference/summary.schema.json is the same is tested where the struct is.
    let schema = Summary::json_schema();
    validate(summary, &schema, &schema, "summary");
}
