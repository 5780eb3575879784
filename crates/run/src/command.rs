//! Command line of a run, in the form that its result keeps.

/// Returns a command line without the options for outputs and printing, and with this seed.
pub fn without_places(given: impl Iterator<Item = String>, seed: u64) -> Vec<String> {
    const WITH_VALUE: [&str; 5] = ["--out", "--requests", "--save-state", "--seed", "--seeds"];
    // Their values, if any, follow `=`.
    const WITHOUT_VALUE: [&str; 3] = ["--json", "--series", "--timeline"];
    let mut kept = Vec::new();
    let mut value_follows = false;
    for argument in given {
        let name = argument.split('=').next().unwrap_or_default();
        if std::mem::take(&mut value_follows) || WITHOUT_VALUE.contains(&name) {
            continue;
        }
        if WITH_VALUE.contains(&name) { value_follows = name == argument } else { kept.push(argument) }
    }
    kept.extend(["--seed".to_owned(), seed.to_string()]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_kept_without_its_outputs() {
        let given = "run tiny --out=a rw=read --out b --set gc.victim=fifo --json --requests csv --timeline=1ms..2ms --series --seeds 3";
        let arguments = without_places(given.split(' ').map(str::to_owned), 2).join(" ");
        assert_eq!(arguments, "run tiny rw=read --set gc.victim=fifo --seed 2");
    }
}
