//! Tests that the program forwards the commands of the Python package. These tests use a fake package. `python/tests`
//! tests the commands themselves.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Calls the program with this `PATH`, and with the Python packages in `packages`.
fn call(path: &str, packages: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    command.args(arguments).current_dir(packages).env("PATH", path).env("PYTHONPATH", packages);
    command.output().unwrap()
}

/// Creates a package that prints its arguments and exits with status 7.
fn package(version: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("floatgate");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("__init__.py"), "").unwrap();
    fs::write(place.join("_floatgate.py"), format!("__version__ = '{version}'")).unwrap();
    fs::write(place.join("__main__.py"), "import sys\nprint(sys.argv[1:])\nsys.exit(7)\n").unwrap();
    directory
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}

#[test]
fn commands_are_forwarded_with_their_arguments() {
    let packages = package(env!("CARGO_PKG_VERSION"));
    for (word, arguments) in [
        ("sweep", ["--help", "x y"]),
        ("optimize", ["a b", "--h=1"]),
        ("fit", ["probe", "/dev/x"]),
        ("fleet", ["-", ""]),
        ("design", ["-V", "--json"]),
    ] {
        let output = call(&path(), packages.path(), &[&[word], &arguments[..]].concat());
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(7), "{word}");
        assert_eq!(printed.trim(), format!("['{word}', '{}', '{}']", arguments[0], arguments[1]));
        assert!(output.stderr.is_empty(), "{word}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn commands_with_policies_in_python_are_forwarded() {
    let packages = package(env!("CARGO_PKG_VERSION"));
    for arguments in [
        &["run", "tiny", "rw=read", "--policies", "own.py"][..],
        &["device", "check", "tiny", "--policies=own.py"],
        #[cfg(feature = "live")]
        &["serve", "--policies", "own.py", "tiny"],
    ] {
        let output = call(&path(), packages.path(), arguments);
        let printed = String::from_utf8(output.stdout).unwrap();
        let given: Vec<String> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
        assert_eq!((output.status.code(), printed.trim()), (Some(7), &*format!("[{}]", given.join(", "))));
    }
}

#[test]
fn another_version_of_the_package_is_a_warning() {
    let packages = package("0.0.0-other");
    let output = call(&path(), packages.path(), &["study", "list"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(errors.starts_with("warning: ") && errors.contains("0.0.0-other"), "{errors}");
}

#[test]
fn without_the_package_the_error_says_how_to_install_it() {
    // A directory of this name, such as a clone of the repository, is not the package.
    let nothing = tempfile::tempdir().unwrap();
    fs::create_dir(nothing.path().join("floatgate")).unwrap();
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("python3"), "#!/bin/sh\nexit 1\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(empty.path().join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    let without_package = empty.path().to_str().unwrap();
    for (path, why) in [(without_package, "python3 does not have it"), ("/nowhere", "cannot run python3")] {
        let output = call(path, nothing.path(), &["sweep", "x.toml"]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(output.stdout.is_empty());
        assert!(errors.starts_with("error: floatgate sweep needs the Python package"), "{errors}");
        assert!(errors.contains(why) && errors.contains("pip install 'floatgate[all]'"), "{errors}");
        for arguments in [["sweep", "--help"], ["sweep", "-h"], ["help", "sweep"]] {
            let output = call(path, nothing.path(), &arguments);
            let help = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {help}");
            assert!(help.starts_with("Run many devices, workloads and seeds"), "{arguments:?}: {help}");
            assert!(help.contains("Usage: floatgate sweep ") && help.contains("pip install floatgate"), "{help}");
        }
    }
}

#[test]
fn help_lists_the_commands_of_the_package() {
    let output = call(&path(), Path::new("/"), &["--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    for word in ["sweep", "optimize", "fit", "fleet", "design", "study"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(word)), "{word}: {help}");
    }
}
