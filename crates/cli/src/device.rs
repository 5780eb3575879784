//! `floatgate device`: lists, shows and checks devices.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use clap_complete::ArgValueCompleter;
use floatgate_array::config::ArrayConfig;
use floatgate_core::device_file::{CellMode, DeviceConfig, Direction, Listed, Listing, Scale, Scaled, Timing};
use floatgate_core::policies::Externals;
use floatgate_core::sim::text::{escaped, escaped_lines};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Options;
use floatgate_run::device::DeviceSpec;
use floatgate_run::import;
use floatgate_workload::quantity::readable;

use crate::complete;
use crate::failure::Failure;
use crate::output::print;

/// `floatgate device`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the built-in devices
    List {
        /// Print JSON, as docs/reference/devices.md describes it
        #[arg(long)]
        json: bool,
    },
    /// Show the parameters of a device, their sources, and values derived from them
    Show {
        #[command(flatten)]
        device: Selection,
        #[command(flatten)]
        format: Format,
    },
    /// Check a device file
    Check {
        #[command(flatten)]
        device: Selection,
    },
    /// Convert a configuration of MQSim, SSDsim, DiskSim or FEMU into a device file
    ///
    /// Recognizes MQSim's ssdconfig.xml, SSDsim's page.parameters, .parv files of DiskSim's SSD extension, and scripts
    /// or command lines with FEMU's device. Converts MQSim's workload.xml into a job file. Each value of the result has
    /// the key that it comes from, and the end lists what was not carried over (docs/import.md).
    Import {
        /// File to convert
        file: PathBuf,
        /// Scenario of a workload.xml to convert, counted from 1
        #[arg(long, value_name = "N", default_value_t = 1)]
        scenario: usize,
    },
    /// Write a device file with a share of the blocks, such as 1/16, and the same steady state
    ///
    /// Rates, latencies and write amplification remain, and a steady state is reached sooner. The file starts with the
    /// options that differ and those that do not, with reasons. See docs/own-drive.md.
    Scale {
        #[command(flatten)]
        device: Selection,
        /// Share of the blocks, such as 1/16
        #[arg(value_name = "SCALE", conflicts_with = "scale")]
        by: Scale,
        /// Write the device to FILE, and print only what differs
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print the JSON schema of device files, for completion in editors
    Schema,
}

/// Device given on the command line.
#[derive(Clone, clap::Args)]
pub struct Selection {
    /// Built-in device (see `floatgate device list`), or path of a device file
    #[arg(add = ArgValueCompleter::new(complete::devices))]
    pub device: String,
    /// Change a parameter, such as geometry.channels=8 or gc.victim=fifo
    #[arg(long = "set", value_name = "PATH=VALUE", add = ArgValueCompleter::new(complete::overrides))]
    pub overrides: Vec<String>,
    /// Python file or module that registers policies; can be repeated [Python package]
    #[arg(long, value_name = "FILE")]
    pub policies: Vec<String>,
    /// Use a share of the blocks, such as 1/16, with the same rates, latencies and steady state
    ///
    /// The parallel units remain, and the capacity shrinks with the blocks that hold data. See `floatgate device
    /// scale`.
    #[arg(long, value_name = "SCALE")]
    pub scale: Option<Scale>,
    /// External policies that the program provides.
    #[arg(skip)]
    pub makers: Externals,
}

