//! Arguments of `floatgate serve`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use floatgate_core::device_file::Bytes;
use floatgate_serve::Address;
use floatgate_serve::clock::Speed;
use floatgate_serve::nvme::wire::{DISCOVERY_NQN, NQN};
use floatgate_workload::quantity;

use super::monitor::MonitorArgs;
use crate::device::Selection;
use crate::trace_args::whole;

/// `floatgate serve`.
#[derive(Clone, clap::Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub device: Selection,
    /// Address for NBD clients: unix:PATH or HOST:PORT; can be repeated
    ///
    /// A Unix socket is accessible only to your user. Default: unix:NAME.sock with the name of the device, unless
    /// --vhost-user or --nvme is given.
    #[arg(long, value_name = "ADDRESS")]
    pub nbd: Vec<Address>,
    /// Socket for vhost-user-blk clients, such as QEMU's vhost-user-blk-pci
    ///
    /// The socket is accessible only to your user.
    #[arg(long, value_name = "PATH", value_parser = vhost_path)]
    pub vhost_user: Option<PathBuf>,
    /// Maximum queues per vhost-user client; QEMU uses one per guest processor
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(super) vhost_queues: u16,
    /// Address for NVMe/TCP hosts, such as tcp://127.0.0.1:4420; can be repeated
    ///
    /// The server is an NVMe controller for hosts such as Linux's driver `nvme-tcp`. See docs/nvme.md.
    #[arg(long, value_name = "ADDRESS", value_parser = nvme_address)]
    pub nvme: Vec<Address>,
    /// NQN of the drive, by which NVMe hosts recognize it [default: from its image, or a new one]
    ///
    /// Hosts treat drives with the same NQN as one drive. Without this option, an image keeps its NQN, and a device
    /// without an image gets a new one at each start.
    #[arg(long, value_name = "NQN", requires = "nvme", value_parser = nqn)]
    pub(super) nqn: Option<String>,
    /// Allow only the NVMe host with this NQN; can be repeated [default: all hosts]
    ///
    /// A host states its NQN itself (/etc/nvme/hostnqn), and nothing proves it.
    #[arg(long, value_name = "NQN", requires = "nvme", value_parser = nqn)]
    pub(super) allow_host: Vec<String>,
    /// Allow listening on this non-loopback IP; clients are not authenticated
    ///
    /// This applies to --nbd, --nvme and --dashboard.
    #[arg(long, value_name = "IP")]
    pub(super) allow_remote: Option<IpAddr>,
    /// Complete requests as fast as possible instead of in real time
    ///
    /// This is for copying data in and for testing clients. Simulated time passes only while requests are outstanding.
    #[arg(long, conflicts_with = "speed")]
    pub no_delay: bool,
    /// Run simulated time at X times real time, such as 0.1 on a slow host
    ///
    /// Default: 1, or 0.1 for an emulated guest of `floatgate vm`.
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub speed: Option<Speed>,
    /// Sleep until replies are due instead of busy-waiting (less CPU, less accurate)
    #[arg(long)]
    pub(super) no_spin: bool,
    /// Initial state of the device: none, fill, aged=V, invalid=V, steady or a workload
    ///
    /// aged=V: filled, with a share V of each block invalid. invalid=V: without valid data, with a share V of the pages
    /// written and invalid. steady: overwritten at random until the write amplification is stable. A job or trace is
    /// served without simulated time. In every state, all data reads as zeros.
    ///
    /// Default: fill, or none for a new --image. An existing image has a state of its own.
    #[arg(long, value_name = "STATE")]
    pub(super) precondition: Option<String>,
    /// Keep the contents of flash in FILE, which is created if it does not exist
    ///
    /// Data survives the end of the program. If the program is killed, the device sees a power cut and recovers at the
    /// next start, like an SSD. FILE is sparse and takes as much space as is programmed. `memory` keeps the contents in
    /// memory instead, so that `floatgate ctl power-cut` works without a file. For an array, FILE is a folder with an
    /// image for each member.
    #[arg(long, value_name = "FILE")]
    pub(super) image: Option<PathBuf>,
    /// Sync the image on each flush and FUA write, to survive a host crash (slow)
    #[arg(long, requires = "image")]
    pub(super) image_sync: bool,
    /// Serve an image with damaged records that cannot be repaired
    ///
    /// The affected units read as older data or as zeros.
    #[arg(long, requires = "image")]
    pub(super) image_salvage: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_hyphen_values = true)]
    pub(super) seed: u64,
    /// Memory for written data [default: half of the machine's memory]
    ///
    /// Writes fail with "no space" when it is full.
    #[arg(long, value_name = "SIZE", conflicts_with = "image", value_parser = size)]
    pub(super) memory: Option<Bytes>,
    #[command(flatten)]
    pub(super) monitor: MonitorArgs,
    /// Write the line READY=1 to file descriptor N when clients are served
    ///
    /// The descriptor is then closed. A shell can wait for the line with `read`. Service managers that set
    /// NOTIFY_SOCKET (systemd, Type=notify) are notified without this option.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=1_048_575))]
    pub(super) ready_fd: Option<u32>,
    /// Record each request to FILE, as a trace that `floatgate run` can replay
    ///
    /// FILE must not exist. It is compressed if its name ends in .gz, .xz, .zst or .bz2.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Write a timeline of channels, planes and requests to FILE, such as live.pftrace.gz
    ///
    /// Open it in ui.perfetto.dev, or draw a part of it with `floatgate draw`. FILE must not exist. It is written when
    /// the server ends. Until then, its parts are in the folder FILE.parts.
    #[arg(long, value_name = "FILE")]
    pub(super) timeline: Option<PathBuf>,
    /// Size of the timeline before compression, at least 1MiB; the newest part is kept
    #[arg(long, value_name = "SIZE", requires = "timeline", default_value = "256MiB", value_parser = size)]
    pub(super) timeline_limit: Bytes,
    /// Write the result to DIR/summary.json and DIR/report.html
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the result as JSON instead
    #[arg(long)]
    pub(super) json: bool,
}

