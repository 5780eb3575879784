//! Warnings about the result of a served device.

use floatgate_report::number::grouped;
use floatgate_serve::Finished;

use crate::run::report::plural;

/// Returns the warnings of a run. `is_recorded` is `true` if its requests were recorded.
pub fn of(done: &Finished, is_recorded: bool) -> impl Iterator<Item = String> {
    let recording = [cut(done), failed(done)].into_iter().filter(move |_| is_recorded);
    [unfaithful(done), speeds(done), errors(done)].into_iter().chain(recording).flatten()
}

fn unfaithful(done: &Finished) -> Option<String> {
    let live = &done.live;
    if live.faithful != Some(false) {
        return None;
    }
    let share = live.late_share.unwrap_or_default() * 100.0;
    let cost = live.frontends.iter().map(|frontend| frontend.deducted_read_us).fold(0.0, f64::max);
    let helps = if live.causes.lead_time * 2 > live.late {
        format!(
            "mostly because the device decides completions less than {cost:.0} us ahead, and this host needs that \
             time to deliver them; use a lower --speed"
        )
    } else {
        "see docs/live.md for remedies".to_owned()
    };
    Some(format!(
        "this run is not faithful: {share:.1} % of its replies were sent later than the device completed them, {helps}"
    ))
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
