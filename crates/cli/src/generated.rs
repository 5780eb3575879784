//! Completions and man pages, which are generated from the declaration of the command line.
//!
//! Packages contain them as files, which `scripts/shell_files.sh` writes.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};

/// Name of the program.
const PROGRAM: &str = "floatgate";

/// Variable with which the script of a shell asks the program for completions.
const VARIABLE: &str = "FLOATGATE_COMPLETE";

/// Returns the completion script of a shell. It calls the program for each completion.
pub fn completions(shell: Shell) -> anyhow::Result<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).context("the shell has no completions")?;
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if shell == Shell::Bash {
        script.extend_from_slice(WHOLE_WORDS);
    }
    Ok(script)
}

/// Function of Bash that joins words again, because Bash splits them at `=`, and the program completes `PATH=VALUE`.
const WHOLE_WORDS: &[u8] = br#"
_floatgate_whole_words() {
    local words=() last=-1 current=0 i
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        if ((i > 0)) && [[ ${COMP_WORDS[i]} == "=" || ${COMP_WORDS[i - 1]} == "=" ]]; then
            words[last]+=${COMP_WORDS[i]}
        else
            last=$((last + 1))
            words[last]=${COMP_WORDS[i]}
        fi
        ((i == COMP_CWORD)) && current=$last
    done
    COMP_WORDS=("${words[@]}")
    COMP_CWORD=$current
    local word=${words[current]}
    _clap_complete_floatgate "$1" "$word" "${words[current - 1]}"
    # Bash replaces only the part after the last `=`.
    if [[ $word == *=* && $COMP_WORDBREAKS == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*=}"}"}")
    fi
}
complete -o nospace -o bashdefault -F _floatgate_whole_words floatgate
"#;

/// Prints completions if the script of a shell has asked for them, and returns the exit status.
pub fn complete(command: fn() -> Command, arguments: &[OsString]) -> Option<u8> {
    let directory = std::env::current_dir().ok();
    let complete = CompleteEnv::with_factory(command).var(VARIABLE).bin(PROGRAM).completer(PROGRAM);
    match complete.try_complete(arguments.iter().cloned(), directory.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(0),
        Err(error) => {
            // A failure to print it cannot be reported.
            let _ = error.print();
            Some(2)
        }
    }
}

/// Writes a man page for the program and for each of its commands to a directory, which is created if it is missing.
pub fn write_man_pages(command: Command, directory: &Path) -> anyhow::Result<()> {
    let write = || -> io::Result<()> {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(command, directory)
    };
    write().with_context(|| format!("cannot write man pages to {}", directory.display()))
}
