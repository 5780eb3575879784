//! Errors of device files: messages with the place in the text, so that users can correct it.

use std::fmt;
use std::path::PathBuf;

use crate::sim::text::shown;

/// Reason why a device could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The name is neither a built-in device nor a path.
    #[error("no built-in device is called `{name}`{hint}\nbuilt-in devices: {}\nto load a device file, give its path, such as ./{name}.toml", known.join(", "))]
    UnknownDevice {
        /// Name that was given.
        name: String,
        /// Suggestion, such as ", did you mean `x`?", or an empty text.
        hint: String,
        /// Names of the built-in devices.
        known: Vec<&'static str>,
    },
    /// The device file cannot be read.
    #[error("cannot read the device file {}: {cause}{hint}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Alternative for the user, or an empty text.
        hint: String,
        /// Error of the operating system. It is not called `source`, because the message already contains it.
        cause: std::io::Error,
    },
    /// The text is not a device: wrong syntax, unknown keys, or values of the wrong type.
    #[error("{}", list(.0))]
    Malformed(Vec<Problem>),
    /// The device cannot be built: values are out of range or contradict one another.
    #[error("{}", list(.0))]
    Refused(Vec<Problem>),
}

impl ConfigError {
    /// Returns the problems with single keys. The list is empty if the error is not about keys.
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

/// Problem with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the key, such as `gc.soft_threshold`; empty if the text cannot be parsed.
    pub path: String,
    /// Message: what is wrong, what is allowed, and why.
    pub message: String,
    /// Place where the value was written; `None` if it was not written, as with a default.
    pub place: Option<Place>,
}

impl Problem {
    /// Creates a problem with the key at `path`, without a place.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { path: path.into(), message: message.into(), place: None }
    }

    /// Creates an entry for `count` problems that are not listed.
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

/// Place in a text of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Origin of the text: a file, `built-in device x`, or `--set path=value`.
    pub origin: String,
    /// Line and column, counted from 1; `None` in an override, which is one line.
    pub position: Option<(usize, usize)>,
    /// The line, with carets under the marked characters.
    pub snippet: String,
}

impl Place {
    /// Creates the place of a value that several overrides determine together.
    pub(super) fn of_overrides(texts: &[&str]) -> Place {
        let texts: Vec<_> = texts.iter().map(|text| shown(text)).collect();
        let origins: Vec<String> = texts.iter().map(|text| format!("--set {text}")).collect();
        let line = texts.join(", ");
        let carets = "^".repeat(line.chars().count().max(1));
        Place { origin: origins.join(" "), position: None, snippet: format!(" | {line}\n | {carets}") }
    }

    /// Returns `true` if the place is in a built-in device, whose lines the user has not seen.
    pub(super) fn is_of_builtin(&self) -> bool {
        self.origin.starts_with("built-in device ")
    }

    /// Returns `true` if the place is in an override.
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
