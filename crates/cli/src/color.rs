//! Colors of texts on a terminal. Texts in a pipe or a file have none, and neither have those with `NO_COLOR`.

use std::io::IsTerminal;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const GREEN: &str = "\x1b[1;32m";
const RESET: &str = "\x1b[0m";

/// Returns `true` if a stream shows colors: a terminal that supports them, unless `NO_COLOR` is set (no-color.org).
fn shows_color(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Returns a text of lines with labels for standard output, with colors if it shows them.
pub fn labels(text: String) -> String {
    if shows_color(&std::io::stdout()) { colored(&text) } else { text }
}

/// Returns a message for standard error, with the word at its start in color if the stream shows colors.
pub fn message(text: &str) -> String {
    let words = [("error:", RED), ("warning:", YELLOW), ("note:", GREEN)];
    let word = words.into_iter().find(|(word, _)| text.starts_with(word));
    match word.filter(|_| shows_color(&std::io::stderr())) {
        Some((word, color)) => format!("{color}{word}{RESET}{}", &text[word.len()..]),
        None => text.to_owned(),
    }
}

/// Returns a text with bold labels, the head of its table in bold, warnings in yellow, and an interruption in red.
fn colored(text: &str) -> String {
    let mut lines = String::new();
    let mut is_after_gap = false;
    for line in text.lines() {
        // A label is followed by at least one blank. Words of a table or a continued line are not labels.
        let label = line.split("  ").next().unwrap_or_default();
        let color = if label == "warnings" { YELLOW } else { BOLD };
        if is_after_gap && line.starts_with(' ') {
            lines += &format!("{BOLD}{line}{RESET}");
        } else if label.is_empty() {
            lines += line;
        } else {
            lines += &format!("{color}{label}{RESET}{}", &line[label.len()..]);
        }
        lines.push('\n');
        is_after_gap = line.is_empty();
    }
    lines.replace("INTERRUPTED", &format!("{RED}INTERRUPTED{RESET}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_heads_are_bold_and_warnings_are_yellow() {
        let text = "device         tiny: 2\nmeasured       1 s, INTERRUPTED\n\n     IOPS\nread    10\n\nlimited by     x\n               y\nwarnings       z\n";
        let expected = format!(
            "{BOLD}device{RESET}         tiny: 2\n{BOLD}measured{RESET}       1 s, {RED}INTERRUPTED{RESET}\n\n\
             {BOLD}     IOPS{RESET}\n{BOLD}read{RESET}    10\n\n{BOLD}limited by{RESET}     x\n               y\n\
             {YELLOW}warnings{RESET}       z\n"
        );
        assert_eq!(colored(text), expected);
    }
}
