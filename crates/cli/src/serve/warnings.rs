//! What is to be known of a run before its figures are believed.

use floatgate_report::number::grouped;
use floatgate_serve::Finished;

use crate::run::report::plural;

/// What is to be said of a run; `is_recorded` with a recording of it.
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
            "most because the device decides them less than the {cost:.0} us ahead that this host takes to hand them over: \
             a lower --speed leaves room"
        )
    } else {
        "see docs/live.md for what helps".to_owned()
    };
    Some(format!(
        "this run is not faithful: {share:.1} % of its answers came later than the device would have given them; {helps}"
    ))
}

fn speeds(done: &Finished) -> Option<String> {
    let times = match done.speed_changes {
        0 => return None,
        1 => "once".to_owned(),
        many => format!("{many} times"),
    };
    Some(format!("the speed was changed {times} while this was served, last to {}", done.live.speed))
}

fn errors(done: &Finished) -> Option<String> {
    let count = done.live.payload_errors;
    let why = match (&done.image, done.damaged) {
        (None, _) => "memory for payload was full (--memory)",
        (Some(_), 0) => "the disk of the image was full or broken",
        (Some(_), damaged) if damaged == count => "units of the image are damaged",
        (Some(_), _) => "units of the image are damaged, and its disk was full or broken",
    };
    (count > 0).then(|| format!("{} {} failed that the device served: {why}", grouped(count), plural(count, "request")))
}

fn cut(done: &Finished) -> Option<String> {
    let what =
        "the recording goes on after a power cut, of which a replay knows nothing: its latencies differ from there";
    (done.power_cuts > 0).then(|| what.to_owned())
}

fn failed(done: &Finished) -> Option<String> {
    let count = done.faults_asked;
    let operations = plural(count, "operation");
    (count > 0).then(|| {
        format!("`ctl fail` had {count} {operations} fail while this was recorded, which a replay does not repeat")
    })
}
