//! The flash image: payload at the physical places that the FTL chose, in a file that outlives the program.
//!
//! [`disk`] is the file, [`header`] says whose it is, [`layout`] where everything is in it. [`flash`] keeps units and
//! their records by the rules of flash, [`waiting`] what is in the controller's memory meanwhile and [`saved`] what of
//! that outlives a power cut. [`store`] does to them what the device tells; [`recovery`] begins and begins again, and
//! [`repair`] restores damaged records.
//! `docs/reference/image.md` has the form of the file, `docs/decisions/0019-image.md` why it is like this.

mod damage;
pub mod disk;
mod error;
pub mod flash;
pub mod header;
pub mod layout;
pub mod recovery;
pub mod repair;
pub mod saved;
pub mod store;
pub mod waiting;

pub use damage::Damage;
pub use error::ImageError;
pub use recovery::{ImageAt, Opened, Recovered};
pub use store::Store;
