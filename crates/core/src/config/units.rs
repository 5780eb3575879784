//! Quantities that are written with their unit: `"20us"`, `"16KiB"`, `"800MT/s"`, `"3.5GB/s"`, `"5%"`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::sim::time::{Time, transfer_time};

/// Splits `"12.5us"` into its digits, the number of digits after the point, and its unit.
fn number_and_unit(text: &str) -> Result<(u128, u32, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: String = whole.chars().chain(fraction.chars()).filter(|c| *c != '_').collect();
    let fraction_digits = fraction.chars().filter(char::is_ascii_digit).count() as u32;
    if digits.is_empty() || digits.len() > 30 || digits.contains('.') {
        return Err(format!("`{text}` does not start with a number"));
    }
    Ok((digits.parse().map_err(|_| format!("`{text}` does not start with a number"))?, fraction_digits, unit.trim()))
}

/// Returns the value of `"12.5us"` in the base unit. Fails if that is not a whole number, or is too large.
fn scaled(text: &str, units: &[(&str, u128)], what: &str, example: &str) -> Result<u64, String> {
    let (digits, fraction_digits, unit) = number_and_unit(text)?;
    let size = units.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size).ok_or_else(|| {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        format!("`{text}` is not a {what}: expected a number with one of {}, like \"{example}\"", names.join(", "))
    })?;
    let divisor = 10u128.checked_pow(fraction_digits).ok_or_else(|| format!("`{text}` has too many digits"))?;
    let product = digits.checked_mul(size).ok_or_else(|| format!("`{text}` is too large"))?;
    if product % divisor != 0 {
        let base = units.iter().find(|(_, size)| *size == 1);
        let base = base.map_or(String::new(), |(name, _)| format!(": it is not a whole number of {name}"));
        return Err(format!("`{text}` is finer than the simulator resolves{base}"));
    }
    u64::try_from(product / divisor).map_err(|_| format!("`{text}` is too large"))
}

/// Returns the value of `"12.5us"` in the base unit of the quantity, and that unit. `None` for another text.
pub(super) fn in_base_unit(text: &str) -> Option<(u64, &'static str)> {
    [TIMES, SIZES, RATES, FREQUENCIES, BANDWIDTHS, ENERGIES, POWERS].into_iter().find_map(|units| {
        let value = scaled(text, units, "quantity", "").ok()?;
        Some((value, units.iter().find(|(_, size)| *size == 1)?.0))
    })
}

/// Formats `value` in the largest unit in which it is a whole number.
fn in_largest(value: u64, units: &[(&str, u128)]) -> String {
    let fits = |size: u128| size > 0 && u128::from(value).is_multiple_of(size);
    match units.iter().filter(|(_, size)| fits(*size)).max_by_key(|(_, size)| *size) {
        Some((name, size)) if value > 0 => format!("{}{name}", u128::from(value) / size),
        _ => format!("{value}{}", units[0].0),
    }
}

/// Declares a quantity: a `u64` in a base unit, which is written with its unit.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $what:literal, $example:literal, parse $parse:expr, print $print:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                scaled(text, $parse, $what, $example).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(&in_largest(self.0, $print))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                        write!(f, "a {} with its unit, like \"{}\"", $what, $example)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let units: Vec<&str> = $parse.iter().map(|(name, _)| *name).collect();
                schemars::json_schema!({
                    "description": format!("{}, like {:?}; units {}", $what, $example, units.join(", ")),
                    "type": "string",
                    "pattern": format!("^[0-9_]+(\\.[0-9]+)? ?({})$", units.join("|")),
                    "examples": [$example],
                })
            }
        }
    };
}

const TIMES: &[(&str, u128)] =
    &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
const SIZES: &[(&str, u128)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
const BINARY_SIZES: &[(&str, u128)] =
    &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
const RATES: &[(&str, u128)] = &[("T/s", 1), ("kT/s", 1_000), ("MT/s", 1_000_000), ("GT/s", 1_000_000_000)];
const FREQUENCIES: &[(&str, u128)] = &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];
const BANDWIDTHS: &[(&str, u128)] = &[
    ("B/s", 1),
    ("KB/s", 1_000),
    ("MB/s", 1_000_000),
    ("GB/s", 1_000_000_000),
    ("KiB/s", 1 << 10),
    ("MiB/s", 1 << 20),
    ("GiB/s", 1 << 30),
];
const ENERGIES: &[(&str, u128)] = &[
    ("fJ", 1),
    ("pJ", 1_000),
    ("nJ", 1_000_000),
    ("uJ", 1_000_000_000),
    ("mJ", 1_000_000_000_000),
    ("J", 1_000_000_000_000_000),
];
const POWERS: &[(&str, u128)] = &[("nW", 1), ("uW", 1_000), ("mW", 1_000_000), ("W", 1_000_000_000)];

