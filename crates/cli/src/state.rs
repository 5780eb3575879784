//! Saved states: `--save-state`, `--load-state` and `floatgate state`.

use std::fmt::Display;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use floatgate_core::device::{Device, Head, Options, inspect_state};
use floatgate_core::metrics::summary::Precondition;
use floatgate_core::state::{Section, StateError};
use floatgate_report::number::grouped;
use floatgate_workload::file::{Stop, Stoppable};
use floatgate_workload::quantity::readable;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::memory::{self, Use};
use crate::output::Draft;
use crate::run::chosen::Chosen;
use crate::run::front::{Front, unless_stopped};
use crate::text::Page;

/// `floatgate state`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what a saved state is: its device, where it comes from, the options that shaped it, and its sections; and
    /// check all of it
    Info {
        /// A file that `floatgate run --save-state` or `Simulator.save` wrote
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print JSON instead
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Command::Info { file, json } = &args.command;
    let text = if *json { format!("{:#}\n", info(file)?) } else { told(file)? };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::of_stdout)
}

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

/// What a file says of itself at its beginning.
pub fn head(path: &Path, stop: &Stop) -> Result<Head, Failure> {
    Head::read(&mut open(path, stop)?).map_err(failed(path))
}

/// What a file holds, as JSON.
pub fn info(path: &Path) -> Result<Value, Failure> {
    let (head, sections) = inspect_state(open(path, &Stop::default())?).map_err(failed(path))?;
    let shape = head.device().map_err(failed(path))?.shape();
    let section = |s: &Section| json!({ "name": s.name, "bytes": s.bytes, "digest": format!("{:016x}", s.digest) });
    let mut json = serde_json::to_value(&head).unwrap_or_default();
    json["options"] = json!({ "media": shape.media, "policy": shape.policy });
    json["sections"] = sections.iter().map(section).collect();
    json["bytes"] = path.metadata().map(|data| data.len()).unwrap_or_default().into();
    Ok(json)
}

/// What a file holds, for people.
fn told(path: &Path) -> Result<String, Failure> {
    let (head, sections) = inspect_state(open(path, &Stop::default())?).map_err(failed(path))?;
    let device = head.device().map_err(failed(path))?;
    let shape = device.shape();
    let in_file = path.metadata().map(|data| data.len()).unwrap_or_default();
    let in_all: u64 = sections.iter().map(|section| section.bytes).sum();
    let mut page = Page::default();
    let logical = readable(u128::from(device.logical_bytes()));
    page.line("device", format!("{} of {logical} ({})", head.device, head.config_digest));
    page.line("state", reached(&head.precondition));
    page.line("saved by", format!("floatgate {}, with seed {}", head.floatgate, head.seed));
    page.line("size", format!("{} bytes, {} before compression", grouped(in_file), grouped(in_all)));
    page.gap();
    page.line("shaped by", "options that a device must have alike to have this state");
    for (name, digest, options) in
        [("  media", &head.media_digest, &shape.media), ("  policy", &head.policy_digest, &shape.policy)]
    {
        page.line(name, digest);
        for (path, value) in options.as_object().into_iter().flatten() {
            page.line("", format!("{path} = {value}"));
        }
    }
    page.gap();
    page.line("sections", "each with its bytes before compression and its digest; all digests are right");
    for Section { name, bytes, digest } in &sections {
        page.line("", format!("{name:<18} {:>18}  {digest:016x}", grouped(*bytes)));
    }
    Ok(page.text)
}

fn reached(state: &Precondition) -> String {
    let Precondition { asked, reached } = state;
    let amplification =
        reached.write_amplification.map_or(String::new(), |wa| format!(", write amplification {wa:.2}"));
    let mapped = reached.mapped * 100.0;
    format!("{asked}: {:.1} drive writes{amplification}, {mapped:.0} % of the units mapped", reached.drive_writes)
}

/// Where a state is written to, from before it is made: that this cannot be is found out then.
#[derive(Debug)]
pub struct Place {
    draft: Draft,
    path: PathBuf,
}

impl Place {
    /// Begins the file.
    pub fn open(path: &Path, front: &dyn Front) -> Result<Place, Failure> {
        let draft = Draft::new(path, &front.stop()).map_err(|error| unless_stopped(error, front))?;
        Ok(Place { draft, path: path.to_owned() })
    }

    /// Writes the state of a device, and puts the file in its place.
    pub fn write(mut self, device: &Device, state: &Precondition, front: &dyn Front) -> Result<(), Failure> {
        front.begin("saving");
        let saved = device.save(state, Watched { inner: &mut self.draft, front });
        front.end();
        match saved {
            Ok(()) => {
                self.draft.complete()?;
                Ok(self.draft.publish()?)
            }
            Err(_) if front.wants_end() => Err(Failure::Interrupted("saving was stopped, there is no file")),
            Err(StateError::Io(error)) => Err(Failure::fault(format!("cannot write {error}"))),
            Err(error) => Err(Failure::mistake(format!("cannot save {}: {error}", self.path.display()))),
        }
    }
}

/// Loads a state for a device, and says where it comes from.
pub fn load(path: &Path, chosen: &Chosen, options: Options, front: &dyn Front) -> Result<(Device, Head), Failure> {
    memory::check(&chosen.config, &options, Use::Filled)?;
    let file = open(path, &front.stop())?;
    front.begin("loading");
    let loaded = Device::load(chosen.config.clone(), options, Watched { inner: file, front });
    front.end();
    match loaded {
        Err(_) if front.wants_end() => Err(Failure::Interrupted("loading was stopped, there is no result")),
        loaded => loaded.map_err(failed(path)),
    }
}

/// A file that is read or written until the user has enough of it.
struct Watched<'a, T> {
    inner: T,
    front: &'a dyn Front,
}

impl<T> Watched<'_, T> {
    fn go_on(&self) -> io::Result<()> {
        if self.front.wants_end() { Err(io::Error::from(io::ErrorKind::ConnectionAborted)) } else { Ok(()) }
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
