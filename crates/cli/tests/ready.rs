//! Tests of a server before it is ready: its progress, and its readiness signal.
#![cfg(feature = "live")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::common::live::floatgate;

/// Arguments of a server whose device takes minutes to fill.
const SLOW: [&str; 5] =
    ["serve", "bench-32g", "--precondition", "rw=randwrite bs=4k number_ios=1000000000", "--no-delay"];

fn ends_well(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Returns the output of `floatgate ctl status` for a server that is still preparing.
fn status(directory: &TempDir) -> String {
    let output = floatgate(directory).args(["ctl", "--socket", "a.sock", "status"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn progress_is_reported_while_a_device_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = floatgate(&directory);
    command.args(SLOW).args(["--nbd", "unix:a.sock", "--dashboard"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.next().unwrap();
    assert!(address.starts_with("dashboard at http://127.0.0.1:"), "{address}");
    let first = lines.next().unwrap();
    assert!(first.starts_with("preconditioning the device: ") && first.ends_with(" %"), "{first}");
    let said = status(&directory);
    assert!(said.contains("not served yet: preconditioning the device, "), "{said}");
    let refused = floatgate(&directory).args(["ctl", "--socket", "a.sock", "speed", "2"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not served yet"), "{refused:?}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "the signal must end filling");
}

#[test]
fn a_shell_waits_until_clients_are_served() {
    for shell in ["sh", "bash"] {
        let directory = tempfile::tempdir().unwrap();
        // docs/live.md has a similar script.
        let script = "mkfifo ready\n\
            floatgate serve tiny --nbd unix:a.sock --no-delay --ready-fd 3 3>ready >result.txt &\n\
            read line <ready && rm ready\n\
            echo \"$line\"\n\
            qemu-io -f raw -c 'write 0 4k' 'nbd+unix:///?socket=a.sock' >/dev/null && echo written\n\
            kill $! && wait $! && echo ended";
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_floatgate"));
        let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let output =
            Command::new(shell).args(["-c", script]).current_dir(&directory).env("PATH", path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, "READY=1\nwritten\nended\n", "{shell}: {output:?}");
    }
}

#[test]
fn the_ready_descriptor_is_checked_first_and_closed_after_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let script = |redirect: &str| {
        let binary = env!("CARGO_BIN_EXE_floatgate");
        format!("exec {binary} serve tiny --nbd unix:a.sock --no-delay --ready-fd 7 {redirect}")
    };
    let run = |redirect: &str| Command::new("sh").args(["-c", &script(redirect)]).current_dir(&directory).output();
    for (redirect, said) in [("", "is not open"), ("7</dev/null", "for reading only")] {
        let output = run(redirect).unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(said), "{redirect}: {text}");
    }
    let mut child = Command::new("sh")
        .args(["-c", &script("7>&1 >result.txt")])
        .current_dir(&directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "READY=1\n", "the pipe must end while the server runs");
    ends_well(child);
}

#[test]
fn the_addresses_are_printed_before_the_readiness_line() {
    let directory = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_floatgate");
    let script = format!("exec {binary} serve tiny --nbd unix:a.sock --no-delay --ready-fd 7 7>&1 2>&1 >result.txt");
    let mut child =
        Command::new("sh").args(["-c", &script]).current_dir(&directory).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let before: Vec<String> = lines.take_while(|line| line != "READY=1").collect();
    ends_well(child);
    assert!(before.iter().any(|line| line.starts_with("Ctrl-C ends")), "{before:?}");
}

#[test]
fn a_service_manager_is_notified() {
    let directory = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut command = floatgate(&directory);
    command.args(["serve", "tiny", "--nbd", "unix:a.sock", "--no-delay"]);
    command.env("NOTIFY_SOCKET", directory.path().join("notify")).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let mut message = [0; 256];
    let mut next = || {
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    assert_eq!(next(), "STATUS=filling the device, 0 %");
    let ready = std::iter::repeat_with(&mut next).find(|text| !text.starts_with("STATUS=")).unwrap();
    assert_eq!(ready, "READY=1\nSTATUS=serving tiny");
    ends_well(child);
    assert!(next().starts_with("STOPPING=1\nSTATUS="));
}
