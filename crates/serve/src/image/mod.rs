//! The flash image: stores payload at the physical addresses that the FTL chose, in a file that outlives the program.
//!
//! [`disk`] is the file, [`header`] identifies its device, and [`layout`] defines the position of everything in it.
//! [`record`], [`table`] and [`state`] are the formats of the parts. [`flash`] stores mapping units and their records
//! by the rules of flash. [`waiting`] holds the data that are only in the controller's memory, and [`saved`] the part
//! of these data that survives a power cut. [`store`] applies the device's flash events. [`recovery`] starts a new or
//! an existing image, which [`inspect`] checks for damage, and [`repair`] restores damaged records. [`members`] holds
//! the images of an array.
//!
//! `docs/reference/image.md` describes the file format. `docs/decisions/0019-image.md` gives the reasons for this
//! design.

mod damage;
pub mod disk;
mod error;
pub mod flash;
pub mod header;
pub mod inspect;
pub mod layout;
pub mod members;
pub mod record;
pub mod recovery;
pub mod repair;
pub mod saved;
pub mod state;
pub mod store;
pub mod table;
pub mod waiting;

pub use damage::Damage;
pub use error::ImageError;
pub use members::{Members, OpenedArray};
pub use recovery::{ImageAt, Opened, Recovered};
pub use store::Store;
