//! Orders of the four levels of parallelism.

use serde::{Deserialize, Serialize};

use crate::config::{DeviceConfig, did_you_mean};
use crate::sim::id::PlaneId;

/// A level of parallelism (Hu et al. 2013, Section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Among channels.
    Channel,
    /// Among the chips of a channel.
    Chip,
    /// Among the dies of a chip.
    Die,
    /// Among the planes of a die.
    Plane,
}

use Level::{Channel, Chip, Die, Plane};

/// Names that the papers give to six of the 24 orders (Hu et al. 2013, Section 4.2 and Figure 14).
const NAMED: [(&str, [Level; 4]); 6] = [
    ("s1", [Chip, Die, Plane, Channel]),
    ("s2", [Channel, Chip, Die, Plane]),
    ("s3", [Channel, Plane, Chip, Die]),
    ("s4", [Channel, Die, Chip, Plane]),
    ("s5", [Channel, Plane, Die, Chip]),
    ("s6", [Channel, Die, Plane, Chip]),
];

const LEVELS: [(&str, Level); 4] = [("channel", Channel), ("chip", Chip), ("die", Die), ("plane", Plane)];

/// Order of the four levels. Consecutive pages differ in the first level first. Written as a name from the papers
/// (`"s1"` to `"s6"`) or as the levels (`"channel-die-plane-chip"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelOrder(pub [Level; 4]);

impl Default for LevelOrder {
    fn default() -> Self {
        LevelOrder(NAMED[1].1)
    }
}

impl std::str::FromStr for LevelOrder {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, order)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(LevelOrder(*order));
        }
        let levels = text
            .split('-')
            .map(|word| {
                LEVELS.iter().find(|(name, _)| *name == word).map(|(_, level)| *level).ok_or_else(|| {
                    let hint = did_you_mean(word, &["channel", "chip", "die", "plane"]);
                    format!(
                        "invalid order `{text}`: unknown level `{word}`{hint}; use s1 to s6, or the four levels, such \
                         as \"channel-die-plane-chip\""
                    )
                })
            })
            .collect::<Result<Vec<Level>, String>>()?;
        let mut sorted = levels.clone();
        sorted.sort();
        if sorted != [Channel, Chip, Die, Plane] {
            return Err(format!("`{text}` must name each of channel, chip, die and plane once"));
        }
        Ok(LevelOrder([levels[0], levels[1], levels[2], levels[3]]))
    }
}

impl std::fmt::Display for LevelOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|level| LEVELS[*level as usize].0).collect();
        f.write_str(&names.join("-"))
    }
}

impl Serialize for LevelOrder {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LevelOrder {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for LevelOrder {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LevelOrder".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut names: Vec<String> = NAMED.iter().map(|(name, _)| (*name).to_owned()).collect();
        names.extend(LevelOrder::all().iter().map(ToString::to_string));
        schemars::json_schema!({
            "description": "order: s1 to s6, or the four levels, such as \"channel-die-plane-chip\"",
            "enum": names,
        })
    }
}

impl LevelOrder {
    /// Returns all 24 orders.
    pub fn all() -> Vec<LevelOrder> {
        let levels = [Channel, Chip, Die, Plane];
        let mut orders = Vec::with_capacity(24);
        for a in levels {
            for b in levels.into_iter().filter(|&b| b != a) {
                for c in levels.into_iter().filter(|&c| c != a && c != b) {
                    let d = levels.into_iter().find(|&d| d != a && d != b && d != c).unwrap_or(a);
                    orders.push(LevelOrder([a, b, c, d]));
                }
            }
        }
        orders
    }
}

/// Planes of a device, in an order of the levels.
#[derive(Clone, Debug)]
pub struct Order {
    planes: Vec<PlaneId>,
    positions: Vec<u32>,
    first_level: u32,
}

impl Order {
    /// Puts the planes of `device` in an order. The digits of a position in mixed radix are the indices in the levels,
    /// with the first level as the least significant digit.
    ///
    /// These are the formulas of the papers (Hu et al. 2013, Section 4.2) for all 24 orders at once. For S2, channel =
    /// LPN mod channels, chip = LPN / channels mod chips, and so on.
    pub fn new(device: &DeviceConfig, order: LevelOrder) -> Order {
        let g = &device.geometry;
        let size = |level| match level {
            Channel => device.channels(),
            Chip => g.chips,
            Die => g.dies,
            Plane => device.planes_per_die(),
        };
        let total = device.total_planes();
        let mut planes = Vec::with_capacity(total as usize);
        let mut positions = vec![0; total as usize];
        for position in 0..total {
            let mut rest = position;
            let mut digit = [0u32; 4];
            for level in order.0 {
                digit[level as usize] = rest % size(level);
                rest /= size(level);
            }
            let [channel, chip, die, plane] = digit;
            let id = PlaneId(((channel * g.chips + chip) * g.dies + die) * device.planes_per_die() + plane);
            planes.push(id);
            positions[id.index()] = position;
        }
        Order { planes, positions, first_level: size(order.0[0]) }
    }

    /// Creates the order in which the position of a plane is its number.
    pub fn by_number(device: &DeviceConfig) -> Order {
        Order::new(device, LevelOrder([Plane, Die, Chip, Channel]))
    }

    /// Returns the plane at a position. Positions wrap around.
    #[inline]
    pub fn plane(&self, position: u32) -> PlaneId {
        self.planes[(position % self.planes.len() as u32) as usize]
    }

    /// Returns the position of a plane.
    #[inline]
    pub fn position(&self, plane: PlaneId) -> u32 {
        self.positions[plane.index()]
    }

    /// Returns the number of values of the first level.
    pub fn first_level(&self) -> u32 {
        self.first_level
    }

    /// Returns the number of planes.
    pub fn len(&self) -> u32 {
        self.planes.len() as u32
    }

    /// Returns `true` if there are no planes.
    pub fn is_empty(&self) -> bool {
        self.planes.is_empty()
    }
}
