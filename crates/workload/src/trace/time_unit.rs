//! Units of the times in a trace.

use std::fmt;
use std::str::FromStr;

/// Unit of a trace's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeUnit {
    /// Picoseconds.
    Ps,
    /// Nanoseconds.
    Ns,
    /// 100 ns, as in Windows file times.
    HundredNs,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    const NAMES: &[(&str, TimeUnit)] = &[
        ("ps", TimeUnit::Ps),
        ("ns", TimeUnit::Ns),
        ("100ns", TimeUnit::HundredNs),
        ("us", TimeUnit::Us),
        ("ms", TimeUnit::Ms),
        ("s", TimeUnit::S),
    ];

    /// Returns the power of ten of this unit, in ps.
    pub const fn exponent(self) -> u32 {
        match self {
            TimeUnit::Ps => 0,
            TimeUnit::Ns => 3,
            TimeUnit::HundredNs => 5,
            TimeUnit::Us => 6,
            TimeUnit::Ms => 9,
            TimeUnit::S => 12,
        }
    }

    /// Formats a time in ps as an exact decimal number of this unit.
    pub(super) fn decimal(self, ps: u128) -> String {
        let unit = 10_u128.pow(self.exponent());
        let fraction = format!("{:0width$}", ps % unit, width = self.exponent() as usize);
        // Padding to zero digits still prints the remainder, which is 0.
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}", ps / unit)
    }

    /// Formats a time in ps exactly, with this unit.
    pub(super) fn write(self, ps: u128) -> String {
        // `100ns` directly after a number would look like one number.
        let between = if self == TimeUnit::HundredNs { " x " } else { " " };
        format!("{}{between}{self}", self.decimal(ps))
    }
}

impl FromStr for TimeUnit {
    type Err = String;
    fn from_str(text: &str) -> Result<TimeUnit, String> {
        one_of("time unit", text, TimeUnit::NAMES, "")
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = TimeUnit::NAMES.iter().find(|(_, unit)| unit == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// Returns the value with a name, or an error that lists all names.
pub(super) fn one_of<T: Copy>(what: &str, text: &str, names: &[(&str, T)], more: &str) -> Result<T, String> {
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("`{text}` is no {what}; choose one of {}{more}", names.join(", "))
    })
}
