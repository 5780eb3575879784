//! `floatgate top`: shows a running server in a terminal.

mod picture;
mod screen;
mod source;
mod terminal;

use std::io::IsTerminal;
use std::time::Duration;

use crate::failure::Failure;
use crate::signal::Ending;
use picture::View;
use source::{News, Source};
use terminal::{ESCAPE, INTERRUPT, Terminal};

/// Text at the end of `--help`.
pub const HELP: &str = "\
Examples:
  floatgate top                       if only one server is running
  floatgate top /tmp/ssd.ctl          control socket, or NBD socket /tmp/ssd.sock
  floatgate top 127.0.0.1:8080        dashboard

Keys: q or Esc quits, o shows the latency of the next operation, b changes what the block map shows, p pauses.";

/// Longest wait for a key before the screen is updated.
const BREATH: Duration = Duration::from_millis(100);

/// `floatgate top`.
#[derive(clap::Args)]
pub struct TopArgs {
    /// Control socket, NBD socket or HOST:PORT of the dashboard of a server
    ///
    /// Default: the only running server.
    #[arg(value_name = "ADDR|SOCKET")]
    server: Option<String>,
}

/// Runs the command.
pub fn run(args: &TopArgs) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::mistake("`floatgate top` needs a terminal; without one, use `floatgate ctl watch`"));
    }
    let source = Source::open(args.server.as_deref())?;
    let cannot = |error| Failure::fault(format!("cannot handle signals: {error}"));
    let ending = Ending::note().map_err(cannot)?;
    let mut terminal = Terminal::open().map_err(reported)?;
    watch(&mut terminal, &source, &ending)
}

fn reported(error: std::io::Error) -> Failure {
    Failure::fault(format!("the terminal: {error}"))
}

/// Shows the state of the server until the user quits, a signal ends the command, or the connection ends.
fn watch(terminal: &mut Terminal, source: &Source, ending: &Ending) -> Result<(), Failure> {
    let mut view = View::default();
    let mut changed = true;
    loop {
        if ending.is_requested() {
            return Err(Failure::Ended);
        }
        while let Some(news) = source.next() {
            match news {
                News::Ended(failure) => return Err(failure),
                news => changed |= view.take(news),
            }
        }
        for key in terminal.keys(BREATH).map_err(reported)? {
            if matches!(key, 'q' | ESCAPE | INTERRUPT) {
                return Ok(());
            }
            changed |= view.key(key);
        }
        if std::mem::take(&mut changed) || terminal.is_resized() {
            terminal.show(|screen| view.draw(screen)).map_err(reported)?;
        }
    }
}
