//! Text of lifetimes: how much the host could write, and how blocks wore out.

use floatgate_core::endurance::{Expiry, Lifetime, RemainingLife};
use floatgate_report::number::grouped;
use floatgate_report::statistics::Sample;
use floatgate_run::lifetime::Lifetimes;
use floatgate_workload::quantity::readable;

use floatgate_run::text::{Page, decimals};

/// Formats lifetimes as text.
pub fn text(lifetimes: &Lifetimes) -> String {
    let mut page = Page::default();
    for (index, life) in lifetimes.runs.iter().enumerate() {
        if index > 0 {
            page.gap();
        }
        one(&mut page, life);
    }
    if lifetimes.runs.len() > 1 {
        page.gap();
        page.line("all seeds", format!("written: {}", mean(lifetimes.written_bytes)));
        page.line("", format!("written before the first expiry: {}", mean(lifetimes.first_expiry_bytes)));
    }
    page.text
}

fn one(page: &mut Page, life: &Lifetime) {
    page.line("device", &life.device.name);
    let times = match life.repetitions {
        1 => "once".to_owned(),
        more => format!("{} times", grouped(more.into())),
    };
    page.line("workload", format!("{}, {times}, seed {}", life.workload.name, life.seed));
    let end = match (life.complete, life.worn_out) {
        (true, _) => "",
        (false, true) => ", NOT REACHED: the device was worn out before that",
        (false, false) => ", INTERRUPTED before that",
    };
    page.line("until", format!("{}{end}", life.until));
    page.line(
        "written",
        format!(
            "{} ({} drive writes), write amplification {}",
            readable(life.written.bytes.into()),
            decimals(life.written.drive_writes),
            life.write_amplification.map_or("-".to_owned(), |amplification| format!("{amplification:.3}"))
        ),
    );
    let blocks = &life.wear.blocks;
    page.line(
        "erases",
        format!(
            "{}; {} per block since new (max {}, deviation {})",
            grouped(life.blocks_erased),
            decimals(blocks.mean),
            grouped(blocks.max),
            decimals(blocks.stddev)
        ),
    );
    if let Some(remaining) = &life.remaining_life {
        remaining_life(page, remaining);
    }
    if let Some(expiry) = &life.expiry {
        expired(page, expiry);
    }
    if let Some(held) = life.capacity.held_bytes.last() {
        page.line("capacity", format!("good blocks can hold {} at the end", readable(u128::from(*held))));
    }
    page.line(
        "moved",
        format!(
            "{} units by garbage collection, {} by wear leveling in {} migrations",
            grouped(life.units_moved_gc),
            grouped(life.units_moved_wear),
            grouped(life.migrations)
        ),
    );
    if let (Some(cpu_s), Some(rate)) = (life.cost.cpu_s, life.cost.programs_per_cpu_s) {
        page.line(
            "simulation",
            format!("{cpu_s:.2} s of CPU time, {:.1} million page programs per second", rate / 1e6),
        );
    }
}

fn remaining_life(page: &mut Page, life: &RemainingLife) {
    page.line("remaining life", format!("mean {:.2} erases, deviation {:.2}", life.mean, life.stddev));
    let of = |count: u64, what: &str| format!("{} {what}", grouped(count));
    let classes = [
        of(life.below_40_percent, "blocks below 40 % of the mean"),
        of(life.below_80_percent, "below 80 %"),
        of(life.below_mean, "below 100 %"),
        of(life.from_mean, "from 100 %"),
    ];
    page.line("", classes.join(", "));
}

fn expired(page: &mut Page, expiry: &Expiry) {
    let first = expiry.first_after_bytes.map(|bytes| format!(", the first after {}", readable(bytes.into())));
    page.line(
        "expired",
        format!("{} blocks{}; {} retired", grouped(expiry.blocks), first.unwrap_or_default(), grouped(expiry.retired)),
    );
}

/// Formats the mean of numbers of bytes, with its confidence interval.
fn mean(sample: Option<Sample>) -> String {
    let bytes = |bytes: f64| readable(bytes.round() as u128);
    match sample {
        None => "-".to_owned(),
        Some(Sample { mean, half_width: None, .. }) => bytes(mean),
        Some(Sample { n, mean, half_width: Some(half), .. }) => {
            format!("{} +- {} (95 % confidence, {n} seeds)", bytes(mean), bytes(half))
        }
    }
}
