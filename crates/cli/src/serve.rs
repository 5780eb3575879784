//! `floatgate serve`: serves a device as a block device.

mod args;
pub mod clients;
mod image;
mod monitor;
mod preparation;
mod readiness;
mod recording;
mod timeline;
mod warnings;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use floatgate_array::AnySsd;
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::summary::{About, Named, Precondition, Summary};
use floatgate_run::cost::{Stopwatch, peak_rss_bytes};
use floatgate_run::device::LoadedDevice;
use floatgate_run::frontend::Frontend;
use floatgate_run::memory;
use floatgate_run::output::{self, Directory, files_of, refuse_overwrites};
use floatgate_run::simulated::summary_of_any;
use floatgate_run::text::summary::{self, Around};
use floatgate_run::warnings::{depends_on_load, not_steady};
use floatgate_serve::monitor::Monitor;
use floatgate_serve::{Finished, Options, ServeError, Server, SocketAddresses, Sockets, idle};
use floatgate_workload::file::Stop;

use crate::failure::{Failure, say, warn};
use crate::run::interrupt::Interrupt;
pub use args::{ServeArgs, size};
use preparation::Preparation;
use readiness::Readiness;

/// Runs the command.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let announce = |server: &Server, config: &DeviceConfig, monitor: &Monitor| {
        say(&clients::welcome(config, server, args.no_delay, &monitor::welcome(monitor)));
    };
    session(args, signals, &mut std::io::stdout().lock(), announce, wait)
}

/// Serves a device until `stop` is requested, and prints the result to `out`. `ready` is called with the commands of
/// clients when they are served.
pub fn run_until(
    args: &ServeArgs,
    stop: Stop,
    out: &mut impl Write,
    ready: impl FnOnce(String),
) -> Result<(), Failure> {
    let announce = |server: &Server, config: &DeviceConfig, monitor: &Monitor| {
        ready(clients::welcome(config, server, args.no_delay, &monitor::welcome(monitor)));
    };
    session(args, || Ok(Interrupt::by(stop)), out, announce, wait)
}

/// Starts to handle the signals that end a server.
pub fn signals() -> Result<Interrupt, Failure> {
    Interrupt::with_message("\nending: outstanding requests complete; press Ctrl-C again to stop at once")
}

/// Waits until the end is requested, or the server fails. Returns its fault.
#[expect(clippy::unnecessary_wraps, reason = "another command can fail here")]
fn wait(server: &Server, _: &DeviceConfig, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
    Ok(server.wait(|| interrupt.requested(), warn).err())
}

/// Serves a device until `hold` returns, and prints the result to `out`. `handle` starts to handle signals. `announce`
/// is called when clients are served. `hold` returns the fault that ended the server, if there was one.
pub fn session(
    args: &ServeArgs,
    handle: impl FnOnce() -> Result<Interrupt, Failure>,
    out: &mut impl Write,
    announce: impl FnOnce(&Server, &DeviceConfig, &Monitor),
    hold: impl FnOnce(&Server, &DeviceConfig, &Interrupt) -> Result<Option<String>, Failure>,
) -> Result<(), Failure> {
    let readiness = Readiness::open(args.ready_fd)?;
    // Signals are handled only after these, so that Ctrl-C ends the process while it waits for a device file or a token
    // from a pipe.
    let (args, chosen) = &args.load()?;
    let token = args.monitor.token()?;
    let interrupt = handle()?;
    let config = &chosen.config;
    args.check_files(chosen)?;
    let directory =
        args.out.as_deref().map(|out| Directory::open(out, &interrupt.wait())).transpose().map_err(Failure::Fault)?;
    // Clients that connect while the device is filled wait. The monitor already responds.
    let sockets = Sockets::open(&args.addresses(config)?)?;
    let addresses = sockets.addresses().clone();
    let doors = args.monitor.open(&addresses.nbd, args.allow_remote, token)?;
    let monitor = doors.start(config, &sockets, args.image.is_some()).map_err(Failure::fault)?;
    let is_filled = args.precondition() != "none";
    if !is_filled {
        floatgate_serve::forgo_huge_pages();
    }
    // Filling, or recovery from an image, may take minutes, and the dashboard shows the progress.
    if let Some(address) = monitor.dashboard().filter(|_| is_filled || args.image.is_some()) {
        say(&format!("dashboard at http://{address}/"));
    }
    let preparation = Preparation::new(args.precondition(), &monitor, &readiness, interrupt.clone());
    let begun = image::begin(args, chosen, &preparation)?;
    let before = recording::state(args, &begun, &preparation)?;
    let stopwatch = Stopwatch::start();
    preparation.report("measuring the overhead of this machine", None);
    let options = args.options(&begun.device, begun.image, before.as_deref(), &preparation)?;
    let server = Server::start(begun.device, sockets, options)?;
    begun.recovered.iter().for_each(|recovered| say(&recovered.to_string()));
    monitor.attach(&server);
    // Announce before signaling readiness, so that a waiting shell prints its prompt after the text.
    announce(&server, config, &monitor);
    readiness.ready(&format!("serving {}", config.name));
    let held = hold(&server, config, &interrupt);
    readiness.stopping();
    // The monitor must release the device before the server stops.
    drop(monitor);
    let trouble = match held {
        Ok(trouble) => trouble,
        Err(failure) => {
            server.stop(false).map_err(Failure::fault)?;
            return Err(failure);
        }
    };
    let finished = server.stop(trouble.is_none()).map_err(Failure::fault)?;
    let mut summary = args.summary(chosen, begun.state, &finished, trouble.as_deref(), before.as_deref())?;
    if let Some(live) = &mut summary.live {
        live.image = image::section(&finished, begun.recovered.as_ref());
    }
    let (wall_s, cpu_s) = stopwatch.read();
    summary.set_cost(wall_s, cpu_s, peak_rss_bytes());
    let mut written = Vec::new();
    if let Some(directory) = &directory {
        written = directory.write(&summary, |_| Ok(Vec::new())).map_err(Failure::Fault)?;
        written.extend(directory.write_members(&summary, &interrupt.wait()).map_err(Failure::Fault)?);
    }
    args.print(&summary, &addresses, &written, out)?;
    args.end(trouble, finished)
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Remote { .. } | ServeError::Listen(..) => Failure::mistake(error),
            ServeError::NoAttribution | ServeError::System(_) => Failure::fault(error),
        }
    }
}

