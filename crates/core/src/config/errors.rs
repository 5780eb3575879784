//! Errors of read data: their rate, the code that corrects them, read retries, and the age of the data.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::Check;
use super::units::{Bytes, Duration};
use super::{DeviceConfig, limits};

/// Maximum number of read retries: results have a number of reads for each.
pub const MAX_RETRIES: u32 = 31;

/// Errors of read data, their correction, and read retries (docs/model/errors.md). Without this table, all data are
/// read without errors. Requires a table `faults`, because reads may be uncorrectable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorsConfig {
    /// Time for which all data have been in flash when the run starts, and the temperature during this time, such as
    /// `"3 months at 40C"`. Units are h, day, week, month (730 h) and year (8760 h). Default of the temperature:
    /// `errors.temperature`.
    pub age: Age,
    /// Number of erases of each block before those that are counted. They affect error rates only.
    pub cycles: u32,
    /// Temperature of the flash during the run, in degrees Celsius.
    #[schemars(range(min = -40.0, max = 125.0))]
    pub temperature: f64,
    /// Raw bit error rate.
    pub rate: ErrorRate,
    /// Error correction.
    pub ecc: Ecc,
    /// Read retries.
    pub retry: Retry,
    /// Refresh of blocks whose reads need many retries. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<RefreshConfig>,
}

impl Default for ErrorsConfig {
    fn default() -> Self {
        ErrorsConfig {
            age: Age::default(),
            cycles: 0,
            temperature: 40.0,
            rate: ErrorRate::default(),
            ecc: Ecc::default(),
            retry: Retry::default(),
            refresh: None,
        }
    }
}

/// Raw bit error rate of a page, with C erases of its block, D days since its program, and R reads of the block since
/// its erase for each of its pages: `base` + `wear` C^`wear_exponent` + `retention` C^`retention_wear`
/// D^`retention_time` + `disturb` C^`disturb_wear` R^`disturb_reads`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorRate {
    /// Rate of a page that was just programmed in a new block.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub base: f64,
    /// Coefficient of wear.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub wear: f64,
    /// Exponent of erases in the part of wear.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub wear_exponent: f64,
    /// Coefficient of retention.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub retention: f64,
    /// Exponent of erases in the part of retention.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub retention_wear: f64,
    /// Exponent of days at 30 degrees Celsius in the part of retention.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub retention_time: f64,
    /// Activation energy of retention in eV (Arrhenius), which converts time to time at 30 degrees Celsius.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub activation_energy: f64,
    /// Coefficient of read disturb.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub disturb: f64,
    /// Exponent of erases in the part of read disturb.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub disturb_wear: f64,
    /// Exponent of reads in the part of read disturb.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub disturb_reads: f64,
}

impl Default for ErrorRate {
    fn default() -> Self {
        ErrorRate {
            base: 1.48e-3,
            wear: 3.90e-10,
            wear_exponent: 2.05,
            retention: 7.4e-4,
            retention_wear: 0.14,
            retention_time: 0.54,
            activation_energy: 1.1,
            disturb: 3.73e-9,
            disturb_wear: 0.33,
            disturb_reads: 1.71,
        }
    }
}

/// Error correction code of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ecc {
    /// Data of a codeword.
    pub codeword: Bytes,
    /// Number of wrong bits of a codeword that are corrected.
    pub corrects: u32,
    /// Time from the end of the transfer of a page until its data are decoded. Decoders work on any number of pages at
    /// the same time.
    #[schemars(extend("x-range" = limits::TIME))]
    pub decode: Duration,
}

impl Default for Ecc {
    fn default() -> Self {
        Ecc { codeword: Bytes(1 << 10), corrects: 72, decode: Duration(20_000_000) }
    }
}

/// Read retries: a page with more wrong bits than the code corrects is read again, with other voltages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Maximum number of retries of a read. After them, the data are uncorrectable.
    #[schemars(range(max = MAX_RETRIES))]
    pub steps: u32,
    /// Factor by which each retry changes the raw bit error rate.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub factor: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { steps: MAX_RETRIES, factor: 0.9 }
    }
}

/// Refresh: the data of a block whose reads need many retries are moved in the background, and the block is erased.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefreshConfig {
    /// Number of retries of a read, at least 1 and at most `errors.retry.steps`, at or above which the block is
    /// refreshed.
    #[schemars(range(min = 1, max = MAX_RETRIES))]
    pub retries: u32,
}

/// Units of an age, with their hours.
const UNITS: [(&str, f64); 5] = [("h", 1.0), ("day", 24.0), ("week", 168.0), ("month", 730.0), ("year", 8760.0)];

/// Age of data at a temperature, written `"3 months at 40C"`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Age {
    amount: f64,
    unit: usize,
    celsius: Option<f64>,
}

