//! What fails: how often, and where.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::units::BlockCount;

/// What fails. Without this table nothing does.
///
/// A device with it keeps one more free block in each plane than one without, so that cleaning goes on when the block
/// that it writes to fails: `gc.soft_threshold` is two blocks at least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FaultsConfig {
    /// Blocks of each plane that are bad when the device is new, at places drawn from the seed: a number, or a share
    /// of the plane's blocks.
    pub factory_bad: BlockCount,
    /// Share of program operations that fail. The block is then emptied and never used again.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub program_rate: f64,
    /// Share of erases that fail. The block is never used again. Each erase of a block that has had
    /// `nand.endurance` erases fails too.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub erase_rate: f64,
    /// Share of page reads that find more wrong bits than can be corrected. The page stays unreadable.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_rate: f64,
    /// What fails where, once each: the next `program`, `erase` or `read` of a plane, or of a block in it, or of a
    /// page in that: `"erase 3/12"`, `"read 3/12/63"`. Planes are numbered through the device.
    pub inject: Vec<InjectedFault>,
}

impl Default for FaultsConfig {
    fn default() -> Self {
        FaultsConfig {
            factory_bad: BlockCount::Blocks(0),
            program_rate: 0.0,
            erase_rate: 0.0,
            read_rate: 0.0,
            inject: Vec::new(),
        }
    }
}

/// An operation that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A program.
    Program,
    /// An erase.
    Erase,
    /// The read of a page.
    Read,
}

impl FaultKind {
    /// All, with their names.
    pub const ALL: [(FaultKind, &str); 3] =
        [(FaultKind::Program, "program"), (FaultKind::Erase, "erase"), (FaultKind::Read, "read")];

    /// The name in device files.
    pub fn name(self) -> &'static str {
        FaultKind::ALL[self as usize].1
    }
}

/// The next operation that is to fail, anywhere or at a place; written `"program 3/12/63"` with the numbers of the
/// plane, of the block in it, and of the page in that, as many as matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// The operation.
    pub kind: FaultKind,
    /// The plane, numbered through the device.
    pub plane: Option<u32>,
    /// The block in the plane.
    pub block: Option<u32>,
    /// The page in the block.
    pub page: Option<u32>,
}

impl InjectedFault {
    /// Whether it is such an operation, of pages from `first` to before `end` of a block.
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
                "`{text}` is no fault: write program, erase or read, and plane/block/page, as many of these as \
                 matter, like \"erase 3/12\""
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
            "description": "program, erase or read, and plane/block/page, as many of these as matter",
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
    fn a_place_is_read_as_it_is_printed() {
        for text in ["program", "erase 3", "read 3/12", "program 0/1/2"] {
            assert_eq!(text.parse::<InjectedFault>().unwrap().to_string(), text);
        }
        for text in ["", "write 3", "erase 3/12/1", "read 1/2/3/4", "read 1 2", "read a", "read 1/"] {
            assert!(text.parse::<InjectedFault>().unwrap_err().contains("is no fault"), "{text}");
        }
    }

    #[test]
    fn a_place_is_hit_by_what_it_names_only() {
        let place: InjectedFault = "program 3/12/5".parse().unwrap();
        assert!(place.is_hit(FaultKind::Program, 3, 12, 4..6));
        assert!(!place.is_hit(FaultKind::Read, 3, 12, 4..6));
        assert!(!place.is_hit(FaultKind::Program, 2, 12, 4..6));
        assert!(!place.is_hit(FaultKind::Program, 3, 11, 4..6));
        assert!(!place.is_hit(FaultKind::Program, 3, 12, 6..8));
    }
}
