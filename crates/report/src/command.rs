//! The shell command that reproduces a result.

use floatgate_core::summary::Summary;

/// Returns the command that reproduces this result, without its output options. Returns `None` if another program
/// produced the result.
pub fn again(summary: &Summary) -> Option<String> {
    let words: Vec<String> = summary.arguments.iter().map(|word| quoted(word)).collect();
    (!words.is_empty()).then(|| format!("floatgate {}", words.join(" ")))
}

/// Returns a word of a command, quoted for a shell if necessary.
pub fn quoted(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(harmless) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            ["run", "gc.victim=fifo", "rw=read bs=4k", "it's", ""].map(quoted),
            ["run", "gc.victim=fifo", "'rw=read bs=4k'", "'it'\\''s'", "''"]
        );
    }
}
