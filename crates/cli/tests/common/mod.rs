//! Test bench: a directory in which the real program is called.

#[cfg(feature = "live")]
pub mod live;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use floatgate_core::summary::Summary;
use serde_json::Value;
use tempfile::TempDir;

/// Small device with 2 channels and 2 chips per channel.
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

/// Directory in which `floatgate` is called.
pub struct Bench {
    directory: TempDir,
    /// First arguments of each call.
    first: &'static [&'static str],
}

impl Bench {
    /// Creates an empty directory.
    pub fn new() -> Bench {
        Bench::calling(&[], &[])
    }

    /// Creates a directory for `floatgate run` on [`DEVICE`].
    pub fn with_device() -> Bench {
        Bench::calling(&["run", "device.toml"], &[("device.toml", DEVICE)])
    }

    /// Creates a directory with these files, for calls with these first arguments.
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

    /// Returns a command for a shell that calls the program as `"$@"`.
    #[cfg(unix)]
    pub fn shell(&self, script: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_floatgate")]).args(self.first).args(arguments);
        command.current_dir(self.directory.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Calls the program, which must succeed, and returns its output.
    #[track_caller]
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Calls the program with `--json`, and returns its output.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Calls the program, which must fail with this status, and returns its error.
    #[track_caller]
    pub fn error(&self, status: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?} printed something before it failed");
        assert!(!text.contains("panicked"), "{text}");
        text
    }

    /// Calls the program, which must report a mistake of the user, and returns its error.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        self.error(2, arguments)
    }

    /// Sends Ctrl-C when a file has more than 1000 bytes, and returns the output of the program.
    #[cfg(unix)]
    #[expect(clippy::disallowed_methods, reason = "waits for another process")]
    pub fn interrupted(&self, arguments: &[&str], growing: &str) -> Output {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        for _ in 0..6000 {
            let partial = partial_of(&self.path(growing));
            if partial.is_some_and(|path| fs::metadata(path).is_ok_and(|file| file.len() > 1000)) {
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

/// Returns the path of a file while it is written, or as a killed process has left it.
pub fn partial_of(path: &std::path::Path) -> Option<std::path::PathBuf> {
    let start = format!("{}.", path.file_name().unwrap().to_str().unwrap());
    let files = fs::read_dir(path.parent().unwrap()).into_iter().flatten().map(|file| file.unwrap().path());
    let named = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.filter(|path| named(path).starts_with(&start) && named(path).ends_with(".partial")).max()
}

/// Creates a node of a memory device, such as 7 for `/dev/full`. A program that wrongly replaces the node, as root,
/// must not replace the machine's own node. Prints a message and returns `false` if the node cannot be created.
#[cfg(target_os = "linux")]
pub fn node(path: &std::path::Path, minor: &str) -> bool {
    let made = Command::new("mknod").arg(path).args(["c", "1", minor]).stderr(Stdio::null()).status();
    let can = made.is_ok_and(|made| made.success()) && fs::OpenOptions::new().write(true).open(path).is_ok();
    if !can {
        println!("skipped: no device node can be created and opened here");
    }
    can
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Checks a value against the subset of JSON schema that our schema uses. Keys that are not in the schema are errors.
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

/// Checks a result against its schema.
pub fn validate_summary(summary: &Value) {
    // A test of the core compares docs/reference/summary.schema.json with this schema.
    let schema = Summary::json_schema();
    validate(summary, &schema, &schema, "summary");
}
