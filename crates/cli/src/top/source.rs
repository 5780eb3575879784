//! Where the figures come from: the control socket of a server, or its dashboard.

use std::fmt::Display;
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
use crate::text::harmless;

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
    /// Begins to read. A control socket that nobody listens at is told of at once, a dashboard as the first news.
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
fn parsed<T: for<'de> Deserialize<'de>>(value: Value) -> Result<Box<T>, Failure> {
    let told = |error| Failure::fault(format!("the server is of another version of Floatgate: {error}"));
    T::deserialize(value).map(Box::new).map_err(told)
}

fn news(name: &str, value: Value) -> Result<News, Failure> {
    match name {
        // It has numbers only, and many of them.
        "blocks" => parsed(value).map(News::Blocks),
        "frame" => parsed(harmless(value)).map(News::Frame),
        _ => parsed(harmless(value)).map(News::Info),
    }
}

fn follow_socket(path: Option<&Path>, sender: SyncSender<News>) -> Result<(), Failure> {
    let mut asker = ctl::connect(path)?;
    let mut has_asked = false;
    read(sender, move || {
        let mut line = if std::mem::replace(&mut has_asked, true) {
            asker.hear().map_err(ctl::lost)?
        } else {
            asker.set_patience(Some(PATIENCE)).map_err(ctl::lost)?;
            asker.ask(&Command::Watch { blocks: true }).map_err(ctl::lost)?
        };
        let name = ["blocks", "frame"].into_iter().find(|name| line.get(name).is_some()).unwrap_or("info");
        news(name, line[name].take())
    })
}

fn follow_page(address: &str, sender: SyncSender<News>) -> Result<(), Failure> {
    let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut page = Page::of(address);
    read(sender, move || page.next())
}

/// A dashboard, as a browser reads it.
struct Page {
    address: String,
    agent: ureq::Agent,
    /// What it says, from when it has answered on.
    lines: Option<BufReader<ureq::BodyReader<'static>>>,
    /// Of the event that is being read.
    name: String,
}

impl Page {
    fn of(address: String) -> Page {
        let agent = ureq::Agent::config_builder().timeout_connect(Some(PATIENCE)).proxy(None).build().into();
        Page { address, agent, lines: None, name: String::new() }
    }

    /// Asks for a part of it.
    fn get(&self, path: &str) -> Result<ureq::Body, Failure> {
        let told = |error| Failure::fault(format!("no dashboard answers at {}: {error}", self.address));
        let response = self.agent.get(format!("http://{}{path}", self.address)).call().map_err(told)?;
        Ok(response.into_body())
    }

    /// What is served, and then what comes of it.
    fn next(&mut self) -> Result<News, Failure> {
        let Some(lines) = &mut self.lines else {
            let info = self.info()?;
            self.lines = Some(BufReader::new(self.get("/api/events")?.into_reader()));
            return Ok(info);
        };
        loop {
            let mut line = String::new();
            let read = lines.take(LONGEST_LINE).read_line(&mut line).map_err(ctl::lost)?;
            if read == 0 {
                return Err(Failure::fault("the server has ended"));
            }
            if let Some(event) = line.strip_prefix("event:") {
                self.name = event.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data:") {
                let value: Value = serde_json::from_str(data.trim()).unwrap_or_default();
                return news(&self.name, value);
            }
        }
    }

    fn info(&self) -> Result<News, Failure> {
        let told =
            |error: &dyn Display| Failure::fault(format!("{} is no dashboard of Floatgate: {error}", self.address));
        let status = self.get("/api/status")?.into_with_config().limit(LONGEST_LINE).read_to_string();
        let mut status: Value =
            serde_json::from_str(&status.map_err(|error| told(&error))?).map_err(|error| told(&error))?;
        news("info", status["info"].take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn addresses_and_paths_are_told_apart() {
        for address in ["127.0.0.1:8080", "localhost:80", "http://127.0.0.1:8080/", "[::1]:9"] {
            assert!(is_address(address), "{address}");
        }
        for path in ["/tmp/ssd.ctl", "ssd.sock", "a:b", "/tmp/a:b.ctl"] {
            assert!(!is_address(path), "{path}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_yet_is_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = || Source::open(Some(&address)).unwrap_or_else(|_| panic!("it is read in a thread"));
        let first = |source: &Source| std::iter::repeat_with(|| source.next()).flatten().next();
        let source = open();
        let (mut asks, _) = listener.accept().unwrap();
        assert!(source.next().is_none(), "it has not been answered");
        asks.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        let told = |source| {
            let Some(News::Ended(Failure::Fault(error))) = first(source) else { panic!("no dashboard is there") };
            error.to_string()
        };
        let silent = format!("no dashboard answers at {address}: ");
        assert!(told(&source).starts_with(&silent), "another page than ours");
        drop(listener);
        assert!(told(&open()).starts_with(&silent), "nobody listens");
    }
}
