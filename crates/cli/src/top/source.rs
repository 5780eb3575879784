//! Data sources of `floatgate top`: the control socket of a server, or its dashboard.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use floatgate_serve::monitor::blocks::BlockMap;
use floatgate_serve::monitor::commands::Command;
use floatgate_serve::monitor::frame::{Frame, Info};
use serde::Deserialize;
use serde_json::Value;

use crate::ctl;
use crate::failure::Failure;
use floatgate_run::text::harmless;

/// Time without data after which the server counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum length of an event in bytes.
const LONGEST_LINE: u64 = 4 << 20;

/// Maximum length of the head of a response in bytes.
const LONGEST_HEAD: u64 = 16 << 10;

/// Data from a server.
pub enum News {
    /// Properties of the server.
    Info(Box<Info>),
    /// Current state.
    Frame(Box<Frame>),
    /// Block map.
    Blocks(Box<BlockMap>),
    /// End of the connection.
    Ended(Failure),
}

/// Connection to a server, which a separate thread reads.
pub struct Source(Receiver<News>);

impl Source {
    /// Starts to read. Fails at once if no server listens on a control socket. For a dashboard, that error is the first
    /// item of [`Source::next`].
    pub fn open(server: Option<&str>) -> Result<Source, Failure> {
        let (sender, receiver) = sync_channel(64);
        match server {
            Some(address) if is_address(address) => follow_page(address, sender)?,
            other => follow_socket(other.map(Path::new), sender)?,
        }
        Ok(Source(receiver))
    }

    /// Returns the next data, if some has arrived.
    pub fn next(&self) -> Option<News> {
        match self.0.try_recv() {
            Ok(news) => Some(news),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(News::Ended(Failure::fault("the server has ended"))),
        }
    }
}

/// Returns `true` if the text is `HOST:PORT` and not a path.
fn is_address(text: &str) -> bool {
    let port = text.rsplit_once(':').map(|(_, port)| port.trim_end_matches('/'));
    !Path::new(text).exists() && port.is_some_and(|port| port.parse::<u16>().is_ok())
}

/// Starts a thread that sends the results of `next`, until the receiver is dropped or the connection ends.
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
    spawned.map(drop).map_err(|error| Failure::fault(format!("cannot start a thread: {error}")))
}

/// Parses a value from a server. Fails if the server has another version.
fn parsed<T: for<'de> Deserialize<'de>>(value: Value) -> Result<Box<T>, Failure> {
    let reported = |error| Failure::fault(format!("the server runs another version of Floatgate: {error}"));
    T::deserialize(value).map(Box::new).map_err(reported)
}

fn news(name: &str, value: Value) -> Result<News, Failure> {
    match name {
        // A block map has no text to escape, and many numbers.
        "blocks" => parsed(value).map(News::Blocks),
        "frame" => parsed(harmless(value)).map(News::Frame),
        _ => parsed(harmless(value)).map(News::Info),
    }
}

fn follow_socket(path: Option<&Path>, sender: SyncSender<News>) -> Result<(), Failure> {
    let mut requester = ctl::connect(path)?;
    let mut has_asked = false;
    read(sender, move || {
        let mut line = if std::mem::replace(&mut has_asked, true) {
            requester.receive().map_err(ctl::lost)?
        } else {
            requester.set_patience(Some(PATIENCE)).map_err(ctl::lost)?;
            requester.ask(&Command::Watch { blocks: true }).map_err(ctl::lost)?
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

/// Client of a dashboard, which reads the same interface as the web page.
struct Page {
    address: String,
    /// Event stream. `None` before the first request.
    lines: Option<BufReader<TcpStream>>,
    /// Name of the event that is being read.
    name: String,
}

impl Page {
    fn of(address: String) -> Page {
        Page { address, lines: None, name: String::new() }
    }

    /// Requests a path, and returns the body of the response.
    fn get(&self, path: &str) -> Result<BufReader<TcpStream>, Failure> {
        let reported = |error| Failure::fault(format!("cannot reach a dashboard at {}: {error}", self.address));
        connected(&self.address).and_then(|stream| requested(stream, &self.address, path)).map_err(reported)
    }

    /// Returns the properties of the server first, and then its events.
    fn next(&mut self) -> Result<News, Failure> {
        let Some(lines) = &mut self.lines else {
            let info = self.info()?;
            self.lines = Some(self.get("/api/events")?);
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
        let reported =
            |error: &dyn Display| Failure::fault(format!("{} is not a Floatgate dashboard: {error}", self.address));
        let mut status = String::new();
        self.get("/api/status")?.take(LONGEST_LINE).read_to_string(&mut status).map_err(|error| reported(&error))?;
        let mut status: Value = serde_json::from_str(&status).map_err(|error| reported(&error))?;
        news("info", status["info"].take())
    }
}

/// Connects to `HOST:PORT`. Tries all addresses of the host.
fn connected(address: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("the host has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Sends a request, and returns the body of the response. In HTTP/1.0 it ends with the connection, so there is no
/// encoding to undo.
fn requested(mut stream: TcpStream, host: &str, path: &str) -> io::Result<BufReader<TcpStream>> {
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let mut body = BufReader::new(stream);
    let mut head = (&mut body).take(LONGEST_HEAD).lines();
    let status = head.next().transpose()?.unwrap_or_default();
    let status = status.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse::<u16>().ok());
    match status {
        Some(200) => {}
        Some(other) => return Err(io::Error::other(format!("the response has the status {other}"))),
        None => return Err(io::Error::other("the response is not HTTP")),
    }
    for line in head {
        if line?.is_empty() {
            return Ok(body);
        }
    }
    Err(io::Error::other(format!("the head of the response has no end within {LONGEST_HEAD} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn addresses_and_paths_are_distinguished() {
        for address in ["127.0.0.1:8080", "localhost:80", "http://127.0.0.1:8080/", "[::1]:9"] {
            assert!(is_address(address), "{address}");
        }
        for path in ["/tmp/ssd.ctl", "ssd.sock", "a:b", "/tmp/a:b.ctl"] {
            assert!(!is_address(path), "{path}");
        }
    }

    #[test]
    fn opening_a_dashboard_does_not_wait_for_its_response() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = || Source::open(Some(&address)).unwrap_or_else(|_| panic!("opening failed"));
        let first = |source: &Source| std::iter::repeat_with(|| source.next()).flatten().next();
        let source = open();
        let (mut asks, _) = listener.accept().unwrap();
        assert!(source.next().is_none(), "data before the response");
        asks.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        let reported = |source| {
            let Some(News::Ended(Failure::Fault(error))) = first(source) else { panic!("not a fault") };
            error.to_string()
        };
        let silent = format!("cannot reach a dashboard at {address}: ");
        assert!(reported(&source).starts_with(&silent), "the page is not a dashboard");
        drop(listener);
        assert!(reported(&open()).starts_with(&silent), "no server listens");
    }
}
