//! Keys that end a job, or choose its depth, by its completions.

use super::options::Options;
use super::values::SECOND;
use crate::sim::source::{Control, DepthSearch, SteadyState};
use crate::sim::time::Time;

/// Most intervals of a steady state.
const MAX_INTERVALS: u64 = 1 << 20;

/// Returns the control of a job. The planner adds the jobs that the job ends.
pub(super) fn control(options: &Options) -> Result<Control, String> {
    let depth = options.iodepth.unwrap_or(1);
    let batch = options.batch_complete.map(|count| depth.saturating_sub(count.min(depth)));
    let low = options.iodepth_low.map(|low| low.min(depth));
    // As in fio, the defaults are one completion, and no low mark.
    let refill_at = [batch.filter(|at| *at + 1 < depth), low.filter(|at| *at < depth)].into_iter().flatten().min();
    if refill_at.is_some() && options.thinktime.is_some_and(|think| think > 0) {
        return Err(
            "`thinktime` waits for all completions; leave iodepth_low and iodepth_batch_complete_min out".into()
        );
    }
    let flow = options.flow.map(|weight| (options.flow_id.unwrap_or(0), weight));
    Ok(Control {
        ends: 0..0,
        steady: steady(options)?,
        together: 0..0,
        search: search(options, depth)?,
        refill_at,
        flow,
    })
}

fn steady(options: &Options) -> Result<Option<SteadyState>, String> {
    let Some(steady) = options.steadystate else { return Ok(None) };
    let interval = options.ss_interval.unwrap_or(SECOND);
    let Some(span) = options.ss_dur else {
        return Err("`steadystate` needs steadystate_duration, the time over which the rate is judged".to_owned());
    };
    let intervals = span / interval;
    if !(1..=MAX_INTERVALS).contains(&intervals) {
        return Err(format!("`steadystate_duration` has {intervals} intervals: use 1 to {MAX_INTERVALS}"));
    }
    Ok(Some(SteadyState {
        measure: steady.measure,
        is_slope: steady.is_slope,
        is_percent: steady.is_percent,
        limit: steady.limit,
        interval: Time(interval),
        intervals: intervals as u32,
        ramp: Time(options.ss_ramp.unwrap_or(0)),
    }))
}

fn search(options: &Options, depth: u32) -> Result<Option<DepthSearch>, String> {
    let Some(target) = options.latency_target else { return Ok(None) };
    let Some(window) = options.latency_window else {
        return Err("`latency_target` needs latency_window, the time for which each depth is tried".to_owned());
    };
    Ok(Some(DepthSearch {
        target: Time(target),
        window: Time(window),
        percentile: options.latency_percentile.unwrap_or(100.0),
        depth,
        continues: options.latency_run,
    }))
}
