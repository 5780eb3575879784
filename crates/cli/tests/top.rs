//! Tests of `floatgate top` in a pseudo-terminal.
#![cfg(feature = "live")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};

use floatgate_serve::clock::Wall;
use floatgate_serve::monitor::frame::{Frame, Info};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::live::{Live, floatgate};

/// Pseudo-terminal, and the output that was sent to it.
struct Terminal {
    /// End of the user.
    outer: File,
    /// End of the program.
    inner: OwnedFd,
    seen: Vec<u8>,
}

impl Terminal {
    fn new() -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let outer = openpt(flags).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let inner = ioctl_tiocgptpeer(&outer, flags).unwrap();
        tcsetwinsize(&inner, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        Terminal { outer: outer.into(), inner, seen: Vec::new() }
    }

    /// Starts `floatgate top` for a server, in this directory.
    fn top(&self, directory: &TempDir, server: &str) -> Child {
        let end = || Stdio::from(self.inner.try_clone().unwrap());
        let mut command = floatgate(directory);
        command.args(["top", server]).stdin(end()).stdout(end()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Reads until this text has been sent, for at most half a minute.
    fn until(&mut self, text: &str) {
        let start = Wall::now();
        loop {
            let seen = String::from_utf8_lossy(&self.seen);
            if seen.contains(text) {
                return;
            }
            assert!(Wall::now().since(start) < Wall::from_us(30_000_000), "{text:?} was not sent: {seen}");
            let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
            if poll(&mut [PollFd::new(&self.outer, PollFlags::IN)], Some(&timeout)).unwrap() > 0 {
                let mut bytes = [0; 4096];
                let read = self.outer.read(&mut bytes).unwrap();
                self.seen.extend(&bytes[..read]);
            }
        }
    }

    fn modes(&self) -> Termios {
        tcgetattr(&self.inner).unwrap()
    }

    fn press(&mut self, keys: &[u8]) {
        self.outer.write_all(keys).unwrap();
    }
}

#[test]
fn top_shows_the_device_and_restores_the_terminal() {
    /// Reason for the end of the command.
    enum End {
        Keys(&'static str),
        Signal(Signal),
        Server,
    }
    let mut live = Live::new(&["tiny", "--precondition", "none", "--no-delay"]);
    live.client("qemu-io", &["-f", "raw", "-c", "write 0 1M", &live.uri()]);
    let quit = ["q", "\x1b", "\x03"].map(|keys| (End::Keys(keys), 0));
    let killed = [(End::Signal(Signal::TERM), 143), (End::Signal(Signal::HUP), 129)];
    for (end, status) in quit.into_iter().chain(killed).chain([(End::Server, 1)]) {
        let mut terminal = Terminal::new();
        let before = terminal.modes();
        let top = terminal.top(&live.directory, "ssd.ctl");
        // The screen shows the name of the device, the written sectors, and the block map, where most blocks are free.
        ["tiny", "2,048", "▓......."].iter().for_each(|text| terminal.until(text));
        assert!(!terminal.modes().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO), "keys are not read");
        terminal.press(b"p");
        terminal.until("PAUSED");
        match end {
            End::Keys(keys) => terminal.press(keys.as_bytes()),
            End::Signal(signal) => kill_process(Pid::from_child(&top), signal).unwrap(),
            End::Server => assert!(live.end(Signal::TERM).status.success()),
        }
        // At the end, it leaves the alternate screen and shows the cursor.
        ["\x1b[?1049l", "\x1b[?25h"].iter().for_each(|text| terminal.until(text));
        let output = top.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert_eq!(said.contains("the server has ended"), matches!(end, End::Server), "{said}");
        let after = terminal.modes();
        assert_eq!((after.local_modes, after.input_modes), (before.local_modes, before.input_modes), "{status}");
        assert_eq!((after.output_modes, after.control_modes), (before.output_modes, before.control_modes));
    }
}

#[test]
fn top_follows_a_dashboard_and_the_size_of_the_terminal() {
    let live = Live::new(&["tiny", "--precondition", "none", "--no-delay", "--dashboard"]);
    let page = live.welcome.split_whitespace().find(|word| word.starts_with("http://")).unwrap().trim_end_matches(',');
    let mut terminal = Terminal::new();
    let top = terminal.top(&live.directory, page);
    ["tiny", "│", "q quit"].iter().for_each(|text| terminal.until(text));
    terminal.seen.clear();
    tcsetwinsize(&terminal.inner, Winsize { ws_row: 12, ws_col: 50, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    // The last row has the keys.
    ["\x1b[2J", "\x1b[12;1H", "q quit"].iter().for_each(|text| terminal.until(text));
    terminal.press(b"q");
    assert!(top.wait_with_output().unwrap().status.success());
}

/// Text that clears a terminal and reverses the direction of the following text.
const EVIL: &str = "evil\x1b[2J\u{9b}1m\u{202e}\n";
/// Escaped form of [`EVIL`].
const SHOWN: &str = "evil\\u{1b}[2J\\u{9b}1m\\u{202e}\\n";

/// Sends a response to the next client of a fake server, and returns the connection.
fn answer(server: &UnixListener, answer: &Value) -> UnixStream {
    let (mut client, _) = server.accept().unwrap();
    BufReader::new(&client).read_line(&mut String::new()).unwrap();
    client.write_all(format!("{answer}\n").as_bytes()).unwrap();
    client
}

#[test]
fn texts_of_a_server_cannot_control_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let server = UnixListener::bind(directory.path().join("ssd.ctl")).unwrap();
    let addresses = vec![format!("unix:/tmp/{EVIL}.sock")];
    let info = Info { device: EVIL.into(), addresses, ..Info::default() };
    let mut frame = Frame { warnings: vec![EVIL.into()], fatal_error: Some(EVIL.into()), ..Frame::default() };
    frame.requests.entry(EVIL.into()).or_default().count = 1;
    let whole = json!({ "ok": true, "info": info, "frame": frame, "message": EVIL });
    let refusal = json!({ "ok": false, "error": EVIL });
    for (words, said) in [("status", &whole), ("clients", &whole), ("power-cut", &whole), ("power-cut", &refusal)] {
        let mut command = floatgate(&directory);
        command.args(["ctl", "--socket", "ssd.ctl", words]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        answer(&server, said);
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(printed.contains(SHOWN), "{words}: {printed:?}");
        assert!(!printed.contains(|c: char| c.is_control() && c != '\n'), "{words}: {printed:?}");
    }
    let mut terminal = Terminal::new();
    let mut top = terminal.top(&directory, "ssd.ctl");
    let mut client = answer(&server, &json!({ "ok": true, "info": info }));
    client.write_all(format!("{}\n", json!({ "frame": frame })).as_bytes()).unwrap();
    terminal.until(SHOWN);
    drop(client);
    assert_eq!(top.wait().unwrap().code(), Some(1));
}
