//! Readiness signal of a server: a line for a shell (`--ready-fd`), and messages for a service manager.
//!
//! Source: systemd, sd_notify(3): a datagram of lines `KEY=VALUE` to the Unix socket that `NOTIFY_SOCKET` names, a path
//! or an abstract name that begins with `@`.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use floatgate_serve::clock::Wall;
use rustix::fs::OFlags;

use crate::failure::Failure;

/// Shortest time between two messages about progress.
const SHORTEST: Wall = Wall(1_000_000_000);

/// Receivers of the readiness signal.
pub struct Readiness {
    shell: Cell<Option<File>>,
    manager: Option<(UnixDatagram, SocketAddr)>,
    /// Time and text of the last status message.
    reported: RefCell<(Wall, String)>,
}

impl Readiness {
    /// Opens the file descriptor for the shell, if there is one, and the socket of the service manager.
    pub fn open(fd: Option<u32>) -> Result<Readiness, Failure> {
        let opened = fd.map(|fd| take(fd).map_err(|error| Failure::mistake(format!("--ready-fd {fd}: {error}"))));
        let manager = std::env::var_os("NOTIFY_SOCKET").and_then(|name| connect(&name).ok());
        Ok(Readiness { shell: Cell::new(opened.transpose()?), manager, reported: RefCell::default() })
    }

    /// Sends a message to the service manager. Failures are ignored.
    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.manager {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }

    /// Reports the progress of preparation to the service manager. If only the share changes, it is reported at most
    /// once per second.
    pub fn status(&self, what: &str, share: Option<f64>) {
        if self.manager.is_none() {
            return;
        }
        let mut reported = self.reported.borrow_mut();
        let now = Wall::now();
        if reported.1 != what || now.since(reported.0) >= SHORTEST {
            *reported = (now, what.to_owned());
            let share = share.map(|share| format!(", {:.0} %", share * 100.0)).unwrap_or_default();
            self.send(&format!("STATUS={what}{share}"));
        }
    }

    /// Reports that clients are served from now on.
    pub fn ready(&self, status: &str) {
        if let Some(mut file) = self.shell.take() {
            // A write error means that the shell no longer waits.
            let _ = file.write_all(b"READY=1\n");
        }
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Reports that the server ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=ending: outstanding requests complete");
    }
}

/// Takes over an inherited file descriptor. Child processes do not inherit it, so that its other end sees it closed.
fn take(fd: u32) -> io::Result<File> {
    let not_open =
        || io::Error::other("the descriptor is not open; redirect it in the shell, as in `--ready-fd 3 3>FIFO`");
    let flags = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).map_err(|_| not_open())?;
    let flags = flags.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    let flags = OFlags::from_bits_retain(flags.unwrap_or_default());
    // Descriptors of the program itself are closed on exec.
    if flags.contains(OFlags::CLOEXEC) {
        return Err(not_open());
    }
    if flags & OFlags::RWMODE == OFlags::RDONLY {
        return Err(io::Error::other("the descriptor is open for reading only"));
    }
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().append(true).custom_flags(nonblocking).open(format!("/proc/self/fd/{fd}"))?;
    // SAFETY: the descriptor is open and inherited, so no other code of this process owns it.
    #[expect(unsafe_code, reason = "an inherited descriptor has no safe type")]
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(file)
}

fn connect(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}
