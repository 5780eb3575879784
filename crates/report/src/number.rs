//! Number formatting for reports and tables.

/// Formats a number with four significant digits. Numbers from 1,000 have all their digits, in groups of three.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    match size {
        s if s >= 999.95 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(size.round() as u64))
        }
        s if s >= 99.995 => format!("{value:.1}"),
        s if s >= 9.9995 => format!("{value:.2}"),
        s if s >= 0.1 => format!("{value:.3}"),
        0.0 => "0".to_owned(),
        s if s >= 1e-4 => format!("{value:.5}"),
        _ => format!("{value:.2e}"),
    }
}

/// Formats an integer in groups of three digits.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number, or returns a dash for `None`.
pub fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

/// Formats a share in percent, or returns a dash for `None`. A share below 0.1 percent has as many decimal places as
/// its first nonzero digit needs, so that it is not displayed as 0.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{} %", percentage(share)))
}

/// Formats a share in percent, without the percent sign.
pub fn percentage(share: f64) -> String {
    // Equal shares may differ by a rounding error, which is removed. Adding 0 turns -0 into 0.
    let percent = (share * 1e11).round() / 1e9 + 0.0;
    let limits = std::iter::successors(Some(0.1), |limit| Some(limit / 10.0)).take(8);
    let zeros = limits.take_while(|limit| percent != 0.0 && percent.abs() < *limit).count();
    format!("{percent:.0$}", zeros + 1)
}

/// Formats a number of bytes that is a power of two or close to one.
pub fn bytes(count: u64) -> String {
    floatgate_workload::quantity::readable(u128::from(count))
}

/// Unit of time for a table. All times of a column have the same unit, so that they can be compared at a glance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnit {
    /// Name of the unit.
    pub name: &'static str,
    /// Length in microseconds.
    pub us: f64,
    /// Decimal places that hold a nanosecond.
    digits: usize,
}

impl TimeUnit {
    /// Microseconds.
    pub const US: TimeUnit = TimeUnit { name: "us", us: 1.0, digits: 3 };

    /// Returns the unit for times up to `us` microseconds. Times below 10 ms are shown in microseconds, and times below
    /// 10 s in milliseconds.
    pub fn of(us: f64) -> TimeUnit {
        match us.abs() {
            us if us >= 1e7 => TimeUnit { name: "s", us: 1e6, digits: 9 },
            us if us >= 1e4 => TimeUnit { name: "ms", us: 1e3, digits: 6 },
            _ => TimeUnit::US,
        }
    }

    /// Returns the unit for the greatest of these times in microseconds.
    pub fn for_all(us: impl Iterator<Item = f64>) -> TimeUnit {
        TimeUnit::of(us.map(f64::abs).fold(0.0, f64::max))
    }

    /// Formats a time in microseconds in this unit, with three decimal places, or five for seconds.
    pub fn exact(self, us: f64) -> String {
        let digits = self.digits.div_ceil(2).max(3);
        format!("{:.digits$} {}", us / self.us, self.name)
    }

    /// Formats a point in time, given in microseconds, with nanosecond resolution.
    pub fn instant(self, us: f64) -> String {
        format!("{:.1$} {2}", us / self.us, self.digits, self.name)
    }
}

/// Formats a time in microseconds, in a suitable unit.
pub fn time(us: f64) -> String {
    let unit = TimeUnit::of(us);
    format!("{} {}", short(us / unit.us), unit.name)
}

/// Formats a number of picoseconds exactly, in a suitable unit: 175 ns, 251.375 us, 1.5 ms.
pub fn exact(ps: u64) -> String {
    let (unit, in_unit) = match ps {
        ps if ps >= 1_000_000_000_000 => ("s", 1_000_000_000_000),
        ps if ps >= 1_000_000_000 => ("ms", 1_000_000_000),
        ps if ps >= 1_000_000 => ("us", 1_000_000),
        _ => ("ns", 1_000),
    };
    format!("{} {unit}", decimal(ps, in_unit))
}

/// Formats an integer divided by a power of ten, without trailing zeros.
pub fn decimal(value: u64, by: u64) -> String {
    let digits = by.ilog10() as usize;
    let text = format!("{}.{:0digits$}", value / by, value % by);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a time in nanoseconds, in a suitable unit.
pub fn nanoseconds(ns: f64) -> String {
    let (scaled, unit) = match ns {
        n if n >= 1e9 => (n / 1e9, "s"),
        n if n >= 1e6 => (n / 1e6, "ms"),
        n if n >= 1e3 => (n / 1e3, "us"),
        n => (n, "ns"),
    };
    let digits = if scaled >= 99.5 || unit == "ns" { 0 } else { usize::from(scaled < 9.95) };
    format!("{scaled:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let values = [0.0, 0.000_012, 0.0123, 0.5, 9.87654, 42.0, 999.94, 999.96, 1_234_567.8, -1234.0, f64::NAN];
        let texts = values.map(short);
        let expected = ["0", "1.20e-5", "0.01230", "0.500", "9.877", "42.00", "999.9", "1,000", "1,234,568", "-1,234"];
        assert_eq!(texts[..10], expected);
        assert_eq!(texts[10], "-");
        assert_eq!([Some(0.256), Some(0.0), Some(1.0), None].map(percent), ["25.6 %", "0.0 %", "100.0 %", "-"]);
        assert_eq!([0.0005, 0.000_04, -0.0005, 0.3 - 0.1 - 0.2].map(percentage), ["0.05", "0.004", "-0.05", "0.0"]);
        assert_eq!([5.0, 9_999.0, 25_000.0, 2.5e8].map(time), ["5.000 us", "9,999 us", "25.00 ms", "250.0 s"]);
        assert_eq!(
            [1.0, 512.0, 1024.0, 65_536.0, 2e9].map(nanoseconds),
            ["1 ns", "512 ns", "1.0 us", "66 us", "2.0 s"]
        );
    }

    #[test]
    fn exact_times_have_no_trailing_zeros() {
        let texts = [0, 500, 175_000, 51_200_000, 251_375_000, 1_500_000_000, 10_000_000_000, 2_000_000_000_001];
        let expected = ["0 ns", "0.5 ns", "175 ns", "51.2 us", "251.375 us", "1.5 ms", "10 ms", "2.000000000001 s"];
        assert_eq!(texts.map(exact), expected);
        assert_eq!((decimal(100, 1), decimal(100, 1000)), ("100".to_owned(), "0.1".to_owned()));
    }

    #[test]
    fn times_have_the_unit_of_the_longest() {
        let unit = TimeUnit::for_all([3.0, 12_345.678_9].into_iter());
        assert_eq!((unit.exact(3.0), unit.exact(12_345.678_9)), ("0.003 ms".to_owned(), "12.346 ms".to_owned()));
        assert_eq!(TimeUnit::of(2e7).exact(1_234_567.8), "1.23457 s");
        let instants = [12.345, 12_345.678, 12_345_678.901].map(|us| TimeUnit::of(us).instant(us));
        assert_eq!(instants, ["12.345 us", "12.345678 ms", "12.345678901 s"]);
    }
}
