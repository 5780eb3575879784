//! Client of the control socket, used by `floatgate ctl` and `floatgate top`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::commands::Command;

/// Maximum length of a response in bytes. A block map takes some ten thousand.
const LONGEST_ANSWER: u64 = 4 << 20;

/// File extension of control sockets.
pub const SUFFIX: &str = "ctl";

/// Prefix of the name of a control socket without an NBD socket next to it. The process ID of the server follows.
pub const PREFIX: &str = "floatgate-";

/// A connection to a server's control socket.
pub struct Requester {
    stream: BufReader<UnixStream>,
}

impl Requester {
    /// Connects to a control socket, or to the control socket that belongs to an NBD socket.
    pub fn connect(path: &Path) -> io::Result<Requester> {
        let stream = UnixStream::connect(beside(path))?;
        Ok(Requester { stream: BufReader::new(stream) })
    }

    /// Sets the time after which waiting for a response fails. `None` waits forever.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(patience)
    }

    /// Sends a command, and returns the response.
    pub fn ask(&mut self, command: &Command) -> io::Result<Value> {
        let text = serde_json::to_string(command)? + "\n";
        self.stream.get_mut().write_all(text.as_bytes())?;
        self.receive()
    }

    /// Returns the next line from the server.
    pub fn receive(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        (&mut self.stream).take(LONGEST_ANSWER).read_line(&mut line)?;
        if line.ends_with('\n') {
            Ok(serde_json::from_str(&line)?)
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server has ended"))
        }
    }
}

/// Returns the control socket that belongs to a path. The path may be that of an NBD socket.
fn beside(path: &Path) -> PathBuf {
    let control = path.with_extension(SUFFIX);
    if control.exists() { control } else { path.to_owned() }
}

/// Returns the directories to search for control sockets by default.
pub fn usual_places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(".")];
    places.extend(std::env::var_os("XDG_RUNTIME_DIR").filter(|place| !place.is_empty()).map(PathBuf::from));
    places.push(std::env::temp_dir());
    places
}

/// Removes the control sockets in `place` that killed servers of this user have left: no process accepts connections
/// there, and the server's process no longer exists.
pub fn remove_dead(place: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for path in std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)?.strip_suffix('.'));
        let process = process.and_then(|text| Pid::from_raw(text.parse().ok()?));
        let is_gone = |process| matches!(test_kill_process(process), Err(Errno::SRCH));
        let is_mine =
            || std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == me);
        // A socket refuses connections for a moment between bind and listen. Therefore its process is checked as well.
        let refuses =
            || UnixStream::connect(&path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if process.is_some_and(is_gone) && is_mine() && refuses() {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns this user's control sockets in `places` that accept connections.
pub fn running(places: &[PathBuf]) -> Vec<PathBuf> {
    /// Maximum number of directory entries to check.
    const MAX_ENTRIES: usize = 10_000;
    let me = rustix::process::geteuid().as_raw();
    let is_mine = |path: &PathBuf| {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == me)
    };
    let mut found = Vec::new();
    for entries in places.iter().filter_map(|place| std::fs::read_dir(place).ok()) {
        let paths = entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path());
        let control = paths.filter(|path| path.extension().is_some_and(|extension| extension == SUFFIX));
        found.extend(control.filter(is_mine).filter(|path| UnixStream::connect(path).is_ok()));
    }
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    found.sort_by_key(whole);
    found.dedup_by_key(|path| whole(path));
    found
}
