//! Keys of a configuration, and which of them have been used.

use std::collections::BTreeSet;
use std::str::FromStr;

/// Key with its value, as the file has them.
#[derive(Clone, Debug)]
pub struct Key {
    /// Name.
    pub name: String,
    /// Value, without spaces around it.
    pub value: String,
    /// Line, counted from 1.
    pub line: usize,
}

/// Value with the key that it was read from.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// The value.
    pub value: T,
    /// Origin for comments: `name = value`.
    pub from: String,
}

/// Keys of a configuration.
#[derive(Debug)]
pub struct Keys {
    simulator: &'static str,
    all: Vec<Key>,
    used: BTreeSet<String>,
}

impl Keys {
    /// Creates the keys of a file of `simulator`. If a name occurs several times, the last one counts.
    pub fn new(simulator: &'static str, all: Vec<Key>) -> Keys {
        Keys { simulator, all, used: BTreeSet::new() }
    }

    /// Returns the key with a name, and marks it as used.
    pub fn get(&mut self, name: &str) -> Option<Key> {
        let found = self.all.iter().rev().find(|key| key.name == name).cloned();
        if found.is_some() {
            self.used.insert(name.to_owned());
        }
        found
    }

    /// Reads a value. Without the key, returns `default`, the simulator's own; if there is none, fails.
    pub fn read<T: FromStr + ToString>(&mut self, name: &str, default: Option<T>) -> Result<Found<T>, String> {
        match (self.get(name), default) {
            (Some(Key { value, line, .. }), _) => {
                let read = value.parse().map_err(|_| format!("line {line}: invalid `{name}` {value}"))?;
                Ok(Found { value: read, from: format!("{name} = {value}") })
            }
            (None, Some(value)) => {
                let from = format!("{name} = {}, {}'s default", value.to_string(), self.simulator);
                Ok(Found { value, from })
            }
            (None, None) => Err(format!("missing key `{name}`")),
        }
    }

    /// Reads a count, which is 1 or more.
    pub fn count(&mut self, name: &str, default: Option<u32>) -> Result<Found<u32>, String> {
        let found = self.read(name, default)?;
        if found.value == 0 {
            return Err(format!("invalid `{name}` 0: expected 1 or more"));
        }
        Ok(found)
    }

    /// Reads a number that is finite and not negative.
    pub fn number(&mut self, name: &str, default: Option<f64>) -> Result<Found<f64>, String> {
        let found = self.read(name, default)?;
        if !found.value.is_finite() || found.value < 0.0 {
            return Err(format!("invalid `{name}` {}: expected 0 or more", found.value));
        }
        Ok(found)
    }

    /// Returns the last occurrence of each key that has not been used, in the order of the file.
    pub fn unused(&self) -> Vec<Key> {
        let mut seen = BTreeSet::new();
        let unused = self.all.iter().rev().filter(|key| !self.used.contains(&key.name));
        let mut keys: Vec<Key> = unused.filter(|key| seen.insert(&key.name)).cloned().collect();
        keys.reverse();
        keys
    }
}