impl Selection {
    /// Returns the device for the specification of a run.
    pub fn spec(&self) -> DeviceSpec {
        DeviceSpec::named(&self.device, &self.overrides).with_scale(self.scale).with_makers(self.makers.clone())
    }
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Format {
    /// Print a device file
    #[arg(long)]
    toml: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns the selected device, if the command has one.
    pub fn selection(&mut self) -> Option<&mut Selection> {
        match &mut self.command {
            Command::Show { device, .. } | Command::Check { device } | Command::Scale { device, .. } => Some(device),
            Command::List { .. } | Command::Import { .. } | Command::Schema => None,
        }
    }
}

/// Runs the command. `makers` are the external policies that the program provides.
pub fn run(args: Args, makers: &Externals) -> Result<(), Failure> {
    if let Command::Import { file, scenario } = &args.command {
        let imported = import::from_file(file, *scenario)?;
        print(&imported.text)?;
        // An invalid device is printed, too, so that the user can correct it.
        if imported.simulator != import::Simulator::MqsimWorkload {
            DeviceSpec::text(&imported.text, "imported.toml", &[]).load().map_err(Failure::mistake)?;
        }
        return Ok(());
    }
    if let Command::Scale { device, by, out } = &args.command {
        return scale(device, *by, out.as_deref());
    }
    let mut page = Vec::new();
    write_page(&mut page, args, makers)?;
    print(page)
}

/// Prints a scaled device, or writes it to `out` and prints what differs.
fn scale(device: &Selection, by: Scale, out: Option<&Path>) -> Result<(), Failure> {
    let loaded = device.spec().with_scale(Some(by)).load().map_err(Failure::mistake)?;
    let scaled = &loaded.scaled.expect("a scaled device");
    let text = scaled_file(scaled, by)?;
    let Some(path) = out else { return print(text) };
    let written = std::fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let what = format!("cannot write {}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::mistake(format!("{what}; give a path that does not exist")),
            _ => Failure::fault(what),
        }
    })?;
    print(format!("{}\nwritten to {}\n", explanation(scaled, by), escaped(&path.display().to_string())))
}

/// Writes the output of the command to `out`.
fn write_page(out: &mut impl Write, args: Args, makers: &Externals) -> anyhow::Result<()> {
    match args.command {
        Command::List { json: true } => writeln!(out, "{}", serde_json::to_string_pretty(&Listing::new()?)?)?,
        Command::List { json: false } => list(out, &Listing::new()?.devices, terminal_width())?,
        Command::Show { device, format } => {
            let chosen = device.spec().load()?;
            if let Some(array) = &chosen.array {
                return show_array(out, array, &format);
            }
            let device = chosen.config;
            if format.toml {
                write!(out, "{}", toml::to_string(&device.resolved())?)?;
            } else if format.json {
                writeln!(out, "{}", serde_json::to_string_pretty(&device.resolved())?)?;
            } else {
                let mut page = Vec::new();
                show(&mut page, &device)?;
                out.write_all(escaped_lines(&String::from_utf8_lossy(&page)).as_bytes())?;
            }
        }
        Command::Check { device } => {
            let chosen = device.spec().load()?;
            let [path, name] = [&device.device, &chosen.config.name].map(|text| escaped(text));
            let memory = Size(Options { attribution: true, ..Options::default() }.memory(&chosen.config).total());
            let kind = if chosen.array.is_some() { "array" } else { "device" };
            writeln!(out, "{path}: {name} is a valid {kind}, digest {}", chosen.digest())?;
            writeln!(out, "simulating it takes {memory} of memory when it is full")?;
        }
        Command::Import { .. } | Command::Scale { .. } => {}
        Command::Schema => {
            writeln!(out, "{}", serde_json::to_string_pretty(&DeviceConfig::json_schema(&makers.offers()))?)?
        }
    }
    Ok(())
}

/// Returns the device file of a scaled device, which starts with an explanation.
fn scaled_file(scaled: &Scaled, scale: Scale) -> anyhow::Result<String> {
    let mut device = scaled.device.resolved();
    device.description =
        format!("{} Scaled to {scale} of its blocks.", device.description.trim_end()).trim().to_owned();
    device.name = format!("{}-{}", device.name, scale.to_string().replace('/', "-"));
    let comments: String =
        explanation(scaled, scale).lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect();
    Ok(format!("{comments}\n{}", toml::to_string(&device)?))
}

/// Returns the options that differ in a scaled device, and those that remain, with the reasons.
fn explanation(scaled: &Scaled, scale: Scale) -> String {
    let mut text = format!("{} with {scale} of its blocks. These options differ:\n", scaled.device.name);
    for change in &scaled.changes {
        text += &format!("  {change}\n");
    }
    text += "These remain:\n";
    for rule in Scaled::kept() {
        text += &format!("  {}: {}\n", rule.options.join(", "), rule.why);
    }
    for note in &scaled.notes {
        text += &format!("Note: {note}\n");
    }
    escaped_lines(&text).into_owned()
}

