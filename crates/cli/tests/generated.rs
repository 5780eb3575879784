//! Tests of `floatgate completions` and `floatgate man`.

use crate::common::Bench;

#[test]
fn completions_of_each_shell_ask_the_program() {
    let bench = Bench::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = bench.good(&["completions", shell]);
        assert!(script.contains("FLOATGATE_COMPLETE") && script.contains("floatgate"), "{shell}: {script}");
    }
    let error = bench.refused(&["completions", "cmd"]);
    assert!(error.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{error}");
}

/// The script of a shell calls the program for each completion, here that of fish.
#[test]
fn values_are_completed() {
    let bench = Bench::new();
    let complete = |words: &[&str]| {
        let mut command = bench.command(&[&["--", "floatgate"], words].concat());
        let output = command.env("FLOATGATE_COMPLETE", "fish").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (words, expected) in [
        (&["comp"][..], "compare"),
        (&["run", "tlc"], "tlc-nvme"),
        (&["run", "tiny", "--set", "geometry.ch"], "geometry.channels="),
        (&["run", "tiny", "--set", "gc.victim=gr"], "gc.victim=greedy"),
        (&["run", "tiny", "--precondition", "st"], "steady"),
        (&["run", "tiny", "--format", "ms"], "msr"),
        (&["device", "show", "hu2"], "hu2011"),
    ] {
        let found = complete(words);
        assert!(found.lines().any(|line| line.split('\t').next() == Some(expected)), "{words:?}: {found}");
    }
}

/// Bash splits words at `=`, and the script joins them again.
#[test]
fn bash_completes_values_of_parameters() {
    let bench = Bench::new();
    bench.file("floatgate.bash", &bench.good(&["completions", "bash"]));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_floatgate")).parent().unwrap().display().to_string();
    let script = "PATH=$0:$PATH; source floatgate.bash; COMP_TYPE=9; COMP_WORDBREAKS='=:'; \
        COMP_WORDS=(floatgate run tiny --set gc.victim = gr); COMP_CWORD=6; \
        _floatgate_whole_words floatgate gr =; echo \"${COMPREPLY[*]}\"; \
        COMP_WORDS=(floatgate run tlc-n); COMP_CWORD=2; _floatgate_whole_words floatgate tlc-n run; \
        echo \"${COMPREPLY[*]}\"";
    let mut command = std::process::Command::new("bash");
    let output = command.args(["-c", script, &program]).current_dir(bench.path(".")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "greedy\ntlc-nvme\n", "{output:?}");
}

#[test]
fn man_writes_a_page_for_each_command() {
    let bench = Bench::new();
    bench.good(&["man", "share/man1"]);
    let page = |name: &str| std::fs::read_to_string(bench.path("share/man1").join(name)).unwrap();
    assert!(page("floatgate.1").contains(r"floatgate\-run(1)"));
    assert!(page("floatgate-device-list.1").contains(r"\-\-json"));
    bench.file("file", "");
    let error = bench.error(1, &["man", "file/man1"]);
    assert!(error.starts_with("error: cannot write man pages to file/man1: "), "{error}");
}
