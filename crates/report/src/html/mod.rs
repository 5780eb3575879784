//! HTML report of a result: one page with all sections.

mod amplification;
mod attribution;
mod bottleneck;
mod configuration;
mod head;
mod latency;
mod live;
mod merges;
mod over_time;
mod requests;
mod smooth;
mod utilization;
mod wear;
mod windows;

pub(crate) use attribution::{Group as AttributionGroup, bars as attribution_bars, groups as attribution_groups};
pub(crate) use configuration::shown;
pub(crate) use latency::{Curve, curves};
pub use windows::{MAX_POINTS, SeriesOperation, SeriesPoint, merged, points};

use floatgate_core::summary::Summary;

use crate::page::Page;

/// Returns the report of a result as one HTML file. `series` is the result over time, or empty if unknown.
pub fn report(summary: &Summary, series: &[SeriesPoint]) -> String {
    let mut page = Page::default();
    head::key_figures(&mut page, summary);
    live::section(&mut page, summary);
    latency::section(&mut page, summary);
    attribution::section(&mut page, summary);
    over_time::section(&mut page, series);
    amplification::section(&mut page, summary);
    requests::section(&mut page, summary);
    utilization::section(&mut page, summary);
    bottleneck::section(&mut page, summary);
    wear::section(&mut page, summary);
    configuration::section(&mut page, summary);
    configuration::reproduce(&mut page, summary);
    page.finish(&head::title(summary), &head::head(summary))
}

#[cfg(test)]
mod tests {
    use floatgate_core::device_file;
    use floatgate_core::sim::source::Source;
    use floatgate_core::simulation::{Device, NoWatcher, Options, RunOptions, run_with};
    use floatgate_core::summary::{About, Live, Named, Precondition};
    use floatgate_workload::synthetic;

    use super::*;

    /// Returns the result of a small run with this name.
    fn summary(name: &str, attribution: bool) -> Summary {
        summary_of(name, attribution, &[])
    }

    fn summary_of(name: &str, attribution: bool, set: &[String]) -> Summary {
        let options = Options { attribution, ..Options::default() };
        let mut device = Device::new(device_file::load("tiny", set).unwrap(), options).unwrap();
        let jobs = synthetic::parse(
            "rw=randrw bs=4k iodepth=8 number_ios=3000; rw=randread number_ios=500",
            device.config().logical_bytes(),
            1,
        );
        let mut sources: Vec<Box<dyn Source>> = jobs.unwrap().into_iter().map(|job| job.source).collect();
        let outcome = run_with(&mut device, &mut sources, &mut NoWatcher, RunOptions { profile: true }).unwrap();
        let named = || Named { name: name.to_owned(), digest: name.to_owned() };
        let about = About {
            seed: 1,
            device: named(),
            workload: named(),
            precondition: Precondition { requested: name.to_owned(), reached: Default::default() },
            warnings: vec![name.to_owned()],
            base: Some("tiny".to_owned()),
            arguments: vec!["run".to_owned(), name.to_owned()],
        };
        Summary::new(about, &outcome.measurement(&device))
    }

    fn series() -> Vec<SeriesPoint> {
        let operation = |name: &str, at: f64| SeriesOperation {
            operation: name.to_owned(),
            count: 50.0,
            iops: 5000.0 - 100.0 * at,
            mib_per_s: 20.0 - at / 3.0,
            latency_p50_us: Some(200.0 + 10.0 * at),
            latency_p99_us: Some(900.0 + 40.0 * at),
            latency_max_us: (at != 3.0).then_some(2000.0 + 100.0 * at),
        };
        let point = |at: f64| SeriesPoint {
            start_s: at,
            end_s: at + 1.0,
            operations: vec![operation("read", at), operation("write", at + 7.0)],
            free_blocks_min: Some(40.0 - at),
            free_blocks_mean: Some(50.0 - at / 2.0),
            victims: 3.0,
            cleaning_efficiency: (at > 4.0).then_some(0.4),
            host_units: 100.0,
            units_programmed: 100.0 + at * 5.0,
            ..SeriesPoint::default()
        };
        (0..40).map(|at| point(f64::from(at))).collect()
    }

    /// Returns a page with all sections.
    fn full(name: &str) -> String {
        report(&summary(name, true), &series())
    }

    #[test]
    fn all_sections_are_present() {
        let page = full("rw=randrw bs=4k");
        if let Some(place) = std::env::var_os("FLOATGATE_SAMPLE_REPORT") {
            std::fs::write(place, &page).unwrap();
        }
        let ids = [
            "latency-cdf",
            "latency-tail",
            "attribution",
            "attribution-streams-1",
            "throughput-over-time",
            "latency-over-time",
            "gc-over-time",
            "amplification-over-time",
            "amplification-units",
            "pages-by-cause",
            "request-sizes",
            "inter-arrival",
            "channels-used",
            "channel-utilization",
            "die-utilization",
            "roofline",
            "wear-histogram",
        ];
        for id in ids {
            assert_eq!(page.matches(&format!("data-figure=\"{id}\"")).count(), 1, "{id}");
        }
        assert_eq!(page.matches("<figcaption>").count(), ids.len());
        for section in ["key-figures", "configuration", "reproduce"] {
            assert!(page.contains(&format!("<h2 id=\"{section}\">")), "{section}");
        }
        assert!(page.contains("floatgate run 'rw=randrw bs=4k'"));
    }

