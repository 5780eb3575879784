//! Runs all cases, stores the results and writes the page. Fails if a result is outside its tolerance.
//!
//! The option `--quick` limits it to the quick cases, and keeps the stored results of the others.

use std::process::ExitCode;

use anyhow::{Result, bail};
use floatgate_validation::{case, page, record, repository};

fn main() -> Result<ExitCode> {
    let quick = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [option] if option == "--quick" => true,
        others => bail!("unknown arguments `{}`: expected --quick or none", others.join(" ")),
    };
    let root = repository();
    let groups = case::read(&root)?;
    let mut results = if quick { record::read(&root)? } else { record::Results::new() };
    let mut faults = Vec::new();
    for group in &groups {
        println!("{}", group.title);
        for case in group.cases.iter().filter(|case| case.quick || !quick) {
            results.insert(record::key(group, case), record::take(&root, group, case)?);
            for row in page::rows(&root, group, case, &results)? {
                println!(
                    "  {}: {:.4}, expected {:.4}, deviation {:+.3} %",
                    row.name,
                    row.ours,
                    row.theirs,
                    row.deviation() * 100.0
                );
                faults.extend(row.fault());
            }
        }
    }
    record::write(&root, &results)?;
    std::fs::write(root.join(page::PATH), page::page(&root, &groups, &results)?)?;
    std::fs::write(root.join(page::COMMANDS), page::commands(&root, &groups)?)?;
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
