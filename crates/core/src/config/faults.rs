//! Faults: rates of failures, and single failures at given places.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::units::BlockCount;

/// Faults of blocks, programs, erases and reads. Without this table, nothing fails.
///
/// A device with this table keeps one more free block in each plane than one without it, or in each set of planes that
/// share log blocks. Garbage collection can then continue if the block that it writes to fails. `gc.soft_threshold` is
/// therefore at least two blocks. With superblocks, two more are kept, and it is at least three.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FaultsConfig {
    /// Number of blocks in each plane, or share of them, that are bad from the start, chosen at random with the seed.
    pub factory_bad: BlockCount,
    /// Share of programs that fail, from 0 to 1. The block is then evacuated and retired.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub program_rate: f64,
    /// Share of erases that fail, from 0 to 1. The block is then retired.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub erase_rate: f64,
    /// Share of page reads with uncorrectable errors, from 0 to 1. The page then stays unreadable.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_rate: f64,
    /// Consequence of reaching `nand.endurance` erases.
    #[serde(skip_serializing_if = "WearOut::is_default")]
    pub wear_out: WearOut,
    /// List of single faults. Each makes the next `program`, `erase` or `read` fail: anywhere, or in a plane, block or
    /// page, as in `"erase 3/12"` or `"read 3/12/63"`. Planes are numbered across the device.
    pub inject: Vec<InjectedFault>,
}

impl Default for FaultsConfig {
    fn default() -> Self {
        FaultsConfig {
            factory_bad: BlockCount::Blocks(0),
            program_rate: 0.0,
            erase_rate: 0.0,
            read_rate: 0.0,
            wear_out: WearOut::Limit,
            inject: Vec::new(),
        }
    }
}

/// Consequence of reaching the endurance of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WearOut {
    /// The next erase of the block fails, and the block is retired. Its valid data was moved before.
    #[default]
    Limit,
    /// Blocks beyond `nand.endurance` erases are counted, and are still used.
    Count,
    /// After the last erase, the block is filled once more and never collected again: it keeps its data, and its
    /// invalid units are lost (DiskSim's SSD extension). Requires page mapping without an SLC cache.
    Exclude,
    /// Like `limit`, with an endurance of each block from a Weibull distribution with the mean `nand.endurance`.
    Weibull {
        /// Shape of the distribution, from 0.5 to 100; blocks differ less with a higher shape.
        #[schemars(range(min = 0.5, max = 100.0))]
        shape: f64,
    },
}

impl WearOut {
    fn is_default(&self) -> bool {
        *self == WearOut::Limit
    }
}

/// Kind of operation that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Program.
    Program,
    /// Erase.
    Erase,
    /// Read of a page.
    Read,
}

impl FaultKind {
    /// All kinds, with their names.
    pub const ALL: [(FaultKind, &str); 3] =
        [(FaultKind::Program, "program"), (FaultKind::Erase, "erase"), (FaultKind::Read, "read")];

    /// Returns the name in device files.
    pub fn name(self) -> &'static str {
        FaultKind::ALL[self as usize].1
    }
}

/// Single fault: the next operation of a kind fails, anywhere or at a place. It is written `"program 3/12/63"`, with
/// the numbers of the plane, of the block in the plane, and of the page in the block. Numbers at the end may be left
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// Kind of operation.
    pub kind: FaultKind,
    /// Plane, numbered across the device; `None`: any plane.
    pub plane: Option<u32>,
    /// Block in the plane; `None`: any block.
    pub block: Option<u32>,
    /// Page in the block; `None`: any page.
    pub page: Option<u32>,
}

impl InjectedFault {
    /// Returns `true` if the fault applies to an operation of kind `kind` on the pages `pages` of a block.
    pub fn is_hit(&self, kind: FaultKind, plane: u32, block: u32, pages: std::ops::Range<u32>) -> bool {
        self.kind == kind
            && self.plane.is_none_or(|of| of == plane)
            && self.block.is_none_or(|of| of == block)
            && self.page.is_none_or(|of| pages.contains(&of))
    }
}

impl FromStr for InjectedFault {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a fault: expected program, erase or read, and plane/block/page or the first numbers \
                 of it, such as \"erase 3/12\""
            )
        };
        let mut words = text.split_whitespace();
        let name = words.next().ok_or_else(wrong)?;
        let (kind, _) = *FaultKind::ALL.iter().find(|(_, known)| *known == name).ok_or_else(wrong)?;
        let mut numbers = [None; 3];
        if let Some(place) = words.next() {
            for (index, number) in place.split('/').enumerate() {
                *numbers.get_mut(index).ok_or_else(wrong)? = Some(number.parse().map_err(|_| wrong())?);
            }
        }
        let [plane, block, page] = numbers;
        if words.next().is_some() || (kind == FaultKind::Erase && page.is_some()) {
            return Err(wrong());
        }
        Ok(InjectedFault { kind, plane, block, page })
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (separator, number) in [(' ', self.plane), ('/', self.block), ('/', self.page)] {
            if let Some(number) = number {
                write!(f, "{separator}{number}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for InjectedFault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InjectedFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for InjectedFault {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "InjectedFault".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "program, erase or read, and plane/block/page or the first numbers of it",
            "type": "string",
            "pattern": "^((program|read)( [0-9]+(/[0-9]+(/[0-9]+)?)?)?|erase( [0-9]+(/[0-9]+)?)?)$",
            "examples": ["erase 3/12"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_parse_back_from_their_text() {
        for text in ["program", "erase 3", "read 3/12", "program 0/1/2"] {
            assert_eq!(text.parse::<InjectedFault>().unwrap().to_string(), text);
        }
        for text in ["", "write 3", "erase 3/12/1", "read 1/2/3/4", "read 1 2", "read a", "read 1/"] {
            assert!(text.parse::<InjectedFault>().unwrap_err().contains("is not a fault"), "{text}");
        }
    }

    #[test]
    fn a_place_matches_only_its_own_operations() {
        let place: InjectedFault = "program 3/12/5".parse().unwrap();
        assert!(place.is_hit(FaultKind::Program, 3, 12, 4..6));
        assert!(!place.is_hit(FaultKind::Read, 3, 12, 4..6));
        assert!(!place.is_hit(FaultKind::Program, 2, 12, 4..6));
        assert!(!place.is_hit(FaultKind::Program, 3, 11, 4..6));
        assert!(!place.is_hit(FaultKind::Program, 3, 12, 6..8));
    }
}
