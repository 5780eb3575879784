//! Commands of a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use floatgate_core::device_file::InjectedFault;
use floatgate_core::sim::request::{Operation, SECTOR, Status};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex as AsyncMutex;

use crate::clock::{Speed, Wall};
use crate::engine::{Engine, Order, Port};

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Returns the properties of the device and its current state.
    // Variants have braces even without fields, because only then serde refuses unknown fields.
    Status {},
    /// Sends new frames, and new block maps if requested.
    Watch {
        /// True to send block maps.
        #[serde(default)]
        blocks: bool,
    },
    /// Changes the speed of simulated time.
    Speed {
        /// New speed, in the syntax of `--speed`.
        value: String,
    },
    /// Trims the whole device.
    TrimAll {},
    /// Cuts the power of the device.
    PowerCut {},
    /// Makes the next operation at a location fail.
    Fail {
        /// Location, in the syntax of `faults.inject`.
        place: String,
    },
}

/// Performs the commands that change something.
pub struct Control {
    engine: Arc<Mutex<Engine>>,
    /// Port for the requests of commands. Created for the first of them.
    port: OnceLock<Port>,
    /// Held while a trim of the whole device is in progress. Only one can run at a time.
    trims: AsyncMutex<()>,
    ends: AtomicBool,
}

impl Control {
    pub(super) fn new(engine: Arc<Mutex<Engine>>) -> Control {
        let (port, trims, ends) = Default::default();
        Control { engine, port, trims, ends }
    }

    /// Performs a command. Returns a message for people.
    pub(super) async fn carry_out(&self, command: &Command) -> Result<String, String> {
        match command {
            Command::Speed { value } => {
                let speed: Speed = value.parse()?;
                let mut engine = lock(&self.engine);
                engine.set_speed(Wall::now(), speed).map_err(|error| error.to_string())?;
                Ok(format!("simulated time now runs at speed {speed}"))
            }
            Command::TrimAll {} => self.trim_all().await,
            Command::Fail { place } => {
                let place: InjectedFault = place.parse()?;
                lock(&self.engine).fail_next(place)?;
                Ok(format!("the next {place} fails"))
            }
            Command::PowerCut {} => lock(&self.engine).power_cut(Wall::now()).map(|cut| cut.to_string()),
            Command::Status {} | Command::Watch { .. } => {
                Err("`status` and `watch` are only available on the control socket".to_owned())
            }
        }
    }

    /// Trims the whole device and flushes it, like a host. Works in pieces, so that requests of clients are served in
    /// between.
    async fn trim_all(&self) -> Result<String, String> {
        /// Size of a piece, rounded up to whole mapping units, or stripes of an array. The FTL trims a piece in well
        /// under a millisecond.
        const PIECE: u64 = 16 << 20;
        let Ok(_one) = self.trims.try_lock() else { return Err("another `trim-all` is in progress".to_owned()) };
        let (bytes, unit) = {
            let engine = lock(&self.engine);
            (engine.config().logical_bytes(), engine.device().trim_bytes())
        };
        let piece = PIECE.next_multiple_of(unit.max(SECTOR));
        let port = *self.port.get_or_init(|| lock(&self.engine).add_port("control", Arc::new(|| ())));
        if lock(&self.engine).is_read_only() {
            return Err("nothing was trimmed: the device is read-only".to_owned());
        }
        let pieces = (0..bytes).step_by(piece as usize).map(|offset| {
            let sectors = piece.min(bytes - offset) / SECTOR;
            Order::of(Operation::Trim, offset / SECTOR, sectors as u32)
        });
        for order in pieces.chain([Order::of(Operation::Flush, 0, 0)]) {
            let submitted = lock(&self.engine).submit(port, Wall::now(), &order);
            submitted.map_err(|error| format!("trim incomplete: {error}"))?;
            match self.answered(port).await {
                Some(Status::Ok) => {}
                Some(Status::ReadOnly) => {
                    return Err("trim incomplete: the device is read-only".to_owned());
                }
                Some(_) => return Err("trim incomplete: cannot write the image file".to_owned()),
                None => return Err("trim incomplete: the power was cut".to_owned()),
            }
            if self.ends.load(Ordering::Acquire) {
                return Err("trim incomplete: the server is shutting down".to_owned());
            }
        }
        Ok(format!("trimmed all {bytes} bytes"))
    }

    /// Waits for the reply to a request of `port`, and returns its status. `None` if a power cut drops the request.
    async fn answered(&self, port: Port) -> Option<Status> {
        let mut answers = Vec::new();
        loop {
            let now = Wall::now();
            let next = {
                let mut engine = lock(&self.engine);
                engine.advance(now);
                engine.take_due(port, now, &mut answers);
                if !answers.is_empty() || engine.fatal_error().is_some() || !engine.waits(port) {
                    return answers.pop().map(|answer| answer.status);
                }
                engine.next_poll(port)
            };
            let span = next.since(Wall::now()).min(Wall(50_000_000));
            match span {
                Wall(0) => tokio::task::yield_now().await,
                span => tokio::time::sleep(Duration::from_nanos(span.0)).await,
            }
        }
    }

    /// Stops a trim in progress, and waits until its last request has been replied to.
    pub(super) async fn end(&self) {
        self.ends.store(true, Ordering::Release);
        // If a request never completes, the server reports that itself.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.trims.lock()).await;
    }
}

pub(super) fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}
