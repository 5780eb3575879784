//! The monitor: a page, metrics and a control socket, on a thread of their own.
//!
//! It looks at the engine twice a second. What it takes under the lock is copied; figures, pictures and texts are made
//! without it. `docs/decisions/0021-monitor.md` says why it is like this.

pub mod blocks;
pub mod client;
pub mod control;
pub mod frame;
mod guard;
mod patient;
mod places;
mod prometheus;
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
use futures_util::{Stream, StreamExt};
use tokio::sync::{Notify, watch};

use crate::address::Address;
use crate::clock::Wall;
use crate::engine::{Engine, Look};
use crate::error::ServeError;
use crate::nbd::listen::private_socket;
use crate::roster::Roster;
use crate::server::Server;
use crate::sockets::Sockets;
use crate::threads::spawn;
use blocks::{Painter, SLICE};
use frame::{Frame, Info, Preparing};

/// Between two looks.
const TICK: Duration = Duration::from_millis(500);

/// Frames that a page gets to begin with: five minutes.
const HISTORY: usize = 600;

/// What a monitor offers, and to whom.
pub struct Options {
    /// Where programs of this user control the server.
    pub control: Option<PathBuf>,
    /// Where browsers see it.
    pub dashboard: Option<SocketAddr>,
    /// An address beyond this machine's own at which browsers may see it.
    pub allow_remote: Option<IpAddr>,
    /// What a browser has to know to change anything; without one, none can.
    pub token: Option<String>,
    /// The plotting library of the page, packed by gzip.
    pub plotting_library: &'static [u8],
}

/// Open sockets of a monitor that does not answer yet.
pub struct Doors {
    control: Option<Private>,
    dashboard: Option<TcpListener>,
    options: Options,
}

