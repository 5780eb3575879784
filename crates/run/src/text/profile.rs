//! Text of the profile of a trace.

use floatgate_report::number::grouped;
use floatgate_workload::quantity::readable;
use floatgate_workload::trace::profile::{Arrivals, DeviceProfile, Footprint, HotShares, OperationProfile, Profile};

use super::{Page, Table, bar, number, percent, seconds};

/// Formats a profile as text.
pub fn text(profile: &Profile) -> String {
    let mut page = Page::default();
    head(&mut page, profile);
    operations(&mut page, profile);
    footprint(&mut page, &profile.footprint);
    order(&mut page, profile);
    sizes(&mut page, &profile.operations);
    arrivals(&mut page, &profile.arrivals);
    devices(&mut page, &profile.devices);
    for (index, warning) in profile.warnings.iter().enumerate() {
        if index == 0 {
            page.gap();
        }
        page.line("warning", warning);
    }
    page.text
}

fn head(page: &mut Page, profile: &Profile) {
    if let Some(trace) = &profile.trace {
        page.line("trace", &trace.file);
        let others = if trace.alternatives.is_empty() {
            String::new()
        } else {
            format!("; or {}, choose with --format", trace.alternatives.join(", "))
        };
        page.line("format", format!("{} ({}{others}), times in {}", trace.format, trace.confidence, trace.time_unit));
    }
    let rate = match (profile.rate, profile.mib_per_s) {
        (Some(rate), Some(mib)) => format!("; {}/s and {} MiB/s on average", number(rate), number(mib)),
        _ => String::new(),
    };
    let size = readable(u128::from(profile.bytes));
    let duration = seconds(profile.duration_s);
    page.line("requests", format!("{} of {size} in {duration}{rate}", grouped(profile.requests)));
    page.gap();
}

fn operations(page: &mut Page, profile: &Profile) {
    let head = ["", "requests", "share", "mean KiB", "CV", "min", "max", "sequential", "run", "at 4K", "4K pages"];
    let mut table = Table::new(&head);
    for one in &profile.operations {
        let size = &one.size_kib;
        table.row(&[
            one.operation.replace('_', " "),
            grouped(one.requests),
            percent(Some(one.share)),
            size.mean.map_or("-".to_owned(), number),
            size.variation.map_or("-".to_owned(), number),
            size.min.map_or("-".to_owned(), number),
            size.max.map_or("-".to_owned(), number),
            percent(Some(one.sequential)),
            one.run_mean.map_or("-".to_owned(), number),
            percent(Some(one.aligned)),
            percent(Some(one.whole_pages)),
        ]);
    }
    page.text.push_str(&table.text());
    page.gap();
    let sequentiality = profile.sequentiality;
    if let (Some(last), Some(stream)) = (sequentiality.after_last, sequentiality.after_stream) {
        let what = "start at the end of the device's previous request";
        let stream = percent(Some(stream));
        page.line(
            "sequential",
            format!("{} {what}, {stream} at the end of one of its last 32 streams", percent(Some(last))),
        );
    }
    let hot = profile.operations.iter().filter_map(|one| Some((one.operation.as_str(), one.hot?)));
    let all = profile.footprint.hot.map(|hot| ("all", hot));
    let mut table = Table::new(&["hottest pages", "1 %", "5 %", "10 %", "20 %"]);
    for (name, hot) in hot.chain(all) {
        let HotShares { of_1_percent, of_5_percent, of_10_percent, of_20_percent } = hot;
        let shares = [of_1_percent, of_5_percent, of_10_percent, of_20_percent];
        let [one, five, ten, twenty] = shares.map(|share| percent(Some(share)));
        table.row(&[format!("  share of {name}"), one, five, ten, twenty]);
    }
    if profile.footprint.hot.is_some() {
        page.text.push_str(&table.text());
    }
}

fn footprint(page: &mut Page, footprint: &Footprint) {
    let size = |pages: f64| readable(pages.round() as u128 * 4096);
    let estimate = if footprint.sampled < 1.0 {
        format!(" (estimated from {} of the addresses, +-{} %)", percent(Some(footprint.sampled)), {
            number(footprint.relative_error * 100.0)
        })
    } else {
        String::new()
    };
    let pages = grouped(footprint.pages.round() as u64);
    page.line("footprint", format!("{} in {pages} pages of 4 KiB{estimate}", size(footprint.pages)));
    let parts = [footprint.read_pages, footprint.written_pages, footprint.both_pages].map(size);
    let span = readable(u128::from(footprint.span_bytes));
    page.line("", format!("{} read, {} written, {} both; within {span}", parts[0], parts[1], parts[2]));
    if let Some(accesses) = footprint.accesses_per_page {
        let (updates, overwrites) = (percent(footprint.updates), percent(footprint.overwrites));
        page.line(
            "reuse",
            format!(
                "{} accesses per page; of the page writes, {overwrites} were to pages written before, {updates} to \
                 pages written or read before; of the page reads, {} were of pages not written before",
                number(accesses),
                percent(footprint.reads_of_unwritten)
            ),
        );
    }
}

fn order(page: &mut Page, profile: &Profile) {
    let order = profile.order;
    let beyond = if order.beyond { "more than " } else { "" };
    page.line(
        "order",
        match order.late {
            0 => "sorted by time".to_owned(),
            late => format!("{} requests late; --sort-window {beyond}{} sorts them", grouped(late), order.sort_window),
        },
    );
}

/// Maximum width of a bar in characters.
const BAR: usize = 20;

