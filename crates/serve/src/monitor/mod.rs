//! The monitor: a web page, metrics and a control socket, on a separate thread.
//!
//! The monitor samples the engine twice a second. Under the engine's lock it only copies data. It computes values,
//! block maps and texts after releasing the lock. `docs/decisions/0021-monitor.md` gives the reasons for this design.

pub mod blocks;
pub mod client;
pub mod control;
pub mod frame;
mod guard;
mod latencies;
mod news;
mod prometheus;
mod reply;
mod slots;
mod slow_client;
mod web;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use floatgate_core::config::DeviceConfig;
use floatgate_core::ftl::space::Block;
use tokio::sync::{Notify, watch};

use crate::address::Address;
use crate::clock::Wall;
use crate::engine::{Engine, Snapshot};
use crate::error::ServeError;
use crate::nbd::listen::private_socket;
use crate::roster::Roster;
use crate::server::Server;
use crate::sockets::Sockets;
use crate::threads::spawn;
use blocks::{Painter, SLICE};
use frame::{Frame, Info, Preparing};
use latencies::Latencies;
use news::News;

/// Interval between samples.
const TICK: Duration = Duration::from_millis(500);

/// Number of past frames that a page gets when it connects: five minutes.
const HISTORY: usize = 600;

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
        let info = Info::new(config, sockets.addresses(), sockets.vhost_user(), power_cut);
        let shared = Arc::new(Shared::new(config.clone(), info, options, at));
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
            let control = control::Control::new(Arc::clone(&engine));
            // Only the first server is monitored.
            let _ = shared.served.set(Served { engine, roster: server.roster(), control });
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

/// State shared by the tasks of the monitor.
struct Shared {
    /// The server, once it has started.
    served: OnceLock<Served>,
    /// Preparation before the server starts.
    preparing: Mutex<Preparing>,
    info: Info,
    config: DeviceConfig,
    began: Wall,
    /// Newest frame. `frames` sends it as text to followers.
    frame: Mutex<Arc<Frame>>,
    frames: watch::Sender<Arc<str>>,
    /// Histograms of latencies so far.
    latencies: Mutex<Latencies>,
    /// Frames of the last minutes, without the lists of channels and dies.
    history: Mutex<VecDeque<Arc<str>>>,
    /// Block maps. None are created while there is no follower.
    pictures: watch::Sender<Arc<str>>,
    token: Option<String>,
    hosts: guard::Hosts,
    plotting_library: &'static [u8],
    end: Notify,
    ends: AtomicBool,
}

/// A running server.
struct Served {
    engine: Arc<Mutex<Engine>>,
    roster: Roster,
    control: control::Control,
}

impl Shared {
    fn new(config: DeviceConfig, info: Info, options: Options, at: Option<SocketAddr>) -> Shared {
        Shared {
            served: OnceLock::new(),
            preparing: Mutex::new(Preparing { what: "starting".to_owned(), share: None }),
            info,
            config,
            began: Wall::now(),
            frame: Mutex::default(),
            frames: watch::Sender::new(Arc::from("")),
            latencies: Mutex::default(),
            history: Mutex::default(),
            pictures: watch::Sender::new(Arc::from("")),
            token: options.token,
            hosts: guard::Hosts::new(at),
            plotting_library: options.plotting_library,
            end: Notify::new(),
            ends: AtomicBool::new(false),
        }
    }

    /// Returns the newest frame.
    fn frame(&self) -> Arc<Frame> {
        Arc::clone(&self.frame.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the metrics in the text format of OpenMetrics.
    fn metrics(&self) -> String {
        let latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        prometheus::text(&self.info, &self.frame(), &latencies)
    }

    /// Returns the frames of the last minutes as a JSON list.
    fn history(&self) -> String {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let frames: Vec<&str> = history.iter().map(|frame| &**frame).collect();
        format!("[{}]", frames.join(","))
    }

    /// Returns the current preparation.
    fn preparing(&self) -> Preparing {
        self.preparing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Follows new frames, and new block maps if `blocks` is set.
    fn news(&self, blocks: bool) -> News {
        News::new(self.frames.subscribe(), blocks.then(|| self.pictures.subscribe()))
    }

    /// Samples the engine, and publishes the frame.
    fn tick(&self, snapshot: &mut Snapshot, number: u64) {
        let now = Wall::now();
        let Some(Served { engine, roster, .. }) = self.served.get() else {
            self.publish(Frame::preparing(&self.config, self.preparing(), number, self.began, now));
            return;
        };
        let before = if snapshot.now == Wall(0) { now.earlier(Wall(TICK.as_nanos() as u64)) } else { snapshot.now };
        lock(engine).snapshot(Wall::now(), snapshot);
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).add(snapshot);
        let frame = Frame::new(&self.config, snapshot, number, self.began, before.max(self.began));
        let frame = frame.with_clients(&roster.clients(), snapshot.now);
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(text(&frame.short()));
        drop(history);
        self.publish(frame);
    }

    /// Sends a frame to all followers, and keeps it for status requests.
    fn publish(&self, frame: Frame) {
        self.frames.send_replace(text(&frame));
        *self.frame.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(frame);
    }
}

impl Served {
    /// Copies blocks, starting at `first`, and their kinds. Returns the simulated time.
    fn copy_blocks(&self, first: usize, into: &mut Vec<Block>, kinds: &mut Vec<u8>) -> f64 {
        let engine = lock(&self.engine);
        engine.copy_blocks(first, SLICE, into, kinds);
        engine.device().now().as_s()
    }
}

fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serializes a value as JSON. Only used with types that cannot fail.
fn text<T: serde::Serialize>(value: &T) -> Arc<str> {
    Arc::from(serde_json::to_string(value).unwrap_or_default())
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
    let info = &shared.info;
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
