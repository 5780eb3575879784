//! Constructions that read as if translated: each has a limit on the number of lines with it, which may only fall.
//!
//! Some hits are good English ("a list of those"), so limits are not zero. After an improvement, write the number that
//! the test prints. The changelog is not read, because it quotes old names.

use regex::Regex;

/// Regular expressions of starts of doc comments, which must not occur.
const STARTS: [&str; 5] = [
    r"^What\b",
    r"^Whether\b",
    r"^(How|Where|When|Which|Whom?|Whose|Why)\b",
    r"^(Of|By|As|So|With|From|That|Those|For)\b",
    r"^(It|Its|One|Nothing|Nobody|The same)\b",
];

/// Regular expressions of a construction, and of the text after it with which it is good English. Then the limits on
/// the number of lines in comments and in Markdown.
const CONSTRUCTIONS: [(&str, &str, [usize; 2]); 18] = [
    (r"[.;:] (What|Where|Whether|Of|Who) [a-z]", "^$", [3, 0]),
    (r"\b[Ww]here (it|that|they|there|no|nothing|some|one|all|not)\b", "^$", [3, 0]),
    (r"\bof (that|those|which|whom|what)\b", "^$", [21, 0]),
    (r"\b(is|are|was|were) told\b|\btells? (of|how|what|which|whether|that|apart)\b", "^$", [1, 0]),
    (r"\b(go(es)?|went|gone) on\b", "^$", [0, 0]),
    (r"\b(is|are|was|were) there\b", r"^ (an?|any|no|is|are)\b", [0, 0]),
    (r"\b(is|are|was|were) through\b", "^$", [0, 0]),
    (r"\bso (many|much|few|long)\b", "^ (as|that)", [2, 0]),
    (r"\b(is|are) no ", "^(longer|more|less|such|later|earlier|one|way|[^a-z])", [6, 2]),
    (r"\bas (it|they) (is|are|was|were)\b", "^$", [5, 0]),
    (r"\b(anew|for ever|meanwhile)\b", "^$", [0, 0]),
    (r"\b[Cc]lean(ing|ings|ed)\b", "^ efficiency", [1, 3]),
    (r"\bstale\b|\b[Ss]upersed", "^$", [0, 0]),
    (r"\b(lin(e|es|ed|ing) up|in line|line of)\b", "^$", [20, 0]),
    (r"\b([Bb]ooks?|[Ss]tock|kicks?)\b", "^$", [2, 4]),
    (r"\bin the place of\b|\bbesides?\b", "^$", [1, 0]),
    (r"\b(on (its|their) way|in hand|in the making|under way)\b", "^$", [0, 0]),
    (r"\b([Nn]obody|[Ss]omebody|[Ww]hoever|[Ww]hom)\b", "^$", [0, 1]),
];

/// Lines of a kind, each as `path:number: text`.
fn lines(files: &[(String, String)], prose: impl Fn(&str, &str) -> Option<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path != "CHANGELOG.md") {
        let kind = super::kind_of(path);
        for (number, line) in text.lines().enumerate() {
            // "There is no room" is idiomatic, unlike "it is no room".
            let line =
                line.trim_start().replace("here is no ", "here is not ").replace("here are no ", "here are not ");
            found.extend(prose(kind, &line).map(|prose| (format!("{path}:{}", number + 1), prose)));
        }
    }
    found
}

fn doc(kind: &str, line: &str) -> Option<String> {
    (kind == "rs").then(|| line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! ")))?.map(str::to_owned)
}

fn comment(kind: &str, line: &str) -> Option<String> {
    let is_comment = (kind == "rs" && line.starts_with("//")) || (kind == "py" && line.starts_with('#'));
    is_comment.then(|| line.to_owned())
}

fn page(kind: &str, line: &str) -> Option<String> {
    (kind == "md").then(|| line.to_owned())
}

/// Returns where the numbers of lines differ from their limits, with the lines.
pub fn violations(files: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |construction: &str, unless: &str, lines: &[(String, String)], what: &str, limit: usize| {
        let [construction, unless] = [construction, unless].map(|text| Regex::new(text).expect(text));
        let is_hit = |text: &str| {
            construction.find_iter(text).any(|hit| !unless.is_match(&format!("{}\u{0}", &text[hit.end()..])))
        };
        let hits: Vec<_> = lines.iter().filter(|(_, text)| is_hit(text)).collect();
        if hits.len() != limit {
            found.push(format!("`{construction}`: {} lines of {what}, the limit is {limit}", hits.len()));
            found.extend(hits.iter().take(limit + 10).map(|(place, text)| format!("    {place}: {}", text.trim())));
        }
    };
    let [docs, comments, pages] = [lines(files, doc), lines(files, comment), lines(files, page)];
    for start in STARTS {
        check(start, "^$", &docs, "doc comments", 0);
    }
    for (construction, unless, [in_comments, in_pages]) in CONSTRUCTIONS {
        check(construction, unless, &comments, "comments", in_comments);
        check(construction, unless, &pages, "Markdown", in_pages);
    }
    found
}