/// A Unix socket, whose file goes with it.
struct Private {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Private {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Doors {
    /// Opens them, so that what is wrong with them is known before a device is made.
    pub fn open(options: Options) -> Result<Doors, ServeError> {
        let control = options.control.as_deref().map(|path| {
            let told = |error| ServeError::Listen(Address::Unix(path.to_owned()), error);
            let listener = private_socket(path).map_err(told)?;
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

    /// Begins to answer, before there is a server: it says what is being prepared until [`Monitor::attach`]. With
    /// `power_cut`, the device comes back after one.
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

/// A monitor at work.
pub struct Monitor {
    thread: Option<JoinHandle<()>>,
    shared: Option<Arc<Shared>>,
    dashboard: Option<SocketAddr>,
    control: Option<PathBuf>,
}

impl Monitor {
    /// Reports what the server does before it serves, and the share of it that is done, from 0 to 1.
    pub fn prepares(&self, what: &str, share: Option<f64>) {
        if let Some(shared) = &self.shared {
            let mut preparing = shared.preparing.lock().unwrap_or_else(PoisonError::into_inner);
            preparing.share = share;
            if preparing.what != what {
                preparing.what = what.to_owned();
            }
        }
    }

    /// Starts to watch the device of this server.
    pub fn attach(&self, server: &Server) {
        if let Some(shared) = &self.shared {
            let engine = server.engine();
            lock(&engine).watch();
            let control = control::Control::new(Arc::clone(&engine));
            // A second server is not watched.
            let _ = shared.served.set(Served { engine, roster: server.roster(), control });
        }
    }

    /// Where browsers see it, with the port that the system has chosen.
    pub fn dashboard(&self) -> Option<SocketAddr> {
        self.dashboard
    }

    /// The control socket.
    pub fn control(&self) -> Option<&Path> {
        self.control.as_deref()
    }
}

impl Drop for Monitor {
    /// Ends it, and lets go of the engine.
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.ends.store(true, Ordering::Release);
            shared.end.notify_one();
        }
        // A panic there has been told, and harms no answer.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the tasks of the monitor share.
struct Shared {
    /// What is served, once it is.
    served: OnceLock<Served>,
    /// What is done before that.
    preparing: Mutex<Preparing>,
    info: Info,
    config: DeviceConfig,
    began: Wall,
    /// The newest frame, for whoever asks, and as text, for those who follow.
    frame: Mutex<Arc<Frame>>,
    frames: watch::Sender<Arc<str>>,
    /// Frames of the last minutes, without what is of each channel and die.
    history: Mutex<VecDeque<Arc<str>>>,
    /// Pictures of the blocks; none are made while nobody follows them.
    pictures: watch::Sender<Arc<str>>,
    token: Option<String>,
    hosts: guard::Hosts,
    plotting_library: &'static [u8],
    end: Notify,
    ends: AtomicBool,
}

/// A server at work.
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
            history: Mutex::default(),
            pictures: watch::Sender::new(Arc::from("")),
            token: options.token,
            hosts: guard::Hosts::new(at),
            plotting_library: options.plotting_library,
            end: Notify::new(),
            ends: AtomicBool::new(false),
        }
    }

    /// The newest frame.
    fn frame(&self) -> Arc<Frame> {
        Arc::clone(&self.frame.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The frames of the last minutes, as the text of a list.
    fn history(&self) -> String {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let frames: Vec<&str> = history.iter().map(|frame| &**frame).collect();
        format!("[{}]", frames.join(","))
    }

    /// What is done before there is a server.
    fn preparing(&self) -> Preparing {
        self.preparing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What comes from now on, with the name of each: frames, and pictures of the blocks where they are wanted. Who
    /// does not keep up misses some.
    fn news(&self, blocks: bool) -> impl Stream<Item = (&'static str, Arc<str>)> + Send + use<> {
        let pictures = blocks.then(|| changes("blocks", self.pictures.subscribe()));
        let pictures = futures_util::stream::iter(pictures).flatten();
        futures_util::stream::select(changes("frame", self.frames.subscribe()), pictures)
    }

    /// Takes a look, and tells those who follow.
    fn tick(&self, look: &mut Look, number: u64) {
        let now = Wall::now();
        let Some(Served { engine, roster, .. }) = self.served.get() else {
            self.publish(Frame::preparing(&self.config, self.preparing(), number, self.began, now));
            return;
        };
        let before = if look.now == Wall(0) { now.earlier(Wall(TICK.as_nanos() as u64)) } else { look.now };
        lock(engine).look(Wall::now(), look);
        let frame = Frame::new(&self.config, look, number, self.began, before.max(self.began));
        let frame = frame.with_clients(&roster.clients(), look.now);
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(text(&frame.short()));
        drop(history);
        self.publish(frame);
    }

    /// Sends a frame to those who follow, and keeps it for those who ask.
    fn publish(&self, frame: Frame) {
        self.frames.send_replace(text(&frame));
        *self.frame.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(frame);
    }
}

/// The texts that a channel comes to hold.
fn changes(
    name: &'static str,
    receiver: watch::Receiver<Arc<str>>,
) -> impl Stream<Item = (&'static str, Arc<str>)> + Send {
    futures_util::stream::unfold(receiver, move |mut receiver| async move {
        receiver.changed().await.ok()?;
        let text = Arc::clone(&receiver.borrow_and_update());
        Some(((name, text), receiver))
    })
    .boxed()
}

impl Served {
    /// Copies some blocks, the first of which is `first`; returns the simulated time.
    fn copy_blocks(&self, first: usize, into: &mut Vec<Block>) -> f64 {
        let engine = lock(&self.engine);
        engine.copy_blocks(first, SLICE, into);
        engine.device().now().as_s()
    }
}

fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As JSON. What has no JSON is not made here.
fn text<T: serde::Serialize>(value: &T) -> Arc<str> {
    Arc::from(serde_json::to_string(value).unwrap_or_default())
}

/// All that the thread does.
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
    let mut look = Look::default();
    for number in 1.. {
        interval.tick().await;
        shared.tick(&mut look, number);
    }
}

/// Makes pictures of the blocks while somebody follows them.
async fn paint(shared: Arc<Shared>) {
    /// After so many slices front ends get a millisecond for themselves.
    const AT_ONCE: usize = 16;
    let info = &shared.info;
    let sizes = shared.config.block_sizes();
    let mut painter = Painter::new(info.planes, info.blocks_per_plane, sizes.map(|size| size.data_units));
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut slice = Vec::with_capacity(SLICE);
    loop {
        interval.tick().await;
        let Some(served) = shared.served.get().filter(|_| shared.pictures.receiver_count() > 0) else { continue };
        for number in 1.. {
            let now_s = served.copy_blocks(painter.next(), &mut slice);
            if let Some(map) = painter.add(&slice, now_s) {
                shared.pictures.send_replace(text(&map));
                break;
            }
            if number % AT_ONCE == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