impl ServeArgs {
    /// Loads the device. Returns it with the arguments, to which options of a live device are added: an image needs the
    /// trim journal, and the software of the host is real.
    fn load(&self) -> Result<(ServeArgs, LoadedDevice), Failure> {
        let load = |args: &ServeArgs| args.device.spec().load();
        let mut args = self.clone();
        let mut chosen = load(&args).map_err(Failure::mistake)?;
        let members = chosen.array.as_ref().map_or(std::slice::from_ref(&chosen.config), |array| &array.members);
        let has_journal = members.iter().any(|member| member.sources.contains_key(image::TRIM_JOURNAL));
        let has_software = members.iter().any(|member| !member.host.software.is_zero());
        let needs_journal = (args.image.is_some() && !has_journal).then(|| format!("{}=true", image::TRIM_JOURNAL));
        let added: Vec<String> =
            needs_journal.into_iter().chain(has_software.then(|| "host.software=0us".to_owned())).collect();
        if !added.is_empty() {
            let table = if chosen.array.is_some() { "member." } else { "" };
            args.device.overrides.extend(added.iter().map(|option| format!("{table}{option}")));
            chosen = load(&args).map_err(Failure::mistake)?;
        }
        Ok((args, chosen))
    }

    /// Refuses files of the server that would overwrite each other, or earlier ones.
    fn check_files(&self, chosen: &LoadedDevice) -> Result<(), Failure> {
        self.record.as_deref().map_or(Ok(()), recording::check)?;
        if let Some(path) = &self.timeline {
            timeline::check(path, self.timeline_limit.0, chosen.array.as_deref())?;
        }
        let image = self.image.as_ref().filter(|path| *path != Path::new("memory"));
        let named = [("--image", image), ("--record", self.record.as_ref()), ("--timeline", self.timeline.as_ref())];
        let named = named.into_iter().filter_map(|(option, path)| Some(output::Named::new(option, path?)));
        Ok(refuse_overwrites(&[], &named.chain(self.out.iter().flat_map(|out| files_of(out))).collect::<Vec<_>>())?)
    }

    /// Returns the addresses for clients.
    fn addresses(&self, config: &DeviceConfig) -> Result<SocketAddresses, Failure> {
        let mut nbd = self.nbd.clone();
        if nbd.is_empty() && self.vhost_user.is_none() && self.nvme.is_empty() {
            nbd.push(format!("unix:{}.sock", config.name.replace(['/', ' '], "-")).parse().map_err(Failure::mistake)?);
        }
        let (vhost_user, nvme) = (self.vhost_user.clone(), self.nvme.clone());
        Ok(SocketAddresses { nbd, vhost_user, nvme, allow_remote: self.allow_remote })
    }