impl ServeArgs {
    /// Returns the state of a new device.
    pub(super) fn precondition(&self) -> &str {
        let usual = if self.image.is_some() { "none" } else { "fill" };
        self.precondition.as_deref().unwrap_or(usual)
    }

    /// Returns the arguments of the command that replays the recording with the same latencies. They are empty without
    /// a recording. `before` is the saved state that the recording starts from, if it started from an image.
    pub(super) fn replay(&self, before: Option<&Path>) -> Vec<String> {
        let Some(path) = &self.record else { return Vec::new() };
        let mut arguments = vec!["run".to_owned(), self.device.device.clone(), path.display().to_string()];
        arguments.extend(self.device.overrides.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        arguments.extend(self.device.policies.iter().flat_map(|file| ["--policies".to_owned(), file.clone()]));
        arguments.extend(self.device.scale.iter().flat_map(|scale| ["--scale".to_owned(), scale.to_string()]));
        arguments.extend(match before {
            Some(state) => ["--load-state".to_owned(), state.display().to_string()],
            None => ["--precondition".to_owned(), self.precondition().to_owned()],
        });
        arguments.extend(["--seed".to_owned(), self.seed.to_string()]);
        arguments
    }
}

/// Parses a size as in workloads: `256M` and `256MiB` are equal, and `256MB` is a bit less.
pub fn size(text: &str) -> Result<Bytes, String> {
    quantity::bytes(text).map(Bytes)
}

/// Parses the address of an NVMe controller.
fn nvme_address(text: &str) -> Result<Address, String> {
    let wrong = || format!("invalid address `{text}`: expected tcp://HOST:PORT, such as tcp://127.0.0.1:4420");
    match text.strip_prefix("tcp://").ok_or_else(wrong)?.parse()? {
        Address::Tcp(address) => Ok(Address::Tcp(address)),
        Address::Unix(_) => Err(wrong()),
    }
}

/// Checks an NQN.
fn nqn(text: &str) -> Result<String, String> {
    let is_valid = text.starts_with("nqn.") && text.len() <= NQN && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_valid {
        let expected = format!("at most {NQN} ASCII characters without spaces that start with nqn.");
        return Err(format!("invalid NQN `{text}`: expected {expected}"));
    }
    if text == DISCOVERY_NQN {
        return Err(format!("invalid NQN `{text}`: it is the one of discovery controllers; give another name"));
    }
    Ok(text.to_owned())
}

/// Parses the path of a socket, also in the syntax of other options, `unix:PATH`.
fn vhost_path(text: &str) -> Result<PathBuf, String> {
    let address = if text.starts_with("unix:") { text.to_owned() } else { format!("unix:{text}") };
    match address.parse()? {
        Address::Unix(path) => Ok(path),
        Address::Tcp(_) => Err("expected the path of a socket: clients share memory with the server".to_owned()),
    }
}
