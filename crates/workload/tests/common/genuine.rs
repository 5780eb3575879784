//! Genuine traces, which may not be redistributed.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the path of a trace in `$FLOATGATE_TRACES`, or else in `../shared/traces` next to the repository. If the
/// file is absent, prints that the test is not run, and returns `None`.
pub fn trace_file(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("FLOATGATE_TRACES").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = folder.unwrap_or_else(|| root.join("../shared/traces")).join(name);
    if path.is_file() {
        return Some(path);
    }
    // Does not use `eprintln!`, whose output tests capture.
    let text = format!("not run: {} is absent; set FLOATGATE_TRACES to the folder of the traces\n", path.display());
    let _ = std::io::stderr().write_all(text.as_bytes());
    None
}
