//! The command that makes a result again, as a shell takes it.

use floatgate_core::metrics::summary::Summary;

/// The command that gives this result, without where it goes; none where another program made it.
pub fn again(summary: &Summary) -> Option<String> {
    let words: Vec<String> = summary.arguments.iter().map(|word| quoted(word)).collect();
    (!words.is_empty()).then(|| format!("floatgate {}", words.join(" ")))
}

/// A word of a command as a shell has to have it.
pub fn quoted(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(harmless) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
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