/// Title of a group of built-in devices, and whether a device belongs to it.
type Group = (&'static str, fn(&Listed) -> bool);

/// Groups of built-in devices. A device is in the first one that it belongs to.
const GROUPS: [Group; 3] = [
    ("Present-day drives", |device| device.description.contains("present-day")),
    ("For first steps and measurements", |device| device.name == "tiny" || device.name.starts_with("bench-")),
    ("Drives of papers and of other simulators", |_| true),
];

/// Lists devices in groups. Descriptions are broken between words if lines have a `width`.
fn list(out: &mut impl Write, devices: &[Listed], width: Option<usize>) -> anyhow::Result<()> {
    let group = |device: &Listed| GROUPS.iter().position(|(_, belongs)| belongs(device));
    let widest = devices.iter().map(|device| device.name.len()).max().unwrap_or(0);
    let line = |name: &str, size: &str, array: &str, cell: &str| {
        format!("{name:widest$}  {size:>10}  {array:>9}  {cell:<4}  ")
    };
    writeln!(out, "{}description", line("device", "capacity", "array", "cell"))?;
    for (index, (title, _)) in GROUPS.iter().enumerate() {
        writeln!(out, "\n{title}")?;
        for device in devices.iter().filter(|device| group(device) == Some(index)) {
            let Listed { name, description, logical_bytes, channels, chips, dies, planes, cell, .. } = device;
            let array = format!("{channels}x{chips}x{dies}x{planes}");
            let head = line(name, &Size(*logical_bytes).to_string(), &array, &format!("{cell:?}").to_lowercase());
            let indent = head.len();
            let lines = match width.and_then(|width| width.checked_sub(indent)).filter(|rest| *rest >= MIN_DESCRIPTION)
            {
                Some(rest) => broken(description, rest),
                None => vec![description.clone()],
            };
            writeln!(out, "{head}{}", lines.join(&format!("\n{:indent$}", "")))?;
        }
    }
    writeln!(out, "\narray: channels x chips x dies x planes; `floatgate device show DEVICE` shows all parameters")?;
    Ok(())
}

/// Minimum width of a column of descriptions. In narrower terminals, lines are not broken.
const MIN_DESCRIPTION: usize = 24;

/// Breaks a text between words into lines of at most `width` characters.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns the width of the terminal of standard output, if it is one.
fn terminal_width() -> Option<usize> {
    #[cfg(unix)]
    return rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|w| *w > 0);
    #[cfg(not(unix))]
    None
}

/// Shows the options of an array and its members.
fn show_array(out: &mut impl Write, array: &ArrayConfig, format: &Format) -> anyhow::Result<()> {
    let file = serde_json::json!({ "name": array.name, "description": array.description, "array": array.to_json() });
    if format.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&file)?)?;
        return Ok(());
    }
    if format.toml {
        write!(out, "{}", array.to_toml())?;
        return Ok(());
    }
    let mut page = Vec::new();
    let description = if array.description.is_empty() { array.summary() } else { array.description.clone() };
    writeln!(page, "{}: {description}", array.name)?;
    writeln!(page, "digest {}\n", array.digest())?;
    let layout = array.layout();
    writeln!(page, "{:<22}{}", "array", array.summary())?;
    writeln!(page, "{:<22}{} ({} B)", "logical", Size(array.logical_bytes()), array.logical_bytes())?;
    let stripe = Size(layout.row_sectors() * 512);
    writeln!(page, "{:<22}{} of {stripe} data, {} data chunks each", "stripes", layout.rows(), layout.data())?;
    writeln!(page, "{:<22}{} requests\n", "queue", array.queue_depth())?;
    for (key, value) in array.to_json() {
        writeln!(page, "array.{key:<24} {}", Shown(&value))?;
    }
    writeln!(page)?;
    for (number, member) in array.members.iter().enumerate() {
        writeln!(
            page,
            "member {number:<15}{}, {}, digest {}",
            member.name,
            Size(member.logical_bytes()),
            member.digest()
        )?;
    }
    Ok(out.write_all(escaped_lines(&String::from_utf8_lossy(&page)).as_bytes())?)
}

