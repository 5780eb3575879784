//! Description of a job in one line, and warnings about options without effect.

use super::SECTOR;
use super::directions::directions;
use super::limits::Limits;
use super::options::{Kind, Modifier, Options, Pattern, Rw};
use super::region::{Region, region_text};
use super::size::Sizes;
use super::texts::bytes_text;

/// Returns warnings about options without effect, or with another effect than expected.
pub(super) fn warnings(options: &Options, name: &str, pattern: Pattern, limits: Limits, unit: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |when: bool, text: String| {
        if when {
            warnings.push(format!("{name}: {text}"));
        }
    };
    let rw = pattern.name;
    let given = |key: &str| options.given.contains(key);
    let has_rate = options.rate.is_some() || options.rate_iops.is_some();
    let mix_given = given("rwmixread") || given("rwmixwrite");
    warn(mix_given && pattern.kind != Kind::Mixed, format!("rwmixread and rwmixwrite have no effect on rw={rw}"));
    let both = pattern.kind == Kind::Mixed && !matches!(options.rwmixread, Some(0 | 100));
    warn(
        mix_given && has_rate && both,
        "rwmixread and rwmixwrite have no effect with a rate: as in fio, each direction has its own, like \
         rate_iops=700,300"
            .to_owned(),
    );
    for key in ["norandommap", "random_distribution", "blockalign", "percentage_random"] {
        warn(given(key) && !pattern.random, format!("{key} has no effect on rw={rw}, which is sequential"));
    }
    for key in ["fsync", "fdatasync", "end_fsync", "sync"] {
        let writes = !matches!(pattern.kind, Kind::Read | Kind::Trim);
        warn(given(key) && !writes, format!("{key} has no effect on rw={rw}, which does not write"));
    }
    let run = matches!(options.rw, Some(Rw { modifier: Modifier::Run(_), .. }));
    warn(given("rw_sequencer") && !run, "rw_sequencer needs a number of requests, like rw=randread:8".to_owned());
    warn(given("bs") && given("bssplit"), "bs is overridden by bssplit".to_owned());
    warn(given("bs") && given("bsrange") && !given("bssplit"), "bs is overridden by bsrange".to_owned());
    warn(given("bsrange") && given("bssplit"), "bsrange is overridden by bssplit".to_owned());
    warn(given("rate_process") && !has_rate, "rate_process needs rate_iops or rate".to_owned());
    for key in ["thinktime_blocks", "thinktime_iotime"] {
        warn(given(key) && options.thinktime.unwrap_or(0) == 0, format!("{key} needs thinktime"));
    }
    for key in ["replay_time_scale", "replay_no_stall", "replay_redirect"] {
        warn(given(key), format!("{key} needs read_iolog"));
    }
    let one = options.numjobs.unwrap_or(1) == 1;
    warn(given("offset_increment") && one, "offset_increment needs numjobs".to_owned());
    warn(given("io_size") && options.time_based, "io_size has no effect with time_based".to_owned());
    let Limits { requests, bytes, .. } = limits;
    let unreached = requests != u64::MAX && bytes != u64::MAX && requests.saturating_sub(1) >= bytes.div_ceil(unit);
    warn(
        unreached,
        format!(
            "number_ios={requests} is not reached: as in fio, size ends the job after {}; set io_size",
            bytes_text(bytes)
        ),
    );
    warnings
}

/// Returns the text of [`Synthetic::description`].
pub(super) fn describe(name: &str, options: &Options, pattern: Pattern, sizes: &Sizes, region: &Region) -> String {
    let size = match sizes {
        Sizes::Fixed(sectors) => bytes_text(u64::from(*sectors) * SECTOR),
        Sizes::Split(_) | Sizes::Range(..) => {
            let ends = (u64::from(sizes.min()) * SECTOR, u64::from(sizes.max()) * SECTOR);
            format!("{} to {}", bytes_text(ends.0), bytes_text(ends.1))
        }
    };
    let list = |rates: [Option<u64>; 3], text: fn(u64) -> String| match (pattern.kind, rates) {
        (Kind::Mixed, [Some(reads), Some(writes), _]) if reads != writes => {
            format!("{} reads and {} writes", text(reads), text(writes))
        }
        (Kind::Mixed, rates) => format!("{} in each direction", text(rates.into_iter().flatten().next().unwrap_or(0))),
        (kind, rates) => text(rates[directions(kind)[0]].unwrap_or(0)),
    };
    let rate = match (options.rate, options.rate_iops) {
        (Some(rates), _) => Some(list(rates, bytes_text)),
        (None, rates) => rates.map(|rates| list(rates, |rate| rate.to_string())),
    };
    let pace = match (rate, options.iodepth) {
        (Some(rate), depth) => {
            let process = options.rate_process.unwrap_or_default().name();
            let depth = depth.map_or(String::new(), |depth| format!(", at most {depth} outstanding"));
            format!("{rate} per second ({process}){depth}")
        }
        (None, depth) => format!("{} outstanding", depth.unwrap_or(1)),
    };
    let said = options.description.as_ref().map_or(String::new(), |said| format!(" ({said})"));
    format!("{name}: {} of {size} in {}, {pace}{said}", pattern.name, region_text(region))
}
