//! The server: starts the threads of the frontends, and collects the results when it stops.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::simulation::{Options as DeviceOptions, Outcome};
use floatgate_core::summary::Live;

use crate::address::Address;
use crate::calibrate::{Calibration, calibrate, nbd_cost, nvme_cost, vhost_cost};
use crate::clock::{Clock, Speed, Wall};
use crate::engine::{Cost, Engine, Pace, Port, PowerCut, Waker};
use crate::error::ServeError;
use crate::identity;
use crate::image::{Members, Recovered, Store};
use crate::listen::Listener;
use crate::nbd::session::Export;
use crate::nvme::identify::Drive;
use crate::nvme::target::Target;
use crate::nvme::tcp::frontend as nvme_tcp;
use crate::payload::memory::Memory;
use crate::record::Recorder;
use crate::roster::Roster;
use crate::sockets::{SocketAddresses, Sockets};
use crate::threads::{Bell, spawn};
use crate::timeline::Timeline;
use crate::vhost::blk::Disk;
use crate::{nbd, vhost};
use floatgate_array::AnySsd;

/// Options of a server.
pub struct Options {
    /// Queues that each vhost-user client may use.
    pub vhost_queues: u16,
    /// NQN of the drive for NVMe hosts. `None` for one that contains the identity of the drive.
    pub nqn: Option<String>,
    /// NQNs of the NVMe hosts that may connect. Empty: all.
    pub nvme_hosts: Vec<String>,
    /// True to reply as soon as possible, without a clock.
    pub no_delay: bool,
    /// Simulated time per unit of real time.
    pub speed: Speed,
    /// True to disable busy-waiting.
    pub no_spin: bool,
    /// Costs of the frontends from an earlier self-test. `None` to measure them at the start.
    pub costs: Option<Costs>,
    /// Idle time after which a client may lose its slot to a new one if all slots are taken.
    pub idle_limit: Wall,
    /// Maximum number of payload bytes in memory.
    pub memory: u64,
    /// Destination of the recording of requests.
    pub recorder: Option<Recorder>,
    /// Timeline of the device.
    pub timeline: Option<Timeline>,
    /// Flash image of a single SSD, and the options with which it was built. An array has its images itself.
    pub image: Option<(Store, DeviceOptions)>,
}

/// Sockets and settings of the frontends.
struct Clients {
    export: Export,
    nbd: Vec<Listener>,
    vhost_user: Option<Listener>,
    disk: Disk,
    nvme: Vec<Listener>,
    /// Controllers for NVMe hosts, if there are sockets for them.
    target: Option<Target>,
    idle_limit: Wall,
}

/// A running server.
pub struct Server {
    engine: Arc<Mutex<Engine>>,
    /// Thread of each frontend, and the bell that wakes it.
    frontends: Vec<(JoinHandle<()>, Arc<Bell>)>,
    stop: Arc<AtomicBool>,
    addresses: SocketAddresses,
    /// NQN of the drive. `None` if there are no sockets for NVMe hosts.
    nqn: Option<String>,
    calibration: Calibration,
    costs: Costs,
    speed: Speed,
    roster: Roster,
}

/// Results of a server that has stopped.
pub struct Finished {
    /// The device in its final state.
    pub device: AnySsd,
    /// Measurements in simulated time.
    pub outcome: Outcome,
    /// Timing accuracy of replies in real time.
    pub live: Live,
    /// Number of speed changes.
    pub speed_changes: u64,
    /// Number of requests in the recording, or the reason why it is incomplete. `None` without a recording.
    pub recorded: Option<Result<u64, String>>,
    /// Number of operations and requests that the timeline lacks, or the reason why it is incomplete. `None` without a
    /// timeline.
    pub timeline: Option<Result<u64, String>>,
    /// Digest of the requests, equal to the digest of a recording of them.
    pub digest: u64,
    /// Bytes of payload held at the end. For an image, the disk space that it takes.
    pub payload_bytes: u64,
    /// `Ok` if the image contains all accepted data, otherwise the reason. `None` without an image.
    pub image: Option<Result<(), String>>,
    /// Mapping units of the image that could not be read.
    pub unreadable: u64,
    /// Requests that failed because mapping units of the image are damaged.
    pub damaged: u64,
    /// Permanent problems of the device and its image.
    pub warnings: Vec<String>,
    /// Number of power cuts.
    pub power_cuts: u64,
    /// Number of operations that a monitor requested to fail.
    pub faults_asked: u64,
    /// The recovery after the last power cut.
    pub recovered: Option<Recovered>,
    /// Properties of the host, measured at the start.
    pub calibration: Calibration,
}

