//! Test bench for a running server and common NBD clients.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Running server, which is killed when it is dropped.
pub struct Live {
    pub directory: TempDir,
    child: Option<Child>,
    _errors: BufReader<ChildStderr>,
    /// Text that the server printed until it was ready.
    pub welcome: String,
}

impl Live {
    pub fn new(arguments: &[&str]) -> Live {
        let directory = tempfile::tempdir().unwrap();
        let mut command = floatgate(&directory);
        command.arg("serve").args(arguments).args(["--nbd", "unix:ssd.sock"]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut welcome = String::new();
        while !welcome.contains("Ctrl-C ends") {
            assert_ne!(errors.read_line(&mut welcome).unwrap(), 0, "the server ended: {welcome}");
        }
        Live { directory, child: Some(child), _errors: errors, welcome }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.path("ssd.sock").display())
    }

    /// Runs a client, which must succeed, and returns its output.
    pub fn client(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(name).args(arguments).current_dir(self.directory.path()).output();
        let output = output.unwrap_or_else(|error| panic!("{name}: {error}; see scripts/prerequisites.sh"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name} {arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Returns the peak memory of the server in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.as_ref().unwrap().id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Ends the server with a signal, and returns its output.
    pub fn end(&mut self, signal: Signal) -> Output {
        let child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait_with_output().unwrap()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the program as a command in this directory.
pub fn floatgate(directory: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.current_dir(directory.path());
    command
}
