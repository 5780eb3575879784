//! Formatting of sizes.

use crate::quantity::readable;

pub(super) fn bytes_text(bytes: u64) -> String {
    readable(u128::from(bytes))
}

/// Formats two different numbers of bytes. If the rounded texts would be equal, formats both exactly.
pub(super) fn two_texts(first: u64, second: u64) -> (String, String) {
    let texts = (bytes_text(first), bytes_text(second));
    if texts.0 == texts.1 { (format!("{first} B"), format!("{second} B")) } else { texts }
}