/// Costs of the frontends, which are deducted from the due times of replies. The default is no deduction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Cost of NBD.
    pub nbd: Cost,
    /// Cost of vhost-user.
    pub vhost_user: Cost,
    /// Cost of NVMe over TCP.
    pub nvme: Cost,
}

impl Costs {
    /// Returns the costs without those that exceed the times of the device's flash, and why they are left out.
    pub fn plausible(mut self, device: &DeviceConfig, speed: Speed) -> (Costs, Vec<String>) {
        let frontends = [("NBD", &mut self.nbd), ("vhost-user", &mut self.vhost_user), ("NVMe/TCP", &mut self.nvme)];
        let refused = frontends.into_iter().filter_map(|(name, cost)| {
            let refusal = cost.refusal(name, device, speed)?;
            *cost = Cost::default();
            Some(refusal)
        });
        let refused = refused.collect();
        (self, refused)
    }
}

impl Server {
    /// Starts to serve a device to the clients of these sockets, including those that have already connected.
    pub fn start(device: impl Into<AnySsd>, sockets: Sockets, options: Options) -> Result<Server, ServeError> {
        let device = device.into();
        if !device.is_timed() {
            return Err(ServeError::NoAttribution);
        }
        let calibration = if options.no_delay { Calibration::default() } else { calibrate(options.no_spin)? };
        let measured = |is_used: bool, cost: fn(Wall) -> io::Result<Cost>| {
            if is_used && !options.no_delay { cost(calibration.spin) } else { Ok(Cost::default()) }
        };
        let (costs, refusals) = match options.costs {
            Some(costs) => (costs, Vec::new()),
            None => {
                let nbd = measured(!sockets.nbd.is_empty(), nbd_cost)?;
                let vhost_user = measured(sockets.vhost_user().is_some(), vhost_cost)?;
                let nvme = measured(!sockets.nvme.is_empty(), nvme_cost)?;
                Costs { nbd, vhost_user, nvme }.plausible(device.config(), options.speed)
            }
        };
        let vhost_user = sockets.listen_vhost_user()?;
        let export = export_of(&device);
        let store = options.image.as_ref().map(|(store, _)| store);
        let drive = || drive_of(&device, store, options.nqn.as_deref());
        let drive = (!sockets.nvme.is_empty()).then(drive).transpose()?;
        let nqn = drive.as_ref().map(|drive| drive.nqn.clone());
        let start = Wall::now();
        let clock = Clock::new(start, options.speed);
        // The clock continues at the simulated time that preconditioning has reached.
        let clock = Clock::new(start.earlier(clock.span(device.now())), options.speed);
        let pace = if options.no_delay { Pace::AtOnce } else { Pace::Timed(clock) };
        let mut engine = match (options.image, device) {
            (Some((store, made_with)), AnySsd::Device(device)) => {
                Engine::on_image(*device, store, made_with, pace, options.recorder)
            }
            (_, AnySsd::Array(array, _)) if array.payload::<Members>().is_some() => {
                Engine::on_members(*array, pace, options.recorder)
            }
            (_, device) => {
                let payload = Memory::new(export.bytes, export.unit, options.memory);
                Engine::new(device, Box::new(payload), pace, options.recorder)
            }
        };
        refusals.into_iter().for_each(|refusal| engine.warn_of_cost(refusal));
        if let Some(timeline) = options.timeline {
            engine.set_timeline(timeline);
        }
        let mut server = Server {
            engine: Arc::new(Mutex::new(engine)),
            frontends: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            addresses: sockets.addresses().clone(),
            nqn,
            calibration,
            costs,
            speed: options.speed,
            roster: Roster::default(),
        };
        let clients = Clients {
            target: drive.map(|drive| Target::new(drive, options.nvme_hosts)),
            disk: disk_of(&export, options.vhost_queues),
            export,
            nbd: sockets.nbd,
            vhost_user,
            nvme: sockets.nvme,
            idle_limit: options.idle_limit,
        };
        server.start_fronts(clients)?;
        Ok(server)
    }

