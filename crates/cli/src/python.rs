//! Commands of the Python package, which this program forwards to it.
//!
//! Sweeps, fleets and studies consist of many runs, which Python libraries distribute. They are implemented once, in
//! `python/floatgate`. If that package is installed, this program runs them, too.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::failure::{self, Failure};

/// Name of the Python interpreter.
const PYTHON: &str = "python3";

/// Python code that prints the version of the package, and fails if it is not installed. The version is read from the
/// extension module, because any directory named `floatgate` can be imported as a package.
const ASK: &str = "from floatgate._floatgate import __version__; print(__version__)";

/// Text at the end of `--help`.
pub const HELP: &str = "\
The command is part of the Python package: `pip install floatgate` provides it, and `pip install 'floatgate[all]'` adds \
all optional libraries. With the package, --help lists all arguments.";

/// Arguments of a command of the Python package.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Arguments for the Python package; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Args {
    /// Returns `true` if the arguments request help.
    fn request_help(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "--help" || argument == "-h")
    }
}

/// Runs a command of the Python package. If the package is missing, prints requested help from `program`, the
/// declaration of the command line.
pub fn run(word: &str, args: &Args, program: fn() -> clap::Command) -> Result<(), Failure> {
    match installed() {
        Err(_) if args.request_help() => print_help(word, program()),
        found => {
            let arguments: Vec<OsString> = [word.into()].into_iter().chain(args.arguments.iter().cloned()).collect();
            start(found, &arguments)
        }
    }
}

/// Forwards the arguments of this program to the Python package.
pub fn forward(given: &[OsString]) -> Result<(), Failure> {
    start(installed(), given)
}

/// Runs a command line by the Python package, if it was `found`.
fn start(found: Result<String, String>, arguments: &[OsString]) -> Result<(), Failure> {
    let version = found.map_err(|why| missing(&arguments[0].to_string_lossy(), &why))?;
    warn_of_other(&version);
    replace(Command::new(PYTHON).args(["-m", "floatgate"]).args(arguments))
}

/// Returns the version of the installed package, or the reason why there is none.
fn installed() -> Result<String, String> {
    let requested = Command::new(PYTHON).args(["-c", ASK]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    match requested {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(_) => Err(format!("{PYTHON} does not have it")),
        Err(error) => Err(format!("cannot run {PYTHON}: {error}")),
    }
}

fn warn_of_other(version: &str) {
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        failure::say(&format!(
            "warning: this program is version {own}, but the Python package that runs the command is version {version}"
        ));
    }
}

fn print_help(word: &str, mut program: clap::Command) -> Result<(), Failure> {
    program.build();
    let command = program.find_subcommand_mut(word).expect("the command is declared");
    command.print_long_help().map_err(Failure::of_stdout)
}

fn missing(word: &str, why: &str) -> Failure {
    Failure::mistake(format!(
        "floatgate {word} needs the Python package floatgate: {why}; run `pip install 'floatgate[all]'`, or \
         `pip install '.[all]'` in Floatgate's source directory, and put that Python into PATH as {PYTHON} \
         (docs/install.md)"
    ))
}

/// Replaces this process with another program, so that signals and the terminal belong to it.
#[cfg(unix)]
fn replace(command: &mut Command) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    Err(Failure::fault(format!("cannot run {PYTHON}: {}", command.exec())))
}

/// Runs another program and exits with its status, on systems without `exec`.
#[cfg(not(unix))]
fn replace(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| Failure::fault(format!("cannot run {PYTHON}: {error}")))?;
    std::process::exit(status.code().unwrap_or(1))
}