fn show(out: &mut impl Write, device: &DeviceConfig) -> anyhow::Result<()> {
    writeln!(out, "{}: {}", device.name, device.description)?;
    writeln!(out, "version {}, digest {}\n", device.version, device.digest())?;
    for (name, value) in derived(device) {
        writeln!(out, "{name:<22}{value}")?;
    }
    let mut table = String::new();
    let mut above = None;
    for figure in device.figures() {
        let first = figure.path.split('.').next().unwrap_or_default();
        if first != table {
            writeln!(out)?;
            (table, above) = (first.to_owned(), None);
        }
        let source = match figure.source {
            Some(source) if above == Some(source) => "\"",
            Some(source) => source,
            None => "default",
        };
        above = figure.source;
        writeln!(out, "{:<32} {:<18} {source}", figure.path, Shown(&figure.value))?;
    }
    Ok(())
}

/// Returns names and values that are derived from the parameters.
fn derived(device: &DeviceConfig) -> Vec<(&'static str, String)> {
    let timing = Timing::new(device);
    let [reads, programs] = page_times(device, &timing, CellMode::Native);
    let buses = device.buses();
    let channel = |direction| {
        let bandwidth = device.channel_bandwidth(direction);
        format!("{:.1} MB/s, {:.1} MB/s over {buses}", mega(bandwidth), mega(bandwidth * u64::from(buses)))
    };
    let channels = match (channel(Direction::Out), channel(Direction::In)) {
        (reads, writes) if reads == writes => reads,
        (reads, writes) => format!("reads {reads}; writes {writes}"),
    };
    let at_most = device.max_soft_threshold().unwrap_or(0);
    let free_blocks = u64::from(device.soft_threshold()) * u64::from(device.total_planes()) * device.physical_bytes()
        / u64::from(device.total_blocks());
    let mut derived = vec![
        ("physical", format!("{} ({} B)", Size(device.physical_bytes()), device.physical_bytes())),
        ("logical", format!("{} ({} B)", Size(device.logical_bytes()), device.logical_bytes())),
        ("spare", format!("{:.2} % of physical", 100.0 * device.spare())),
        ("over-provisioning", format!("{:.2} % of logical, as vendors specify it", 100.0 * device.over_provisioning())),
        ("array", format!("{} planes, {} blocks of {}", device.total_planes(), device.total_blocks(), block(device))),
        ("page read", format!("{} without waiting and without the host link", Span(&reads))),
        ("program", format!("{}", Span(&programs))),
        ("erase", format!("{}", Span(&[timing.erase_command + timing.erase]))),
        ("channel", channels),
        (
            "free blocks",
            format!(
                "{} per plane, {} in total; a full device can keep {at_most}",
                device.soft_threshold(),
                Size(free_blocks)
            ),
        ),
    ];
    if device.nand.slc_mode.is_some() {
        let [reads, programs] = page_times(device, &timing, CellMode::Slc);
        let size = device.block_size(CellMode::Slc);
        let block = Size(u64::from(size.units) * device.unit_bytes());
        derived.push(("SLC mode", format!("page read {}, program {}, block {block}", Span(&reads), Span(&programs))));
    }
    derived
}

/// Returns the read times and program times of blocks in a cell mode, without waiting. Indexed by page type.
fn page_times(device: &DeviceConfig, timing: &Timing, cells: CellMode) -> [Vec<Time>; 2] {
    let times = timing.of(cells);
    let read = |page| timing.read_command + times.read(page) + timing.page_out;
    let program = |page| timing.program_command + times.program_in + times.program(page);
    let types = (0..device.nand.cell.bits()).map(|page_type| page_type * device.planes_together());
    [types.clone().map(read).collect(), types.map(program).collect()]
}

fn block(device: &DeviceConfig) -> Size {
    Size(u64::from(device.pages_per_block()) * device.page_bytes())
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Number of bytes, displayed with a unit.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&readable(u128::from(self.0)))
    }
}

/// Times of the page types, displayed as a range, or as one time if all are equal.
struct Span<'a>(&'a [Time]);

impl fmt::Display for Span<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (self.0.iter().min(), self.0.iter().max()) {
            (Some(least), Some(most)) if least < most => write!(f, "{:.2} to {:.2} us", least.as_us(), most.as_us()),
            (Some(least), _) => write!(f, "{:.2} us", least.as_us()),
            (None, _) => Ok(()),
        }
    }
}

/// JSON value, displayed without quotes.
struct Shown<'a>(&'a serde_json::Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = match self.0 {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| Shown(item).to_string()).collect();
                items.join(", ")
            }
            other => other.to_string(),
        };
        f.pad(&text)
    }
}