impl Age {
    /// Returns the days, and the temperature if it is given.
    pub fn days(self) -> (f64, Option<f64>) {
        (self.amount * UNITS[self.unit].1 / 24.0, self.celsius)
    }
}

impl FromStr for Age {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let units = UNITS.map(|(name, _)| name).join(", ");
            format!(
                "`{text}` is not an age: expected a number with one of {units}, and possibly a temperature, like \"3 \
                 months at 40C\""
            )
        };
        let (age, celsius) = text.split_once(" at ").map_or((text, None), |(age, at)| (age, Some(at)));
        let split = age.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(wrong)?;
        let (amount, name) = (age[..split].parse().map_err(|_| wrong())?, age[split..].trim());
        let is_named = |unit: &(&str, f64)| unit.0 == name || (unit.0 != "h" && name.strip_suffix('s') == Some(unit.0));
        let unit = UNITS.iter().position(is_named).ok_or_else(wrong)?;
        let parsed = celsius.map(|at| at.trim().strip_suffix('C').and_then(|at| at.trim().parse::<f64>().ok()));
        let celsius = match parsed {
            None => None,
            Some(at) => Some(at.filter(|at| (-40.0..=125.0).contains(at)).ok_or_else(wrong)?),
        };
        let age = Age { amount, unit, celsius };
        if age.days().0 > 36_500.0 {
            return Err(format!("`{text}` is too long: an age has at most 100 years"));
        }
        Ok(age)
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Age { amount, unit, celsius } = *self;
        let plural = if unit > 0 && amount != 1.0 { "s" } else { "" };
        write!(f, "{amount} {}{plural}", UNITS[unit].0)?;
        celsius.map_or(Ok(()), |at| write!(f, " at {at}C"))
    }
}

impl Serialize for Age {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Age {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Age {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Age".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "time with one of h, day, week, month, year, and possibly a temperature",
            "type": "string",
            "pattern": "^[0-9]+(\\.[0-9]+)? ?(h|days?|weeks?|months?|years?)( at -?[0-9]+(\\.[0-9]+)?C)?$",
            "examples": ["3 months at 40C"],
        })
    }
}

impl Check<'_> {
    /// Checks errors against the other options.
    pub(super) fn errors(&mut self, device: &DeviceConfig) {
        let Some(errors) = &device.errors else { return };
        if device.faults.is_none() {
            let what = "reads may be uncorrectable: add a table [faults], which may be empty, or remove errors";
            self.refuse("errors", "a table", what);
        }
        let Ecc { codeword, corrects, .. } = errors.ecc;
        if codeword.0 == 0 || !device.page_bytes().is_multiple_of(codeword.0) {
            let what =
                format!("must be a divisor of the {} of a page that are transferred", Bytes(device.page_bytes()));
            self.refuse("errors.ecc.codeword", codeword, &what);
        } else if u64::from(corrects) >= 8 * codeword.0 {
            let what = format!("must be below the {} bits of a codeword", 8 * codeword.0);
            self.refuse("errors.ecc.corrects", corrects, &what);
        }
        let Some(RefreshConfig { retries }) = errors.refresh else { return };
        if retries > errors.retry.steps {
            let what = format!("must be at most errors.retry.steps = {}, or no block is refreshed", errors.retry.steps);
            self.refuse("errors.refresh.retries", retries, &what);
        }
        for (is_refused, path, value, what) in [
            (
                device.merges_blocks(),
                "mapping.scheme",
                device.mapping.scheme.name(),
                "keeps the blocks of data itself, so none can be refreshed; use page, or remove errors.refresh",
            ),
            (
                device.superblock.is_some(),
                "superblock",
                "a table",
                "has blocks that are erased together, so none can be refreshed alone; remove superblock or \
                 errors.refresh",
            ),
        ] {
            if is_refused {
                self.refuse(path, value, what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_parse_back_from_their_text() {
        for (text, days, celsius) in [
            ("3 months at 40C", 91.25, Some(40.0)),
            ("1 year", 365.0, None),
            ("0 h", 0.0, None),
            ("1.5 days at -5.5C", 1.5, Some(-5.5)),
            ("2 weeks", 14.0, None),
        ] {
            let age: Age = text.parse().unwrap();
            assert_eq!((age.days(), age.to_string()), ((days, celsius), text.to_owned()));
        }
        for text in
            ["", "3", "months", "3 moons", "3 months at 40", "3 months at 400C", "3 hs", "1..2 days", "101 years"]
        {
            assert!(text.parse::<Age>().is_err(), "{text}");
        }
        assert_eq!("36h".parse::<Age>().unwrap().to_string(), "36 h");
        assert_eq!(Age::default().to_string(), "0 h");
    }
}