    /// Adds a frontend to the engine.
    fn add_port(&self, name: &str, cost: Cost) -> io::Result<(Port, Arc<Bell>)> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let bell = Arc::new(Bell::new()?);
        let ring = Arc::clone(&bell);
        let waker: Waker = Arc::new(move || ring.ring());
        let port = engine.add_port(name, waker);
        engine.set_cost(port, cost);
        Ok((port, bell))
    }

    /// Starts the threads of the frontends that have a listener. All ports are added before the first request.
    fn start_fronts(&mut self, clients: Clients) -> io::Result<()> {
        let Clients { export, nbd, vhost_user, disk, nvme, target, idle_limit } = clients;
        let Costs { nbd: nbd_cost, vhost_user: vhost_cost, nvme: nvme_cost } = self.costs;
        let add = |is_used: bool, name, cost| is_used.then(|| self.add_port(name, cost)).transpose();
        let nbd_port = add(!nbd.is_empty(), nbd::frontend::NBD, nbd_cost)?;
        let vhost_port = add(vhost_user.is_some(), vhost::frontend::VHOST_USER, vhost_cost)?;
        let nvme_port = add(target.is_some(), nvme_tcp::NVME_TCP, nvme_cost)?;
        let spin = self.calibration.spin;
        let shared = || (Arc::clone(&self.engine), Arc::clone(&self.stop));
        let mut started = Vec::new();
        if let Some((port, bell)) = nbd_port {
            let ((engine, stop), listeners, ringer) = (shared(), nbd, Arc::clone(&bell));
            let parts = nbd::frontend::Parts { engine, port, export, listeners, bell, stop, spin, idle_limit };
            let mut frontend = nbd::frontend::Frontend::new(parts);
            frontend.enter_clients(self.roster.clone());
            started.push((spawn(nbd::frontend::NBD, move || frontend.run())?, ringer));
        }
        if let Some((port, bell)) = vhost_port {
            let ((engine, stop), listener, ringer) = (shared(), vhost_user, Arc::clone(&bell));
            let parts = vhost::frontend::Parts { engine, port, disk, listener, bell, stop, spin, idle_limit };
            let mut frontend = vhost::frontend::Frontend::new(parts);
            frontend.enter_clients(self.roster.clone());
            started.push((spawn(vhost::frontend::VHOST_USER, move || frontend.run())?, ringer));
        }
        if let (Some((port, bell)), Some(target)) = (nvme_port, target) {
            let ((engine, stop), listeners, ringer) = (shared(), nvme, Arc::clone(&bell));
            let parts = nvme_tcp::Parts { engine, port, target, listeners, bell, stop, spin };
            let mut frontend = nvme_tcp::Frontend::new(parts);
            frontend.enter_clients(self.roster.clone());
            started.push((spawn(nvme_tcp::NVME_TCP, move || frontend.run())?, ringer));
        }
        self.frontends = started;
        Ok(())
    }

    /// Returns the addresses for NBD clients, with the ports that the system has chosen.
    pub fn nbd(&self) -> &[Address] {
        &self.addresses.nbd
    }

    /// Returns the path of the socket for vhost-user clients.
    pub fn vhost_user(&self) -> Option<&Path> {
        self.addresses.vhost_user.as_deref()
    }

    /// Returns the addresses for NVMe hosts, with the ports that the system has chosen.
    pub fn nvme(&self) -> &[Address] {
        &self.addresses.nvme
    }

    /// Returns the NQN of the drive. `None` if there are no sockets for NVMe hosts.
    pub fn nqn(&self) -> Option<&str> {
        self.nqn.as_deref()
    }

    /// Returns all addresses.
    pub fn addresses(&self) -> &SocketAddresses {
        &self.addresses
    }

    /// Returns the costs of the frontends.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Returns the properties of the host that were measured at the start.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Returns the list of connected clients, which is updated continuously.
    pub fn roster(&self) -> Roster {
        self.roster.clone()
    }

    /// Returns the engine, for a monitor. The monitor must drop it before the server stops.
    pub fn engine(&self) -> Arc<Mutex<Engine>> {
        Arc::clone(&self.engine)
    }

    /// Cuts the power: see [`Engine::power_cut`].
    pub fn power_cut(&self) -> Result<PowerCut, String> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).power_cut(Wall::now())
    }

    /// Waits until `ends` returns `true`. Returns an error if the server cannot continue. Reports new warnings through
    /// `tell`.
    pub fn wait(&self, ends: impl Fn() -> bool, tell: impl Fn(&str)) -> Result<(), String> {
        /// Interval at which `ends` is called.
        const PATIENCE: std::time::Duration = std::time::Duration::from_millis(50);
        /// Number of loop iterations between two ticks of the recording, which are half a second apart.
        const ROUNDS: u32 = 10;
        let mut reported = Vec::new();
        let mut round = 0_u32;
        loop {
            round = round.wrapping_add(1);
            let is_over = ends();
            let (trouble, warnings) = {
                let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
                if round.is_multiple_of(ROUNDS) {
                    engine.tick_recording();
                }
                (engine.fatal_error(), engine.warnings())
            };
            if let Some(trouble) = trouble {
                return Err(trouble);
            }
            warnings.iter().filter(|warning| !reported.contains(*warning)).for_each(|warning| tell(warning));
            reported = warnings;
            if self.frontends.iter().any(|(thread, _)| thread.is_finished()) {
                return Err("the serving thread failed, which is a defect: please report it".to_owned());
            }
            if is_over {
                return Ok(());
            }
            pause(PATIENCE);
        }
    }

    /// Stops the server: reads no more requests, replies to outstanding ones, and removes the sockets.
    pub fn stop(self, complete: bool) -> Result<Finished, String> {
        let Server { engine, calibration, speed, costs, frontends, stop, .. } = self;
        stop.store(true, Ordering::Release);
        frontends.iter().for_each(|(_, bell)| bell.ring());
        let joined: Vec<_> = frontends.into_iter().map(|(thread, _)| thread.join()).collect();
        if joined.iter().any(Result::is_err) {
            return Err("the serving thread failed, which is a defect: please report it".to_owned());
        }
        let engine = Arc::try_unwrap(engine).map_err(|_| "the device is still in use".to_owned())?;
        let mut engine = engine.into_inner().unwrap_or_else(PoisonError::into_inner);
        engine.shut_down();
        let (pace, speed) = match engine.pace() {
            Pace::AtOnce => ("at-once", speed),
            Pace::Timed(clock) => ("timed", clock.speed()),
        };
        let served = engine.finish(complete);
        let deducted = |name: &str| match name {
            nbd::frontend::NBD => costs.nbd,
            vhost::frontend::VHOST_USER => costs.vhost_user,
            nvme_tcp::NVME_TCP => costs.nvme,
            _ => Cost::default(),
        };
        let frontends =
            served.frontends.iter().map(|(name, lateness)| lateness.frontend(name, &deducted(name))).collect();
        let payload_errors = served.payload_errors;
        let live = Live { payload_errors, ..served.lateness.section(pace, speed.as_f64(), frontends) };
        Ok(Finished {
            device: served.device,
            outcome: served.outcome,
            live,
            speed_changes: served.speed_changes,
            recorded: served.recorded,
            timeline: served.timeline,
            digest: served.digest,
            payload_bytes: served.payload_bytes,
            image: served.image,
            unreadable: served.unreadable,
            damaged: served.damaged,
            warnings: served.warnings,
            power_cuts: served.power_cuts,
            faults_asked: served.faults_asked,
            recovered: served.recovered,
            calibration,
        })
    }
}

