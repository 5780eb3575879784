//! Validation: compares Floatgate with published values, closed forms and other simulators.
//!
//! The cases are data: one file in `validation/*.toml` per source. A case has a device with overrides, a state, a
//! workload and a seed, as in `floatgate run`, and the expected results. [`simulate`] runs a case, [`record`] stores
//! the results, and [`page`] writes `docs/validation.md`.

pub mod case;
pub mod closed_form;
pub mod page;
pub mod record;
pub mod simulate;

use std::path::{Path, PathBuf};

/// Returns the root of the repository, to which paths in the data are relative.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