    #[test]
    fn chips_that_execute_one_command_at_a_time_have_a_map() {
        let report_of = |concurrency: &str, set: &[&str]| {
            let concurrency = format!("nand.concurrency={concurrency}");
            let set: Vec<_> =
                [concurrency.as_str(), "geometry.dies=2"].iter().chain(set).map(|s| (*s).into()).collect();
            let summary = summary_of("x", false, &set);
            (report(&summary, &[]), summary.utilization)
        };
        let interleave = ["nand.advanced.interleave=true"];
        for (concurrency, set, title) in [
            ("command", &[][..], "Chips"),
            ("command", &interleave, "Chips"),
            ("chip", &["geometry.chips=2", "geometry.chips_per_package=2"], "Packages"),
        ] {
            let (page, shares) = report_of(concurrency, set);
            let map = page.split_once("data-figure=\"chip-utilization\"").expect(title).1;
            assert!(map.contains(title), "{title}");
            let chips = shares.chips.expect(title);
            let dies = shares.each.die_cell.len() / chips.each.len();
            for (chip, cells) in chips.each.iter().zip(shares.each.die_cell.chunks(dies)) {
                let (most, sum) = (cells.iter().copied().fold(0.0, f64::max), cells.iter().sum::<f64>());
                // Without interleaving, one die works at a time.
                let least = if set == interleave { most } else { sum };
                assert!((least..=1.0).contains(chip), "{title}: {chip}, {cells:?}");
            }
        }
        let (page, shares) = report_of("die", &[]);
        assert_eq!((shares.chips, page.contains("chip-utilization")), (None, false));
    }

    #[test]
    fn merges_are_shown_in_place_of_garbage_collection() {
        let set = ["mapping.scheme={ fast = { logs = { sequential = 1, random = 2 } } }".to_owned()];
        let mut series = series();
        series.iter_mut().for_each(|point| (point.merges, point.associativity) = ([1, 2, 3], Some(4.0)));
        let page = report(&summary_of("x", true, &set), &series);
        for id in ["merges", "log-writes", "merges-over-time"] {
            assert_eq!(page.matches(&format!("data-figure=\"{id}\"")).count(), 1, "{id}");
        }
        for text in ["Write amplification and merges", "log blocks reclaimed", "units written to random log blocks"] {
            assert!(page.contains(text), "{text}");
        }
        for text in ["gc-over-time", "cleaning efficiency", "victims (blocks reclaimed)", "of that, garbage"] {
            assert!(!page.contains(text), "{text}");
        }
    }

    #[test]
    fn unknown_values_have_no_section() {
        let page = report(&summary("x", false), &[]);
        for id in ["attribution", "over-time", "live"] {
            assert!(!page.contains(&format!("<h2 id=\"{id}\">")), "{id}");
        }
        assert!(!page.contains("data-figure=\"channels-used\""), "no latency breakdowns");
    }

    #[test]
    fn the_page_of_a_served_run_shows_its_accuracy() {
        let mut served = summary("x", true);
        served.live = Some(Live { pace: "timed".to_owned(), speed: 1.0, faithful: Some(true), ..Live::default() });
        let page = report(&served, &[]);
        assert!(page.contains("<h2 id=\"live\">") && page.contains("<b>yes</b>"), "the section is missing");
        assert!(!page.contains("Late replies, by"), "no reply was late");
    }

    #[test]
    fn user_texts_are_escaped() {
        let attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";
        let page = full(attack);
        let (own, plain) = (full("x").matches("<script").count(), page.matches("<script").count());
        assert_eq!(plain, own);
        assert!(!page.contains("<img"));
        assert!(!page.contains("u003cimg"));
    }

    #[test]
    fn a_page_needs_no_network() {
        let page = report(&summary("x", false), &[]);
        for way in ["src=", "href=\"http", "@import", "url("] {
            assert!(!page.contains(way), "{way}");
        }
        assert_eq!(page, report(&summary("x", false), &[]), "the same result must give the same bytes");
    }

    #[test]
    fn a_result_that_was_read_gives_the_same_page() {
        let written = summary("x", false);
        let read = Summary::from_json(&written.to_json()).unwrap();
        assert_eq!(read.to_json(), written.to_json());
        assert_eq!(report(&read, &[]), report(&written, &[]));
    }
}
