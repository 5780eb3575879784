//! Numbers for people.

/// A number with four significant digits, or all digits of a greater one, in groups of three.
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

/// A whole number in groups of three digits.
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

/// A number, or a dash where there is none.
pub fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

/// A share as per cent, or a dash where there is none.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// A number of bytes that is a power of two or close to one.
pub fn bytes(count: u64) -> String {
    floatgate_core::workload::readable(u128::from(count))
}

/// A time in nanoseconds, in the unit that suits it.
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
        assert_eq!([Some(0.256), None].map(percent), ["25.6 %", "-"]);
        assert_eq!(
            [1.0, 512.0, 1024.0, 65_536.0, 2e9].map(nanoseconds),
            ["1 ns", "512 ns", "1.0 us", "66 us", "2.0 s"]
        );
    }
}
