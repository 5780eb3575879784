//! A server that runs, and the clients that people have.
#![allow(dead_code)] // Each test file is a crate of its own and uses a part of this.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running server, ended when it goes.
pub struct Live {
    pub directory: TempDir,
    child: Option<Child>,
    _errors: BufReader<ChildStderr>,
    /// What it said when it was ready.
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
            assert_ne!(errors.read_line(&mut welcome).unwrap(), 0, "it ended: {welcome}");
        }
        Live { directory, child: Some(child), _errors: errors, welcome }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.path("ssd.sock").display())
    }

    /// What a client prints that ends well.
    pub fn client(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(name).args(arguments).current_dir(self.directory.path()).output();
        let output = output.unwrap_or_else(|error| panic!("{name}: {error}; see scripts/prerequisites.sh"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name} {arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Bytes of memory that it had at most.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.as_ref().unwrap().id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Ends it by a signal; returns how.
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

/// The program, called there.
pub fn floatgate(directory: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.current_dir(directory.path());
    command
}
