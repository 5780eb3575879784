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

/// Results of Floatgate are in the tables, which are written from the recorded results.
#[test]
fn notes_have_no_results_of_floatgate() {
    for group in case::read(&repository()).unwrap() {
        let notes = group.cases.iter().map(|case| &case.note);
        for text in notes.chain(group.missing.iter().map(|missing| &missing.why)) {
            let found = sentences_with_results(text);
            assert!(found.is_empty(), "{}: leave the number to the table or a study: {found:?}", group.id);
        }
    }
    let text = "It takes 200 us.\nWith `n=9`, Floatgate has [3.9 ms](page.md#1). In `Floatgate` none\nhas.";
    assert_eq!(sentences_with_results(text), ["With , Floatgate has [3.9 ms](page.md#1)"]);
    assert!(sentences_with_results("Floatgate has [more](table-3.md).").is_empty());
}

/// Returns the sentences with `Floatgate` and a number, which is not part of code or of the target of a link.
fn sentences_with_results(text: &str) -> Vec<String> {
    let plain: String = text.split('`').step_by(2).collect();
    let sentences = plain.replace('\n', " ");
    let has_number = |sentence: &str| {
        let mut shown = sentence.split("](").enumerate().map(|(index, part)| match index {
            0 => part,
            _ => part.split_once(')').map_or(part, |(_, rest)| rest),
        });
        shown.any(|part| part.contains(|c: char| c.is_ascii_digit()))
    };
    sentences
        .split(". ")
        .filter(|sentence| sentence.contains("Floatgate") && has_number(sentence))
        .map(str::to_owned)
        .collect()
}
