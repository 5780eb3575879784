//! Floatgate beside published figures, closed forms and other simulators.
//!
//! The cases are data: `validation/*.toml`, a source each. A case is a device with overrides, a state, a workload and a
//! seed, as for `floatgate run`, and what is expected of the result. [`simulate`] runs one, [`record`] keeps what came
//! out, and [`page`] writes `docs/validation.md` from both.

pub mod case;
pub mod closed_form;
pub mod page;
pub mod record;
pub mod simulate;

use std::path::{Path, PathBuf};

/// The root of the repository, of which paths in the data are relative.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
