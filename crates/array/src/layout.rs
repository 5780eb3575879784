//! Layout of an array: the member and address of each sector, and of the parity of each stripe.
//!
//! A stripe is a row of one chunk on each member, at the same address. `docs/model/arrays.md` has the equations.

use std::fmt;

use floatgate_core::sim::memory::Divider;
use floatgate_core::sim::request::SECTOR;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// RAID level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(with = "u32")]
pub enum Level {
    /// Level 0: data are striped over all members, without redundancy.
    Striped,
    /// Level 1: each member has all data.
    Mirror,
    /// Level 5: one parity chunk in each stripe, which rotates over the members.
    Parity,
    /// Level 6: two parity chunks in each stripe, so that two members may fail.
    DoubleParity,
    /// Level 10: data are striped over pairs of members that hold the same data.
    Mirrors,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 5] = [Level::Striped, Level::Mirror, Level::Parity, Level::DoubleParity, Level::Mirrors];

    /// Returns the number of the level.
    pub const fn number(self) -> u32 {
        match self {
            Level::Striped => 0,
            Level::Mirror => 1,
            Level::Parity => 5,
            Level::DoubleParity => 6,
            Level::Mirrors => 10,
        }
    }

    /// Returns the smallest number of members.
    pub const fn min_members(self) -> usize {
        match self {
            Level::Striped | Level::Mirror | Level::Mirrors => 2,
            Level::Parity => 3,
            Level::DoubleParity => 4,
        }
    }

    /// Returns the number of parity chunks in a stripe.
    pub const fn parities(self) -> u32 {
        match self {
            Level::Striped | Level::Mirror | Level::Mirrors => 0,
            Level::Parity => 1,
            Level::DoubleParity => 2,
        }
    }

    /// Describes the failures that an array of `members` survives.
    pub fn survived_failures(self, members: u32) -> String {
        match self {
            Level::Striped => "no failure".to_owned(),
            Level::Mirror => format!("{} failed members", members - 1),
            Level::Parity => "one failed member".to_owned(),
            Level::DoubleParity => "two failed members".to_owned(),
            Level::Mirrors => "one failed member of each pair (0 and 1, 2 and 3, ...)".to_owned(),
        }
    }
}

impl TryFrom<u32> for Level {
    type Error = String;

    fn try_from(number: u32) -> Result<Level, String> {
        let level = Level::ALL.into_iter().find(|level| level.number() == number);
        level.ok_or_else(|| format!("unknown level {number}: expected 0, 1, 5, 6 or 10"))
    }
}

impl From<Level> for u32 {
    fn from(level: Level) -> u32 {
        level.number()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.number().fmt(f)
    }
}

/// Layout of an array.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    level: Level,
    members: u32,
    /// Number of data chunks in a stripe.
    data: u32,
    /// Sectors of a chunk.
    chunk: u32,
    rows: u64,
    /// Divisors that each request needs: sectors of a chunk, data chunks, members.
    by_chunk: Divider,
    by_data: Divider,
    by_members: Divider,
}

impl Layout {
    /// Creates the layout of an array with `rows` stripes, of `stripe` bytes on each member.
    pub fn new(level: Level, members: u32, stripe: u64, rows: u64) -> Layout {
        let data = match level {
            Level::Striped => members,
            Level::Mirror => 1,
            Level::Parity | Level::DoubleParity => members - level.parities(),
            Level::Mirrors => members / 2,
        };
        let chunk = (stripe / SECTOR) as u32;
        let [by_chunk, by_data, by_members] = [chunk, data, members].map(|divisor| Divider::new(divisor.max(1)));
        Layout { level, members, data, chunk, rows, by_chunk, by_data, by_members }
    }

    /// Returns the level.
    #[inline]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the number of members.
    #[inline]
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Returns the number of data chunks in a stripe.
    #[inline]
    pub fn data(&self) -> u32 {
        self.data
    }

    /// Returns the sectors of a chunk.
    #[inline]
    pub fn chunk(&self) -> u32 {
        self.chunk
    }

    /// Returns the number of stripes.
    #[inline]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the sectors of data in a stripe.
    #[inline]
    pub fn row_sectors(&self) -> u64 {
        u64::from(self.data) * u64::from(self.chunk)
    }

    /// Returns the sectors that the host sees.
    #[inline]
    pub fn sectors(&self) -> u64 {
        self.rows * self.row_sectors()
    }

    /// Returns the bytes that the host sees.
    pub fn bytes(&self) -> u64 {
        self.sectors() * SECTOR
    }

    /// Returns the stripe, the data chunk and the sector within the chunk of a sector of the host.
    #[inline]
    pub fn place(&self, lba: u64) -> (u64, u32, u32) {
        let number = self.by_chunk.divide_long(lba);
        let row = self.by_data.divide_long(number);
        let index = (number - row * u64::from(self.data)) as u32;
        (row, index, (lba - number * u64::from(self.chunk)) as u32)
    }

    /// Returns the address of a sector on its members: `offset` is a sector of its chunk.
    #[inline]
    pub fn address(&self, row: u64, offset: u32) -> u64 {
        row * u64::from(self.chunk) + u64::from(offset)
    }

    /// Returns the stripe and the sector within the chunk of a sector of a member.
    pub fn row_of(&self, address: u64) -> (u64, u32) {
        (address / u64::from(self.chunk), (address % u64::from(self.chunk)) as u32)
    }

