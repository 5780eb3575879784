//! Parsing of the fields of a line, byte by byte, without strings or floats.

/// Error: the expected content of a line that could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected(pub(super) &'static str);

/// Number of stored digits of a fraction. More than any unit needs for rounding to picoseconds (13 for seconds).
const KEPT: u32 = 18;

/// Powers of ten that fit into 64 bits.
const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// A non-negative decimal number: the integer part, and up to 18 digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    whole: u64,
    fraction: u64,
    /// Number of digits in `fraction`.
    digits: u32,
}

impl Decimal {
    /// Creates a number without a fraction.
    pub(super) const fn whole(whole: u64) -> Decimal {
        Decimal { whole, fraction: 0, digits: 0 }
    }

    /// Creates the number of seconds of a number of picoseconds.
    pub(super) const fn of_ps(ps: u128) -> Decimal {
        const SECOND: u128 = 10u128.pow(12);
        Decimal { whole: (ps / SECOND) as u64, fraction: (ps % SECOND) as u64, digits: 12 }
    }

    /// Returns the number times 10^`exponent` (at most 12), rounded once with halves up. Otherwise exact, and cannot
    /// overflow.
    pub(super) fn scaled(self, exponent: u32) -> u128 {
        let fraction = if self.digits <= exponent {
            self.fraction * POWERS[(exponent - self.digits) as usize]
        } else {
            // Digits after the 18th cannot affect rounding at the 13th digit or before.
            let unit = POWERS[(self.digits - exponent) as usize];
            (self.fraction + unit / 2) / unit
        };
        u128::from(self.whole) * u128::from(POWERS[exponent as usize]) + u128::from(fraction)
    }
}

/// Rest of a line.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the value and the number of the leading digits. The value wraps for more than 19 digits.
    #[inline(always)]
    fn digits(&mut self) -> (u64, usize) {
        let mut value = 0_u64;
        let mut length = 0;
        while let Some(byte) = self.0.get(length) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            length += 1;
        }
        (value, length)
    }

    /// Parses an integer.
    // Inlining is forced, because parsing a field takes only a few cycles, and a call would take as many again.
    #[inline(always)]
    pub(super) fn integer(&mut self, what: &'static str) -> Result<u64, Expected> {
        let (mut value, length) = self.digits();
        let (digits, rest) = self.0.split_at(length);
        if length.wrapping_sub(1) > 18 {
            value = long_integer(digits).ok_or(Expected(what))?;
        }
        self.0 = rest;
        Ok(value)
    }

    /// Parses an integer below 2^32.
    #[inline]
    pub(super) fn device(&mut self) -> Result<u32, Expected> {
        const WHAT: &str = "a device number below 2^32";
        u32::try_from(self.integer(WHAT)?).map_err(|_| Expected(WHAT))
    }

    /// Parses a decimal number, with or without a fraction.
    #[inline(always)]
    pub(super) fn decimal(&mut self, what: &'static str) -> Result<Decimal, Expected> {
        let whole = if self.0.first() == Some(&b'.') { 0 } else { self.integer(what)? };
        let Some((b'.', rest)) = self.0.split_first() else {
            return Ok(Decimal::whole(whole));
        };
        self.0 = rest;
        let (fraction, length) = self.digits();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        match length as u32 {
            0 => Err(Expected(what)),
            digits @ 1..=KEPT => Ok(Decimal { whole, fraction, digits }),
            _ => Ok(Decimal { whole, fraction: kept_fraction(digits), digits: KEPT }),
        }
    }

    /// Parses a hexadecimal integer, with or without `0x`.
    pub(super) fn hexadecimal(&mut self, what: &'static str) -> Result<u64, Expected> {
        let text = self.word();
        let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
        if digits.is_empty() {
            return Err(Expected(what));
        }
        let mut value = 0_u64;
        for byte in digits {
            let digit = (*byte as char).to_digit(16).filter(|_| value >> 60 == 0).ok_or(Expected(what))?;
            value = value << 4 | u64::from(digit);
        }
        Ok(value)
    }

    /// Returns the bytes up to the next comma, space or tab.
    #[inline]
    pub(super) fn word(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| matches!(byte, b',' | b' ' | b'\t')).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    /// Skips spaces and tabs.
    #[inline]
    pub(super) fn blanks(&mut self) {
        while let Some((b' ' | b'\t', rest)) = self.0.split_first() {
            self.0 = rest;
        }
    }

    /// Skips a comma, and blanks around it.
    #[inline(always)]
    pub(super) fn comma(&mut self) -> Result<(), Expected> {
        self.blanks();
        let Some((b',', rest)) = self.0.split_first() else {
            return Err(Expected("a comma and a further field"));
        };
        self.0 = rest;
        self.blanks();
        Ok(())
    }

    /// Skips at least one space or tab. Fails unless another one of five columns follows.
    #[inline]
    pub(super) fn gap(&mut self) -> Result<(), Expected> {
        self.space("five columns")
    }

    /// Skips at least one space or tab. Fails at the end of the line.
    #[inline]
    pub(super) fn space(&mut self, what: &'static str) -> Result<(), Expected> {
        let before = self.0.len();
        self.blanks();
        if self.0.len() == before || self.0.is_empty() { Err(Expected(what)) } else { Ok(()) }
    }

    /// Checks that nothing is left except a comma and unused fields.
    #[inline]
    pub(super) fn rest(&mut self, what: &'static str) -> Result<(), Expected> {
        self.blanks();
        if matches!(self.0.first(), None | Some(b',')) { Ok(()) } else { Err(Expected(what)) }
    }

    /// Checks that only blanks are left.
    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Expected> {
        self.blanks();
        if self.0.is_empty() { Ok(()) } else { Err(Expected("the end of the line after the last column")) }
    }
}

