//! Share of the blocks of a device, written as a fraction.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Share of the blocks of a device, such as 1/16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    numerator: u32,
    denominator: u32,
}

impl Scale {
    /// Returns the scale 1/`denominator`.
    pub fn one_of(denominator: u32) -> Scale {
        Scale { numerator: 1, denominator }
    }

    /// Returns `true` if the scale is 1.
    pub fn is_whole(self) -> bool {
        self.numerator == self.denominator
    }

    /// Returns a number or a size, scaled and rounded to the nearest whole number.
    pub fn of(self, number: u64) -> u64 {
        let [numerator, denominator] = [self.numerator, self.denominator].map(u128::from);
        // The scale is at most 1, so the result is at most the number.
        ((u128::from(number) * numerator + denominator / 2) / denominator) as u64
    }

    /// Returns a number of blocks, scaled and rounded to the nearest whole number.
    pub fn of_blocks(self, blocks: u32) -> u32 {
        self.of(u64::from(blocks)) as u32
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let parse = |part: &str| part.trim().parse::<u32>().ok().filter(|number| *number > 0);
        let scale = text.split_once('/').and_then(|(numerator, denominator)| {
            Some(Scale { numerator: parse(numerator)?, denominator: parse(denominator)? })
        });
        scale
            .filter(|scale| scale.numerator <= scale.denominator)
            .ok_or_else(|| format!("invalid scale `{text}`: expected a fraction of at most 1, such as 1/16"))
    }
}

impl Display for Scale {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl Serialize for Scale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scale, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
