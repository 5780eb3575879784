//! Files of other simulators: imports them, and recognizes them where a device or a workload is expected.

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use floatgate_import::{Imported, Lost, Simulator};
use floatgate_import::{import, recognize};

use crate::failure::Failure;

/// Maximum size of a configuration in bytes.
const LARGEST: u64 = 4 << 20;

/// Reads a file. Comments of SSDsim are not in UTF-8, so such characters are replaced.
fn text_of(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(std::io::Error::other("it is longer than 4 MiB, the most that is read"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Imports the configuration of another simulator from a file. `scenario` is the scenario of a workload of MQSim,
/// counted from 1.
pub fn from_file(path: &Path, scenario: usize) -> Result<Imported, Failure> {
    let text = text_of(path).map_err(|error| Failure::mistake(format!("cannot read {}: {error}", path.display())))?;
    from_text(&text, &path.to_string_lossy(), scenario)
}

/// Imports a text like [`from_file`]. Errors call it `called`.
pub fn from_text(text: &str, called: &str, scenario: usize) -> Result<Imported, Failure> {
    import(text, called, scenario).map_err(|error| Failure::mistake(format!("{called}: {error}")))
}

/// Returns the remedy if a file, which was given as a device or a workload, is a configuration of another simulator.
/// Pipes are not read again, because that would wait for another writer.
pub fn remedy(path: &str) -> Option<String> {
    let file = Some(Path::new(path)).filter(|path| path.is_file())?;
    let simulator = recognize(&text_of(file).ok()?)?;
    let (what, to) = match simulator {
        Simulator::MqsimWorkload => ("jobs", "jobs.fio"),
        _ => ("a device file", "mine.toml"),
    };
    let described = simulator.described();
    Some(format!("{path} is {described}; to convert it into {what}, run `floatgate device import {path} > {to}`"))
}
