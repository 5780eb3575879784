//! Texts of a timeline. All are known before the first event, so that each part of a timeline can be read without the
//! parts before it.

use std::collections::BTreeMap;

use floatgate_core::results::Part;
use floatgate_core::sim::request::Operation;
use floatgate_core::timeline::Phase;

use super::packets::{Interned, InternedData};
use super::{FIRMWARE, REQUEST, TASKS, WAIT, operations, phase_name, task_name};
use crate::columns::record::{STATUSES, status_name};

/// Names of arguments, apart from the parts of a latency.
const ARGUMENTS: [&str; 22] = [
    "op",
    "plane",
    "lun",
    "block",
    "page",
    "ppn",
    "lpn",
    "request",
    "requests",
    "start_ps",
    "end_ps",
    "length_ps",
    "stream",
    "lba",
    "sectors",
    "status",
    "start_us",
    "cause",
    "wait_us",
    "units",
    "run",
    "to_ps",
];

/// Texts of one kind, numbered from 1 on.
#[derive(Debug, Default)]
pub struct Texts {
    texts: Vec<String>,
    numbers: BTreeMap<String, u64>,
}

impl Texts {
    fn add(&mut self, text: &str) {
        if !self.numbers.contains_key(text) {
            self.texts.push(text.to_owned());
            self.numbers.insert(text.to_owned(), self.texts.len() as u64);
        }
    }

    /// Returns the number of a text.
    pub fn number(&self, text: &str) -> Option<u64> {
        self.numbers.get(text).copied()
    }

    fn interned(&self) -> Vec<Interned> {
        let one = |(index, text): (usize, &String)| Interned { iid: Some(index as u64 + 1), name: Some(text.clone()) };
        self.texts.iter().enumerate().map(one).collect()
    }
}

/// Texts of a timeline by kind.
#[derive(Debug)]
pub struct Names {
    /// Categories of events.
    pub categories: Texts,
    /// Names of events.
    pub events: Texts,
    /// Names of arguments.
    pub arguments: Texts,
    /// Texts in arguments.
    pub values: Texts,
}

impl Default for Names {
    fn default() -> Names {
        let mut names = Names {
            categories: Texts::default(),
            events: Texts::default(),
            arguments: Texts::default(),
            values: Texts::default(),
        };
        for (operation, _) in operations() {
            names.categories.add(operation);
            names.events.add(operation);
            names.events.add(&format!("{WAIT}: {operation}"));
            for phase in [Phase::Switch, Phase::Command, Phase::Data] {
                names.events.add(&format!("{operation}: {}", phase_name(phase)));
            }
        }
        [WAIT, REQUEST, FIRMWARE].iter().for_each(|category| names.categories.add(category));
        Operation::ALL.iter().for_each(|operation| names.events.add(operation.name()));
        for task in TASKS {
            let (name, cause) = task_name(task);
            names.events.add(name);
            names.values.add(cause);
        }
        STATUSES.iter().for_each(|status| names.values.add(status_name(*status)));
        ARGUMENTS.iter().for_each(|argument| names.arguments.add(argument));
        Part::ALL.iter().for_each(|part| names.arguments.add(&format!("{}_us", part.name())));
        names
    }
}

impl Names {
    /// Returns the texts with their numbers, for the start of a file.
    pub fn interned(&self) -> InternedData {
        InternedData {
            event_categories: self.categories.interned(),
            event_names: self.events.interned(),
            debug_annotation_names: self.arguments.interned(),
            debug_annotation_string_values: self.values.interned(),
        }
    }
}