    /// Returns the sector of the host at a sector of data chunk `index` of a stripe.
    pub fn sector(&self, row: u64, index: u32, offset: u32) -> u64 {
        row * self.row_sectors() + u64::from(index) * u64::from(self.chunk) + u64::from(offset)
    }

    /// Returns the number of members that hold each data chunk.
    #[inline]
    pub fn copies(&self) -> u32 {
        match self.level {
            Level::Mirror => self.members,
            Level::Mirrors => 2,
            Level::Striped | Level::Parity | Level::DoubleParity => 1,
        }
    }

    /// Returns the member of a copy of data chunk `index` of a stripe.
    ///
    /// Levels 5 and 6 are left-symmetric, as md's default: data chunks follow the parity, so that consecutive chunks of
    /// the host are on consecutive members.
    #[inline]
    pub fn data_member(&self, row: u64, index: u32, copy: u32) -> u32 {
        match self.level {
            Level::Striped => index,
            Level::Mirror => copy,
            Level::Mirrors => 2 * index + copy,
            Level::Parity | Level::DoubleParity => {
                let member = self.first_parity(row) + self.level.parities() + index;
                if member >= self.members { member - self.members } else { member }
            }
        }
    }

    /// Returns the member of parity `index` of a stripe: P is 0, Q is 1.
    #[inline]
    pub fn parity_member(&self, row: u64, index: u32) -> u32 {
        let member = self.first_parity(row) + index;
        if member >= self.members { member - self.members } else { member }
    }

    #[inline]
    fn first_parity(&self, row: u64) -> u32 {
        self.members - 1 - (row - self.by_members.divide_long(row) * u64::from(self.members)) as u32
    }

    /// Returns the role of a member in a stripe.
    pub fn role(&self, row: u64, member: u32) -> Role {
        let of_parity = (0..self.level.parities()).find(|index| self.parity_member(row, *index) == member);
        if let Some(index) = of_parity {
            return Role::Parity(index);
        }
        match self.level {
            Level::Striped => Role::Data(member),
            Level::Mirror => Role::Data(0),
            Level::Mirrors => Role::Data(member / 2),
            Level::Parity | Level::DoubleParity => {
                let before = self.first_parity(row) + self.level.parities();
                Role::Data((member + 2 * self.members - before) % self.members)
            }
        }
    }

    /// Returns `true` if the data can be read from the members for which `alive` returns `true`.
    pub fn survives(&self, alive: impl Fn(u32) -> bool) -> bool {
        let failed = (0..self.members).filter(|member| !alive(*member)).count() as u32;
        match self.level {
            Level::Striped => failed == 0,
            Level::Mirror => failed < self.members,
            Level::Parity | Level::DoubleParity => failed <= self.level.parities(),
            Level::Mirrors => (0..self.members / 2).all(|pair| alive(2 * pair) || alive(2 * pair + 1)),
        }
    }
}

/// Role of a member in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Data chunk with this index.
    Data(u32),
    /// Parity: P is 0, Q is 1.
    Parity(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left-symmetric layouts as in md's documentation (drivers/md/raid5.c, `ALGORITHM_LEFT_SYMMETRIC`).
    #[test]
    fn parity_rotates_as_in_md() {
        let layout = Layout::new(Level::Parity, 4, 4096, 8);
        let rows: Vec<Vec<Role>> = (0..4).map(|row| (0..4).map(|member| layout.role(row, member)).collect()).collect();
        let (d, p) = (Role::Data, Role::Parity(0));
        assert_eq!(rows, [[d(0), d(1), d(2), p], [d(1), d(2), p, d(0)], [d(2), p, d(0), d(1)], [p, d(0), d(1), d(2)]]);
        let layout = Layout::new(Level::DoubleParity, 5, 4096, 8);
        let row: Vec<Role> = (0..5).map(|member| layout.role(1, member)).collect();
        assert_eq!(row, [d(0), d(1), d(2), p, Role::Parity(1)]);
        let row: Vec<Role> = (0..5).map(|member| layout.role(0, member)).collect();
        assert_eq!(row, [Role::Parity(1), d(0), d(1), d(2), p]);
    }

    #[test]
    fn roles_and_members_agree() {
        for level in Level::ALL {
            for members in [4, 6, 8] {
                let layout = Layout::new(level, members, 8192, 16);
                for row in 0..16 {
                    for index in 0..layout.data() {
                        for copy in 0..layout.copies() {
                            let member = layout.data_member(row, index, copy);
                            assert_eq!(layout.role(row, member), Role::Data(index), "{level} {members} {row}");
                        }
                    }
                    for index in 0..level.parities() {
                        assert_eq!(layout.role(row, layout.parity_member(row, index)), Role::Parity(index));
                    }
                }
            }
        }
    }

    #[test]
    fn levels_survive_their_failures() {
        let survives =
            |level, failed: &[u32]| Layout::new(level, 4, 4096, 1).survives(|member| !failed.contains(&member));
        assert!(survives(Level::Striped, &[]) && !survives(Level::Striped, &[0]));
        assert!(survives(Level::Mirror, &[0, 1, 2]) && !survives(Level::Mirror, &[0, 1, 2, 3]));
        assert!(survives(Level::Parity, &[3]) && !survives(Level::Parity, &[0, 3]));
        assert!(survives(Level::DoubleParity, &[0, 3]) && !survives(Level::DoubleParity, &[0, 1, 3]));
        assert!(survives(Level::Mirrors, &[0, 3]) && !survives(Level::Mirrors, &[2, 3]));
    }
}
