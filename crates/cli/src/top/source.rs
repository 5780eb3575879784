//! Where the figures come from: the control socket of a server, or its dashboard.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use floatgate_serve::monitor::blocks::BlockMap;
use floatgate_serve::monitor::control::Command;
use floatgate_serve::monitor::frame::{Frame, Info};
use serde::Deserialize;
use serde_json::Value;

use crate::ctl;
use crate::failure::Failure;

/// Nothing comes for so long: the server is gone, or hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an event at most.
const LONGEST_LINE: u64 = 4 << 20;

/// What has come.
pub enum News {
    /// What is served.
    Info(Box<Info>),
    /// How it is.
    Frame(Box<Frame>),
    /// The blocks.
    Blocks(Box<BlockMap>),
    /// Nothing comes any more.
    Ended(Failure),
}

/// What comes, read by a thread of its own.
pub struct Source(Receiver<News>);

impl Source {
    /// Begins to read. A server that cannot be reached is told of at once.
    pub fn open(server: Option<&str>) -> Result<Source, Failure> {
        let (sender, receiver) = sync_channel(64);
        match server {
            Some(address) if is_address(address) => follow_page(address, sender)?,
            other => follow_socket(other.map(Path::new), sender)?,
        }
        Ok(Source(receiver))
    }

    /// What has come and was not taken yet.
    pub fn next(&self) -> Option<News> {
        match self.0.try_recv() {
            Ok(news) => Some(news),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(News::Ended(Failure::fault("the server has ended"))),
        }
    }
}

/// Whether it is `HOST:PORT`, and no path.
fn is_address(text: &str) -> bool {
    let port = text.rsplit_once(':').map(|(_, port)| port.trim_end_matches('/'));
    !Path::new(text).exists() && port.is_some_and(|port| port.parse::<u16>().is_ok())
}

/// Reads in a thread, until nobody takes what comes.
fn read(
    sender: SyncSender<News>,
    mut next: impl FnMut() -> Result<News, Failure> + Send + 'static,
) -> Result<(), Failure> {
    let run = move || {
        loop {
            let news = next().unwrap_or_else(News::Ended);
            let ends = matches!(news, News::Ended(_));
            if sender.send(news).is_err() || ends {
                return;
            }
        }
    };
    #[expect(clippy::disallowed_methods, reason = "waits for a server while the terminal waits for keys")]
    let spawned = std::thread::Builder::new().name("news".to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| Failure::fault(format!("no thread is left: {error}")))
}

/// Of a server of another version, where what it says makes no sense.
fn parsed<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<Box<T>, Failure> {
    let told = |error| Failure::fault(format!("the server is of another version of Floatgate: {error}"));
    T::deserialize(value).map(Box::new).map_err(told)
}

fn news(name: &str, value: &Value) -> Result<News, Failure> {
    match name {
        "blocks" => parsed(value).map(News::Blocks),
        "frame" => parsed(value).map(News::Frame),
        _ => parsed(value).map(News::Info),
    }
}

fn follow_socket(path: Option<&Path>, sender: SyncSender<News>) -> Result<(), Failure> {
    let mut asker = ctl::connect(path)?;
    asker.set_patience(Some(PATIENCE)).map_err(ctl::lost)?;
    let mut answer = Some(asker.ask(&Command::Watch { blocks: true }).map_err(ctl::lost)?);
    read(sender, move || {
        let line = match answer.take() {
            Some(answer) => answer,
            None => asker.hear().map_err(ctl::lost)?,
        };
        let name = ["blocks", "frame"].into_iter().find(|name| line.get(name).is_some()).unwrap_or("info");
        news(name, &line[name])
    })
}

fn follow_page(address: &str, sender: SyncSender<News>) -> Result<(), Failure> {
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .proxy(None)
        .build()
        .into();
    let get = |path: &str| {
        let told = |error| Failure::fault(format!("no dashboard answers at {address}: {error}"));
        agent.get(format!("http://{address}{path}")).call().map_err(told)
    };
    let told = |error| Failure::fault(format!("{address} is no dashboard of Floatgate: {error}"));
    let status =
        get("/api/status")?.into_body().into_with_config().limit(LONGEST_LINE).read_to_string().map_err(told)?;
    let status: Value = serde_json::from_str(&status)
        .map_err(|error| Failure::fault(format!("{address} is no dashboard of Floatgate: {error}")))?;
    let mut info = Some(news("info", &status["info"])?);
    let mut lines = BufReader::new(get("/api/events")?.into_body().into_reader());
    let mut name = String::new();
    read(sender, move || {
        if let Some(info) = info.take() {
            return Ok(info);
        }
        loop {
            let mut line = String::new();
            let read = (&mut lines).take(LONGEST_LINE).read_line(&mut line).map_err(ctl::lost)?;
            if read == 0 {
                return Err(Failure::fault("the server has ended"));
            }
            if let Some(event) = line.strip_prefix("event:") {
                name = event.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data:") {
                let value: Value = serde_json::from_str(data.trim()).unwrap_or_default();
                return news(&name, &value);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_are_told_apart() {
        for address in ["127.0.0.1:8080", "localhost:80", "http://127.0.0.1:8080/", "[::1]:9"] {
            assert!(is_address(address), "{address}");
        }
        for path in ["/tmp/ssd.ctl", "ssd.sock", "a:b", "/tmp/a:b.ctl"] {
            assert!(!is_address(path), "{path}");
        }
    }
}
