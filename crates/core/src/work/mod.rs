//! The device's work: transactions, and the queues in which they wait.
//!
//! Everything above this module works on transactions by their ids. A queue links them through themselves.

mod class;
pub mod fifo;
mod lun_queue;
mod tasks;
pub mod transaction;

pub use class::Class;
pub use fifo::Fifo;
pub use lun_queue::{LunQueue, Queued};
pub use tasks::{Call, Reading, Task, Tasks};
pub use transaction::{Kind, Transaction, Transactions};
