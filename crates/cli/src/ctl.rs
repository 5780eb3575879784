//! `floatgate ctl`: queries and controls a running server.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use floatgate_report::number::{bytes, grouped, short, time};
use floatgate_serve::clock::Speed;
use floatgate_serve::monitor::client::{Requester, running, usual_places};
use floatgate_serve::monitor::commands::Command as Requested;
use floatgate_serve::monitor::frame::{Flash, Frame, Info};
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::print;
use crate::serve::clients;
use floatgate_run::text::harmless;
use floatgate_run::text::plural;

/// Text at the end of `--help`.
pub const HELP: &str = "\
Examples:
  floatgate ctl status                                     if only one server is running
  floatgate ctl --socket /tmp/ssd.ctl status --json
  floatgate ctl clients                                    commands for fio, QEMU and others
  floatgate ctl speed 0.1                                  a tenth of real time
  floatgate ctl trim-all                                   like blkdiscard
  floatgate ctl watch | jq .frame.requests.read.iops

The control socket is next to the NBD socket: /tmp/ssd.ctl for /tmp/ssd.sock. --socket accepts either of them.
docs/reference/control.md describes the protocol of the control socket.";

/// `floatgate ctl`.
#[derive(clap::Args)]
pub struct CtlArgs {
    /// The server's control socket or NBD socket [default: the only running server]
    ///
    /// Your *.ctl sockets are found in the working directory, in XDG_RUNTIME_DIR and in the directory for temporary
    /// files.
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Print the response as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print the device, its addresses and its current state
    Status,
    /// Print the commands that connect clients: fio, QEMU and others
    Clients,
    /// Run simulated time at X times real time from now on
    Speed {
        /// Speed, from 0.0001 to 100
        #[arg(value_name = "X", allow_hyphen_values = true)]
        speed: Speed,
    },
    /// Trim the whole device; all data is lost
    TrimAll,
    /// Cut the power and recover the device; data not yet in flash is lost
    PowerCut,
    /// Make the next program, erase or read fail on a device with a table [faults]
    Fail {
        /// Operation, and optionally its location, such as "program" or "erase 3/12"
        ///
        /// The location is PLANE/BLOCK, as in "erase 3/12", or PLANE/BLOCK/PAGE, as in "read 0/7/63".
        #[arg(value_name = "FAULT", num_args = 1..=2)]
        fault: Vec<String>,
    },
    /// Print the state as a line of JSON twice a second, until Ctrl-C
    Watch {
        /// Also print block maps
        #[arg(long)]
        blocks: bool,
    },
}

#[derive(Deserialize)]
struct Status {
    info: Info,
    frame: Frame,
}

/// Runs the command.
pub fn run(args: &CtlArgs) -> Result<(), Failure> {
    let mut requester = connect(args.socket.as_deref())?;
    let requested = match &args.command {
        Command::Status => Requested::Status {},
        Command::Speed { speed } => Requested::Speed { value: speed.to_string() },
        Command::TrimAll => Requested::TrimAll {},
        Command::PowerCut => Requested::PowerCut {},
        Command::Fail { fault } => Requested::Fail { place: fault.join(" ") },
        Command::Watch { blocks } => Requested::Watch { blocks: *blocks },
        // The first response has the properties of the device.
        Command::Clients => Requested::Watch { blocks: false },
    };
    // Trimming a large device takes long. All other commands return at once.
    let patience = (!matches!(requested, Requested::TrimAll {})).then_some(Duration::from_secs(30));
    requester.set_patience(patience).map_err(lost)?;
    let mut answer = requester.ask(&requested).map_err(lost)?;
    if !args.json && !matches!(args.command, Command::Watch { .. }) {
        answer = harmless(answer);
    }
    if let (Some(error), false) = (answer["error"].as_str(), args.json) {
        return Err(Failure::fault(error));
    }
    match &args.command {
        Command::Watch { .. } => {
            print(format!("{answer}\n"))?;
            loop {
                print(format!("{}\n", requester.receive().map_err(lost)?))?;
            }
        }
        Command::Status if !args.json => print(&status(&answer)?)?,
        Command::Clients if !args.json => print(clients::commands(&read(&answer["info"])?))?,
        _ if args.json => print(format!("{answer}\n"))?,
        _ => print(format!("{}\n", answer["message"].as_str().unwrap_or_default()))?,
    }
    match answer["ok"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(Failure::fault(answer["error"].as_str().unwrap_or("the server refused the command without a reason"))),
    }
}

