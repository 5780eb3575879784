//! Runs all cases, stores the results and writes the page. Fails if a result is outside its tolerance.

use std::process::ExitCode;

use anyhow::Result;
use floatgate_validation::{case, page, record, repository};

fn main() -> Result<ExitCode> {
    let root = repository();
    let groups = case::read(&root)?;
    let mut results = record::Results::new();
    let mut faults = Vec::new();
    for group in &groups {
        println!("{}", group.title);
        for case in &group.cases {
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
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
