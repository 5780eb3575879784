//! Policies of the extension module: stores them for all devices, which name them like built-in ones.

use std::sync::OnceLock;

use floatgate_core::policies::Externals;

/// A global, because a process has one extension module, and its classes cannot receive the value otherwise.
static MAKERS: OnceLock<Externals> = OnceLock::new();

/// Sets the policies. Has no effect if the module is imported again, because they are the same.
pub fn set(makers: Externals) {
    let _ = MAKERS.set(makers);
}

/// Returns the policies.
pub fn makers() -> Externals {
    MAKERS.get().cloned().unwrap_or_default()
}
