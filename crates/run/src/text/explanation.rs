//! Text of the explanation of a request.

use std::path::Path;

use floatgate_core::results::Part;
use floatgate_core::sim::text::escaped_lines;
use floatgate_report::command::quoted;
use floatgate_report::explain::{
    Blocker, Choice, Explanation, OperationExplanation, OrderExplanation, WaitExplanation,
};
use floatgate_report::number::{TimeUnit, grouped, percent};
use floatgate_report::words;

/// Maximum number of blocking requests that are listed by number.
const MAX_REPORTED: usize = 6;

/// Maximum number of flash operations that are shown for a request, before the last one.
const MAX_OPERATIONS: usize = 8;

/// Writer of an explanation. All durations have the same unit, and so do all times, so that they can be compared by
/// eye.
struct Reporter<'a> {
    text: String,
    directory: &'a Path,
    choice: &'a Choice,
    explanation: &'a Explanation,
    duration: TimeUnit,
    instant: TimeUnit,
}

impl Reporter<'_> {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref().trim_end());
        self.text.push('\n');
    }

    fn duration(&self, us: f64) -> String {
        format!("{:>13}", self.duration.exact(us))
    }

    fn instant(&self, us: f64) -> String {
        format!("{:>18}", self.instant.instant(us))
    }

    /// Writes the request, its rank by latency, and its times.
    fn head(&mut self) {
        let choice = self.choice;
        let Explanation { request, operation, lba, sectors, stream, status, standing, .. } = self.explanation;
        let size = *sectors as f64 / 2.0;
        let operation = words::words(operation);
        self.line(format!(
            "request {request}: {operation} of {size} KiB at sector {lba}, of stream {stream}; status {status}"
        ));
        let among = match standing.among {
            "all" => format!("all {} requests", grouped(standing.of)),
            name => format!("the {} {} requests", grouped(standing.of), words::words(name)),
        };
        let chosen = if matches!(choice, Choice::Number(_)) { String::new() } else { format!("it is {choice}; ") };
        let (faster, slower) = (grouped(standing.faster), grouped(standing.slower));
        self.line(format!("{chosen}among {among}, {faster} were faster and {slower} slower"));
        for (what, us) in [
            ("arrived", self.explanation.arrival_us),
            ("started", self.explanation.start_us),
            ("completed", self.explanation.finish_us),
        ] {
            let instant = self.instant(us);
            self.line(format!("{what:<13}{instant}"));
        }
        let latency = self.duration.exact(self.explanation.latency_us);
        self.line(format!("{:<13}{latency:>18}", "latency"));
    }

    fn parts(&mut self) {
        let Some(parts) = &self.explanation.parts else { return self.line("\nThe result has no latency breakdown.") };
        let channels = self.explanation.channels.unwrap_or(0);
        let plural = if channels == 1 { "" } else { "s" };
        self.line(format!("\nlatency breakdown (its flash operations used {channels} channel{plural})"));
        for (part, reported) in Part::ALL.iter().zip(parts).filter(|(_, reported)| reported.us > 0.0) {
            let name = format!("{} ({})", words::part(*part, self.explanation.merges), part.name());
            let (us, share) = (self.duration(reported.us), percent(Some(reported.share)));
            self.line(format!("  {name:<62} {us}  {share:>8}"));
        }
    }

    /// Writes the older writes of the same mapping unit that the request waited for.
    fn order(&mut self, order: &OrderExplanation) {
        let unit = order.lpn.map(|lpn| format!(" (LPN {lpn})")).unwrap_or_default();
        let us = self.duration.exact(order.us);
        self.line(format!("\nwaited {us} for older writes of the same unit{unit}, the latest first"));
        for older in &order.behind {
            let what = words::operation(&older.what);
            let (until, us) = (self.instant(older.until_us), self.duration(older.us));
            self.line(format!(
                "  until {until}  {us} for {what} (operation {}) of request {}",
                older.op, older.request
            ));
        }
        if order.unexplained_us > 0.0 {
            let us = self.duration.exact(order.unexplained_us);
            self.line(format!("  For {us} of this time, the timeline does not have the write."));
        }
        if let Some(first) = order.behind.first() {
            let directory = quoted(&self.directory.display().to_string());
            self.line(format!("  To explain the older write: floatgate explain {directory} {}", first.request));
        }
    }

    fn operations(&mut self) {
        let Some(operations) = &self.explanation.operations else { return };
        let whole = self.explanation.rerun.is_none();
        if operations.is_empty() && whole {
            self.line("\nThe request needed no flash operation.");
        }
        operations.iter().take(MAX_OPERATIONS).for_each(|operation| self.operation(operation));
        if let Some(rest) = operations.len().checked_sub(MAX_OPERATIONS).filter(|rest| *rest > 0) {
            self.line(format!("\n{rest} more operations; the last one is (--json lists all of them):"));
            operations.iter().last().into_iter().for_each(|operation| self.operation(operation));
        }
    }

    /// Writes the command that creates a timeline with the missing operations.
    fn rerun(&mut self) {
        let Some(command) = &self.explanation.rerun else { return };
        match &self.explanation.timeline {
            None => self.line("\nWithout a timeline, the blocking requests are unknown. To record one, run"),
            Some(timeline) => {
                let from = self.instant.instant(timeline.from_us);
                let to = timeline.to_us.map_or("its size limit".to_owned(), |to| self.instant.instant(to));
                self.line(format!(
                    "\nThe timeline ranges from {from} to {to}. It misses parts of this request, or of the operations"
                ));
                self.line("that blocked it when it arrived. To record them, run");
            }
        }
        self.line(format!("  {command}"));
    }

    fn operation(&mut self, operation: &OperationExplanation) {
        let OperationExplanation { what, channel, plane, block, page, op, .. } = operation;
        let lpn = operation.lpn.map(|lpn| format!(", LPN {lpn}")).unwrap_or_default();
        let what = words::operation(what);
        self.line(format!(
            "\n{what} (operation {op}) on channel {channel}, plane {plane}, block {block}, page {page}{lpn}"
        ));
        if !operation.shared_with.is_empty() {
            self.line(format!("  together with {}", list(&operation.shared_with)));
        }
        // Waits and phases in the order of time: the first wait is before the grant, others are between phases.
        let mut waits = operation.waits.iter().peekable();
        if let Some(wait) = waits.next_if(|wait| wait.of != "channel") {
            self.wait(operation.waited_from_us, wait);
            if operation.any_die {
                self.line(
                    "  Any die could have taken it. The operations below blocked the die that did. The breakdown above",
                );
                self.line("  divides this wait by what all dies did.");
            }
        }
        let mut end = operation.granted_us;
        for phase in &operation.phases {
            if phase.from_us - end > 5e-7
                && let Some(wait) = waits.next()
            {
                self.wait(end, wait);
            }
            let (from, us) = (self.instant(phase.from_us), self.duration(phase.us));
            self.line(format!("  {from}  {:<8} {us}", words::phase(&phase.phase)));
            end = end.max(phase.from_us + phase.us);
        }
    }

    fn wait(&mut self, from: f64, wait: &WaitExplanation) {
        let from = self.instant(from);
        let us = self.duration(wait.us);
        self.line(format!("  {from}  {:<8} {us} for {}", "waits", wait.of));
        for (held, what, us, operations, requests) in by_cause(&wait.behind) {
            let what = words::operation(what);
            let count = if operations == 1 { what.to_owned() } else { format!("{operations} {what}s") };
            let whose = if requests.is_empty() { String::new() } else { format!(" of {}", list(&requests)) };
            let us = self.duration(us);
            self.line(format!("{:31}{us} {held} held by {count}{whose}", ""));
        }
        if wait.unheld_us > 0.0 {
            let us = self.duration(wait.unheld_us);
            let why = match self.explanation.rerun {
                None => "not held: it waited for a free block, or was not first in the queue",
                Some(_) => "not held by any operation in the timeline",
            };
            self.line(format!("{:31}{us} {why}", ""));
        }
    }
}

