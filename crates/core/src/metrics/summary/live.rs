//! Live part of a summary: timing accuracy of a device that was served in real time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::metrics::latency::Latency;

/// Service of a device in real time: how much later than in the model the replies were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// `timed` if replies are sent at their due times, or `at-once` if the simulation runs as fast as possible, so that
    /// no reply is late.
    pub pace: String,
    /// Simulated time per unit of real time.
    pub speed: f64,
    /// Replies that are judged.
    pub replies: u64,
    /// Replies that are not judged: their requests move no data (TRIM, flush) and take less time than sending a reply.
    pub not_judged: u64,
    /// Time from the due time of a reply until it was sent, in real time.
    pub lateness_us: Distribution,
    /// Late replies: their lateness exceeds both 5% of their latency and 2 us.
    pub late: u64,
    /// Share of late replies; null without replies.
    pub late_share: Option<f64>,
    /// Maximum share of late replies of a faithful run.
    pub late_limit: f64,
    /// True if `late_share` is within `late_limit`, so that the host saw the timing of the device. Null without
    /// replies.
    pub faithful: Option<bool>,
    /// Late replies by cause, which is the longest of their delays.
    pub causes: LateCauses,
    /// Timing accuracy of each frontend.
    pub frontends: Vec<LiveFrontend>,
    /// Requests that failed because memory, or the disk of the image, was full or broken. The device does not notice
    /// these errors.
    #[serde(default)]
    pub payload_errors: u64,
    /// Flash image of the device; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<LiveImage>,
}

/// Timing accuracy of a frontend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveFrontend {
    /// Name of the frontend: `nbd`, `vhost-user`, `nvme-tcp`, or `control` for `trim-all`.
    pub name: String,
    /// Overhead deducted from a 4 KiB read of about 65 us, in real time: sending and receiving, measured by a self-test
    /// at the start. Less is deducted from faster requests.
    pub deducted_read_us: f64,
    /// Overhead deducted from a 4 KiB write of about 260 us, in real time.
    pub deducted_write_us: f64,
    /// Part of both overheads for waking the client, in real time. It is not deducted for a vhost-user client that
    /// polls.
    #[serde(default)]
    pub waking_us: f64,
    /// Mean deduction in real time; null without replies. Nothing is deducted while more requests are outstanding than
    /// the device works on at once.
    #[serde(default)]
    pub deducted_mean_us: Option<f64>,
    /// Replies that are judged.
    pub replies: u64,
    /// Replies that are not judged.
    pub not_judged: u64,
    /// Time from the due time of a reply until it was sent, in real time.
    pub lateness_us: Distribution,
    /// Late replies.
    pub late: u64,
    /// Share of late replies; null without replies.
    pub late_share: Option<f64>,
    /// Late replies by cause, which is the longest of their delays.
    pub causes: LateCauses,
    /// Turns of clients that were compared with the client's usual turn: from sending a reply until the client's next
    /// request is read. Only clients with one outstanding request have turns; their first 32 are not compared.
    #[serde(default)]
    pub client_turns: u64,
    /// Turns of more than 1.25 times the usual turn that exceed it by more than the tolerance for late replies. The
    /// client collected its reply late or had other work, or the server read the request late.
    #[serde(default)]
    pub client_late: u64,
    /// Share of late turns; null if no turn was compared.
    #[serde(default)]
    pub client_late_share: Option<f64>,
}

impl LiveFrontend {
    /// Returns `about` with the distribution of `lateness`.
    pub fn new(lateness: &Latency, about: LiveFrontend) -> LiveFrontend {
        LiveFrontend { replies: lateness.count(), lateness_us: Distribution::new(lateness), ..about }
    }
}

/// Flash image from which a device was served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveImage {
    /// Bytes that the image occupies on its disk.
    pub bytes: u64,
    /// True if all accepted data is in flash: the device was shut down, and the file was written.
    pub complete: bool,
    /// Power cuts during the run. The measured part starts at the last one.
    pub power_cuts: u64,
    /// Units that could not be read from the image.
    pub unreadable: u64,
    /// Last recovery, at the start or after a power cut; null if the image was new.
    pub recovery: Option<LiveRecovery>,
}

/// Recovery of a device from its image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRecovery {
    /// True if the device was shut down before. False after a power cut.
    pub after_shutdown: bool,
    /// True if the payload of each unit was checked, because the machine may have stopped.
    pub payload_checked: bool,
    /// Duration in simulated time.
    pub simulated_us: f64,
    /// Duration in real time.
    pub real_us: f64,
    /// Flash pages that were read.
    pub pages_read: u64,
    /// Units whose records were found, in pages or in summaries.
    pub units_mapped: u64,
    /// Units that a power cut left unreadable.
    pub torn_units: u64,
    /// Damaged records of the file that were repaired.
    #[serde(default)]
    pub records_repaired: u64,
    /// Damaged records of the file that were lost. Their units read as older data or as zeros.
    #[serde(default)]
    pub records_lost: u64,
    /// Units with damaged payload, found by the check of all payload.
    #[serde(default)]
    pub payload_lost: u64,
    /// Records of trims.
    pub journal_records: u64,
    /// Blocks with data that were not read, because of `durability.checkpoint` or `durability.map`.
    #[serde(default)]
    pub blocks_skipped: u64,
    /// Blocks that were erased because they held no data that is still needed.
    pub blocks_erased: u64,
}

/// Late replies by cause, which is the longest of their delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateCauses {
    /// The device decided the completion later than the reply had to be sent.
    pub lead_time: u64,
    /// The host woke the server late, or gave its processor to another program.
    pub host: u64,
    /// Another thread of the server held the lock of the device.
    pub lock: u64,
    /// The file of the flash image: the page cache of the kernel, or the disk.
    #[serde(default)]
    pub disk: u64,
    /// The server was busy with other requests.
    pub busy: u64,
}

impl LateCauses {
    /// Returns all causes with their names.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        let LateCauses { lead_time, host, lock, disk, busy } = *self;
        [("host", host), ("busy", busy), ("disk", disk), ("lock", lock), ("lead_time", lead_time)]
    }
}

impl Live {
    /// Returns `about` with the distribution of `lateness`.
    pub fn new(lateness: &Latency, about: Live) -> Live {
        Live { replies: lateness.count(), lateness_us: Distribution::new(lateness), ..about }
    }
}