/// Returns the NBD export of a device.
fn export_of(device: &AnySsd) -> Export {
    let config = device.config();
    Export {
        name: config.name.clone(),
        description: format!("{}, simulated by Floatgate", config.name),
        bytes: config.logical_bytes(),
        sector: config.host.sector_size.0 as u32,
        unit: u32::try_from(config.unit_bytes()).unwrap_or(u32::MAX),
        read_only: device.read_only_since().is_some(),
    }
}

/// Returns the NVMe drive of a device. Its identity is that of its image, because its data is. Without an image, data
/// does not outlast the server, and each server has another drive.
fn drive_of(device: &AnySsd, store: Option<&Store>, nqn: Option<&str>) -> io::Result<Drive> {
    let members = match device {
        AnySsd::Array(array, _) => array.payload::<Members>(),
        AnySsd::Device(_) => None,
    };
    let identity = match (store, members, nqn) {
        (Some(store), _, _) => store.identity(),
        (None, Some(members), _) => members.identity(),
        // The NQN is the identity.
        (None, None, Some(_)) => 0,
        (None, None, None) => identity::random()?,
    };
    let trim = u32::try_from(device.trim_bytes()).unwrap_or(u32::MAX);
    Ok(Drive { trim, ..Drive::new(device.config(), identity, nqn) })
}

/// Returns the virtio block device for an export.
fn disk_of(export: &Export, queues: u16) -> Disk {
    let Export { name, bytes, sector, unit, read_only, .. } = export.clone();
    Disk { name, bytes, sector, unit, queues: queues.max(1), read_only }
}

fn pause(span: std::time::Duration) {
    #[expect(clippy::disallowed_methods, reason = "waits for the user, without influence on the simulation")]
    std::thread::sleep(span);
}