/// Connects to the server at this socket, or to the only running server.
pub fn connect(socket: Option<&Path>) -> Result<Requester, Failure> {
    let path = match socket {
        Some(path) => path.to_owned(),
        None => find()?,
    };
    Requester::connect(&path).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "no such socket".to_owned(),
            io::ErrorKind::ConnectionRefused => "the server has ended".to_owned(),
            _ => error.to_string(),
        };
        Failure::fault(format!(
            "cannot connect to a server at {}: {why}; `floatgate serve` prints the path of its control socket",
            path.display()
        ))
    })
}

/// Returns the control socket of the only running server.
fn find() -> Result<PathBuf, Failure> {
    let places = usual_places();
    let mut found = running(&places);
    let list = |paths: &[PathBuf], join: &str| {
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(join)
    };
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::fault(format!(
            "no running server found: no *.ctl socket in {} responds; start one with `floatgate serve DEVICE`, or give \
             the path of its socket (ctl: --socket PATH, top: PATH)",
            list(&places, ", ")
        ))),
        _ => Err(Failure::mistake(format!("several servers are running: choose one of {}", list(&found, ", ")))),
    }
}

/// Converts an error of the connection into a failure.
pub fn lost(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            Failure::fault("the server has ended")
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::fault("the server does not respond"),
        _ => Failure::fault(format!("cannot communicate with the server: {error}")),
    }
}

/// Parses a response.
fn read<'a, T: Deserialize<'a>>(answer: &'a Value) -> Result<T, Failure> {
    T::deserialize(answer)
        .map_err(|error| Failure::fault(format!("the server runs another version of Floatgate: {error}")))
}

/// Formats the status as text.
fn status(answer: &Value) -> Result<String, Failure> {
    let Status { info, frame } = read(answer)?;
    if let Some(preparing) = &frame.preparing {
        let wait = "clients wait until then";
        return Ok(format!("{}: {}\n  not served yet: {preparing}; {wait}\n", info.device, bytes(info.logical_bytes)));
    }
    let pace = frame.speed.map_or("as fast as possible".to_owned(), |speed| format!("at a speed of {speed}"));
    let vhost_user = info.vhost_user.iter().map(|path| format!("vhost-user {path}"));
    let nvme = info.nvme.iter().map(|address| format!("NVMe tcp://{address}"));
    let places: Vec<String> = info.addresses.iter().cloned().chain(vhost_user).chain(nvme).collect();
    let mut text = format!("{}: {} at {}\n", info.device, bytes(info.logical_bytes), places.join(", "));
    text += &format!("  up             {:.0} s, simulated {:.3} s, {pace}\n", frame.wall_s, frame.simulated_s);
    for (operation, requests) in frame.requests.iter().filter(|(_, requests)| requests.count + requests.errors > 0) {
        let name = operation.replace('_', " ");
        let mut line = format!("{} ({} sectors)", grouped(requests.count), grouped(requests.sectors));
        line += &format!(", now {} IOPS, {} MiB/s", short(requests.iops), short(requests.mib_per_s));
        if let (Some(p50), Some(p99)) = (requests.p50_us, requests.p99_us) {
            line += &format!(", p50 {}, p99 {}", time(p50), time(p99));
        }
        if requests.errors > 0 {
            line += &format!(", {} FAILED", grouped(requests.errors));
        }
        text += &format!("  {name:<14} {line}\n");
    }
    let flash = &frame.flash;
    let amplification = flash.statistics.derived.write_amplification.map_or("-".to_owned(), short);
    text += &format!("  outstanding    {}\n", frame.outstanding);
    text += &format!(
        "  flash          write amplification {amplification}, {}, {} blocks erased, {} free\n",
        reclaimed(flash),
        grouped(flash.statistics.counters.blocks_erased),
        grouped(flash.statistics.derived.free_blocks)
    );
    text += &condition(flash);
    let late = &frame.lateness;
    if let Some(share) = late.share {
        let verdict = if late.faithful == Some(true) { "faithful" } else { "not faithful" };
        text +=
            &format!("  lateness       {verdict}: {:.1} % of {} replies late\n", share * 100.0, grouped(late.replies));
    }
    if let Some(share) = late.client_late_share {
        let turns = grouped(late.client_turns);
        text += &format!("  clients late   in {:.1} % of {turns} turns\n", share * 100.0);
    }
    if frame.payload_errors > 0 {
        let (count, requests) = (grouped(frame.payload_errors), plural(frame.payload_errors, "request"));
        text +=
            &format!("  payload        {count} {requests} failed because the data could not be stored or fetched\n");
    }
    if frame.unaligned_requests > 0 {
        let [requests, reads] = [frame.unaligned_requests, frame.unaligned_reads].map(grouped);
        text += &format!("  unaligned      {requests} requests were not whole sectors, completed by {reads} reads\n");
    }
    for client in &frame.clients {
        text += &format!("  client         {client}, for {:.0} s", client.connected_s);
        text += &format!(", {} outstanding", client.in_progress);
        if client.turns > 0 {
            text += &format!(", late in {} of {} turns", grouped(client.late_turns), grouped(client.turns));
        }
        text.push('\n');
    }
    for warning in &frame.warnings {
        text += &format!("  warning        {warning}\n");
    }
    if let Some(trouble) = &frame.fatal_error {
        text += &format!("  fatal error    {trouble}\n");
    }
    Ok(text)
}