/// Writes the distribution of request sizes, by powers of two.
fn sizes(page: &mut Page, operations: &[OperationProfile]) {
    let shown: Vec<&OperationProfile> = operations.iter().filter(|one| one.size_kib.max > Some(0.0)).take(3).collect();
    let class = |sectors: u32| if sectors == 0 { 0 } else { (sectors - 1).checked_ilog2().map_or(0, |log| log + 1) };
    let mut classes = vec![vec![0_u64; shown.len()]; 33];
    for (index, one) in shown.iter().enumerate() {
        for size in &one.sizes {
            classes[class(size.sectors) as usize][index] += size.requests;
        }
    }
    let used: Vec<usize> = (0..classes.len()).filter(|class| classes[*class].iter().any(|count| *count > 0)).collect();
    let (Some(first), Some(last)) = (used.first(), used.last()) else { return };
    page.gap();
    let mut head = format!("{:<15}", "size up to");
    shown.iter().for_each(|one| head += &format!("{:<1$}", one.operation, BAR + 10));
    page.text.push_str(head.trim_end());
    page.text.push('\n');
    for class in *first..=*last {
        let mut line = String::new();
        for (index, one) in shown.iter().enumerate() {
            let share = classes[class][index] as f64 / one.requests as f64;
            let most = classes.iter().map(|of| of[index]).max().unwrap_or(1) as f64 / one.requests as f64;
            let percent = if classes[class][index] == 0 { String::new() } else { percent(Some(share)) };
            line += &format!("{percent:>8} {:<1$} ", bar(share / most, BAR), BAR);
        }
        page.line(&readable(512 << class), line);
    }
}

/// Writes the gaps between requests, by powers of ten, and the burstiness, by window length.
fn arrivals(page: &mut Page, arrivals: &Arrivals) {
    let gap = &arrivals.gap_us;
    let Some(mean) = gap.mean else { return };
    page.gap();
    let time = |us: Option<f64>| us.map_or("-".to_owned(), |us| seconds(us / 1e6));
    let max = time(gap.max);
    page.line(
        "gaps",
        format!(
            "mean {}, median {}, p99 {}, max {max}",
            seconds(mean / 1e6),
            time(arrivals.median_us),
            time(arrivals.p99_us)
        ),
    );
    let correlation = arrivals.correlation.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let variation = gap.variation.map_or("-".to_owned(), number);
    page.line("", format!("CV {variation} (1 is Poisson), correlation with the previous gap {correlation}"));
    let mut decades = [0_u64; 22];
    for class in &arrivals.histogram {
        let decade = if class.mean_ps < 1.0 { 0 } else { (class.mean_ps * 1.000_001).log10_floor() + 1 };
        decades[decade.min(21)] += class.count;
    }
    let total: u64 = decades.iter().sum();
    let most = decades.iter().copied().max().unwrap_or(1).max(1) as f64;
    let first = decades.iter().position(|count| *count > 0).unwrap_or(0);
    let last = decades.iter().rposition(|count| *count > 0).unwrap_or(0);
    let second = decades.iter().skip(1).position(|count| *count > 0).map_or(first, |place| place + 1);
    let shown = |decade: &usize| *decade == first || *decade >= second;
    for (decade, count) in decades.iter().enumerate().take(last + 1).filter(|(decade, _)| shown(decade)) {
        let label = match decade {
            0 => "0".to_owned(),
            n => format!("from {}", seconds(1e-12 * 10_f64.powi_exact(n - 1)).replace(".00", "").replace(".0", "")),
        };
        let share = *count as f64 / total as f64;
        let shown = if *count == 0 { String::new() } else { percent(Some(share)) };
        page.line(&label, format!("{shown:>8} {}", bar(*count as f64 / most, 2 * BAR)));
    }
    if !arrivals.bursts.is_empty() {
        let mut table = Table::new(&["in windows of", "dispersion", "peak/mean"]);
        for burst in &arrivals.bursts {
            table.row(&[seconds(burst.window_s), number(burst.dispersion), number(burst.peak_to_mean)]);
        }
        page.gap();
        page.text.push_str(&table.text());
    }
}

/// Powers and logarithms of ten, computed by repeated multiplication.
trait Decades {
    fn log10_floor(self) -> usize;
    fn powi_exact(self, exponent: usize) -> f64;
}

impl Decades for f64 {
    fn log10_floor(self) -> usize {
        std::iter::successors(Some(10.0), |limit| Some(limit * 10.0))
            .take(20)
            .take_while(|limit| self >= *limit)
            .count()
    }

    fn powi_exact(self, exponent: usize) -> f64 {
        (0..exponent).fold(1.0, |power, _| power * self)
    }
}

/// Writes a table of the devices with the most requests.
fn devices(page: &mut Page, devices: &[DeviceProfile]) {
    const SHOWN: usize = 12;
    if devices.len() < 2 {
        return;
    }
    let mut busiest: Vec<&DeviceProfile> = devices.iter().collect();
    busiest.sort_by_key(|device| std::cmp::Reverse(device.requests));
    let mut table = Table::new(&["device", "requests", "reads", "bytes", "footprint", "ends at"]);
    for device in busiest.iter().take(SHOWN) {
        let size = |bytes: f64| readable(bytes.round() as u128);
        table.row(&[
            device.name.clone(),
            grouped(device.requests),
            percent(Some(device.reads)),
            size(device.bytes as f64),
            size(device.pages * 4096.0),
            size(device.end_sector as f64 * 512.0),
        ]);
    }
    page.gap();
    page.text.push_str(&table.text());
    if devices.len() > SHOWN {
        page.line("", format!("and {} more devices; --json lists all of them", devices.len() - SHOWN));
    }
}
