//! State shared by the tasks of the monitor.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Block;
use tokio::sync::{Notify, watch};

use super::blocks::SLICE;
use super::commands::{Control, lock};
use super::frame::{Frame, Info, Preparing};
use super::guard::Hosts;
use super::latencies::Latencies;
use super::news::News;
use super::prometheus;
use crate::clock::Wall;
use crate::engine::{Engine, Snapshot};
use crate::roster::Roster;

/// Number of past frames that a page gets when it connects: five minutes.
const HISTORY: usize = 600;

/// Interval between samples.
pub(super) const TICK: Duration = Duration::from_millis(500);

/// State shared by the tasks of the monitor.
pub(super) struct Shared {
    /// The server, once it has started.
    pub(super) served: OnceLock<Served>,
    /// Preparation before the server starts.
    pub(super) preparing: Mutex<Preparing>,
    info: Info,
    pub(super) config: DeviceConfig,
    began: Wall,
    /// Newest frame. `frames` sends it as text to followers.
    frame: Mutex<Arc<Frame>>,
    pub(super) frames: watch::Sender<Arc<str>>,
    /// Histograms of latencies so far.
    latencies: Mutex<Latencies>,
    /// Frames of the last minutes, without the lists of channels and dies.
    history: Mutex<VecDeque<Arc<str>>>,
    /// Block maps. None are created while there is no follower.
    pub(super) pictures: watch::Sender<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) hosts: Hosts,
    pub(super) plotting_library: &'static [u8],
    pub(super) end: Notify,
    pub(super) ends: AtomicBool,
}

/// A running server.
pub(super) struct Served {
    pub(super) engine: Arc<Mutex<Engine>>,
    pub(super) roster: Roster,
    pub(super) control: Control,
    pub(super) nqn: Option<String>,
}

impl Shared {
    /// `dashboard` has the address and the token of the dashboard, and its plotting library.
    pub(super) fn new(
        config: DeviceConfig,
        info: Info,
        dashboard: (Option<SocketAddr>, Option<String>, &'static [u8]),
    ) -> Shared {
        let (at, token, plotting_library) = dashboard;
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
            token,
            hosts: Hosts::new(at),
            plotting_library,
            end: Notify::new(),
            ends: AtomicBool::new(false),
        }
    }

    /// Returns the properties of the device and its server.
    pub(super) fn info(&self) -> Info {
        Info { nqn: self.served.get().and_then(|served| served.nqn.clone()), ..self.info.clone() }
    }

    /// Returns the newest frame.
    pub(super) fn frame(&self) -> Arc<Frame> {
        Arc::clone(&self.frame.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the metrics in the text format of OpenMetrics.
    pub(super) fn metrics(&self) -> String {
        let latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        prometheus::text(&self.info(), &self.frame(), &latencies)
    }

    /// Returns the frames of the last minutes as a JSON list.
    pub(super) fn history(&self) -> String {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let frames: Vec<&str> = history.iter().map(|frame| &**frame).collect();
        format!("[{}]", frames.join(","))
    }

    /// Returns the current preparation.
    pub(super) fn preparing(&self) -> Preparing {
        self.preparing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Follows new frames, and new block maps if `blocks` is set.
    pub(super) fn news(&self, blocks: bool) -> News {
        News::new(self.frames.subscribe(), blocks.then(|| self.pictures.subscribe()))
    }

    /// Samples the engine, and publishes the frame.
    pub(super) fn tick(&self, snapshot: &mut Snapshot, number: u64) {
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
    pub(super) fn copy_blocks(&self, first: usize, into: &mut Vec<Block>, kinds: &mut Vec<u8>) -> f64 {
        let engine = lock(&self.engine);
        engine.copy_blocks(first, SLICE, into, kinds);
        engine.device().now().as_s()
    }
}

/// Serializes a value as JSON. Only used with types that cannot fail.
pub(super) fn text<T: serde::Serialize>(value: &T) -> Arc<str> {
    Arc::from(serde_json::to_string(value).unwrap_or_default())
}
