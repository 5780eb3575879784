//! The monitor: a web page, metrics and a control socket, on a separate thread.
//!
//! The monitor samples the engine twice a second. Under the engine's lock it only copies data. It computes values,
//! block maps and texts after releasing the lock. `docs/decisions/0021-monitor.md` gives the reasons for this design.

pub mod blocks;
pub mod client;
pub mod commands;
mod control;
pub mod frame;
mod guard;
mod latencies;
mod news;
mod prometheus;
mod reply;
mod shared;
mod slots;
mod slow_client;
mod web;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use floatgate_core::device_file::DeviceConfig;

use crate::address::Address;
use crate::engine::Snapshot;
use crate::error::ServeError;
use crate::listen::private_socket;
use crate::server::Server;
use crate::sockets::Sockets;
use crate::threads::spawn;
use blocks::{Painter, SLICE};
use commands::{Control, lock};
use frame::Info;
use shared::{Served, Shared, TICK, text};

/// Interfaces of a monitor, and access to them.
pub struct Options {
    /// Path of the control socket, for programs of this user.
    pub control: Option<PathBuf>,
    /// Address of the dashboard, for browsers.
    pub dashboard: Option<SocketAddr>,
    /// Address other than loopback at which the dashboard may be served.
    pub allow_remote: Option<IpAddr>,
    /// Token that a browser must send to change anything. `None` makes the dashboard read-only.
    pub token: Option<String>,
    /// Plotting library of the page, compressed with gzip.
    pub plotting_library: &'static [u8],
}

/// Open sockets of a monitor that has not started yet.
pub struct Doors {
    control: Option<Private>,
    dashboard: Option<TcpListener>,
    options: Options,
}

/// A Unix socket. Its file is removed on drop.
struct Private {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Private {
    fn drop(&mut self) {
        // The file may already have been removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Doors {
    /// Opens the sockets, so that their errors are reported before a device is built.
    pub fn open(options: Options) -> Result<Doors, ServeError> {
        let control = options.control.as_deref().map(|path| {
            let reported = |error| ServeError::Listen(Address::Unix(path.to_owned()), error);
            let listener = private_socket(path).map_err(reported)?;
            listener.set_nonblocking(true)?;
            Ok::<_, ServeError>(Private { listener, path: path.to_owned() })
        });
        let control = control.transpose()?;
        let dashboard = options.dashboard.map(|at| {
            let address = Address::Tcp(at);
            if !address.is_allowed(options.allow_remote) {
                return Err(ServeError::Remote { address });
            }
            let listener = TcpListener::bind(at).map_err(|error| ServeError::Listen(address, error))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        Ok(Doors { control, dashboard: dashboard.transpose()?, options })
    }

    /// Starts the monitor before the server. Until [`Monitor::attach`], it reports the preparation of the server.
    /// `power_cut` is true if the device can recover from a power cut.
    pub fn start(self, config: &DeviceConfig, sockets: &Sockets, power_cut: bool) -> io::Result<Monitor> {
        let Doors { control, dashboard, options } = self;
        let at = dashboard.as_ref().map(TcpListener::local_addr).transpose()?;
        let path = control.as_ref().map(|private| private.path.clone());
        let info = Info::new(config, sockets.addresses(), power_cut);
        let shared = Arc::new(Shared::new(config.clone(), info, (at, options.token, options.plotting_library)));
        let stop = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || runtime.block_on(serve(shared, control, dashboard));
        Ok(Monitor { thread: Some(spawn("monitor", run)?), shared: Some(stop), dashboard: at, control: path })
    }
}

/// A running monitor.
pub struct Monitor {
    thread: Option<JoinHandle<()>>,
    shared: Option<Arc<Shared>>,
    dashboard: Option<SocketAddr>,
    control: Option<PathBuf>,
}

impl Monitor {
    /// Reports the current preparation of the server, and its completed share from 0 to 1.
    pub fn prepares(&self, what: &str, share: Option<f64>) {
        if let Some(shared) = &self.shared {
            let mut preparing = shared.preparing.lock().unwrap_or_else(PoisonError::into_inner);
            preparing.share = share;
            if preparing.what != what {
                preparing.what = what.to_owned();
            }
        }
    }

    /// Starts to monitor the device of a server.
    pub fn attach(&self, server: &Server) {
        if let Some(shared) = &self.shared {
            let engine = server.engine();
            lock(&engine).watch();
            let control = Control::new(Arc::clone(&engine));
            // Only the first server is monitored.
            let _ = shared.served.set(Served {
                engine,
                roster: server.roster(),
                control,
                nqn: server.nqn().map(ToOwned::to_owned),
            });
        }
    }

    /// Returns the address of the dashboard, with the port that the system has chosen.
    pub fn dashboard(&self) -> Option<SocketAddr> {
        self.dashboard
    }

    /// Returns the path of the control socket.
    pub fn control(&self) -> Option<&Path> {
        self.control.as_deref()
    }
}

impl Drop for Monitor {
    /// Stops the monitor's thread, and releases the engine.
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.ends.store(true, Ordering::Release);
            shared.end.notify_one();
        }
        // The panic hook has already reported a panic of this thread, and the server works without the monitor.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Runs all tasks of the monitor's thread.
async fn serve(shared: Arc<Shared>, control: Option<Private>, dashboard: Option<TcpListener>) {
    tokio::spawn(watch_device(Arc::clone(&shared)));
    tokio::spawn(paint(Arc::clone(&shared)));
    if let Some(Private { listener, .. }) = &control
        && let Ok(listener) = listener.try_clone().and_then(tokio::net::UnixListener::from_std)
    {
        tokio::spawn(control::listen(Arc::clone(&shared), listener));
    }
    if let Some(listener) = dashboard
        && let Ok(listener) = tokio::net::TcpListener::from_std(listener)
    {
        tokio::spawn(web::listen(Arc::clone(&shared), listener));
    }
    shared.end.notified().await;
    if let Some(served) = shared.served.get() {
        served.control.end().await;
    }
}

async fn watch_device(shared: Arc<Shared>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut snapshot = Snapshot::default();
    for number in 1.. {
        interval.tick().await;
        shared.tick(&mut snapshot, number);
    }
}

/// Creates block maps while there are followers.
async fn paint(shared: Arc<Shared>) {
    /// Number of slices after which to pause for a millisecond, so that frontends get the engine's lock.
    const AT_ONCE: usize = 16;
    let info = shared.info();
    let sizes = shared.config.block_sizes();
    let mut painter = Painter::new(info.planes, info.blocks_per_plane, sizes.map(|size| size.data_units));
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (mut slice, mut kinds) = (Vec::with_capacity(SLICE), Vec::new());
    loop {
        interval.tick().await;
        let Some(served) = shared.served.get().filter(|_| shared.pictures.receiver_count() > 0) else { continue };
        // Blocks of different members of an array do not fit into one map.
        if !lock(&served.engine).device().is_uniform() {
            return;
        }
        for number in 1.. {
            let now_s = served.copy_blocks(painter.next(), &mut slice, &mut kinds);
            if let Some(map) = painter.add(&slice, &kinds, now_s) {
                shared.pictures.send_replace(text(&map));
                break;
            }
            if number % AT_ONCE == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
