//! `floatgate explain`: the story of one request.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use floatgate_report::story::{self, Blocker, Choice, OperationStory, Story, WaitStory};

use crate::failure::Failure;

/// `floatgate explain`.
#[derive(clap::Args)]
pub struct ExplainArgs {
    /// Where `floatgate run --out DIR --requests=parquet --timeline` left its result
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The request: its number, or p99, p99.9, max or slowest:3 (the third from the slowest), after read: or write:
    /// where only those count, like write:p99
    #[arg(value_name = "REQUEST")]
    request: Choice,
    /// Print the story as JSON instead
    #[arg(long)]
    json: bool,
}

/// Requests that are told by number, of those in the way.
const MOST_TOLD: usize = 6;

/// Operations of the flash that are told, of one request.
const MOST_OPERATIONS: usize = 8;

/// Runs the command.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let story = story::tell(&args.directory, &args.request).map_err(Failure::Mistake)?;
    let text = if args.json {
        serde_json::to_string_pretty(&story).map_err(Failure::fault)? + "\n"
    } else {
        let mut text = String::new();
        // A string takes whatever comes.
        let _ = tell(&mut text, &story);
        text
    };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::of_stdout)
}

fn tell(text: &mut String, story: &Story) -> std::fmt::Result {
    let Story { request, operation, lba, sectors, stream, status, .. } = story;
    let size = *sectors as f64 / 2.0;
    writeln!(
        text,
        "request {request}: {operation} of {size} KiB at sector {lba}, of stream {stream}; status {status}"
    )?;
    writeln!(text, "arrived      {:>16.3} us", story.arrival_us)?;
    writeln!(text, "first served {:>16.3} us", story.start_us)?;
    writeln!(text, "answered     {:>16.3} us", story.finish_us)?;
    let standing = &story.standing;
    let share = standing.faster as f64 / standing.of.max(1) as f64 * 100.0;
    writeln!(
        text,
        "latency      {:>16.3} us: slower than {share:.3} % of the {} requests of its kind; {} took longer",
        story.latency_us, standing.of, standing.slower
    )?;
    match &story.parts {
        None => writeln!(text, "\nWhat its time went into was not told.")?,
        Some(parts) => {
            let channels = story.channels.unwrap_or(0);
            let plural = if channels == 1 { "" } else { "s" };
            writeln!(text, "\nwhere its time went (flash of {channels} channel{plural})")?;
            for part in parts.iter().filter(|part| part.us > 0.0) {
                writeln!(text, "  {:<10} {:>16.3} us  {:>5.1} %", part.part, part.us, part.share * 100.0)?;
            }
        }
    }
    match &story.operations {
        None => writeln!(text, "\nBehind whom it waited is not known: run with --timeline"),
        Some(operations) if operations.is_empty() => {
            writeln!(text, "\nThe timeline has no operation of the flash for it: it needed none, or is not covered.")
        }
        Some(operations) => {
            operations.iter().take(MOST_OPERATIONS).try_for_each(|operation| tell_operation(text, operation))?;
            match operations.len().checked_sub(MOST_OPERATIONS) {
                None | Some(0) => Ok(()),
                Some(rest) => {
                    writeln!(text, "\n{rest} more operations, of which this is the last (--json has all of them):")?;
                    operations.last().map_or(Ok(()), |operation| tell_operation(text, operation))
                }
            }
        }
    }
}

fn tell_operation(text: &mut String, operation: &OperationStory) -> std::fmt::Result {
    let OperationStory { what, channel, plane, block, page, op, .. } = operation;
    write!(text, "\n{what} (operation {op}) on channel {channel}, plane {plane}, block {block}, page {page}")?;
    if let Some(lpn) = operation.lpn {
        write!(text, ", LPN {lpn}")?;
    }
    writeln!(text)?;
    if !operation.shared_with.is_empty() {
        writeln!(text, "  together with request {}", list(&operation.shared_with))?;
    }
    // Waits and phases in the order of time: the first wait is before the grant, others are between phases.
    let mut waits = operation.waits.iter().peekable();
    if let Some(wait) = waits.next_if(|wait| wait.of != "channel") {
        tell_wait(text, operation.waited_from_us, wait)?;
    }
    let mut end = operation.granted_us;
    for phase in &operation.phases {
        if phase.from_us - end > 5e-7
            && let Some(wait) = waits.next()
        {
            tell_wait(text, end, wait)?;
        }
        writeln!(text, "  {:>16.3} us  {:<8} {:>13.3} us", phase.from_us, phase.phase, phase.us)?;
        end = end.max(phase.from_us + phase.us);
    }
    Ok(())
}

fn tell_wait(text: &mut String, from: f64, wait: &WaitStory) -> std::fmt::Result {
    writeln!(text, "  {from:>16.3} us  {:<8} {:>13.3} us for {}", "waits", wait.us, wait.of)?;
    for (held, what, us, operations, requests) in by_cause(&wait.behind) {
        let count = if operations == 1 { what.to_owned() } else { format!("{operations} {what}s") };
        let whose = if requests.is_empty() { String::new() } else { format!(" of request {}", list(&requests)) };
        writeln!(text, "{:31}{us:>13.3} us {held} held by {count}{whose}", "")?;
    }
    if wait.unheld_us > 0.0 {
        writeln!(text, "{:31}{:>13.3} us held by nobody: it waited for a free block, or its turn", "", wait.unheld_us)?;
    }
    Ok(())
}

/// What was held, by what, for how long, by how many operations, of which requests.
type Cause<'a> = (&'static str, &'a str, f64, usize, Vec<u64>);

/// Those who were in the way, put together by what they were; the longest first.
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

/// Numbers, of which the first few are told.
fn list(numbers: &[u64]) -> String {
    let told: Vec<String> = numbers.iter().take(MOST_TOLD).map(u64::to_string).collect();
    match numbers.len().checked_sub(MOST_TOLD + 1) {
        None => told.join(", "),
        Some(rest) => format!("{} and {} more", told.join(", "), rest + 1),
    }
}
