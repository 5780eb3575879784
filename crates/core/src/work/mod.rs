//! The device's work: transactions, and the queues in which they wait.
//!
//! Other modules refer to transactions by their ids. The links of the queues are stored in the transactions.

mod class;
pub mod fifo;
mod lun_queue;
mod tasks;
pub mod transaction;

pub use class::{Class, Purpose};
pub use fifo::Fifo;
pub use lun_queue::{LunQueue, Queued};
pub use tasks::{Call, Defect, Reading, Task, Tasks};
pub use transaction::{Kind, Transaction, Transactions, chain, split_off};
