//! What can be wrong with a device, said so that it can be put right.

use std::fmt;
use std::path::PathBuf;

use crate::sim::text::shown;

/// Why a device could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Neither a built-in device nor a path.
    #[error("no built-in device is called `{name}`{hint}\nbuilt-in devices: {}\na device file is given by its path, like ./{name}.toml", known.join(", "))]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// ", did you mean `x`?", or nothing.
        hint: String,
        /// The built-in devices.
        known: Vec<&'static str>,
    },
    /// A device file that cannot be read.
    #[error("cannot read the device file {}: {cause}{hint}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What to try instead, or nothing.
        hint: String,
        /// What the operating system says. Not `source`: the message has it already.
        cause: std::io::Error,
    },
    /// Text that is no device: syntax, unknown keys, values of the wrong type.
    #[error("{}", list(.0))]
    Malformed(Vec<Problem>),
    /// A device that cannot be built: values out of range, or at odds with one another.
    #[error("{}", list(.0))]
    Refused(Vec<Problem>),
}

impl ConfigError {
    /// What is wrong at which key, where that is the matter.
    pub fn problems(&self) -> &[Problem] {
        match self {
            ConfigError::Malformed(problems) | ConfigError::Refused(problems) => problems,
            ConfigError::UnknownDevice { .. } | ConfigError::Unreadable { .. } => &[],
        }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key, like `gc.soft_threshold`; empty where the text does not get that far.
    pub path: String,
    /// What is wrong with it, what is allowed, and why.
    pub message: String,
    /// Where it was written; `None` when it was not, as with a default.
    pub place: Option<Place>,
}

impl Problem {
    /// A problem of the key at `path`, without a place.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { path: path.into(), message: message.into(), place: None }
    }

    /// Stands for problems beyond those that are listed.
    pub(super) fn of_others(count: usize) -> Problem {
        Problem::new("", format!("and {count} more like these"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}\n{}", self.message, place.snippet),
            None => f.write_str(&self.message),
        }
    }
}

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, `built-in device x`, or `--set path=value`.
    pub origin: String,
    /// Line and column, counted from 1; `None` in an override, which is one line.
    pub position: Option<(usize, usize)>,
    /// The line with a caret under the place.
    pub snippet: String,
}

impl Place {
    /// Overrides that together are where something comes from.
    pub(super) fn of_overrides(texts: &[&str]) -> Place {
        let texts: Vec<_> = texts.iter().map(|text| shown(text)).collect();
        let origins: Vec<String> = texts.iter().map(|text| format!("--set {text}")).collect();
        let line = texts.join(", ");
        let carets = "^".repeat(line.chars().count().max(1));
        Place { origin: origins.join(" "), position: None, snippet: format!(" | {line}\n | {carets}") }
    }

    /// Whether it is in a built-in device, whose lines the user has not seen.
    pub(super) fn is_of_builtin(&self) -> bool {
        self.origin.starts_with("built-in device ")
    }

    /// Whether it is in an override.
    pub(super) fn is_override(&self) -> bool {
        self.position.is_none()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.origin),
            None => f.write_str(&self.origin),
        }
    }
}
