//! The quick cases give what is recorded, all that is recorded is within what is allowed, and the page shows it.

use floatgate_validation::{case, page, record, repository};

fn blessed() -> bool {
    std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1")
}

#[test]
fn results_are_those_of_the_page_and_within_what_is_allowed() {
    let root = repository();
    let groups = case::read(&root).unwrap();
    let mut results = record::read(&root).unwrap();
    for group in &groups {
        for case in group.cases.iter().filter(|case| case.quick) {
            let (key, taken) = (record::key(group, case), record::take(&root, group, case).unwrap());
            if blessed() {
                results.insert(key, taken);
            } else {
                assert_eq!(results.get(&key), Some(&taken), "{key}: not the result that is recorded: `make validate`");
            }
        }
    }
    if blessed() {
        record::write(&root, &results).unwrap();
        std::fs::write(root.join(page::PATH), page::page(&root, &groups, &results).unwrap()).unwrap();
    }
    let written = std::fs::read_to_string(root.join(page::PATH)).unwrap();
    assert!(written == page::page(&root, &groups, &results).unwrap(), "{} is stale: run `make validate`", page::PATH);
    let cases = groups.iter().flat_map(|group| group.cases.iter().map(move |case| (group, case)));
    let rows = cases.clone().flat_map(|(group, case)| page::rows(&root, group, case, &results).unwrap());
    let faults: Vec<String> = rows.filter_map(|row| row.fault()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(results.len(), cases.count(), "a result is recorded of a case that there is no more");
}

#[test]
fn each_group_is_checked_in_every_test() {
    for group in case::read(&repository()).unwrap() {
        assert!(group.cases.iter().any(|case| case.quick), "{}: no case is quick", group.id);
    }
}
