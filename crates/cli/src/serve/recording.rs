//! The file of a recording.

use std::io::{self, Write};
use std::path::Path;

use floatgate_core::config::DeviceConfig;
use floatgate_core::workload::trace::{Packed, Packing};
use floatgate_report::command::quoted;
use floatgate_serve::record::{Recorder, Sink};

use super::ServeArgs;
use crate::failure::Failure;
use crate::output::Draft;

/// A trace in the making; it comes to its place when it is whole.
struct File(Packed<Draft>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for File {
    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut draft = self.0.finish()?;
        let told = |error: anyhow::Error| io::Error::other(format!("{error:#}"));
        draft.complete().map_err(told)?;
        draft.publish().map_err(told)
    }
}

/// Begins the recording of a run.
pub fn begin(path: &Path, args: &ServeArgs, config: &DeviceConfig) -> Result<Recorder, Failure> {
    let told = |error: io::Error| Failure::fault(format!("--record {}: {error}", path.display()));
    let draft = Draft::new(path).map_err(Failure::Fault)?;
    let packed = Packing::of_name(path).writer(draft).map_err(told)?;
    let words: Vec<String> = args.replay().iter().map(|word| quoted(word)).collect();
    let (name, digest, version) = (&config.name, config.digest(), env!("CARGO_PKG_VERSION"));
    let head = [
        format!("requests of a live device, {name} ({digest}), Floatgate {version}; to replay them:"),
        format!("floatgate {}", words.join(" ")),
    ];
    Recorder::begin(Box::new(File(packed)), &head).map_err(told)
}
