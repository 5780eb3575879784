//! Starting and ending: sockets, the thread that serves them, and what is left afterwards.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use floatgate_core::device::Device;
use floatgate_core::metrics::summary::Live;
use floatgate_core::run::Outcome;
use rustix::event::{EventfdFlags, eventfd};

use crate::address::Address;
use crate::calibrate::{Calibration, calibrate};
use crate::clock::{Clock, Speed, Wall};
use crate::engine::{Engine, Pace};
use crate::nbd::front::{Front, Parts};
use crate::nbd::listen::Listener;
use crate::nbd::session::Export;
use crate::payload::memory::Memory;
use crate::record::Recorder;

/// How a device is served.
pub struct Options {
    /// Where NBD clients connect, at least one.
    pub nbd: Vec<Address>,
    /// An address beyond this machine's own at which to listen, where that is wanted.
    pub allow_remote: Option<IpAddr>,
    /// Answer as soon as possible.
    pub no_delay: bool,
    /// Simulated time that passes in a unit of real time.
    pub speed: Speed,
    /// Never spend the end of a wait looking at the clock.
    pub no_spin: bool,
    /// Bytes of payload that may be held in memory.
    pub memory: u64,
    /// Where requests are recorded.
    pub recorder: Option<Recorder>,
}

/// Why a device cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from other machines.
    #[error(
        "{address} can be reached from other machines, which are not asked who they are; if that is wanted, add \
         --allow-remote {}",
        ip_of(address)
    )]
    Remote {
        /// Which.
        address: Address,
    },
    /// The socket cannot be opened.
    #[error("cannot listen at {0}: {1}")]
    Listen(Address, io::Error),
    /// The device tells nothing about the time of requests.
    #[error("a device has to be made with attribution to be served")]
    NoAttribution,
    /// The system has no thread, socket or descriptor left.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

fn ip_of(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.ip().to_string(),
        Address::Unix(_) => String::new(),
    }
}

/// Wakes a thread that waits for sockets.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that does not ring.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the thread, now or when it waits next.
    pub fn ring(&self) {
        // It can only fail where it rings already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Ends the ringing.
    pub fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A device that is being served.
pub struct Server {
    engine: Arc<Mutex<Engine>>,
    thread: Option<JoinHandle<()>>,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    addresses: Vec<Address>,
    calibration: Calibration,
    speed: Speed,
}

/// What was served.
pub struct Finished {
    /// The device as it is now.
    pub device: Device,
    /// What was measured: the device's own times.
    pub outcome: Outcome,
    /// How well the host was shown them.
    pub live: Live,
    /// How often the speed was changed meanwhile.
    pub speed_changes: u64,
    /// Requests in the recording, or why it is not whole; `None` without one.
    pub recorded: Option<Result<u64, String>>,
    /// A digest of the requests: that of a recording of them.
    pub digest: u64,
    /// Bytes of payload that were held at the end.
    pub payload_bytes: u64,
    /// What was found out of the host at the start.
    pub calibration: Calibration,
}

impl Server {
    /// Begins to serve a device.
    pub fn start(device: Device, options: Options) -> Result<Server, ServeError> {
        if let Some(remote) = options.nbd.iter().find(|address| !address.is_allowed(options.allow_remote)) {
            return Err(ServeError::Remote { address: remote.clone() });
        }
        if !device.attributes() {
            return Err(ServeError::NoAttribution);
        }
        let open =
            |address: &Address| Listener::open(address).map_err(|error| ServeError::Listen(address.clone(), error));
        let listeners = options.nbd.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let addresses = listeners.iter().map(|listener| listener.address().clone()).collect();
        let calibration = match options.no_delay {
            true => Calibration::default(),
            false => calibrate(options.no_spin)?,
        };
        let export = export_of(&device);
        let payload = Memory::new(export.bytes, export.unit, options.memory);
        let start = Wall::now();
        let clock = Clock::new(start, options.speed);
        // Where preconditioning took time, the clock goes on from there.
        let clock = Clock::new(start.earlier(clock.span(device.now())), options.speed);
        let pace = if options.no_delay { Pace::AtOnce } else { Pace::Timed(clock) };
        let mut engine = Engine::new(device, Box::new(payload), pace, options.recorder);
        engine.set_cost(calibration.cost);
        let bell = Arc::new(Bell::new()?);
        let ring = Arc::clone(&bell);
        let port = engine.add_port("nbd", Arc::new(move || ring.ring()));
        let engine = Arc::new(Mutex::new(engine));
        let stop = Arc::new(AtomicBool::new(false));
        let front = Front::new(Parts {
            engine: Arc::clone(&engine),
            port,
            export,
            listeners,
            bell: Arc::clone(&bell),
            stop: Arc::clone(&stop),
            spin: calibration.spin,
        });
        let thread = Some(spawn("nbd", move || front.run())?);
        Ok(Server { engine, thread, bell, stop, addresses, calibration, speed: options.speed })
    }

    /// Where clients connect, with the ports that the system has chosen.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// What was found out of the host at the start.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The device and all that is around it, for a monitor; it has to let go of it before the server ends.
    pub fn engine(&self) -> Arc<Mutex<Engine>> {
        Arc::clone(&self.engine)
    }

    /// Waits until `ends`, or until the server cannot go on: the text says why.
    pub fn wait(&self, ends: impl Fn() -> bool) -> Result<(), String> {
        /// How soon a wish to end is heard.
        const PATIENCE: std::time::Duration = std::time::Duration::from_millis(50);
        loop {
            if let Some(trouble) = self.engine.lock().unwrap_or_else(PoisonError::into_inner).trouble() {
                return Err(trouble);
            }
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Err("the thread that serves failed, which is a defect: please report it".to_owned());
            }
            if ends() {
                return Ok(());
            }
            pause(PATIENCE);
        }
    }

    /// Ends: no more is read, what is in progress is answered, and the sockets are removed.
    pub fn stop(mut self, complete: bool) -> Result<Finished, String> {
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        joined.map_err(|_| "the thread that serves failed, which is a defect: please report it".to_owned())?;
        let Server { engine, calibration, speed, .. } = self;
        let engine = Arc::try_unwrap(engine).map_err(|_| "the device is still in use".to_owned())?;
        let engine = engine.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (pace, speed) = match engine.pace() {
            Pace::AtOnce => ("at-once", speed),
            Pace::Timed(clock) => ("timed", clock.speed()),
        };
        let served = engine.finish(complete);
        let live = served.lateness.section(pace, speed.as_f64(), calibration.deducted_us());
        Ok(Finished {
            device: served.device,
            outcome: served.outcome,
            live,
            speed_changes: served.speed_changes,
            recorded: served.recorded,
            digest: served.digest,
            payload_bytes: served.payload_bytes,
            calibration,
        })
    }
}

/// What clients see of a device.
fn export_of(device: &Device) -> Export {
    let config = device.config();
    Export {
        name: config.name.clone(),
        description: format!("{}, simulated by Floatgate", config.name),
        bytes: config.logical_bytes(),
        unit: u32::try_from(config.unit_bytes()).unwrap_or(u32::MAX),
    }
}

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    #[expect(clippy::disallowed_methods, reason = "sockets are served beside the simulation, which one thread owns")]
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}

fn pause(span: std::time::Duration) {
    #[expect(clippy::disallowed_methods, reason = "waits for the user, and decides nothing")]
    std::thread::sleep(span);
}
