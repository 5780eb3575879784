//! Quick validation: the quick cases give the recorded results, all recorded results are within their tolerances, and
//! the page shows them.

use floatgate_validation::{case, page, record, repository};

fn blessed() -> bool {
    std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1")
}

#[test]
fn results_are_recorded_within_tolerance_and_on_the_page() {
    let root = repository();
    let groups = case::read(&root).unwrap();
    let mut results = record::read(&root).unwrap();
    for group in &groups {
        for case in group.cases.iter().filter(|case| case.quick) {
            let (key, taken) = (record::key(group, case), record::take(&root, group, case).unwrap());
            if blessed() {
                results.insert(key, taken);
            } else {
                assert_eq!(results.get(&key), Some(&taken), "{key}: not the recorded result: run `make validate`");
            }
        }
    }
    if blessed() {
        record::write(&root, &results).unwrap();
    }
    let texts = [
        (page::PATH, page::page(&root, &groups, &results).unwrap()),
        (page::COMMANDS, page::commands(&root, &groups).unwrap()),
    ];
    for (path, text) in texts {
        if blessed() {
            std::fs::write(root.join(path), &text).unwrap();
        }
        let written = std::fs::read_to_string(root.join(path)).unwrap();
        assert!(written == text, "{path} is outdated: run `make validate`");
    }
    let cases = groups.iter().flat_map(|group| group.cases.iter().map(move |case| (group, case)));
    let rows = cases.clone().flat_map(|(group, case)| page::rows(&root, group, case, &results).unwrap());
    let faults: Vec<String> = rows.filter_map(|row| row.fault()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(results.len(), cases.count(), "a result is recorded for a case that no longer exists");
}

#[test]
fn each_group_has_a_quick_case() {
    for group in case::read(&repository()).unwrap() {
        assert!(group.cases.iter().any(|case| case.quick), "{}: no case is quick", group.id);
    }
}
