//! The private control socket for programs of the same user.
//!
//! Each command and each response is one line of JSON: `docs/reference/control.md`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::commands::Command;
use super::news::{Either, first};
use super::shared::Shared;
use super::slots::{Slot, Slots};

/// Maximum number of clients. A further client replaces the one that has been idle longest.
const MAX_CLIENTS: usize = 16;

/// Maximum number of clients that follow the frames. Further ones are refused.
const MAX_FOLLOWERS: usize = 64;

/// Maximum length of a command in bytes.
const LONGEST_LINE: u64 = 4096;

/// Time after which a silent client is disconnected.
const PATIENCE: Duration = Duration::from_secs(60);

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
                let status = json!({ "ok": true, "info": shared.info(), "frame": &*shared.frame() });
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
    say(output, &json!({ "ok": true, "info": shared.info() })).await?;
    let mut news = shared.news(blocks);
    while let Some((name, text)) = news.next().await {
        write(output, &format!("{{\"{name}\":{text}}}\n")).await?;
    }
    Ok(())
}
