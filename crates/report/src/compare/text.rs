//! A comparison as a table for a terminal.

use super::{Cell, Comparison, NOISE_UNKNOWN};
use crate::number::short;
use crate::statistics::Difference;

/// The table, and what has to be known of it.
pub fn text(comparison: &Comparison) -> String {
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()], vec!["runs".to_owned()]];
    for (index, group) in comparison.groups.iter().enumerate() {
        let runs = group.files.len();
        let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} seeds") };
        for (row, text) in rows.iter_mut().zip([&group.label, &runs]) {
            row.push(text.clone());
            if index > 0 {
                row.push(String::new());
            }
        }
    }
    for metric in &comparison.metrics {
        let unit = if metric.unit.is_empty() { String::new() } else { format!(", {}", metric.unit) };
        let mut row = vec![format!("{}{unit}", metric.metric)];
        for (index, cell) in metric.values.iter().enumerate() {
            row.push(cell.as_ref().map_or_else(|| "-".to_owned(), value));
            if index > 0 {
                row.push(cell.as_ref().map_or_else(String::new, difference));
            }
        }
        rows.push(row);
    }
    let mut text = aligned(&rows);
    if comparison.groups.iter().any(|group| group.files.len() > 1) {
        text += "\n+-: 95 % confidence interval of the mean over seeds (Student's t). (~): a difference within noise by \
                 Welch's test;\nof twenty differences without a cause, it takes one for real.\n";
    }
    if comparison.has_single_runs() {
        text += &format!("\nnote: {NOISE_UNKNOWN}\n");
    }
    text
}

/// A mean and how sure it is.
pub fn value(cell: &Cell) -> String {
    let spread = cell.sample.half_width.map(|half| format!(" +- {}", short(half))).unwrap_or_default();
    format!("{}{spread}", short(cell.sample.mean))
}

/// A ratio, and whether it is noise.
pub fn difference(cell: &Cell) -> String {
    let ratio = match (cell.ratio, cell.difference) {
        (_, None) => return String::new(),
        (_, Some(Difference::Same)) => return "=".to_owned(),
        (Some(ratio), _) => format!("x{}", short(ratio)),
        (None, _) => "from 0".to_owned(),
    };
    if cell.difference == Some(Difference::WithinNoise) { format!("{ratio} (~)") } else { ratio }
}

/// Columns: the first to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|t| t.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let line = cells.map(|(i, (t, w))| if i == 0 { format!("{t:<w$}") } else { format!("  {t:>w$}") });
        text += line.collect::<String>().trim_end();
        text.push('\n');
    }
    text
}
