//! Parsing of sizes and times in workloads, and formatting of sizes.

use crate::sim::request::SECTOR;

/// Units of sizes, in bytes. `KB` and similar units are powers of 1000, as in device files. Single letters are powers
/// of 1024, as in jobs.
const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Units of times, in ps.
const TIMES: &[(&str, u64)] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("", 1_000_000_000_000),
    ("s", 1_000_000_000_000),
    ("m", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
    ("d", 86_400_000_000_000_000),
];

/// Parses a non-negative decimal number with a unit. Returns it in the smallest unit, with halves rounded up.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 18 || digits.contains('.') {
        return None;
    }
    let over = 10_u128.pow(fraction.len() as u32);
    let product = digits.parse::<u128>().ok()? * u128::from(*scale);
    u64::try_from((product + over / 2) / over).ok()
}

/// Parses a number of bytes, such as `10GiB`, `4k` or `512`.
pub fn bytes(text: &str) -> Result<u64, String> {
    scaled(text, SIZES).ok_or_else(|| {
        format!("invalid size `{text}`: expected bytes, or a number with KiB, MiB, GiB or TiB, such as 10GiB")
    })
}

/// Parses a size as a number of sectors. A percentage refers to `whole` sectors, and less than 100% is rounded down to
/// 1 MiB.
pub fn sectors(text: &str, whole: u64) -> Result<u64, String> {
    const MEBIBYTE: u64 = (1 << 20) / SECTOR;
    if let Some(percent) = text.strip_suffix('%') {
        let parts = scaled(percent, &[("", 1_000_000)]).filter(|parts| *parts <= 100_000_000);
        let parts = parts.ok_or_else(|| format!("invalid percentage `{text}`: expected 0% to 100%"))?;
        if parts == 100_000_000 {
            return Ok(whole);
        }
        let sectors = u128::from(whole) * u128::from(parts) / 100_000_000;
        return Ok(sectors as u64 / MEBIBYTE * MEBIBYTE);
    }
    let bytes = bytes(text)?;
    if bytes.is_multiple_of(SECTOR) {
        return Ok(bytes / SECTOR);
    }
    Err(format!("invalid size `{text}`: {} is not a multiple of the sector size of 512 B", readable(u128::from(bytes))))
}

/// Parses a time in ps, such as `5s` or `8.19ms`. Without a unit, the number is in seconds.
pub fn time(text: &str) -> Result<u64, String> {
    scaled(text, TIMES).ok_or_else(|| {
        format!(
            "invalid time `{text}`: expected seconds, or a number with ns, us, ms, s, m, h or d, such as 5s, up to 213 days"
        )
    })
}

/// Formats a number of bytes in the largest unit that does not exceed it, as a whole number or with two decimals, such
/// as `32 GiB` or `14.40 GiB`.
pub fn readable(bytes: u128) -> String {
    let units = [("EiB", 60), ("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
    let (unit, shift) = units.into_iter().find(|(_, shift)| bytes >> shift > 0).unwrap_or(("B", 0));
    let size = 1u128 << shift;
    if bytes.is_multiple_of(size) {
        return format!("{} {unit}", bytes >> shift);
    }
    let hundredths = (bytes.saturating_mul(100) + size / 2) >> shift;
    format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        assert_eq!(
            ["512", "4k", "2.25KiB", "10GiB", "1GB", "1t"].map(bytes),
            [Ok(512), Ok(4096), Ok(2304), Ok(10 << 30), Ok(1_000_000_000), Ok(1 << 40)]
        );
        assert_eq!(
            ["5", "8.19ms", "513us", "2h"].map(time),
            [Ok(5_000_000_000_000), Ok(8_190_000_000), Ok(513_000_000), Ok(7_200_000_000_000_000)]
        );
        assert_eq!(sectors("1MiB", 0), Ok(2048));
        assert_eq!(sectors("50%", 10_000), Ok(4096));
        for bad in ["", "k", "-1", "1.2.3", "4x", "1e3", "99999999t", "."] {
            assert!(bytes(bad).unwrap_err().contains("10GiB"), "{bad}");
            assert!(time(bad).unwrap_err().contains("5s"), "{bad}");
        }
        assert!(sectors("513", 0).unwrap_err().contains("multiple of the sector size"));
        assert!(sectors("101%", 8).unwrap_err().contains("percentage"));
    }
}