quantity!(
    /// Time in picoseconds, written `"25us"` or `"1.5ms"`.
    Duration, "time", "25us", parse TIMES, print TIMES
);
quantity!(
    /// Size in bytes, written `"4KiB"` or `"27GB"`.
    Bytes, "size", "4KiB", parse SIZES, print BINARY_SIZES
);
quantity!(
    /// Transfers per second, written `"800MT/s"`.
    TransferRate, "transfer rate", "800MT/s", parse RATES, print RATES
);
quantity!(
    /// Bytes per second, written `"3.5GB/s"`.
    Bandwidth, "bandwidth", "3.5GB/s", parse BANDWIDTHS, print &BANDWIDTHS[..4]
);

quantity!(
    /// Cycles per second, written `"100MHz"`.
    Frequency, "frequency", "100MHz", parse FREQUENCIES, print FREQUENCIES
);
quantity!(
    /// Energy in femtojoules, written `"50uJ"`.
    Energy, "energy", "50uJ", parse ENERGIES, print ENERGIES
);
quantity!(
    /// Power in nanowatts, written `"5mW"`.
    Power, "power", "5mW", parse POWERS, print POWERS
);

impl Duration {
    /// Returns the duration as simulated time.
    pub const fn time(self) -> Time {
        Time(self.0)
    }

    /// Returns `true` for no time.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

/// Single value, or a list of values.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// Single value for all.
    One(T),
    /// List of values, one for each.
    Many(Vec<T>),
}

// Not derived, because serde's untagged enums report only "data did not match any variant".
impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a value with its unit, like \"25us\", or a list of them")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMany<T>, E> {
                T::deserialize(serde::de::value::StrDeserializer::new(text)).map(OneOrMany::One)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = items.next_element()? {
                    values.push(value);
                }
                Ok(OneOrMany::Many(values))
            }
        }
        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}

impl<T: Copy> OneOrMany<T> {
    /// Returns the value for `index`. A list is repeated.
    pub fn get(&self, index: usize) -> T {
        match self {
            OneOrMany::One(value) => *value,
            OneOrMany::Many(values) => values[index % values.len()],
        }
    }

    /// Returns all values.
    pub fn values(&self) -> Vec<T> {
        match self {
            OneOrMany::One(value) => vec![*value],
            OneOrMany::Many(values) => values.clone(),
        }
    }
}

/// Number of blocks in a plane, or a share of the blocks written `"5%"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockCount {
    /// Number of blocks.
    Blocks(u32),
    /// Share of the blocks, in units of 1/10,000: `"5%"` is 500.
    Share(u32),
}

impl BlockCount {
    /// Returns the number of blocks in a plane of `blocks` blocks. A share is rounded up.
    pub fn of(self, blocks: u32) -> u32 {
        match self {
            BlockCount::Blocks(n) => n,
            BlockCount::Share(s) => (u64::from(blocks) * u64::from(s)).div_ceil(10_000) as u32,
        }
    }
}

impl FromStr for BlockCount {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let share = scaled(text, &[("%", 100)], "share of the blocks", "5%")?;
        u32::try_from(share)
            .ok()
            .filter(|s| *s <= 10_000)
            .map(BlockCount::Share)
            .ok_or_else(|| format!("`{text}` is over 100%"))
    }
}

impl fmt::Display for BlockCount {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            BlockCount::Blocks(n) => n.fmt(f),
            BlockCount::Share(s) if s % 100 == 0 => write!(f, "{}%", s / 100),
            BlockCount::Share(s) if s % 10 == 0 => write!(f, "{}.{}%", s / 100, s % 100 / 10),
            BlockCount::Share(s) => write!(f, "{}.{:02}%", s / 100, s % 100),
        }
    }
}

impl Serialize for BlockCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            BlockCount::Blocks(n) => serializer.serialize_u32(*n),
            BlockCount::Share(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for BlockCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = BlockCount;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number of blocks, like 4, or a share, like \"5%\"")
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<BlockCount, E> {
                u32::try_from(n)
                    .map(BlockCount::Blocks)
                    .map_err(|_| E::custom(format!("{n} is not a number of blocks")))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<BlockCount, E> {
                u32::try_from(n)
                    .map(BlockCount::Blocks)
                    .map_err(|_| E::custom(format!("{n} is not a number of blocks")))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<BlockCount, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl schemars::JsonSchema for BlockCount {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BlockCount".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 0, "description": "a number of blocks" },
            { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?%$", "description": "a share of the plane's blocks" },
        ]})
    }
}

