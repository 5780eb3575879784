//! Terminal table of a comparison.

use super::{Cell, Comparison, NOISE_UNKNOWN, Row};
use crate::metric::{SHARE, short_name};
use crate::number::{TimeUnit, percentage, short};
use crate::statistics::Difference;

/// Returns the table of these metrics and its notes.
pub fn text(comparison: &Comparison, shown: &[&Row]) -> String {
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
    for metric in shown {
        // The name of a metric has its unit, in which its values are shown.
        let form = Form::unscaled(metric);
        let percent = if metric.unit == SHARE { ", %" } else { "" };
        let mut row = vec![format!("{}{percent}", short_name(&metric.metric))];
        for (index, cell) in metric.values.iter().enumerate() {
            row.push(form.value(cell.as_ref()));
            if index > 0 {
                row.push(form.difference(cell.as_ref()));
            }
        }
        rows.push(row);
    }
    let mut text = aligned(&rows);
    if shown.is_empty() {
        text += "\nNo metric differs.\n";
    }
    text += "\nx: ratio to the first group. pp: difference from the first group in percentage points.\n";
    if comparison.groups.iter().any(|group| group.files.len() > 1) {
        text += "+-: 95% confidence interval of the mean over seeds (Student's t). (~): a difference within noise.\n";
        if comparison.tested > 0 {
            text += &format!("{}\n", comparison.judgment());
        }
    }
    if comparison.has_single_runs() {
        text += &format!("\nnote: {NOISE_UNKNOWN}\n");
    }
    text
}

/// Format in which the values of a metric are displayed.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Unchanged, in this unit.
    Number(&'static str),
    /// Times, in the unit that suits the longest. The second field is the unit of the data, in microseconds.
    Time(TimeUnit, f64),
    /// Percent. Holds the value of the first group, if it has one.
    Share(Option<f64>),
}

impl Form {
    /// Returns the format of a metric whose values stay in its unit.
    fn unscaled(row: &Row) -> Form {
        match Form::of(row) {
            Form::Time(..) => Form::Number(row.unit),
            form => form,
        }
    }

    /// Returns the format of a metric, with a unit that suits its times.
    pub fn of(row: &Row) -> Form {
        let means = || row.values.iter().flatten().map(|cell| cell.sample.mean);
        let time = |us: f64| Form::Time(TimeUnit::for_all(means().map(|value| value * us)), us);
        match row.unit {
            SHARE => Form::Share(row.values[0].map(|cell| cell.sample.mean)),
            "us" => time(1.0),
            "s" => time(1e6),
            unit => Form::Number(unit),
        }
    }

    /// Returns the unit shown after the name of the metric.
    pub fn unit(self) -> &'static str {
        match self {
            Form::Number(unit) => unit,
            Form::Time(unit, _) => unit.name,
            Form::Share(_) => "%",
        }
    }

    fn number(self, value: f64) -> String {
        match self {
            Form::Number(_) => short(value),
            Form::Time(unit, us) => short(value * us / unit.us),
            Form::Share(_) => percentage(value),
        }
    }

    /// Returns a mean and its confidence interval.
    pub fn value(self, cell: Option<&Cell>) -> String {
        let Some(Cell { sample, .. }) = cell else { return "-".to_owned() };
        let spread = sample.half_width.map(|half| format!(" +- {}", self.number(half))).unwrap_or_default();
        format!("{}{spread}", self.number(sample.mean))
    }

    /// Returns a ratio, or a difference of shares, and marks a difference within noise.
    pub fn difference(self, cell: Option<&Cell>) -> String {
        let Some((cell, difference)) = cell.and_then(|cell| Some((cell, cell.difference?))) else {
            return String::new();
        };
        let reported = match (self, cell.ratio) {
            _ if difference == Difference::Same => return "=".to_owned(),
            (Form::Share(Some(first)), _) => {
                let points = percentage(cell.sample.mean - first);
                format!("{}{points} pp", if points.starts_with('-') { "" } else { "+" })
            }
            (_, Some(ratio)) => format!("x{}", short(ratio)),
            (_, None) => "from 0".to_owned(),
        };
        if difference == Difference::WithinNoise { format!("{reported} (~)") } else { reported }
    }
}

/// Aligns columns: the first to the left, the others to the right.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts of a metric for two groups.
    fn reported(metric: &str, values: &[Vec<f64>]) -> [String; 4] {
        let mut rows = [Row::new(metric.to_owned(), values)];
        Row::judge(&mut rows);
        let [row] = rows;
        let form = Form::of(&row);
        let cells = &row.values;
        let [first, second] = [0, 1].map(|index| form.value(cells[index].as_ref()));
        [form.unit().to_owned(), first, second, form.difference(cells[1].as_ref())]
    }

    #[test]
    fn long_times_have_long_units() {
        assert_eq!(reported("a_us", &[vec![125.0], vec![250.0]]), ["us", "125.0", "250.0", "x2.000"]);
        assert_eq!(reported("a_us", &[vec![125.0], vec![25_000_000.0]]), ["s", "0.00013", "25.00", "x200,000"]);
        assert_eq!(reported("a_s", &[vec![0.025], vec![0.05]]), ["ms", "25.00", "50.00", "x2.000"]);
        assert_eq!(reported("a", &[vec![2.0], vec![2.0]]), ["", "2.000", "2.000", "="]);
        assert_eq!(reported("a", &[vec![], vec![2.0]]), ["", "-", "2.000", ""]);
    }

    #[test]
    fn shares_differ_by_percentage_points() {
        assert_eq!(reported("a_share", &[vec![0.25], vec![0.5]]), ["%", "25.0", "50.0", "+25.0 pp"]);
        assert_eq!(reported("a_share", &[vec![0.0], vec![0.5]]), ["%", "0.0", "50.0", "+50.0 pp"]);
        assert_eq!(reported("a_share", &[vec![0.01], vec![0.002]]), ["%", "1.0", "0.2", "-0.8 pp"]);
        // The interval is 0.5 +- 12.706 * 0.1 / 2, which is more than the difference.
        let reported = reported("a_share", &[vec![0.5, 0.5], vec![0.45, 0.55]]);
        assert_eq!(reported[2..], ["50.0 +- 63.5", "+0.0 pp (~)"]);
    }
}
