//! Object traces: accesses to named objects, such as blocks of a key-value cache, which a placement puts on the device.
//!
//! A reader (`formats`) returns accesses. A placement (`extents`, `log`, `sets`) decides where objects are, evicts
//! objects when its capacity is used up, and returns the operations on the device. [`Objects`] is the source of their
//! requests. `words` parses the options. docs/reference/objects.md is the reference.

mod access;
mod extents;
mod formats;
mod generate;
mod info;
mod log;
mod order;
mod replay;
mod sets;
#[cfg(test)]
mod tests;
mod vllm;
mod words;

pub use formats::is_object_trace;
pub use info::{ObjectProfile, profile};
pub use replay::Objects;
pub use words::{ObjectWords, are_words};
