//! Draft of a device file: values with their origins, and keys that are not carried over.

use std::fmt::{Display, Write};

use crate::keys::{Found, Keys};

/// Key that is not carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Key and value, as in the file.
    pub key: String,
    /// Difference between the simulator and the imported device.
    pub consequence: String,
}

/// Draft of a device file.
pub struct Draft {
    head: String,
    /// Path, value as TOML, and origin.
    values: Vec<(&'static str, String, String)>,
    lost: Vec<Lost>,
    /// Keys that do not change requests or their times.
    unneeded: Vec<String>,
    /// Conditions and options that the user may want then, in the syntax of `--set`.
    optional: Vec<(String, Vec<String>)>,
}

impl Draft {
    /// Starts the device file for a file of a simulator.
    pub fn new(simulator: &str, file: &str) -> Draft {
        let name = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let head = format!(
            "# Imported from {simulator}'s {file} by `floatgate device import`.\n\
             # Each value has the key that it comes from. The end lists what was not carried over.\n\
             name = {}\ndescription = {}\n",
            text(if name.is_empty() { "imported" } else { &name }),
            text(&format!("Imported from {simulator}'s {file}."))
        );
        Draft { head, values: Vec::new(), lost: Vec::new(), unneeded: Vec::new(), optional: Vec::new() }
    }

    /// Sets a number or boolean, with its origin.
    pub fn set(&mut self, path: &'static str, value: impl Display, from: impl Into<String>) {
        self.values.push((path, value.to_string(), from.into()));
    }

    /// Sets a text.
    pub fn text(&mut self, path: &'static str, value: impl Display, from: impl Into<String>) {
        self.set(path, text(&value.to_string()), from);
    }

    /// Sets a number to a value of the file.
    pub fn take<T: Display>(&mut self, path: &'static str, found: &Found<T>) {
        self.set(path, &found.value, &*found.from);
    }

    /// Adds a key that is not carried over.
    pub fn lose(&mut self, key: impl Into<String>, consequence: impl Into<String>) {
        self.lost.push(Lost { key: key.into(), consequence: consequence.into() });
    }

    /// Adds options that the user may want, in the syntax of `--set`.
    pub fn offer(&mut self, condition: impl Into<String>, options: &[String]) {
        self.optional.push((condition.into(), options.to_vec()));
    }

    /// Marks keys that do not change requests or their times, if the file has them.
    pub fn ignore(&mut self, keys: &mut Keys, names: &[&str]) {
        let unused = keys.unused().into_iter().map(|key| key.name).filter(|name| names.contains(&name.as_str()));
        let unused: Vec<String> = unused.collect();
        unused.iter().for_each(|name| drop(keys.get(name)));
        self.unneeded.extend(unused);
    }

    /// Adds all keys that have not been used.
    pub fn lose_rest(&mut self, keys: &Keys) {
        for key in keys.unused() {
            let consequence = "unknown key: it has no effect here";
            self.lose(format!("{} = {}", key.name, key.value), consequence);
        }
    }

    /// Returns the device file and the keys that it does not carry over.
    pub fn finish(self) -> (String, Vec<Lost>) {
        let mut out = self.head;
        let mut sources = String::new();
        let table = |path: &'static str| path.split_once('.').map_or((path, path), |(table, rest)| (table, rest));
        let mut tables: Vec<&str> = self.values.iter().map(|(path, ..)| table(path).0).collect();
        let mut seen = Vec::new();
        tables.retain(|name| {
            !seen.contains(name) && {
                seen.push(name);
                true
            }
        });
        for name in tables {
            let _ = writeln!(out, "\n[{name}]");
            for (path, value, from) in self.values.iter().filter(|(path, ..)| table(path).0 == name) {
                let _ = writeln!(out, "{} = {value} # {from}", table(path).1);
                let _ = writeln!(sources, "\"{path}\" = {}", text(from));
            }
        }
        let _ = write!(out, "\n[sources]\n{sources}");
        for (condition, options) in &self.optional {
            let options: Vec<String> = options.iter().map(|option| format!("--set {option}")).collect();
            let _ = write!(out, "\n# {condition}, add\n#   {}\n", options.join(" "));
        }
        write_lost(&mut out, &self.lost, &self.unneeded);
        (out, self.lost)
    }
}

/// Writes the list of keys that are not carried over, as comments.
pub fn write_lost(out: &mut String, lost: &[Lost], unneeded: &[String]) {
    if !lost.is_empty() {
        out.push_str("\n# Not carried over:\n");
    }
    for Lost { key, consequence } in lost {
        let _ = writeln!(out, "# * {key}: {consequence}");
    }
    if !unneeded.is_empty() {
        let _ = writeln!(out, "\n# Without effect on requests and their times: {}", unneeded.join(", "));
    }
}

/// Returns a text as a TOML string.
fn text(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Returns a time in the largest unit in which it is a whole number. Fails if it is longer than 100 s.
pub fn time(nanoseconds: f64) -> Result<String, String> {
    let picoseconds = (nanoseconds * 1000.0).round();
    if picoseconds > 1e14 {
        return Err(format!("invalid time {nanoseconds} ns: expected at most 100 s"));
    }
    let picoseconds = picoseconds as u64;
    let units = [(1_000_000_000, "ms"), (1_000_000, "us"), (1000, "ns")];
    let unit = units.into_iter().find(|(size, _)| picoseconds != 0 && picoseconds.is_multiple_of(*size));
    let (size, unit) = unit.unwrap_or((1, "ps"));
    Ok(format!("{}{unit}", picoseconds / size))
}

/// Returns a share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{}%", (share * 1e11).round() / 1e9)
}