/// Describes what has freed blocks: victims of garbage collection, or merges.
fn reclaimed(flash: &Flash) -> String {
    let merges = flash.merges.iter().map(|(kind, count)| format!("{} {kind}", grouped(*count)));
    if flash.merges.is_empty() {
        format!("{} GC victims", grouped(flash.statistics.counters.victims))
    } else {
        format!("{} merges", merges.collect::<Vec<_>>().join(", "))
    }
}

/// Formats the state of flash: read-only mode, bad blocks and failed operations.
fn condition(flash: &Flash) -> String {
    let mut text = if flash.read_only {
        "  READ-ONLY      the device no longer accepts writes\n".to_owned()
    } else {
        String::new()
    };
    text += &format!("  bad blocks     {}\n", grouped(flash.statistics.derived.bad_blocks));
    let [programs, erases, reads] = [
        flash.statistics.counters.faults.programs_failed,
        flash.statistics.counters.faults.erases_failed,
        flash.statistics.derived.uncorrectable_reads,
    ]
    .map(grouped);
    text + &format!("  failed         {programs} programs, {erases} erases, {reads} uncorrectable reads\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_serve::monitor::frame::{Client, Late, Preparing};

    #[test]
    fn status_shows_read_only_mode_and_failures() {
        let mut frame = Frame::default();
        frame.requests.entry("write".to_owned()).or_default().errors = 1234;
        (
            frame.flash.read_only,
            frame.flash.statistics.derived.bad_blocks,
            frame.flash.statistics.counters.faults.erases_failed,
        ) = (true, 5, 6);
        (frame.flash.statistics.counters.faults.programs_failed, frame.flash.statistics.derived.uncorrectable_reads) =
            (7, 8);
        let answer = serde_json::json!({ "info": Info::default(), "frame": frame });
        let text = status(&answer).unwrap();
        for line in ["READ-ONLY      the device no longer", "bad blocks     5", "1,234 FAILED"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(text.contains("failed         7 programs, 6 erases, 8 uncorrectable reads"), "{text}");
    }

    #[test]
    fn status_shows_connected_clients() {
        let client = Client { frontend: "nbd".into(), process: Some("fio".into()), pid: Some(12), ..Client::default() };
        let client = Client { turns: 1200, late_turns: 30, ..client };
        let tcp = Client { frontend: "nbd".into(), address: "127.0.0.1:5".into(), in_progress: 3, ..Client::default() };
        let lateness = Late { client_turns: 1200, client_late: 30, client_late_share: Some(0.025), ..Late::default() };
        let frame = Frame { clients: vec![client, tcp], lateness, ..Frame::default() };
        let text = status(&serde_json::json!({ "info": Info::default(), "frame": frame })).unwrap();
        for line in [
            "clients late   in 2.5 % of 1,200 turns\n",
            "client         fio (process 12) over nbd, for 0 s, 0 outstanding, late in 30 of 1,200 turns\n",
            "client         127.0.0.1:5 over nbd, for 0 s, 3 outstanding\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn status_shows_the_progress_of_preparation() {
        let preparing = Some(Preparing { what: "filling the device".into(), share: Some(0.5) });
        let frame = Frame { preparing, ..Frame::default() };
        let text = status(&serde_json::json!({ "info": Info::default(), "frame": frame })).unwrap();
        assert!(text.contains("not served yet: filling the device, 50 %; clients wait"), "{text}");
    }
}
