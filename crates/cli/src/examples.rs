//! Examples at the end of the long help of each command.

use clap::Command;

/// Returns the address of the documentation. Without a public repository, it is a page of the source directory.
fn documentation() -> String {
    match env!("CARGO_PKG_REPOSITORY") {
        "" => "Documentation: docs/index.md".to_owned(),
        repository => format!("Documentation: {repository}/blob/main/docs/index.md"),
    }
}

/// Command, by its path, and two examples of it.
type Examples = (&'static [&'static str], [&'static str; 2]);

/// Examples of the commands of `floatgate ctl`, which only a program with live devices has.
const OF_CTL: &[Examples] = if cfg!(feature = "live") {
    &[
        (&["ctl", "status"], ["floatgate ctl status", "floatgate ctl --socket /tmp/ssd.ctl status --json"]),
        (&["ctl", "clients"], ["floatgate ctl clients", "floatgate ctl --socket /tmp/ssd.sock clients"]),
        (&["ctl", "speed"], ["floatgate ctl speed 0.1", "floatgate ctl speed 1"]),
        (&["ctl", "trim-all"], ["floatgate ctl trim-all", "floatgate ctl --socket /tmp/ssd.ctl trim-all"]),
        (&["ctl", "power-cut"], ["floatgate ctl power-cut", "floatgate ctl power-cut --json"]),
        (&["ctl", "fail"], ["floatgate ctl fail program", "floatgate ctl fail read 0/7/63"]),
        (&["ctl", "watch"], ["floatgate ctl watch", "floatgate ctl watch --blocks"]),
    ]
} else {
    &[]
};

/// Examples of the other commands.
const EXAMPLES: &[Examples] = &[
    (
        &["run"],
        [
            "floatgate run tlc-nvme 'rw=randread bs=4k iodepth=32 number_ios=100k'",
            "floatgate run hu2011 examples/sqlite-oltp.csv.xz --precondition steady --seeds 5 --jobs 4 --out result",
        ],
    ),
    (&["report"], ["floatgate report result", "floatgate report result --out page.html"]),
    (
        &["compare"],
        [
            "floatgate compare greedy fifo",
            "floatgate compare a='greedy/seed-*' b='fifo/seed-*' --metric read.latency_us.p99",
        ],
    ),
    (&["explain"], ["floatgate explain result p99", "floatgate explain result slowest:3 --json"]),
    (&["draw"], ["floatgate draw result 1.2ms..1.5ms", "floatgate draw result ..200us --out start.svg"]),
    (&["device"], ["floatgate device list", "floatgate device show tlc-nvme"]),
    (&["device", "list"], ["floatgate device list", "floatgate device list --json"]),
    (&["device", "show"], ["floatgate device show tlc-nvme", "floatgate device show hu2011 --toml"]),
    (&["device", "check"], ["floatgate device check mine.toml", "floatgate device check tiny --set gc.victim=fifo"]),
    (
        &["device", "import"],
        [
            "floatgate device import ssdconfig.xml >mine.toml",
            "floatgate device import workload.xml --scenario 2 >jobs.fio",
        ],
    ),
    (
        &["device", "scale"],
        [
            "floatgate device scale tlc-nvme 1/16 --out tlc-nvme-16.toml",
            "floatgate device scale mine.toml 1/4 --set gc.victim=fifo",
        ],
    ),
    (&["device", "schema"], ["floatgate device schema", "floatgate help device schema"]),
    (&["state"], ["floatgate state info steady.fgstate", "floatgate help state info"]),
    (&["state", "info"], ["floatgate state info steady.fgstate", "floatgate state info steady.fgstate --json"]),
    (&["trace"], ["floatgate trace info trace.csv", "floatgate trace synth trace.csv --out job.fio"]),
    (&["trace", "info"], ["floatgate trace info trace.csv", "floatgate trace info trace.csv --format msr --json"]),
    (&["trace", "synth"], ["floatgate trace synth trace.csv", "floatgate trace synth trace.csv --out model.json"]),
    (
        &["trace", "convert"],
        [
            "floatgate trace convert trace.csv trace.log --to fio",
            "floatgate trace convert trace.csv short.csv --to msr --limit 10000",
        ],
    ),
    (&["sweep"], ["floatgate sweep sweep.toml", "floatgate sweep sweep.toml --jobs 4 --out table.csv"]),
    (&["optimize"], ["floatgate optimize search.toml", "floatgate optimize search.toml --trials 64 --plot front.svg"]),
    (
        &["fit"],
        [
            "floatgate fit measurements.csv --base tlc-direct --scale 1/64 --out drive.toml",
            "floatgate fit probe /dev/nvme1n1 --out measured",
        ],
    ),
    (
        &["fleet"],
        [
            "floatgate fleet tlc-nvme traces/*.csv",
            "floatgate fleet tlc-nvme trace.csv --layout alibaba --out table.parquet",
        ],
    ),
    (
        &["design"],
        ["floatgate design --read-mb-s 7000 --write-mb-s 3000", "floatgate design --read-mb-s 1000 --cell slc"],
    ),
    (&["study"], ["floatgate study list", "floatgate study hu2011 --quick"]),
    (
        &["completions"],
        [
            "floatgate completions bash >~/.local/share/bash-completion/completions/floatgate",
            "floatgate completions zsh >~/.zfunc/_floatgate",
        ],
    ),
    (&["man"], ["floatgate man ~/.local/share/man/man1", "floatgate man man"]),
];

/// Adds the examples and the address of the documentation to the long help of the commands.
pub fn add(command: Command) -> Command {
    let command = command.after_help(documentation());
    EXAMPLES.iter().chain(OF_CTL).fold(command, |command, (path, examples)| with_examples(command, path, examples))
}

/// Adds examples to the long help of a command by its path.
fn with_examples(command: Command, path: &[&str], examples: &[&str; 2]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let before = command.get_after_long_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
        let lines: String = examples.iter().map(|example| format!("  {example}\n")).collect();
        return command.after_long_help(format!("{before}Examples:\n{lines}\n{}", documentation()));
    };
    command.mut_subcommand(*first, |inner| with_examples(inner, rest, examples))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a command line into words, as a shell does.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for character in line.chars() {
            match character {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                other => words.last_mut().expect("at least one word").push(other),
            }
        }
        words
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let command = add(<crate::Cli as clap::CommandFactory>::command());
        for (_, examples) in EXAMPLES.iter().chain(OF_CTL) {
            for example in examples {
                // The shell reads a redirection.
                let line = example.split(" >").next().unwrap();
                let parsed = command.clone().try_get_matches_from(words(line));
                let is_help = |error: &clap::Error| error.kind() == clap::error::ErrorKind::DisplayHelp;
                assert!(parsed.as_ref().err().is_none_or(is_help), "{example}: {:?}", parsed.err());
            }
        }
        check_examples(&command, "floatgate");
    }

    /// Checks that each command below `command` has two examples in its long help. `path` is the name of `command`.
    fn check_examples(command: &Command, path: &str) {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name());
            let help = inner.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:") || help.contains("  floatgate "), "{path}");
            assert!(help.matches("floatgate ").count() >= 2, "{path}: {help}");
            check_examples(inner, &path);
        }
    }
}
