//! The part of a result that only a run in real time has: whether the host saw the device's time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::metrics::latency::Latency;

/// How a device was served in real time. Latencies elsewhere in the result are the device's own; here is how much later
/// than that its answers were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// `timed` where answers were sent at their time, `at-once` where the simulation went as fast as it could and
    /// nothing can be late.
    pub pace: String,
    /// Simulated time that passed in a unit of real time.
    pub speed: f64,
    /// Answers that could be late.
    pub replies: u64,
    /// Further ones, to requests without data (TRIM, flush), which the device gives faster than they can be sent at
    /// all: they were sent at once, and are not judged.
    pub not_judged: u64,
    /// How much later than its time an answer was sent, in microseconds of real time.
    pub lateness_us: Distribution,
    /// Answers that were later than 5 % of their latency, and than 2 us.
    pub late: u64,
    /// Their share; null without answers.
    pub late_share: Option<f64>,
    /// The share up to which a run is faithful.
    pub late_limit: f64,
    /// Whether the host saw the device's time: the share is within the limit. Null without answers.
    pub faithful: Option<bool>,
    /// What the late ones waited for longest.
    pub causes: LateCauses,
    /// The same of each way in.
    pub frontends: Vec<LiveFrontend>,
    /// Requests that failed because their payload could not be kept or fetched: memory or the disk of the image was
    /// full, or broken. The device knows nothing of that.
    #[serde(default)]
    pub payload_errors: u64,
    /// Of a device that is in a flash image: what became of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<LiveImage>,
}

/// How one way in was served in real time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveFrontend {
    /// `nbd`, `vhost-user`, or `control` of a `trim-all`.
    pub name: String,
    /// What sending and receiving take by themselves, found by a test at the start and deducted from the time of an
    /// answer, in microseconds of real time: of a read of 4 KiB that takes some 65 us. Less is deducted from a shorter
    /// one, for who has slept for less wakes sooner.
    pub deducted_read_us: f64,
    /// Of a write of 4 KiB that takes some 260 us.
    pub deducted_write_us: f64,
    /// How much of both is for waking the client: it is not deducted for a client of vhost-user that looks for its
    /// answers.
    #[serde(default)]
    pub waking_us: f64,
    /// What was deducted on average: less where more requests were in progress than the device works on at once, and
    /// of a client that waits for each answer what it takes to answer that one. Null without answers.
    #[serde(default)]
    pub deducted_mean_us: Option<f64>,
    /// Answers that could be late.
    pub replies: u64,
    /// Further ones, to requests without data, which could not be in time.
    pub not_judged: u64,
    /// How much later than its time an answer was sent, in microseconds of real time.
    pub lateness_us: Distribution,
    /// Late answers.
    pub late: u64,
    /// Their share; null without answers.
    pub late_share: Option<f64>,
    /// What the late ones waited for longest.
    pub causes: LateCauses,
    /// Turns of clients, from the sending of an answer until the next request is read, that were compared with the
    /// client's usual turn. Only a client with one outstanding request has turns, and its first 32 are not compared.
    #[serde(default)]
    pub client_turns: u64,
    /// Those that took more than 1.25 times the usual turn, and exceeded it by more than an answer may be late: the
    /// client collected its answer late, had something else to do, or the request was read late.
    #[serde(default)]
    pub client_late: u64,
    /// Their share; null without such turns.
    #[serde(default)]
    pub client_late_share: Option<f64>,
}

impl LiveFrontend {
    /// `about` with the distribution of `lateness`.
    pub fn new(lateness: &Latency, about: LiveFrontend) -> LiveFrontend {
        LiveFrontend { replies: lateness.count(), lateness_us: Distribution::new(lateness), ..about }
    }
}

/// A flash image that a device was served from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveImage {
    /// Bytes that it takes on its disk.
    pub bytes: u64,
    /// All that was accepted is in flash: the device was shut down, and the file could be written.
    pub complete: bool,
    /// Power cuts during the run. What was measured is since the last one.
    pub power_cuts: u64,
    /// Units that could not be read from it.
    pub unreadable: u64,
    /// The last recovery, at the start or after a power cut; null where the image was a new one.
    pub recovery: Option<LiveRecovery>,
}

/// How a device was made of its image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRecovery {
    /// Whether the device had been shut down, rather than its power cut.
    pub after_shutdown: bool,
    /// Whether the payload of each unit was checked, because the machine itself may have stopped.
    pub payload_checked: bool,
    /// Simulated time that it took, in microseconds.
    pub simulated_us: f64,
    /// Real time that it took, in microseconds.
    pub real_us: f64,
    /// Flash pages that were read.
    pub pages_read: u64,
    /// Units whose records were found in them or in summaries.
    pub units_mapped: u64,
    /// Units that a power cut had left unreadable.
    pub torn_units: u64,
    /// Records of the file that were damaged and have been restored.
    #[serde(default)]
    pub records_repaired: u64,
    /// Records of the file that are damaged; the units that they belong to read as older data or as zeros.
    #[serde(default)]
    pub records_lost: u64,
    /// Units whose payload was found damaged when all payload was checked.
    #[serde(default)]
    pub payload_lost: u64,
    /// Records of trims.
    pub journal_records: u64,
    /// Blocks that were not read, because the checkpoint (`durability.checkpoint`) has their accounts.
    #[serde(default)]
    pub blocks_skipped: u64,
    /// Blocks that were erased because they held nothing that counts.
    pub blocks_erased: u64,
}

/// Late answers, by what kept them longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateCauses {
    /// The device decided them later than the front end needs to send them in time: their last phase is too short.
    pub lead_time: u64,
    /// The host woke the server late, or gave its processor to others.
    pub host: u64,
    /// Another thread of the server was at the device.
    pub lock: u64,
    /// The file of the flash image: the kernel's page cache, or the disk behind it.
    #[serde(default)]
    pub disk: u64,
    /// The server was at work on other requests.
    pub busy: u64,
}

impl LateCauses {
    /// All of them with their names.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        let LateCauses { lead_time, host, lock, disk, busy } = *self;
        [("host", host), ("busy", busy), ("disk", disk), ("lock", lock), ("lead_time", lead_time)]
    }
}

impl Live {
    /// `about` with the distribution of `lateness`.
    pub fn new(lateness: &Latency, about: Live) -> Live {
        Live { replies: lateness.count(), lateness_us: Distribution::new(lateness), ..about }
    }
}
