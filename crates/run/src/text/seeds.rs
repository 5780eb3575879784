//! Text of several runs that differ only in their seed: means of the main values, with confidence intervals.

use std::path::PathBuf;

use floatgate_core::summary::{Operations, Summary};
use floatgate_report::number::grouped;
use floatgate_report::statistics::Sample;

use super::summary::{files, head};
use super::{Page, Table, decimals, plural, rate};

/// A value of the requests of an operation.
type OfOperation = fn(&Operations) -> Option<f64>;

/// A value of the device: its name, the value, and its format.
type OfDevice = (&'static str, fn(&Summary) -> Option<f64>, fn(f64) -> String);

/// Formats runs with different seeds as one text. `descriptions` describe the workloads, and `reports` are the pages of
/// the runs. The runs were to be `wanted`; if there are fewer, the user has ended the last one.
pub fn text(all: &[Summary], descriptions: &[String], mut reports: Vec<PathBuf>, wanted: usize) -> String {
    let mut page = Page::default();
    let Some(first) = all.first() else { return String::new() };
    head(&mut page, first, descriptions);
    page.gap();
    page.text.push_str(&requests(all).text());
    page.gap();
    device(&mut page, all);
    page.gap();
    let (count, seeds) = (all.len(), all.iter().map(|summary| summary.seed));
    let (from, to) = (seeds.clone().min().unwrap_or(0), seeds.max().unwrap_or(0));
    page.line(
        "seeds",
        format!("{from} to {to}; +-: 95% confidence interval of the mean over {count} seeds (Student's t)"),
    );
    if count < wanted {
        page.line("", format!("INTERRUPTED: only {count} of {wanted} seeds, without the one that was running"));
    }
    let warned = all.iter().filter(|summary| !summary.warnings.is_empty()).count() as u64;
    if warned > 0 {
        page.line("warnings", format!("in {} {}, above", grouped(warned), plural(warned, "run")));
    }
    let more = reports.len().saturating_sub(MAX_FILES);
    reports.truncate(MAX_FILES);
    files(&mut page, &reports);
    if more > 0 {
        page.line("", format!("and {more} more"));
    }
    page.text
}

/// Maximum number of reports that are listed.
const MAX_FILES: usize = 10;

/// Returns the mean of some values and its confidence interval, as text.
fn interval(values: &[f64], format: impl Fn(f64) -> String) -> String {
    let Some(sample) = Sample::of(values) else { return "-".to_owned() };
    // Half of an interval that rounds to 0 says nothing.
    let half = sample.half_width.map(&format).filter(|half| half.contains(|digit| matches!(digit, '1'..='9')));
    let half = half.map(|half| format!(" +- {half}")).unwrap_or_default();
    format!("{}{half}", format(sample.mean))
}

/// Returns the table of requests: a row for each value, and a column for each operation that occurs.
fn requests(all: &[Summary]) -> Table {
    let operations = |summary: &Summary| -> Vec<(String, Operations)> {
        let named = summary.requests.by_operation().map(|(name, of)| (name.to_owned(), of.clone()));
        named.into_iter().chain([("all".to_owned(), summary.requests.all.clone())]).collect()
    };
    let of_runs: Vec<Vec<(String, Operations)>> = all.iter().map(operations).collect();
    let there = |place: &usize| of_runs.iter().any(|run| run[*place].1.count > 0);
    let mut columns: Vec<usize> = (0..of_runs[0].len()).filter(there).collect();
    if columns.len() == 2 {
        // All requests have one operation.
        columns.pop();
    }
    let slow = of_runs.iter().flatten().filter_map(|(_, of)| of.latency_us.mean).fold(0.0, f64::max) >= 10_000.0;
    let (unit, name) = if slow { (1e3, "ms") } else { (1.0, "us") };
    let latency = |text: &str| format!("{text} {name}");
    let rows: [(String, OfOperation, Option<f64>); 8] = [
        ("IOPS".to_owned(), |of| of.iops, None),
        ("MiB/s".to_owned(), |of| of.mib_per_s, Some(1.0)),
        (latency("mean"), |of| of.latency_us.mean, Some(unit)),
        (latency("p50"), |of| of.latency_us.p50, Some(unit)),
        (latency("p99"), |of| of.latency_us.p99, Some(unit)),
        (latency("p99.9"), |of| of.latency_us.p99_9, Some(unit)),
        (latency("max"), |of| of.latency_us.max, Some(unit)),
        (latency("waiting"), |of| of.waiting_us.mean, Some(unit)),
    ];
    let head: Vec<&str> = std::iter::once("").chain(columns.iter().map(|at| of_runs[0][*at].0.as_str())).collect();
    let mut table = Table::new(&head);
    for (name, of, unit) in rows {
        let cell = |at: &usize| {
            let values: Vec<f64> = of_runs.iter().filter_map(|run| of(&run[*at].1)).collect();
            match unit {
                None => interval(&values, rate),
                Some(unit) => interval(&values, |value| decimals(value / unit)),
            }
        };
        table.row(&std::iter::once(name).chain(columns.iter().map(cell)).collect::<Vec<_>>());
    }
    table
}

/// Writes the values of the device.
fn device(page: &mut Page, all: &[Summary]) {
    let precise = |value: f64| format!("{value:.3}");
    let share = |value: f64| format!("{:.1} %", value * 100.0);
    let values: [OfDevice; 6] = [
        ("amplification", |summary| summary.write_amplification, precise),
        ("GC efficiency", |summary| summary.gc.efficiency, share),
        ("GC victims", |summary| Some(summary.gc.victims as f64), decimals),
        ("channels", |summary| summary.utilization.channels.data.mean, share),
        ("dies", |summary| summary.utilization.dies.cell.mean, share),
        ("simulated s", |summary| Some(summary.measured_s), precise),
    ];
    for (name, of, format) in values {
        let values: Vec<f64> = all.iter().filter_map(of).collect();
        if !values.is_empty() {
            page.line(name, interval(&values, format));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_a_mean_and_half_a_width() {
        // Mean 2, deviation 1: half of the interval is 4.303 / sqrt(3) = 2.484.
        assert_eq!(interval(&[1.0, 2.0, 3.0], |value| format!("{value:.3}")), "2.000 +- 2.484");
        assert_eq!(interval(&[7.0], decimals), decimals(7.0));
        assert_eq!(interval(&[7.0, 7.0], decimals), decimals(7.0));
        assert_eq!(interval(&[], decimals), "-");
    }
}
