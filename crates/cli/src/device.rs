//! `floatgate device`: the SSDs that can be simulated.

use std::fmt;
use std::io::Write;

use clap::Subcommand;
use floatgate_core::config::cells::CellMode;
use floatgate_core::config::{self, BUILTINS, ConfigError, DeviceConfig};
use floatgate_core::device::{Options, needed};
use floatgate_core::external::Externals;
use floatgate_core::nand::timing::Timing;
use floatgate_core::sim::text::{escaped, escaped_lines};
use floatgate_core::sim::time::Time;
use floatgate_run::chosen::DeviceSpec;
use floatgate_workload::quantity::readable;

/// `floatgate device`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the built-in devices
    List,
    /// Show all figures of a device, their sources, and what follows from them
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
    /// Print the JSON schema of device files, for completion in editors
    Schema,
}

/// A device, as it is named on the command line.
#[derive(Clone, clap::Args)]
pub struct Selection {
    /// A built-in device (`floatgate device list`), or the path of a device file
    pub device: String,
    /// Change a figure, like geometry.channels=8 or gc.victim=fifo
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub overrides: Vec<String>,
    /// Policies of the program.
    #[arg(skip)]
    pub makers: Externals,
}

impl Selection {
    /// Loads and checks the device.
    pub fn load(&self) -> Result<DeviceConfig, ConfigError> {
        config::load_with(&self.makers, &self.device, &self.overrides)
    }

    /// Returns the device for the specification of a run.
    pub fn spec(&self) -> DeviceSpec {
        DeviceSpec::named(&self.device, &self.overrides).with_makers(self.makers.clone())
    }
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Format {
    /// As a device file
    #[arg(long)]
    toml: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns the device that is selected, if the command is about one.
    pub fn selection(&mut self) -> Option<&mut Selection> {
        match &mut self.command {
            Command::Show { device, .. } | Command::Check { device } => Some(device),
            Command::List | Command::Schema => None,
        }
    }
}

/// Runs the command in a program with policies of its own.
pub fn run(args: Args, makers: &Externals) -> anyhow::Result<()> {
    let out = &mut std::io::stdout().lock();
    match args.command {
        Command::List => list(out)?,
        Command::Show { device, format } => {
            let device = device.load()?;
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
            let config = device.load()?;
            let [path, name] = [&device.device, &config.name].map(|text| escaped(text));
            let memory = Size(needed(&config, &Options { attribution: true, ..Options::default() }).total());
            writeln!(out, "{path}: {name} is a device, digest {}", config.digest())?;
            writeln!(out, "simulating it takes {memory} of memory when it is full")?;
        }
        Command::Schema => writeln!(out, "{}", serde_json::to_string_pretty(&config::json_schema_with(makers))?)?,
    }
    Ok(out.flush()?)
}

fn list(out: &mut impl Write) -> anyhow::Result<()> {
    let devices = BUILTINS.iter().map(|builtin| config::load(builtin.name, &[])).collect::<Result<Vec<_>, _>>()?;
    let widest = devices.iter().map(|device| device.name.len()).max().unwrap_or(0);
    for device in devices {
        let g = &device.geometry;
        let (size, cell) = (Size(device.logical_bytes()).to_string(), format!("{:?}", device.nand.cell).to_lowercase());
        let array = format!("{}x{}x{}x{}", g.channels, g.chips, g.dies, g.planes);
        writeln!(out, "{:widest$}  {size:>10}  {array:>9}  {cell}  {}", device.name, device.description)?;
    }
    Ok(())
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

/// What follows from the figures, by name.
fn derived(device: &DeviceConfig) -> Vec<(&'static str, String)> {
    let g = &device.geometry;
    let timing = Timing::new(device);
    let [reads, programs] = page_times(device, &timing, CellMode::Native);
    let channel = device.channel_bandwidth();
    let at_most = device.max_soft_threshold().unwrap_or(0);
    let free_blocks = u64::from(device.soft_threshold()) * u64::from(device.total_planes()) * device.physical_bytes()
        / u64::from(device.total_blocks());
    let mut derived = vec![
        ("physical", format!("{} ({} B)", Size(device.physical_bytes()), device.physical_bytes())),
        ("logical", format!("{} ({} B)", Size(device.logical_bytes()), device.logical_bytes())),
        ("spare", format!("{:.2} % of physical", 100.0 * device.spare())),
        ("over-provisioning", format!("{:.2} % of logical, the vendor's figure", 100.0 * device.over_provisioning())),
        ("array", format!("{} planes, {} blocks of {}", device.total_planes(), device.total_blocks(), block(device))),
        ("page read", format!("{} without waiting and without the host's link", Span(&reads))),
        ("program", format!("{}", Span(&programs))),
        ("erase", format!("{}", Span(&[timing.erase_command + timing.erase]))),
        (
            "channel",
            format!("{:.1} MB/s, {:.1} MB/s over {}", mega(channel), mega(channel * u64::from(g.channels)), g.channels),
        ),
        (
            "stock of free blocks",
            format!(
                "{} in each plane, {} in all; a full device can keep {at_most}",
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

/// Times of a read and of a program by page type, in blocks in a cell mode, without waiting.
fn page_times(device: &DeviceConfig, timing: &Timing, cells: CellMode) -> [Vec<Time>; 2] {
    let times = timing.of(cells);
    let read = |page| timing.read_command + times.read(page) + timing.page_out;
    let program = |page| timing.program_command + times.program_in + times.program(page);
    let types = 0..device.nand.cell.bits();
    [types.clone().map(read).collect(), types.map(program).collect()]
}

fn block(device: &DeviceConfig) -> Size {
    Size(u64::from(device.geometry.pages) * device.geometry.page_size.0)
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A number of bytes to be read by people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&readable(u128::from(self.0)))
    }
}

/// A time for each page type, or the one that they have in common.
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

/// A value without the quotes of JSON.
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
