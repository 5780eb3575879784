//! Python bindings: what the package `floatgate`, in `python/floatgate`, is made on.
//!
//! They are thin: names, defaults, units and documentation are the package's. What takes long runs without Python's
//! lock and ends at Ctrl-C; what fails becomes one of the package's exceptions (`errors`). Tables go to Python as Arrow
//! columns, without a copy (`tables`). `crates/wheel` makes the extension module of them.

pub mod device;
pub mod errors;
mod front;
pub mod policies;
pub mod result;
pub mod run;
pub mod simulator;
mod tables;
