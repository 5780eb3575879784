//! What the Python package does: the program hands these words on to it.
//!
//! Sweeps, fleets and studies are made of many runs, which engines of Python distribute. There is one code for them, in
//! `python/floatgate`; whoever has that package gets them from this program, too.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::failure::{self, Failure};

/// What the user's Python is called.
const PYTHON: &str = "python3";

/// Prints the version of the package, and fails where there is none. A directory that is merely called `floatgate` has
/// no extension module.
const ASK: &str = "from floatgate._floatgate import __version__; print(__version__)";

/// What follows a word of the Python package.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// As the Python package has them: --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Does what a word asks for, in the Python package.
pub fn run(word: &str, args: &Args) -> Result<(), Failure> {
    let asked = Command::new(PYTHON).args(["-c", ASK]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let version = match asked {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Ok(_) => return Err(missing(word, &format!("{PYTHON} does not have it"))),
        Err(error) => return Err(missing(word, &format!("{PYTHON} cannot be called: {error}"))),
    };
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        failure::say(&format!(
            "warning: this program is version {own}, and the Python package, which runs this, is version {version}"
        ));
    }
    replace(Command::new(PYTHON).args(["-m", "floatgate", word]).args(&args.arguments))
}

fn missing(word: &str, why: &str) -> Failure {
    Failure::mistake(format!(
        "floatgate {word} is in the Python package floatgate, and {why}: install it with `pip install '.[all]'` in the \
         directory of Floatgate's sources, and call this where that Python is {PYTHON} (docs/python.md)"
    ))
}

/// Goes on as another program, so that signals and the terminal are its own.
#[cfg(unix)]
fn replace(command: &mut Command) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    Err(Failure::fault(format!("cannot call {PYTHON}: {}", command.exec())))
}

/// Waits for another program, where there is no way to become it.
#[cfg(not(unix))]
fn replace(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| Failure::fault(format!("cannot call {PYTHON}: {error}")))?;
    std::process::exit(status.code().unwrap_or(1))
}