    fn options(
        &self,
        device: &AnySsd,
        image: Option<image::Kept>,
        before: Option<&Path>,
        frontend: &dyn Frontend,
    ) -> Result<Options, Failure> {
        let record = |path| recording::begin(path, &self.replay(before), device.config(), frontend);
        let timeline = |path| timeline::begin(path, self.timeline_limit.0, device);
        let recorder = self.record.as_deref().map(record).transpose()?;
        Ok(Options {
            vhost_queues: self.vhost_queues,
            nqn: self.nqn.clone(),
            nvme_hosts: self.allow_host.clone(),
            no_delay: self.no_delay,
            speed: self.speed.unwrap_or_default(),
            no_spin: self.no_spin,
            costs: None,
            idle_limit: idle::LIMIT,
            memory: self.memory.map_or_else(half_of_memory, |size| size.0),
            recorder,
            timeline: self.timeline.as_deref().map(timeline).transpose()?,
            image,
        })
    }

    fn summary(
        &self,
        chosen: &LoadedDevice,
        state: Precondition,
        done: &Finished,
        trouble: Option<&str>,
        before: Option<&Path>,
    ) -> Result<Summary, Failure> {
        let mut warnings: Vec<String> =
            not_steady(&state).into_iter().chain(depends_on_load(&state, &chosen.config)).collect();
        warnings.extend(trouble.map(str::to_owned));
        warnings.extend(done.device.devices().filter_map(|device| device.ftl().wear_warning(device.config())));
        warnings.extend(warnings::of(done, self.record.is_some()));
        warnings.iter().for_each(|warning| warn(warning));
        // These were reported when they occurred.
        warnings.extend(done.warnings.iter().cloned());
        let about = About {
            seed: self.seed,
            device: Named { name: chosen.config.name.clone(), digest: chosen.plain_digest.clone() },
            workload: Named { name: "live".to_owned(), digest: format!("{:016x}", done.digest) },
            precondition: state,
            warnings,
            base: chosen.base.clone(),
            arguments: self.replay(before),
        };
        let summary = summary_of_any(&done.device, about, &done.outcome);
        let mut summary = summary.map_err(Failure::fault)?;
        summary.live = Some(done.live.clone());
        Ok(summary)
    }

    fn print(
        &self,
        summary: &Summary,
        addresses: &SocketAddresses,
        written: &[PathBuf],
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let with_warnings = !(std::io::stdout().is_terminal() && std::io::stderr().is_terminal());
        let nbd = addresses.nbd.iter().map(|address| format!("NBD clients at {address}"));
        let vhost_user = addresses.vhost_user.iter().map(|path| format!("vhost-user clients at {}", path.display()));
        let nvme = addresses.nvme.iter().map(|address| format!("NVMe hosts at tcp://{address}"));
        let served: Vec<String> = nbd.chain(vhost_user).chain(nvme).collect();
        let around = Around { descriptions: &served, prepared_s: None, written, with_warnings, with_details: true };
        let text = if self.json { summary.to_json() } else { summary::text(summary, &around) };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::of_stdout)
    }

    /// Reports the recording, and returns the failure of a server that has a result.
    fn end(&self, trouble: Option<String>, finished: Finished) -> Result<(), Failure> {
        if let (Some(path), Some(Ok(requests))) = (&self.record, &finished.recorded) {
            say(&format!("{requests} requests recorded in {}", path.display()));
        }
        match (&self.timeline, &finished.timeline) {
            (Some(path), Some(Ok(0))) => say(&format!("timeline in {}", path.display())),
            (Some(path), Some(Ok(dropped))) => say(&format!(
                "timeline in {}; it has gaps, because {dropped} operations were faster than they could be written",
                path.display()
            )),
            (Some(path), Some(Err(error))) if trouble.is_none() => {
                return Err(Failure::fault(timeline::not_whole(path, error)));
            }
            _ => {}
        }
        match (trouble, finished.recorded, finished.image) {
            (Some(trouble), _, _) => Err(match finished.device.fault() {
                Some(fault) => Failure::Fault(fault.clone().into()),
                None => Failure::fault(trouble),
            }),
            (None, Some(Err(error)), _) => {
                let path = self.record.as_deref().unwrap_or(Path::new(""));
                Err(Failure::fault(recording::not_whole(path, &error)))
            }
            (None, _, Some(Err(error))) => {
                Err(Failure::fault(format!("the image is missing data written since its last flush: {error}")))
            }
            (None, _, _) => Ok(()),
        }
    }
}

/// Returns half of the machine's memory, or 4 GiB if the system does not report it.
fn half_of_memory() -> u64 {
    memory::of_whole_machine().map_or(4 << 30, |bytes| bytes / 2)
}
