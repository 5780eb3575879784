//! Recording of a served device: its file, and the saved state that it starts from.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floatgate_core::device_file::DeviceConfig;
use floatgate_report::command::quoted;
use floatgate_run::frontend::{Frontend, unless_stopped};
use floatgate_run::output::{Draft, partials};
use floatgate_run::state::Place;
use floatgate_serve::record::{Recorder, Sink};
use floatgate_workload::trace::{Packed, Packing};

use super::args::ServeArgs;
use super::image::Begun;
use crate::failure::{Failure, warn};

/// A trace that is being recorded. It is renamed to its final name when it is complete. After a failure, the partial
/// file stays.
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
        let reported = |error: anyhow::Error| io::Error::other(format!("{error:#}"));
        draft.complete().map_err(reported)?;
        draft.publish().map_err(reported)
    }
}

/// Refuses a recording whose files exist, because it would replace an earlier recording, possibly that of a killed
/// server.
pub fn check(path: &Path) -> Result<(), Failure> {
    let files = [path.to_owned()].into_iter().chain(partials(path)).chain([state_path(path)]);
    let found: Vec<String> = files.filter(|file| file.is_file()).map(|file| file.display().to_string()).collect();
    if found.is_empty() {
        Ok(())
    } else {
        Err(Failure::mistake(format!(
            "--record {}: it would replace {}; remove or rename the existing files, or give another name",
            path.display(),
            found.join(" and ")
        )))
    }
}

/// Returns the path of the saved state from which a recording is replayed.
fn state_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".fgstate");
    PathBuf::from(name)
}

/// Saves the state of a device from its images next to the recording, and returns the path. A replay starts from this
/// state. If the state cannot be saved, such as that of a read-only device, the requests are recorded with a warning.
pub fn state(args: &ServeArgs, begun: &Begun, frontend: &dyn Frontend) -> Result<Option<PathBuf>, Failure> {
    let (Some(path), true) = (&args.record, begun.recovered.is_some()) else { return Ok(None) };
    let path = state_path(path);
    match Place::open(&path, frontend)?.write(&begun.device, &begun.state, frontend).map_err(Failure::from) {
        Ok(()) => Ok(Some(path)),
        Err(Failure::Mistake(why)) => {
            warn(&format!("the recording cannot be replayed from the state of the image: {why}"));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the error of an incomplete recording, which names the partial file.
pub fn not_whole(path: &Path, error: &str) -> String {
    let written = partials(path).into_iter().find(|partial| partial.metadata().is_ok_and(|found| found.len() > 0));
    let what = match written {
        Some(partial) => {
            format!("the requests before that are in {}, and the last line may be cut off", partial.display())
        }
        None => "nothing was written".to_owned(),
    };
    format!("the recording is incomplete: {error}; {what}")
}

/// Starts a recording. `replay` are the arguments of the command that replays it.
pub fn begin(
    path: &Path,
    replay: &[String],
    config: &DeviceConfig,
    frontend: &dyn Frontend,
) -> Result<Recorder, Failure> {
    let reported = |error: io::Error| Failure::fault(format!("--record {}: {error}", path.display()));
    let draft = Draft::new(path, &frontend.wait()).map_err(|error| unless_stopped(error, frontend))?.kept();
    let packed = Packing::of_name(path).writer(draft).map_err(reported)?;
    let words: Vec<String> = replay.iter().map(|word| quoted(word)).collect();
    let (name, digest, version) = (&config.name, config.digest(), env!("CARGO_PKG_VERSION"));
    let head = [
        format!("requests of a live device, {name} ({digest}), Floatgate {version}; to replay them:"),
        format!("floatgate {}", words.join(" ")),
    ];
    Recorder::begin(Box::new(File(packed)), &head).map_err(reported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_run::output::Wait;

    #[test]
    fn an_incomplete_recording_is_kept_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.csv");
        assert!(not_whole(&path, "broken").ends_with("broken; nothing was written"));
        let mut file =
            File(Packing::of_name(&path).writer(Draft::new(&path, &Wait::default()).unwrap().kept()).unwrap());
        file.write_all(b"a line").unwrap();
        drop(file);
        let [partial] = &partials(&path)[..] else { panic!("{:?}", partials(&path)) };
        assert_eq!(std::fs::read(partial).unwrap(), b"a line");
        assert!(not_whole(&path, "broken").contains(&partial.display().to_string()));
        assert!(!path.exists());
    }
}
