//! Warnings about the result of a served device.

use floatgate_core::summary::Live;
use floatgate_report::number::grouped;
use floatgate_serve::Finished;

use floatgate_run::text::plural;

/// Returns the warnings of a run. `is_recorded` is `true` if its requests were recorded.
pub fn of(done: &Finished, is_recorded: bool) -> impl Iterator<Item = String> {
    let recording = [cut(done), failed(done)].into_iter().filter(move |_| is_recorded);
    [unfaithful(&done.live), speeds(done), errors(done)].into_iter().chain(recording).flatten()
}

fn unfaithful(live: &Live) -> Option<String> {
    if live.faithful != Some(false) {
        return None;
    }
    let share = live.late_share.unwrap_or_default() * 100.0;
    let cost = live.frontends.iter().map(|frontend| frontend.deducted_read_us).fold(0.0, f64::max);
    // Of equal causes, the first is named: if another program had the processor, the others may be consequences.
    let causes = live.causes.named().into_iter().rev();
    let reason = causes.max_by_key(|(_, count)| *count).map(|(cause, _)| reason(cause, cost)).unwrap_or_default();
    Some(format!(
        "this run is not faithful: {share:.1} % of its replies were sent later than the device completed them, most \
         often because {reason}"
    ))
}

/// Describes a cause of lateness, with its remedy. `cost` is the deduction from a read in microseconds.
fn reason(cause: &str, cost: f64) -> String {
    let text = match cause {
        "host" => {
            "another program had the processor; keep --speed, and reserve a core for the server (`taskset -c 1 \
             floatgate serve ...`)"
        }
        "busy" => "the server was busy with other requests; use a lower --speed",
        "disk" => "the image file was slow; put it on a faster disk, or use `--image memory`",
        "lock" => "another thread used the device; query it less often (`ctl`, `top`, dashboard)",
        _ => {
            return format!(
                "the device decides completions less than {cost:.0} us ahead, which this host needs to deliver them; \
                 restart on an idle machine if other programs ran during the self-test, otherwise use a lower --speed"
            );
        }
    };
    text.to_owned()
}

fn speeds(done: &Finished) -> Option<String> {
    let times = match done.speed_changes {
        0 => return None,
        1 => "once".to_owned(),
        many => format!("{many} times"),
    };
    Some(format!("the speed was changed {times} during the run, finally to {}", done.live.speed))
}

fn errors(done: &Finished) -> Option<String> {
    let count = done.live.payload_errors;
    let why = match (&done.image, done.damaged) {
        (None, _) => "the payload memory was full (--memory)",
        (Some(_), 0) => "the disk of the image was full or broken",
        (Some(_), damaged) if damaged == count => "units of the image are damaged",
        (Some(_), _) => "units of the image are damaged, and its disk was full or broken",
    };
    (count > 0).then(|| format!("{} {} failed outside the device: {why}", grouped(count), plural(count, "request")))
}

fn cut(done: &Finished) -> Option<String> {
    let what = "the recording includes a power cut, which a replay does not repeat: its latencies differ from there on";
    (done.power_cuts > 0).then(|| what.to_owned())
}

fn failed(done: &Finished) -> Option<String> {
    let count = done.faults_asked;
    let operations = plural(count, "operation");
    (count > 0).then(|| {
        format!("`ctl fail` made {count} {operations} fail during the recording, which a replay does not repeat")
    })
}

#[cfg(test)]
mod tests {
    use floatgate_core::summary::LateCauses;

    use super::*;

    #[test]
    fn the_most_frequent_cause_of_lateness_is_named() {
        let causes = LateCauses { host: 30, busy: 30, lead_time: 20, ..LateCauses::default() };
        let mut live = Live { faithful: Some(false), late_share: Some(0.123), causes, ..Live::default() };
        let text = unfaithful(&live).unwrap();
        assert!(text.contains("12.3 % of its replies") && text.contains("because another program had"), "{text}");
        live.causes.lead_time = 31;
        assert!(unfaithful(&live).unwrap().contains("because the device decides"));
        live.faithful = Some(true);
        assert_eq!(unfaithful(&live), None);
    }

    #[test]
    fn each_cause_of_lateness_has_its_remedy() {
        for (cause, remedy) in [
            ("host", "keep --speed, and reserve a core"),
            ("busy", "lower --speed"),
            ("disk", "`--image memory`"),
            ("lock", "less often"),
            ("lead_time", "less than 53 us ahead"),
        ] {
            let text = reason(cause, 53.2);
            assert!(text.contains(remedy), "{cause}: {text}");
            assert_eq!(text.contains("lower --speed"), ["busy", "lead_time"].contains(&cause), "{cause}: {text}");
        }
    }
}
