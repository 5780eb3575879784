//! Suggestions for unknown names.

use crate::sim::text::{SHOWN, shown};

/// Returns the error for a name that is not in `known`, with the most similar one.
pub fn unknown_variant<E: serde::de::Error>(name: &str, known: &[&str]) -> E {
    E::custom(format!(
        "unknown name `{}`{} one of {}",
        shown(name),
        did_you_mean_or_colon(name, known),
        known.join(", ")
    ))
}

/// Returns what stands between a wrong name and the list of known names: ", did you mean `x`?", or a colon.
pub fn did_you_mean_or_colon(name: &str, known: &[&str]) -> String {
    Some(did_you_mean(name, known)).filter(|hint| !hint.is_empty()).unwrap_or_else(|| ":".to_owned())
}

/// Returns ", did you mean `x`?", or an empty text if no name is similar.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    // The distance takes time in proportion to both lengths, and no long text resembles a name.
    let known = if name.len() > SHOWN { &[] } else { known };
    let near = known.iter().map(|k| (strsim::damerau_levenshtein(name, k), k)).min();
    match near {
        Some((distance, k)) if distance <= k.len().max(3) / 3 + 1 => format!(", did you mean `{k}`?"),
        _ => String::new(),
    }
}
