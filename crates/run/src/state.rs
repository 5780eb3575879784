//! Files of saved states: written, loaded and inspected.

use std::fmt::Display;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

pub use floatgate_array::Inspected;
use floatgate_array::{AnySsd, ArrayHead, Options, SsdArray};
use floatgate_core::saved_state::{Head, Kind, Reader, StateError};
use floatgate_core::simulation::Device;
use floatgate_core::summary::Precondition;
use floatgate_workload::file::{Stop, Stoppable};
use serde::Serialize;

use crate::device::LoadedDevice;
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

/// Header of a saved state.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum AnyHead {
    /// State of a single SSD.
    Device(Head),
    /// State of an array.
    Array(ArrayHead),
}

impl AnyHead {
    fn read(input: &mut dyn Read) -> Result<AnyHead, StateError> {
        let (kind, text) = Kind::read_any_head(input)?;
        Ok(match kind {
            Kind::Device => AnyHead::Device(Head::of_json(&text)?),
            Kind::Array => AnyHead::Array(ArrayHead::of_json(&text)?),
        })
    }
}

/// Checked file.
#[derive(Clone, Debug)]
pub enum InspectedFile {
    /// State of a single SSD.
    Device(Inspected),
    /// State of an array, with the states of its members. Those that had failed have none.
    Array(ArrayHead, Vec<Option<Inspected>>),
}

/// Reads the header of a file.
pub fn head(path: &Path, stop: &Stop) -> Result<AnyHead, Failure> {
    AnyHead::read(&mut open(path, stop)?).map_err(failed(path))
}

/// Reads and checks all of a file.
pub fn inspect(path: &Path) -> Result<InspectedFile, Failure> {
    let mut input = open(path, &Stop::default())?;
    let mut inspected = || match AnyHead::read(&mut input)? {
        AnyHead::Array(head) => {
            let members = head.inspect_members(&mut input)?;
            Ok(InspectedFile::Array(head, members))
        }
        AnyHead::Device(head) => {
            let sections = Head::inspect_body(&mut input)?;
            Reader::check_end(&mut input)?;
            Ok(InspectedFile::Device((head, sections)))
        }
    };
    inspected().map_err(failed(path))
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

    /// Writes the state of an SSD, and renames the file to its final path.
    pub fn write(mut self, ssd: &AnySsd, state: &Precondition, frontend: &dyn Frontend) -> Result<(), Failure> {
        frontend.begin("saving");
        let saved = ssd.save(state, Watched { inner: &mut self.draft, frontend });
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

/// Loads a single SSD or an array from a saved state. Returns it with the preconditioning that led to the state.
pub fn load(
    path: &Path,
    chosen: &LoadedDevice,
    options: Options,
    frontend: &dyn Frontend,
) -> Result<(AnySsd, Precondition), Failure> {
    let device_options = options.of_member(options.seed);
    memory::check(chosen, &device_options, Use::Filled)?;
    let file = open(path, &frontend.stop())?;
    frontend.begin("loading");
    let file = Watched { inner: file, frontend };
    let loaded = match &chosen.array {
        Some(config) => SsdArray::load((**config).clone(), options, file)
            .map(|(array, head)| (AnySsd::from(array), head.precondition)),
        None => Device::load(chosen.config.clone(), device_options, file)
            .map(|(device, head)| (AnySsd::from(device), head.precondition)),
    };
    frontend.end();
    match loaded {
        Err(_) if frontend.wants_end() => Err(Failure::Interrupted("loading was stopped, so there is no result")),
        loaded => loaded.map_err(failed(path)),
    }
}

/// Creates an SSD in the state of another one, which must be idle, as if it was loaded from a saved state.
pub fn in_same_state(ssd: &AnySsd, chosen: &LoadedDevice, options: Options) -> Result<AnySsd, StateError> {
    match (ssd, &chosen.array) {
        (AnySsd::Device(device), None) => {
            Ok(device.in_same_state(chosen.config.clone(), options.of_member(options.seed))?.into())
        }
        (AnySsd::Array(array, _), Some(config)) => Ok(array.in_same_state((**config).clone(), options)?.into()),
        (AnySsd::Device(_), Some(_)) => Err(StateError::OtherKind(Kind::Device)),
        (AnySsd::Array(..), None) => Err(StateError::OtherKind(Kind::Array)),
    }
}

/// File that is read or written until the user stops it.
struct Watched<'a, T> {
    inner: T,
    frontend: &'a dyn Frontend,
}

impl<T> Watched<'_, T> {
    fn check_end(&self) -> io::Result<()> {
        if self.frontend.wants_end() { Err(io::Error::from(io::ErrorKind::ConnectionAborted)) } else { Ok(()) }
    }
}

impl<T: Read> Read for Watched<'_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.check_end()?;
        self.inner.read(bytes)
    }
}

impl<T: Write> Write for Watched<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_end()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
