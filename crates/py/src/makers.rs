//! Policies of the extension module, which devices name like built-in ones.

use std::sync::OnceLock;

use floatgate_core::external::Externals;

/// A process has one extension module, whose classes have no other way to know them.
static MAKERS: OnceLock<Externals> = OnceLock::new();

/// Sets the policies. If the module is imported again, they are the same.
pub fn set(makers: Externals) {
    let _ = MAKERS.set(makers);
}

/// Returns the policies.
pub fn makers() -> Externals {
    MAKERS.get().cloned().unwrap_or_default()
}
