//! Live section: timing accuracy of a device that was served in real time.

use floatgate_core::summary::{Live, Summary};
use maud::{Markup, html};

use crate::live::clients;
use crate::number::{grouped, or_dash, percent, time};
use crate::page::Page;

/// Adds the section on lateness, if the device was served in real time.
pub fn section(page: &mut Page, summary: &Summary) {
    let Some(live) = &summary.live else { return };
    page.section("live", "Real-time accuracy");
    let us = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), time);
    let faithful = match live.faithful {
        None => "-",
        Some(true) => "yes",
        Some(false) => "no",
    };
    let lateness = &live.lateness_us;
    let tiles = [
        ("timing is faithful", faithful.to_owned()),
        ("late replies", percent(live.late_share)),
        ("median lateness", us(lateness.p50)),
        ("p99 lateness", us(lateness.p99)),
        ("maximum lateness", us(lateness.max)),
        ("simulated time per real time", speed(live)),
    ];
    page.add(&html! {
        div.tiles { @for (name, value) in &tiles { div.tile { b { (value) } span { (name) } } } }
        (explanation(live))
        @if live.late > 0 { div.scroll { (causes(live)) } }
    });
}

fn speed(live: &Live) -> String {
    if live.pace == "at-once" { "at once".to_owned() } else { or_dash(Some(live.speed)) }
}

fn explanation(live: &Live) -> Markup {
    html! {
        p {
            @if live.pace == "at-once" {
                "Requests completed as soon as the device allowed: replies cannot be late, and idle time is skipped."
            } @else {
                (judgment(live))
            }
        }
        @for line in clients(live) { p { (line) "." } }
    }
}

/// Explains the judgment of a device that was served in real time.
fn judgment(live: &Live) -> Markup {
    html! {
        "Latencies elsewhere on this page are the device's own, in simulated time. This section shows how much "
        "later, in real time, its " (grouped(live.replies)) " replies were sent. A reply is late if its lateness "
        "exceeds both 5% of its latency and 2 us. The timing is faithful if at most "
        (percent(Some(live.late_limit))) " of the replies are late. Time for sending and receiving is deducted: "
        @for (index, front) in live.frontends.iter().enumerate() {
            @if index > 0 { ", " }
            "over " (front.name) " " (time(front.deducted_read_us)) " for a read and "
            (time(front.deducted_write_us)) " for a write of 4 KiB"
        }
        "."
        @if live.not_judged > 0 {
            " " (grouped(live.not_judged)) " more replies, without data, were due sooner than a reply can be sent. "
            "They are not judged."
        }
    }
}

fn causes(live: &Live) -> Markup {
    let causes = &live.causes;
    let rows = [
        ("host", causes.host, "The server woke too late, or another program used its processor: provide an idle core."),
        ("busy", causes.busy, "The server was busy with other requests: serve at a lower speed."),
        (
            "lead_time",
            causes.lead_time,
            "The device determined the completion too late to send the reply in time: serve at a lower speed.",
        ),
        ("lock", causes.lock, "Another thread had locked the device."),
        ("disk", causes.disk, "The flash image was written: put it on a faster disk, or into memory (--image memory)."),
    ];
    html! {
        table.stack {
            caption { "Late replies, by the longest wait" }
            tr { th.text { "cause" } th { "replies" } th { "share of late replies" } th.text { "what happened" } }
            @for (name, count, text) in rows {
                tr {
                    td.text { (name) }
                    td data-name="replies" { (grouped(count)) }
                    td data-name="share of late replies" { (percent(Some(count as f64 / live.late as f64))) }
                    td.text { (text) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use floatgate_core::results::Latency;
    use floatgate_core::sim::time::Time;
    use floatgate_core::summary::{LateCauses, LiveFrontend};

    use super::*;

    fn live(pace: &str) -> Live {
        let mut lateness = Latency::default();
        (1..=100).for_each(|us| lateness.record(Time::from_us(us)));
        let about = Live {
            pace: pace.to_owned(),
            speed: 0.1,
            late: 8,
            late_share: Some(0.08),
            late_limit: 0.01,
            faithful: Some(false),
            not_judged: 3,
            causes: LateCauses { host: 6, busy: 2, ..LateCauses::default() },
            frontends: vec![LiveFrontend {
                name: "nbd".to_owned(),
                deducted_read_us: 12.5,
                replies: 100,
                client_turns: 80,
                client_late_share: Some(0.25),
                ..LiveFrontend::default()
            }],
            ..Live::default()
        };
        Live::new(&lateness, about)
    }

    #[test]
    fn lateness_and_its_causes_are_shown() {
        let text = explanation(&live("timed")).into_string() + &causes(&live("timed")).into_string();
        for part in [
            "its 100 replies",
            "over nbd 12.5",
            "at most 1.0 % of",
            "3 more",
            ">6</td><td data-name=\"share of late replies\">75.0 %</td>",
            ">2</td><td data-name=\"share of late replies\">25.0 %</td>",
            "<p>nbd clients sent their next request late in 25.0 % of 80 turns.</p>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(speed(&live("timed")), "0.100");
        assert_eq!(speed(&live("at-once")), "at once");
        assert!(explanation(&live("at-once")).into_string().contains("replies cannot be late"));
    }
}
