//! Options for reading a trace.

use std::fmt;
use std::str::FromStr;

use super::columns::Columns;
use super::events::Action;
use super::format::Format;
use super::time_unit::{TimeUnit, one_of};
use crate::file::Stop;
use crate::sim::time::Time;

/// Options for reading a trace. The default detects the format, keeps the original times, and reads all requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceOptions {
    /// Name of the trace in messages. `None` for its path.
    pub called: Option<String>,
    /// Format. `None` to detect it from the first lines.
    pub format: Option<&'static Format>,
    /// Columns of a `delimited` trace, which is then the format.
    pub columns: Option<Columns>,
    /// Event of `blkparse` and `blktrace` that represents a request. `None` for the first of D, Q and I that occurs.
    pub action: Option<Action>,
    /// Unit of the trace's times. `None` for the unit of the format.
    pub time_unit: Option<TimeUnit>,
    /// Factor for all times: 0.5 issues the same requests twice as fast.
    pub time_scale: TimeScale,
    /// Maximum gap between two requests, in the trace's own time. Longer gaps are shortened. Above 0, and only for a
    /// timed replay.
    pub max_gap: Option<Time>,
    /// Pace of the replay.
    pub replay: Replay,
    /// Treatment of addresses beyond the end of the device.
    pub fit: Fit,
    /// Treatment of several devices in the trace.
    pub devices: Devices,
    /// Maximum number of requests.
    pub limit: Option<u64>,
    /// Number of positions by which a request may be out of timestamp order to be sorted. 0 requires requests in order.
    pub sort_window: u32,
    /// Maximum number of unreadable lines that are skipped.
    pub skip_bad_lines: u64,
    /// Flag that ends reading early, with an error.
    pub stop: Stop,
}

/// Value of `--format`: a name, followed by columns for `delimited`.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatChoice {
    /// The format.
    pub format: &'static Format,
    /// Columns of `delimited:COLUMNS`.
    pub columns: Option<Columns>,
}

impl FromStr for FormatChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<FormatChoice, String> {
        match text.strip_prefix("delimited:") {
            Some(columns) => Ok(FormatChoice { format: Format::named("delimited")?, columns: Some(columns.parse()?) }),
            None => Ok(FormatChoice { format: Format::named(text)?, columns: None }),
        }
    }
}

/// A positive factor for times, stored as a ratio of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeScale {
    numerator: u64,
    /// A power of ten.
    denominator: u64,
}

impl Default for TimeScale {
    fn default() -> TimeScale {
        TimeScale { numerator: 1, denominator: 1 }
    }
}

impl TimeScale {
    /// Scales a time, and rounds halves up. `None` beyond 64 bits.
    #[inline]
    pub(crate) fn apply(self, ps: u128) -> Option<u64> {
        if self == TimeScale::default() {
            return u64::try_from(ps).ok();
        }
        let product = ps.checked_mul(u128::from(self.numerator))?.checked_add(u128::from(self.denominator / 2))?;
        match u64::try_from(product) {
            // 64-bit division is much faster than 128-bit division, and usually sufficient.
            Ok(product) => Some(product / self.denominator),
            Err(_) => u64::try_from(product / u128::from(self.denominator)).ok(),
        }
    }
}

impl FromStr for TimeScale {
    type Err = String;
    fn from_str(text: &str) -> Result<TimeScale, String> {
        let error = || {
            format!("invalid time scale `{text}`: expected a positive decimal number of at most 18 digits, such as 0.5")
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error());
        }
        let numerator = digits.parse().map_err(|_| error())?;
        if numerator == 0 {
            return Err(error());
        }
        Ok(TimeScale { numerator, denominator: 10_u64.pow(fraction.len() as u32) })
    }
}

impl fmt::Display for TimeScale {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (whole, rest) = (self.numerator / self.denominator, self.numerator % self.denominator);
        match self.denominator.ilog10() as usize {
            0 => write!(f, "{whole}"),
            width => write!(f, "{whole}.{rest:0width$}"),
        }
    }
}

/// Pace at which a trace's requests are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// Each request at its recorded time, regardless of the device.
    #[default]
    Timed,
    /// All requests as soon as possible, with as many outstanding as the device accepts.
    Asap,
    /// This number of requests outstanding at any time. The next one is issued after each completion.
    Depth(u32),
}

impl FromStr for Replay {
    type Err = String;
    fn from_str(text: &str) -> Result<Replay, String> {
        match text.strip_prefix("depth=").map(str::parse) {
            Some(Ok(depth @ 1..)) => Ok(Replay::Depth(depth)),
            Some(_) => {
                Err(format!("invalid replay `{text}`: the depth must be a whole number from 1, such as depth=32"))
            }
            None => one_of("replay", text, &[("timed", Replay::Timed), ("asap", Replay::Asap)], ", depth=N"),
        }
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Replay::Timed => f.write_str("timed"),
            Replay::Asap => f.write_str("asap"),
            Replay::Depth(depth) => write!(f, "depth={depth}"),
        }
    }
}

/// Treatment of addresses beyond the end of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Report an error.
    #[default]
    Refuse,
    /// Take addresses modulo the device's size. A request that would then cross the end of the device starts at 0.
    Wrap,
    /// Place the touched 4 KiB pages of the trace densely from 0, in order of address. The trace is read twice.
    Compact,
}