/// Cost of a step of the firmware: a number of instructions, or a time written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareCost {
    /// Number of instructions. A core executes one per clock cycle.
    Instructions(u32),
    /// Time, whatever the clock frequency.
    Time(Duration),
}

impl FirmwareCost {
    /// Returns the time of the step on a core with this clock, rounded up once.
    pub const fn time(self, clock: Frequency) -> Time {
        match self {
            FirmwareCost::Instructions(count) => transfer_time(count as u64, clock.0),
            FirmwareCost::Time(time) => time.time(),
        }
    }
}

impl fmt::Display for FirmwareCost {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            FirmwareCost::Instructions(count) => count.fmt(f),
            FirmwareCost::Time(time) => time.fmt(f),
        }
    }
}

impl Serialize for FirmwareCost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FirmwareCost::Instructions(count) => serializer.serialize_u32(*count),
            FirmwareCost::Time(time) => time.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for FirmwareCost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = FirmwareCost;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number of instructions, like 100, or a time, like \"1us\"")
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<FirmwareCost, E> {
                let count = u32::try_from(n).map_err(|_| E::custom(format!("{n} is not a number of instructions")))?;
                Ok(FirmwareCost::Instructions(count))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<FirmwareCost, E> {
                let count = u32::try_from(n).map_err(|_| E::custom(format!("{n} is too many instructions")))?;
                Ok(FirmwareCost::Instructions(count))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FirmwareCost, E> {
                text.parse().map(FirmwareCost::Time).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl schemars::JsonSchema for FirmwareCost {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FirmwareCost".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let time = generator.subschema_for::<Duration>();
        schemars::json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 0, "description": "a number of instructions" },
            time,
        ]})
    }
}

/// Schema of a size that may be `"page"`, the page size.
pub struct PageOrBytes;

impl schemars::JsonSchema for PageOrBytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PageOrBytes".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let bytes = Bytes::json_schema(generator);
        let text = |key: &str| bytes.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        schemars::json_schema!({
            "description": format!("{}, or \"page\"", text("description")),
            "type": "string",
            "pattern": format!("{}|^page$", text("pattern")),
            "examples": ["page"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_exact() {
        assert_eq!("1.5ms".parse(), Ok(Duration(1_500_000_000)));
        assert_eq!(
            "0.0005ns".parse::<Duration>(),
            Err("`0.0005ns` is finer than the simulator resolves: it is not a whole number of ps".to_owned())
        );
        assert_eq!("16KiB".parse(), Ok(Bytes(16_384)));
        assert_eq!("1.875 GiB".parse(), Ok(Bytes(2_013_265_920)));
        assert_eq!("800MT/s".parse(), Ok(TransferRate(800_000_000)));
        assert_eq!("3.5GB/s".parse(), Ok(Bandwidth(3_500_000_000)));
        assert_eq!("5%".parse(), Ok(BlockCount::Share(500)));
    }

    #[test]
    fn printed_values_parse_back() {
        for ps in [0, 1, 999, 25_000, 1_500_000_000, 20_000_000, 3_000_000_000_000] {
            assert_eq!(Duration(ps).to_string().parse(), Ok(Duration(ps)));
        }
        assert_eq!(Duration(1_500_000_000).to_string(), "1500us");
        for bytes in [0, 1, 512, 4096, 4097, 27_000_000_000, 1 << 40] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn shares_print_as_they_are_written() {
        for text in ["0%", "0.05%", "0.5%", "5%", "12.34%", "100%"] {
            assert_eq!(text.parse::<BlockCount>().map(|share| share.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn errors_name_the_units() {
        let error = "25".parse::<Duration>().unwrap_err();
        assert!(error.contains("ps, ns, us, ms, s") && error.contains("\"25us\""), "{error}");
        assert!("us".parse::<Duration>().unwrap_err().contains("does not start with a number"));
        assert!("101%".parse::<BlockCount>().is_err());
    }

    #[test]
    fn shares_of_blocks_round_up() {
        assert_eq!(BlockCount::Share(500).of(2048), 103);
        assert_eq!(BlockCount::Share(500).of(100), 5);
        assert_eq!(BlockCount::Blocks(7).of(100), 7);
    }
}
