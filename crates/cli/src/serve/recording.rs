//! The file of a recording.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floatgate_core::config::DeviceConfig;
use floatgate_report::command::quoted;
use floatgate_run::frontend::{Frontend, unless_stopped};
use floatgate_run::output::{Draft, partial};
use floatgate_run::state::Place;
use floatgate_serve::record::{Recorder, Sink};
use floatgate_workload::trace::{Packed, Packing};

use super::image::Begun;
use super::{ServeArgs, warn};
use crate::failure::Failure;

/// A trace in the making; it comes to its place when it is whole, and stays beside it where it cannot be.
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

/// Refuses a recording whose files exist: it would replace an earlier one, or what a killed server left of one.
pub fn check(path: &Path) -> Result<(), Failure> {
    let files = [path.to_owned(), partial(path), state_path(path)];
    let found: Vec<String> =
        files.iter().filter(|file| file.is_file()).map(|file| file.display().to_string()).collect();
    match found.is_empty() {
        true => Ok(()),
        false => Err(Failure::mistake(format!(
            "--record {}: it would replace {}; remove or rename what you have, or give another name",
            path.display(),
            found.join(" and ")
        ))),
    }
}

/// Returns the path of the saved state from which a recording is replayed.
fn state_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".fgstate");
    PathBuf::from(name)
}

/// Saves what an image held before a recording, from which that is replayed, beside the recording; returns where. Where
/// that is nothing to be saved, as of a device that takes no writes any more, it is recorded all the same.
pub fn state(args: &ServeArgs, begun: &Begun, frontend: &dyn Frontend) -> Result<Option<PathBuf>, Failure> {
    let (Some(path), true) = (&args.record, begun.recovered.is_some()) else { return Ok(None) };
    let path = state_path(path);
    match Place::open(&path, frontend)?.write(&begun.device, &begun.state, frontend).map_err(Failure::from) {
        Ok(()) => Ok(Some(path)),
        Err(Failure::Mistake(why)) => {
            warn(&format!("no replay of the recording can begin from what the image holds: {why}"));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// What there is of a recording that could not be written to its end.
pub fn not_whole(path: &Path, error: &str) -> String {
    let partial = partial(path);
    let what = match partial.metadata() {
        Ok(found) if found.len() > 0 => {
            format!("what was recorded before that is in {}, its last line may be cut off", partial.display())
        }
        _ => "nothing of it could be written".to_owned(),
    };
    format!("the recording is not whole: {error}; {what}")
}

/// Begins the recording of a run; `replay` is the command that replays it.
pub fn begin(
    path: &Path,
    replay: &[String],
    config: &DeviceConfig,
    frontend: &dyn Frontend,
) -> Result<Recorder, Failure> {
    let told = |error: io::Error| Failure::fault(format!("--record {}: {error}", path.display()));
    let draft = Draft::new(path, &frontend.wait()).map_err(|error| unless_stopped(error, frontend))?.kept();
    let packed = Packing::of_name(path).writer(draft).map_err(told)?;
    let words: Vec<String> = replay.iter().map(|word| quoted(word)).collect();
    let (name, digest, version) = (&config.name, config.digest(), env!("CARGO_PKG_VERSION"));
    let head = [
        format!("requests of a live device, {name} ({digest}), Floatgate {version}; to replay them:"),
        format!("floatgate {}", words.join(" ")),
    ];
    Recorder::begin(Box::new(File(packed)), &head).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_run::output::Wait;

    #[test]
    fn what_there_is_of_a_recording_is_kept_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.csv");
        assert!(not_whole(&path, "broken").ends_with("broken; nothing of it could be written"));
        let mut file =
            File(Packing::of_name(&path).writer(Draft::new(&path, &Wait::default()).unwrap().kept()).unwrap());
        file.write_all(b"a line").unwrap();
        drop(file);
        assert_eq!(std::fs::read(partial(&path)).unwrap(), b"a line");
        assert!(not_whole(&path, "broken").contains(&partial(&path).display().to_string()));
        assert!(!path.exists());
    }
}
