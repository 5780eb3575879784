//! Saved states: the file format, its writer and its reader. The reader does not trust the file.
//!
//! A file is a header in plain bytes, and a body of sections, compressed as one stream. The reader allocates only what
//! the device needs, whatever lengths the file has. The state of an array is a header, followed by the states of its
//! members. See docs/reference/state.md.

mod read;
mod write;

use std::io;

pub use read::{Reader, Section, sections};
pub use write::Writer;

/// Kind of a saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// State of a single SSD.
    Device,
    /// State of an array: its header, and the states of its members.
    Array,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Device, Kind::Array];

    /// Returns the first bytes of a file.
    pub const fn magic(self) -> [u8; 8] {
        match self {
            Kind::Device => *b"FGSTATE\n",
            Kind::Array => *b"FGARRAY\n",
        }
    }
}

/// Version of the file format, raised when older programs can no longer read it.
pub const VERSION: u32 = 6;

/// Maximum bytes of a chunk, the part of a section that is hashed, compressed and kept in memory together.
const CHUNK: usize = 64 << 10;

/// Maximum bytes of the header. A device file with its sources has about ten thousand.
const LONGEST_HEAD: u32 = 1 << 20;

/// Maximum window of decompression, as a power of two. A file that requests more is refused.
const WINDOW_LOG: u32 = 23;

/// Exclusive bound of the counts in a file. A run of any length can continue to count from there.
pub const COUNT_LIMIT: u64 = 1 << 56;

/// Option that affects saved states and differs between the file and a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the option.
    pub path: String,
    /// Value in the file.
    pub saved: String,
    /// Value in the device that the state was to be loaded into.
    pub requested: String,
}

/// Reason why a state cannot be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not a saved state.
    #[error("not a saved state: it does not start with FGSTATE")]
    NoState,
    /// The file is of another kind.
    #[error("{}", match .0 {
        Kind::Device => "it is the state of a single SSD, and this device is an array; give the device file of the SSD",
        Kind::Array => "it is the state of an array, and this device is a single SSD; give the array file",
    })]
    OtherKind(Kind),
    /// The file has another version of the format.
    #[error("unsupported version {0} of saved states (expected {VERSION}); save the state again with this program")]
    Version(u32),
    /// The file is damaged, or was not written by this program.
    #[error("it is damaged: {what} in `{section}`")]
    Damaged {
        /// Section with the damage.
        section: String,
        /// Description of the damage.
        what: String,
    },
    /// The file is truncated.
    #[error("it is damaged: it ends in the middle of `{0}`")]
    Ends(String),
    /// The state is that of another device.
    #[error("it is the state of another device: {}", listed(.0))]
    Differs(Vec<Difference>),
    /// The device cannot be saved now.
    #[error("{0}")]
    Busy(String),
    /// A policy cannot save its state.
    #[error("{0}")]
    Policy(String),
    /// The state of a part cannot be saved or loaded.
    #[error("{part}: {error}")]
    Part {
        /// Name of the part, such as `member 2`.
        part: String,
        /// Reason.
        error: Box<StateError>,
    },
}

fn listed(differences: &[Difference]) -> String {
    /// Maximum number of differences that a user would read.
    const MAX_LISTED: usize = 8;
    let one = |d: &Difference| format!("`{}` was {} when it was saved, and is {} here", d.path, d.saved, d.requested);
    let mut listed: Vec<String> = differences.iter().take(MAX_LISTED).map(one).collect();
    if differences.len() > MAX_LISTED {
        listed.push(format!("{} more", differences.len() - MAX_LISTED));
    }
    listed.join("; ")
}
