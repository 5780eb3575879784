//! Saved states: how a part of the simulator is written to a file, and read back without being trusted.
//!
//! A file is a head in plain bytes and a body of sections, compressed as one stream. What is read is bounded by what
//! reads it: nothing is as long as the file says it is, but as long as the device asks for. See
//! docs/reference/state.md.

mod read;
mod write;

use std::io;

pub use read::{Reader, Section, read_head, sections};
pub use write::{Writer, write_head};

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"FGSTATE\n";

/// The form of the file, raised when older programs cannot read it any more.
pub const VERSION: u32 = 4;

/// Bytes of a section that are hashed, compressed and kept in memory together.
const CHUNK: usize = 64 << 10;

/// Bytes of the longest head: a device file with its sources has some ten thousand.
const LONGEST_HEAD: u32 = 1 << 20;

/// Bytes that decompression looks back at most, as a power of two: what a file asks for beyond it is refused.
const WINDOW_LOG: u32 = 23;

/// A count in a file is below this, so that a run of any length can count on from it.
pub const MOST: u64 = 1 << 56;

/// An option that shaped a saved state, and that another device has another value of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its path.
    pub path: String,
    /// Its value in the file.
    pub saved: String,
    /// Its value in the device that was to be loaded.
    pub requested: String,
}

/// Why a state cannot be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is no such file.
    #[error("it is no saved state: it does not begin with FGSTATE")]
    NoState,
    /// It is one of another version.
    #[error("it has version {0} of the form, and this program reads version {VERSION}: save the state again with it")]
    Version(u32),
    /// It is damaged, or was not written by this program.
    #[error("it is damaged: {what} in `{section}`")]
    Damaged {
        /// Where.
        section: String,
        /// What is wrong there.
        what: String,
    },
    /// It ends too early.
    #[error("it is damaged: it ends in the middle of `{0}`")]
    Ends(String),
    /// It is that of another device.
    #[error("it is the state of another device: {}", listed(.0))]
    Differs(Vec<Difference>),
    /// The device cannot be saved now.
    #[error("{0}")]
    Busy(String),
    /// A policy has no state that can be saved.
    #[error("{0}")]
    Policy(String),
}

fn listed(differences: &[Difference]) -> String {
    /// More are not read.
    const MOST_LISTED: usize = 8;
    let one = |d: &Difference| format!("`{}` was {} when it was saved, and is {} here", d.path, d.saved, d.requested);
    let mut listed: Vec<String> = differences.iter().take(MOST_LISTED).map(one).collect();
    if differences.len() > MOST_LISTED {
        listed.push(format!("{} more", differences.len() - MOST_LISTED));
    }
    listed.join("; ")
}
