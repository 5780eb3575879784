//! Progress of the preparation of a live device: filling, recovery, and the self-test.
//!
//! The monitor and a service manager get every report. Standard error shows a bar, or occasional lines if it is not a
//! terminal.

use std::cell::RefCell;
use std::io::IsTerminal;

use floatgate_core::simulation::Progress;
use floatgate_run::frontend::Frontend;
use floatgate_run::output::Wait;
use floatgate_serve::clock::Wall;
use floatgate_serve::monitor::Monitor;
use floatgate_workload::file::Stop;

use super::readiness::Readiness;
use crate::failure::say;
use crate::run::interrupt::Interrupt;
use crate::run::progress::Terminal;

/// Shortest time between two lines.
const SHORTEST: Wall = Wall(1_000_000_000);

/// Longest time between two lines.
const LONGEST: Wall = Wall(10_000_000_000);

/// Smallest increase of the share between two lines, unless [`LONGEST`] has passed.
const STEP: f64 = 0.1;

/// Frontend of the preparation of a server.
pub struct Preparation<'a> {
    terminal: Terminal,
    monitor: &'a Monitor,
    readiness: &'a Readiness,
    /// Description of preconditioning.
    filling: String,
    part: RefCell<Part>,
}

/// Current part of the work.
struct Part {
    what: String,
    lines: Option<Lines>,
}

/// Limits the lines about progress.
struct Lines {
    began: Wall,
    /// Time and share of the last line.
    last: (Wall, f64),
    has_line: bool,
}

impl Lines {
    fn new(now: Wall) -> Lines {
        Lines { began: now, last: (now, 0.0), has_line: false }
    }

    /// Returns `true` if a line about the progress is due at `now`.
    fn is_due(&mut self, now: Wall, share: f64) -> bool {
        let waited = now.since(self.last.0);
        let is_due = waited >= LONGEST || (waited >= SHORTEST && share >= self.last.1 + STEP);
        if is_due {
            (self.last, self.has_line) = ((now, share), true);
        }
        is_due
    }
}

impl Preparation<'_> {
    /// Creates a frontend that reports to the terminal, `monitor` and `readiness`. `requested` is the requested state
    /// of the device.
    pub fn new<'a>(
        requested: &str,
        monitor: &'a Monitor,
        readiness: &'a Readiness,
        interrupt: Interrupt,
    ) -> Preparation<'a> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "=.-".contains(c);
        let filling = match requested {
            "fill" => "filling the device".to_owned(),
            name if name.chars().all(is_name) => format!("preconditioning the device ({name})"),
            _ => "preconditioning the device".to_owned(),
        };
        let part = RefCell::new(Part { what: String::new(), lines: None });
        Preparation { terminal: Terminal::new(interrupt), monitor, readiness, filling, part }
    }

    /// Reports the current step, and its progress from 0 to 1 if that is known.
    pub fn report(&self, what: &str, share: Option<f64>) {
        self.monitor.prepares(what, share);
        self.readiness.status(what, share);
    }
}

impl Frontend for Preparation<'_> {
    fn begin(&self, what: &'static str) {
        let name = if what == "preconditioning" { self.filling.clone() } else { format!("{what} the state") };
        self.report(&name, Some(0.0));
        let lines = (!std::io::stderr().is_terminal()).then(|| Lines::new(Wall::now()));
        *self.part.borrow_mut() = Part { what: name, lines };
        self.terminal.begin(what);
    }

    fn share(&self, share: f64) {
        self.terminal.share(share);
        let mut part = self.part.borrow_mut();
        self.report(&part.what, Some(share));
        let Part { what, lines } = &mut *part;
        if lines.as_mut().is_some_and(|lines| lines.is_due(Wall::now(), share)) {
            say(&format!("{what}: {:.0} %", share * 100.0));
        }
    }

    fn progress(&self, progress: &Progress, share: Option<f64>) {
        self.terminal.progress(progress, share);
    }

    fn end(&self) {
        self.terminal.end();
        let part = self.part.borrow();
        if let Some(lines) = part.lines.as_ref().filter(|lines| lines.has_line && !self.wants_end()) {
            say(&format!("{}: done in {:.0} s", part.what, Wall::now().since(lines.began).as_us() / 1e6));
        }
    }

    fn warn(&self, text: &str) {
        self.terminal.warn(text);
    }

    fn wants_end(&self) -> bool {
        self.terminal.wants_end()
    }

    fn stop(&self) -> Stop {
        self.terminal.stop()
    }

    fn wait(&self) -> Wait {
        self.terminal.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sparse() {
        let due = |seconds: u64| {
            let mut lines = Lines::new(Wall(0));
            let at = |step: u64| (Wall(step * seconds * 1_000_000), step as f64 / 1000.0);
            (1..=1000).filter(|step| lines.is_due(at(*step).0, at(*step).1)).count()
        };
        assert_eq!(due(0), 0, "no lines about work that takes no time");
        assert_eq!(due(5), 5, "at most one line per second");
        assert!((9..=10).contains(&due(50)), "a line for each tenth: {}", due(50));
        assert!((58..=60).contains(&due(600)), "a line every ten seconds: {}", due(600));
    }
}
