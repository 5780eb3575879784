//! Progress bar on a terminal.

use std::cell::RefCell;
use std::fmt::Write;
use std::time::Duration;

use floatgate_core::simulation::Progress;
use floatgate_run::frontend::Frontend;
use floatgate_run::output::Wait;
use floatgate_run::text::short;
use floatgate_workload::file::Stop;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::interrupt::Interrupt;
use crate::failure::say;

/// Number of steps of a bar.
const STEPS: u64 = 1000;

/// Progress bar on standard error. Hidden if standard error is not a terminal.
#[derive(Debug)]
pub struct Reporter {
    bar: ProgressBar,
}

impl Reporter {
    /// Creates a bar for a part of the work.
    pub fn new(what: &'static str) -> Reporter {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr()).with_prefix(what);
        let template = "{prefix} [{bar:30}] {percent:>3} % {msg} {left}";
        // An invalid template is replaced by the default one, because a bar must not fail a run.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> ").with_key("left", |state: &ProgressState, text: &mut dyn Write| {
            // Drawing a bar has no way to report an error.
            let _ = text.write_str(&left(state.pos(), state.eta()));
        }));
        Reporter { bar }
    }

    /// Sets the progress, from 0 to 1.
    pub fn share(&self, share: f64) {
        self.bar.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    /// Shows the progress of a run, and its share of the whole if that is known.
    fn progress(&self, progress: &Progress, share: Option<f64>) {
        if self.bar.is_hidden() {
            return;
        }
        let seconds = self.bar.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        let rate = progress.completed as f64 / seconds;
        self.bar.set_message(format!("{:.3} s simulated, {} requests/s,", progress.now.as_s(), short(rate)));
        match share {
            Some(share) => self.share(share),
            None => self.bar.tick(),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Returns the estimated time left, or an empty text before the first step.
fn left(position: u64, estimate: Duration) -> String {
    if position == 0 { String::new() } else { format!("{:#} left", HumanDuration(estimate)) }
}

/// Frontend for a user at a terminal.
#[derive(Debug)]
pub struct Terminal {
    interrupt: Interrupt,
    reporter: RefCell<Option<Reporter>>,
}

impl Terminal {
    /// Creates the frontend. `interrupt` ends the run.
    pub fn new(interrupt: Interrupt) -> Terminal {
        Terminal { interrupt, reporter: RefCell::default() }
    }

    /// Returns the interruption that ends the run.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }
}

/// Frontend of one of several parallel runs. It has no progress bar, and names the seed in warnings.
#[derive(Debug)]
pub struct Quiet {
    /// Ends the run.
    pub interrupt: Interrupt,
    /// Seed of the run.
    pub seed: u64,
}

impl Frontend for Quiet {
    fn begin(&self, _: &'static str) {}

    fn share(&self, _: f64) {}

    fn progress(&self, _: &Progress, _: Option<f64>) {}

    fn end(&self) {}

    fn warn(&self, text: &str) {
        say(&format!("warning: seed {}: {text}", self.seed));
    }

    fn wants_end(&self) -> bool {
        self.interrupt.requested()
    }

    fn is_overdue(&self) -> bool {
        self.interrupt.is_overdue()
    }

    fn stop(&self) -> Stop {
        self.interrupt.stop()
    }

    fn wait(&self) -> Wait {
        self.interrupt.wait()
    }
}

impl Frontend for Terminal {
    fn begin(&self, what: &'static str) {
        *self.reporter.borrow_mut() = Some(Reporter::new(what));
    }

    fn share(&self, share: f64) {
        if let Some(reporter) = &*self.reporter.borrow() {
            reporter.share(share);
        }
    }

    fn progress(&self, progress: &Progress, share: Option<f64>) {
        if let Some(reporter) = &*self.reporter.borrow() {
            reporter.progress(progress, share);
        }
    }

    fn end(&self) {
        if let Some(reporter) = self.reporter.take() {
            reporter.finish();
        }
    }

    fn warn(&self, text: &str) {
        say(&format!("warning: {text}"));
    }

    fn wants_end(&self) -> bool {
        self.interrupt.requested()
    }

    fn is_overdue(&self) -> bool {
        self.interrupt.is_overdue()
    }

    fn stop(&self) -> Stop {
        self.interrupt.stop()
    }

    fn wait(&self) -> Wait {
        self.interrupt.wait()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::left;

    #[test]
    fn time_left_is_empty_without_an_estimate() {
        assert_eq!(left(0, Duration::ZERO), "");
        assert_eq!(left(1, Duration::from_secs(6)), "6s left");
    }
}
