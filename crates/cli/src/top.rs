//! `floatgate top`: shows a running server in a terminal.

mod picture;
mod source;

use std::io::IsTerminal;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::failure::Failure;
use picture::View;
use source::{News, Source};

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
    let mut terminal = ratatui::try_init().map_err(|error| Failure::fault(format!("the terminal: {error}")))?;
    let done = watch(&mut terminal, &source);
    ratatui::restore();
    done
}

/// Shows the state of the server until the user quits or the connection ends.
fn watch(terminal: &mut ratatui::DefaultTerminal, source: &Source) -> Result<(), Failure> {
    let reported = |error: std::io::Error| Failure::fault(format!("the terminal: {error}"));
    let mut view = View::default();
    let mut changed = true;
    loop {
        while let Some(news) = source.next() {
            match news {
                News::Ended(failure) => return Err(failure),
                news => changed |= view.take(news),
            }
        }
        if event::poll(BREATH).map_err(reported)? {
            match event::read().map_err(reported)? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    let interrupts = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
                    if interrupts || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                        return Ok(());
                    }
                    changed |= view.key(key.code);
                }
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
        if std::mem::take(&mut changed) {
            terminal.draw(|frame| view.draw(frame)).map_err(reported)?;
        }
    }
}