/// Parses a field as an integer, in hexadecimal after `0x`.
pub(super) fn number(field: &[u8], what: &'static str) -> Result<u64, Expected> {
    let mut fields = Fields(field);
    let value = if field.starts_with(b"0x") { fields.hexadecimal(what)? } else { fields.integer(what)? };
    if fields.0.is_empty() { Ok(value) } else { Err(Expected(what)) }
}

/// Parses an integer with no digits (none) or with more than 19, which may not fit.
#[cold]
fn long_integer(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the first 18 digits of a longer fraction.
#[cold]
fn kept_fraction(digits: &[u8]) -> u64 {
    digits[..KEPT as usize].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scaled(text: &str, exponent: u32) -> Option<u128> {
        let mut fields = Fields(text.as_bytes());
        let decimal = fields.decimal("a time").ok()?;
        fields.end().ok()?;
        Some(decimal.scaled(exponent))
    }

    #[test]
    fn decimals_become_picoseconds_exactly() {
        assert_eq!(scaled("0.551706", 12), Some(551_706_000_000));
        assert_eq!(scaled("1532949.045363", 9), Some(1_532_949_045_363_000));
        assert_eq!(scaled("128166372003061629", 5), Some(12_816_637_200_306_162_900_000));
        assert_eq!(scaled("18446744073709551615", 12), Some(u128::from(u64::MAX) * 1_000_000_000_000));
        assert_eq!(scaled("00000000000000000000007", 0), Some(7));
        assert_eq!(scaled(".5", 3), Some(500));
        for bad in ["", ".", "5.", "-1", "1e3", "nan", "18446744073709551616", "1.2.3", "0x10"] {
            assert_eq!(scaled(bad, 3), None, "{bad}");
        }
    }

    #[test]
    fn more_digits_than_picoseconds_round_half_up() {
        assert_eq!(scaled("0.4", 0), Some(0));
        assert_eq!(scaled("0.5", 0), Some(1));
        assert_eq!(scaled("1.0004999999999999999999999999", 3), Some(1000));
        assert_eq!(scaled("1.0005", 3), Some(1001));
        assert_eq!(scaled("0.9999999999995", 12), Some(1_000_000_000_000));
        assert_eq!(scaled("0.9999999999994999999999999999999", 12), Some(999_999_999_999));
    }

    #[test]
    fn hexadecimal_flags() {
        let parse = |text: &'static str| Fields(text.as_bytes()).hexadecimal("flags");
        assert_eq!(parse("1"), Ok(1));
        assert_eq!(parse("0x1F"), Ok(31));
        assert_eq!(parse("ffffffffffffffff"), Ok(u64::MAX));
        for bad in ["", "0x", "g", "10000000000000000"] {
            assert_eq!(parse(bad), Err(Expected("flags")), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn integers_agree_with_the_standard_library(text in "[0-9]{0,25}") {
            prop_assert_eq!(Fields(text.as_bytes()).integer("a number").ok(), text.parse::<u64>().ok());
        }

        /// Compares with the definition in wide integers: floor(value * 10^exponent + 1/2).
        #[test]
        fn scaling_agrees_with_the_definition(
            whole in 0..1_000_000_u64,
            fraction in "[0-9]{1,18}",
            exponent in 0..13_u32,
        ) {
            let digits = fraction.len() as u32;
            let value = u128::from(whole) * 10_u128.pow(digits) + fraction.parse::<u128>().unwrap();
            let twice = 2 * value * 10_u128.pow(exponent);
            let expected = (twice / 10_u128.pow(digits)).div_ceil(2);
            let text = format!("{whole}.{fraction}");
            prop_assert_eq!(scaled(&text, exponent), Some(expected));
        }
    }
}
