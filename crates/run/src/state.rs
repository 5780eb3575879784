//! Files of saved states: written, loaded and inspected.

use std::fmt::Display;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use floatgate_core::device::{Device, Head, Options, inspect_state};
use floatgate_core::metrics::summary::Precondition;
use floatgate_core::state::{Section, StateError};
use floatgate_workload::file::{Stop, Stoppable};

use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::frontend::{Frontend, unless_stopped};
use crate::memory::{self, Use};
use crate::output::Draft;

fn failed(path: &Path) -> impl Fn(StateError) -> Failure + '_ {
    move |error| Failure::mistake(format!("{}: {error}", path.display()))
}

fn open(path: &Path, stop: &Stop) -> Result<BufReader<Stoppable>, Failure> {
    let cannot = |error: &dyn Display| Failure::mistake(format!("{}: cannot read the state: {error}", path.display()));
    if path.is_dir() {
        return Err(cannot(&"it is a directory"));
    }
    Stoppable::open(path, stop).map(|file| BufReader::with_capacity(1 << 18, file)).map_err(|error| cannot(&error))
}

/// Reads the header of a file.
pub fn head(path: &Path, stop: &Stop) -> Result<Head, Failure> {
    Head::read(&mut open(path, stop)?).map_err(failed(path))
}

/// Reads and checks all of a file. Returns its header and its sections.
pub fn inspect(path: &Path) -> Result<(Head, Vec<Section>), Failure> {
    inspect_state(open(path, &Stop::default())?).map_err(failed(path))
}

/// File that a state will be written to. It is created before preconditioning, so that errors are reported early.
#[derive(Debug)]
pub struct Place {
    draft: Draft,
    path: PathBuf,
}

impl Place {
    /// Creates the file.
    pub fn open(path: &Path, frontend: &dyn Frontend) -> Result<Place, Failure> {
        let draft = Draft::new(path, &frontend.wait()).map_err(|error| unless_stopped(error, frontend))?;
        Ok(Place { draft, path: path.to_owned() })
    }

    /// Writes the state of a device, and renames the file to its final path.
    pub fn write(mut self, device: &Device, state: &Precondition, frontend: &dyn Frontend) -> Result<(), Failure> {
        frontend.begin("saving");
        let saved = device.save(state, Watched { inner: &mut self.draft, frontend });
        frontend.end();
        match saved {
            Ok(()) => {
                let done = self.draft.complete().and_then(|()| self.draft.publish());
                done.map_err(Failure::Fault)
            }
            Err(_) if frontend.wants_end() => Err(Failure::Interrupted("saving was stopped, so there is no file")),
            Err(StateError::Io(error)) => Err(Failure::fault(format!("cannot write {error}"))),
            Err(error) => Err(Failure::mistake(format!("cannot save {}: {error}", self.path.display()))),
        }
    }
}

/// Loads a device from a saved state. Returns it with the header of the file.
pub fn load(
    path: &Path,
    chosen: &Chosen,
    options: Options,
    frontend: &dyn Frontend,
) -> Result<(Device, Head), Failure> {
    chosen.check_single("a saved state")?;
    memory::check(&chosen.config, &options, Use::Filled)?;
    let file = open(path, &frontend.stop())?;
    frontend.begin("loading");
    let loaded = Device::load(chosen.config.clone(), options, Watched { inner: file, frontend });
    frontend.end();
    match loaded {
        Err(_) if frontend.wants_end() => Err(Failure::Interrupted("loading was stopped, so there is no result")),
        loaded => loaded.map_err(failed(path)),
    }
}

/// File that is read or written until the user stops it.
struct Watched<'a, T> {
    inner: T,
    frontend: &'a dyn Frontend,
}

impl<T> Watched<'_, T> {
    fn go_on(&self) -> io::Result<()> {
        if self.frontend.wants_end() { Err(io::Error::from(io::ErrorKind::ConnectionAborted)) } else { Ok(()) }
    }
}

impl<T: Read> Read for Watched<'_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.go_on()?;
        self.inner.read(bytes)
    }
}

impl<T: Write> Write for Watched<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.go_on()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