impl Fit {
    const NAMES: &[(&str, Fit)] = &[("refuse", Fit::Refuse), ("wrap", Fit::Wrap), ("compact", Fit::Compact)];
}

impl FromStr for Fit {
    type Err = String;
    fn from_str(text: &str) -> Result<Fit, String> {
        one_of("fit", text, Fit::NAMES, "")
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(Fit::NAMES.iter().find(|(_, fit)| fit == self).map_or("", |(name, _)| name))
    }
}

/// Treatment of several devices in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Devices {
    /// Place the devices one after the other, in order of their names. The trace is read twice.
    #[default]
    SideBySide,
    /// Read only the devices with these names. If there are several, place them one after the other.
    Select(Vec<String>),
    /// Use one address space for all devices, with the original addresses.
    Merge,
}

impl FromStr for Devices {
    type Err = String;
    fn from_str(text: &str) -> Result<Devices, String> {
        match text {
            "side-by-side" => return Ok(Devices::SideBySide),
            "merge" => return Ok(Devices::Merge),
            _ => {}
        }
        let in_brackets = || text.strip_prefix("select(").and_then(|rest| rest.strip_suffix(')'));
        let names = text.strip_prefix("select=").or_else(in_brackets).ok_or_else(|| {
            format!("`{text}` is no way to treat devices; choose one of side-by-side, merge, select=NAME,NAME,...")
        })?;
        let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err(format!("`{text}` names no device; write for example select=0,3"));
        }
        Ok(Devices::Select(names))
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Devices::SideBySide => f.write_str("side-by-side"),
            Devices::Select(names) => write!(f, "select={}", names.join(",")),
            Devices::Merge => f.write_str("merge"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: FromStr<Err = String> + fmt::Display>(texts: &[&str]) {
        for text in texts {
            assert_eq!(text.parse::<T>().unwrap_or_else(|error| panic!("{error}")).to_string(), *text);
        }
    }

    #[test]
    fn what_is_printed_parses_back() {
        round_trip::<TimeUnit>(&["ps", "ns", "100ns", "us", "ms", "s"]);
        round_trip::<TimeScale>(&["1", "0.5", "12.25", "1000000", "0.00000000000000001"]);
        round_trip::<Replay>(&["timed", "asap", "depth=32"]);
        round_trip::<Fit>(&["refuse", "wrap", "compact"]);
        round_trip::<Devices>(&["side-by-side", "merge", "select=0", "select=hm_0,hm_1"]);
        assert_eq!("select(0, 3)".parse(), Ok(Devices::Select(vec!["0".into(), "3".into()])));
    }

    #[test]
    fn columns_follow_their_format() {
        let choice: FormatChoice = "delimited:columns=offset,size;offset=bytes;size=bytes;all=read".parse().unwrap();
        assert_eq!((choice.format.name, choice.columns.is_some()), ("delimited", true));
        assert_eq!("spc".parse::<FormatChoice>().map(|choice| choice.format.name), Ok("spc"));
        assert!("delimited:x=1".parse::<FormatChoice>().unwrap_err().contains("unknown key `x`"));
        assert!("spc:x=1".parse::<FormatChoice>().unwrap_err().contains("unknown trace format"));
    }

    #[test]
    fn errors_list_what_is_allowed() {
        let says = |error: String, words: &str| assert!(error.contains(words), "{error}");
        says("min".parse::<TimeUnit>().unwrap_err(), "ps, ns, 100ns, us, ms, s");
        says("fast".parse::<Replay>().unwrap_err(), "timed, asap, depth=N");
        says("depth=0".parse::<Replay>().unwrap_err(), "depth=32");
        says("clip".parse::<Fit>().unwrap_err(), "refuse, wrap, compact");
        says("0,3".parse::<Devices>().unwrap_err(), "side-by-side, merge, select=");
        says("select=".parse::<Devices>().unwrap_err(), "select=0,3");
        for bad in ["0", "-1", "", ".", "1e3", "0.0", "1234567890123456789"] {
            says(bad.parse::<TimeScale>().unwrap_err(), "positive decimal number");
        }
    }

    #[test]
    fn scaling_is_exact() {
        let scale = |text: &str, ps| text.parse::<TimeScale>().unwrap().apply(ps);
        assert_eq!(scale("1", u128::from(u64::MAX)), Some(u64::MAX));
        assert_eq!(scale("1", 1 << 64), None);
        assert_eq!(scale("0.1", 1 << 64), Some(1_844_674_407_370_955_162));
        assert_eq!(scale("0.5", 3), Some(2));
        assert_eq!(scale("0.3", 3), Some(1));
        assert_eq!(scale("1000000", 1 << 40), Some(1_000_000 << 40));
        assert_eq!(scale("100000000000000000", u128::MAX), None);
        // A float would be off by 128 here.
        assert_eq!(scale("1.1", 10_000_000_000_000_001_000), Some(11_000_000_000_000_001_100));
    }

    #[test]
    fn times_are_written_in_the_traces_unit() {
        assert_eq!(TimeUnit::Ms.write(5_265_703_000_000), "5265.703 ms");
        assert_eq!(TimeUnit::HundredNs.write(12_300_000), "123 x 100ns");
        assert_eq!(TimeUnit::Ps.write(70), "70 ps");
        assert_eq!(TimeUnit::S.write(0), "0 s");
    }
}