/// Formats the explanation of the request `choice` of the result in `directory`.
pub fn text(explanation: &Explanation, directory: &Path, choice: &Choice) -> String {
    let (duration, instant) = (TimeUnit::of(explanation.latency_us), TimeUnit::of(explanation.finish_us));
    let mut reporter = Reporter { text: String::new(), directory, choice, explanation, duration, instant };
    reporter.head();
    reporter.parts();
    if let Some(order) = &explanation.order {
        reporter.order(order);
    }
    reporter.operations();
    reporter.rerun();
    escaped_lines(&reporter.text).into_owned()
}

/// Cause of a wait: the held resource, the kind of operation, time in us, number of operations, and their requests.
type Cause<'a> = (&'static str, &'a str, f64, usize, Vec<u64>);

/// Groups blocking operations by kind and resource, and adds up their times. The longest time is first.
fn by_cause(blockers: &[Blocker]) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause> = Vec::new();
    for blocker in blockers {
        for (held, us) in [("die", blocker.die_us), ("channel", blocker.channel_us)] {
            if us <= 0.0 {
                continue;
            }
            let index = causes.iter().position(|cause| cause.0 == held && cause.1 == blocker.what);
            let index = index.unwrap_or_else(|| {
                causes.push((held, &blocker.what, 0.0, 0, Vec::new()));
                causes.len() - 1
            });
            let cause = &mut causes[index];
            cause.2 += us;
            cause.3 += 1;
            let new: Vec<u64> = blocker.requests.iter().copied().filter(|r| !cause.4.contains(r)).collect();
            cause.4.extend(new);
        }
    }
    causes.sort_by(|a, b| b.2.total_cmp(&a.2));
    causes
}

/// Lists requests by their numbers, the first [`MAX_REPORTED`] of them.
fn list(numbers: &[u64]) -> String {
    let reported: Vec<String> = numbers.iter().take(MAX_REPORTED).map(u64::to_string).collect();
    match numbers.len().checked_sub(MAX_REPORTED + 1) {
        None if reported.len() == 1 => format!("request {}", reported[0]),
        None => format!("requests {}", reported.join(", ")),
        Some(rest) => format!("requests {} and {} more", reported.join(", "), rest + 1),
    }
}
