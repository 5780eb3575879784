//! Tools around runs, for the command line and for Python: profiles, fits and conversions of traces, and timing
//! diagrams.

pub mod convert;
pub mod draw;
pub mod fit;
pub mod profile;
