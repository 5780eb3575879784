//! Suggestions for names that are not known.

use crate::sim::text::{SHOWN, shown};

/// The error for a name that is none of `known`, with the nearest one.
pub fn unknown_variant<E: serde::de::Error>(name: &str, known: &[&str]) -> E {
    E::custom(format!("unknown name `{}`{}: one of {}", shown(name), did_you_mean(name, known), known.join(", ")))
}

/// ", did you mean `x`?", or nothing when none is near.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    // The distance takes time by the product of the lengths, and nothing long resembles a name.
    let known = if name.len() > SHOWN { &[] } else { known };
    let near = known.iter().map(|k| (strsim::damerau_levenshtein(name, k), k)).min();
    match near {
        Some((distance, k)) if distance <= k.len().max(3) / 3 + 1 => format!(", did you mean `{k}`?"),
        _ => String::new(),
    }
}
