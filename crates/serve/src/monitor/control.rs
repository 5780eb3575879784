//! Commands of a server, and the private control socket for programs of the same user.
//!
//! Each command and each response is one line of JSON: `docs/reference/control.md`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use floatgate_core::config::InjectedFault;
use floatgate_core::sim::request::{Operation, SECTOR, Status};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::news::{Either, first};
use super::slots::{Slot, Slots};
use super::{Shared, lock};
use crate::clock::{Speed, Wall};
use crate::engine::{Engine, Order, Port};

/// Maximum number of clients. A further client replaces the one that has been idle longest.
const MAX_CLIENTS: usize = 16;

/// Maximum number of clients that follow the frames. Further ones are refused.
const MAX_FOLLOWERS: usize = 64;

/// Maximum length of a command in bytes.
const LONGEST_LINE: u64 = 4096;

/// Time after which a silent client is disconnected.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Serves clients of the control socket.
pub(super) async fn listen(shared: Arc<Shared>, listener: UnixListener) {
    let places = Slots::new(MAX_CLIENTS);
    let followers = Arc::new(Semaphore::new(MAX_FOLLOWERS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process has no free file descriptor. Try again later.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some(place) = places.take() else {
            refuse(&stream, MAX_CLIENTS);
            continue;
        };
        let (shared, followers) = (Arc::clone(&shared), Arc::clone(&followers));
        tokio::spawn(async move {
            // A client that has disconnected needs no response.
            let _ = converse(&shared, stream, &place, &followers).await;
        });
    }
}

/// Refuses a client because all slots are taken, without waiting for it.
fn refuse(stream: &UnixStream, max: usize) {
    let reported = failed(&format!("{max} programs are already waiting for responses of this server; try again"));
    let _ = stream.try_write(format!("{reported}\n").as_bytes());
}

/// Reads a line. `None` if the client is silent for too long, has disconnected, or lost its slot to another one.
async fn read(input: &mut (impl AsyncBufRead + Unpin), place: &Slot) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = input.take(LONGEST_LINE);
    let reading = tokio::time::timeout(PATIENCE, limited.read_until(b'\n', &mut line));
    match first(reading, place.lost()).await {
        Either::One(Ok(read)) => Ok((read? > 0 && place.keep()).then_some(line)),
        _ => Ok(None),
    }
}

async fn converse(
    shared: &Arc<Shared>,
    stream: UnixStream,
    place: &Slot,
    followers: &Arc<Semaphore>,
) -> std::io::Result<()> {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    while let Some(line) = read(&mut input, place).await? {
        if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST_LINE {
            return say(&mut output, &failed(&format!("a command has at most {LONGEST_LINE} bytes"))).await;
        }
        match serde_json::from_slice::<Command>(&line) {
            Ok(Command::Watch { blocks }) => {
                let Ok(_follower) = followers.try_acquire() else {
                    let reported = format!("{MAX_FOLLOWERS} programs are already watching this server");
                    return say(&mut output, &failed(&reported)).await;
                };
                place.leave();
                return follow(shared, &mut output, blocks).await;
            }
            Ok(Command::Status {}) => {
                // Wait for the next sample, so that the response includes everything that happened before the command.
                let _ = tokio::time::timeout(PATIENCE, shared.frames.subscribe().changed()).await;
                let status = json!({ "ok": true, "info": &shared.info, "frame": &*shared.frame() });
                say(&mut output, &status).await?;
            }
            Ok(command) => {
                let done = carry_out(shared, command).await;
                say(&mut output, &done).await?;
            }
            Err(error) => say(&mut output, &failed(&format!("invalid command: {error}"))).await?,
        }
        place.rest();
    }
    Ok(())
}

/// Performs a command, even if the client disconnects. Returns the response as JSON.
pub(super) async fn carry_out(shared: &Arc<Shared>, command: Command) -> Value {
    if shared.served.get().is_none() {
        return failed(&format!("the device is not served yet ({}); try again later", shared.preparing()));
    }
    let worker = Arc::clone(shared);
    let done = tokio::spawn(async move {
        match worker.served.get() {
            Some(served) => served.control.carry_out(&command).await,
            None => Err("the device is not served yet".to_owned()),
        }
    })
    .await;
    match done {
        Ok(Ok(text)) => json!({ "ok": true, "message": text }),
        Ok(Err(error)) => failed(&error),
        Err(_) => failed("the command failed, which is a defect: please report it"),
    }
}

/// Returns an error response.
pub(super) fn failed(error: &str) -> Value {
    json!({ "ok": false, "error": error })
}

async fn say(output: &mut (impl AsyncWriteExt + Unpin), value: &Value) -> std::io::Result<()> {
    write(output, &format!("{value}\n")).await
}

/// Writes to a client. Fails if the client does not read in time.
async fn write(output: &mut (impl AsyncWriteExt + Unpin), text: &str) -> std::io::Result<()> {
    tokio::time::timeout(PATIENCE, output.write_all(text.as_bytes())).await?
}

/// Sends new data until the client disconnects. A client that reads slowly misses some.
async fn follow(shared: &Shared, output: &mut (impl AsyncWriteExt + Unpin), blocks: bool) -> std::io::Result<()> {
    say(output, &json!({ "ok": true, "info": &shared.info })).await?;
    let mut news = shared.news(blocks);
    while let Some((name, text)) = news.next().await {
        write(output, &format!("{{\"{name}\":{text}}}\n")).await?;
    }
    Ok(())
}
