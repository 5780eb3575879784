//! Tests of `floatgate completions` and `floatgate man`.

use crate::common::Bench;

#[test]
fn completions_of_each_shell_name_the_commands() {
    let bench = Bench::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = bench.good(&["completions", shell]);
        assert!(script.contains("convert") && script.contains("precondition"), "{shell}: {script}");
    }
    let error = bench.refused(&["completions", "cmd"]);
    assert!(error.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{error}");
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
