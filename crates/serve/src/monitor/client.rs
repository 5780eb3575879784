//! The other end of the control socket, for programs: `floatgate ctl` and `floatgate top`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::control::Command;

/// Bytes of an answer at most; a picture of the blocks is some ten thousand.
const LONGEST_ANSWER: u64 = 4 << 20;

/// The end of the names of control sockets.
pub const SUFFIX: &str = "ctl";

/// Prefix of the name of a control socket without an NBD socket next to it. The process ID of the server follows.
pub const PREFIX: &str = "floatgate-";

/// Who asks a server.
pub struct Asker {
    stream: BufReader<UnixStream>,
}

impl Asker {
    /// Connects to a control socket, or to the one beside an NBD socket.
    pub fn connect(path: &Path) -> io::Result<Asker> {
        let stream = UnixStream::connect(beside(path))?;
        Ok(Asker { stream: BufReader::new(stream) })
    }

    /// Gives up waiting for an answer after so long; `None` for never.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(patience)
    }

    /// Asks, and returns the answer.
    pub fn ask(&mut self, command: &Command) -> io::Result<Value> {
        let text = serde_json::to_string(command)? + "\n";
        self.stream.get_mut().write_all(text.as_bytes())?;
        self.hear()
    }

    /// The next line that the server says.
    pub fn hear(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        (&mut self.stream).take(LONGEST_ANSWER).read_line(&mut line)?;
        match line.ends_with('\n') {
            true => Ok(serde_json::from_str(&line)?),
            false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server has ended")),
        }
    }
}

/// The control socket that belongs to a path, which may be that of the NBD socket.
fn beside(path: &Path) -> PathBuf {
    let control = path.with_extension(SUFFIX);
    if control.exists() { control } else { path.to_owned() }
}

/// Where control sockets are when nobody says where.
pub fn usual_places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(".")];
    places.extend(std::env::var_os("XDG_RUNTIME_DIR").filter(|place| !place.is_empty()).map(PathBuf::from));
    places.push(std::env::temp_dir());
    places
}

/// Removes the control sockets that servers of this user have left in `place` because they were killed: nobody listens
/// there, and their process is gone.
pub fn remove_dead(place: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for path in std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)?.strip_suffix('.'));
        let process = process.and_then(|text| Pid::from_raw(text.parse().ok()?));
        let is_gone = |process| matches!(test_kill_process(process), Err(Errno::SRCH));
        let is_mine =
            || std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == me);
        // One that is bound does not listen yet for a moment, so that its process is asked for as well.
        let refuses =
            || UnixStream::connect(&path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if process.is_some_and(is_gone) && is_mine() && refuses() {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Control sockets of this user in these places, at which a server listens.
pub fn running(places: &[PathBuf]) -> Vec<PathBuf> {
    /// Files of a directory that are looked at.
    const MOST: usize = 10_000;
    let me = rustix::process::geteuid().as_raw();
    let is_mine = |path: &PathBuf| {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == me)
    };
    let mut found = Vec::new();
    for entries in places.iter().filter_map(|place| std::fs::read_dir(place).ok()) {
        let paths = entries.take(MOST).flatten().map(|entry| entry.path());
        let control = paths.filter(|path| path.extension().is_some_and(|extension| extension == SUFFIX));
        found.extend(control.filter(is_mine).filter(|path| UnixStream::connect(path).is_ok()));
    }
    let whole = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    found.sort_by_key(whole);
    found.dedup_by_key(|path| whole(path));
    found
}
