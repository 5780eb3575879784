//! Figures: input of the plotting library, and the common style of all figures.
//!
//! No information is conveyed by color alone: lines differ by dash and marker, bars by pattern, and color scales get
//! darker in one direction. The colors are those of Okabe and Ito (2008), which can be distinguished with any kind of
//! color vision.

use maud::Markup;
use serde_json::{Value, json};

/// A figure of a page.
#[derive(Debug)]
pub struct Figure {
    /// Id in the page.
    pub id: String,
    /// Title.
    pub title: String,
    /// Caption: content of the figure, and how to read it.
    pub caption: Markup,
    /// Plotly traces.
    pub data: Value,
    /// Plotly layout.
    pub layout: Value,
    /// Height in CSS pixels.
    pub height: u32,
    /// True if the figure takes the full width.
    pub wide: bool,
}

impl Figure {
    /// Creates a figure of default height.
    pub fn new(id: &str, title: &str, caption: Markup, data: Vec<Value>, layout: Value) -> Figure {
        let (id, title) = (id.to_owned(), title.to_owned());
        Figure { id, title, caption, data: Value::Array(data), layout, height: 340, wide: false }
    }

    /// Returns the figure with full width.
    pub fn wide(self) -> Figure {
        Figure { wide: true, ..self }
    }

    /// Returns the figure with another height.
    pub fn high(self, height: u32) -> Figure {
        Figure { height, ..self }
    }
}

/// Style of a data series: color, dash of lines, marker, and pattern of bars.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    color: &'static str,
    dash: &'static str,
    marker: &'static str,
    pattern: &'static str,
}

const STYLES: [Style; 14] = [
    Style { color: "#0072b2", dash: "solid", marker: "circle", pattern: "" },
    Style { color: "#d55e00", dash: "dash", marker: "square", pattern: "/" },
    Style { color: "#009e73", dash: "dot", marker: "diamond", pattern: "x" },
    Style { color: "#cc79a7", dash: "dashdot", marker: "triangle-up", pattern: "." },
    Style { color: "#e69f00", dash: "longdash", marker: "cross", pattern: "\\" },
    Style { color: "#56b4e9", dash: "longdashdot", marker: "x", pattern: "-" },
    Style { color: "#7f7f7f", dash: "solid", marker: "star", pattern: "|" },
    Style { color: "#b59f00", dash: "dash", marker: "hexagon", pattern: "+" },
    Style { color: "#8c6bb1", dash: "dot", marker: "triangle-down", pattern: "/" },
    Style { color: "#a6611a", dash: "dashdot", marker: "bowtie", pattern: "x" },
    Style { color: "#6699cc", dash: "longdash", marker: "pentagon", pattern: "" },
    Style { color: "#882255", dash: "longdashdot", marker: "hourglass", pattern: "." },
    Style { color: "#44aa99", dash: "solid", marker: "triangle-left", pattern: "|" },
    Style { color: "#999933", dash: "dash", marker: "triangle-right", pattern: "-" },
];

impl Style {
    /// Returns the style of the series with this index. Styles repeat after 14.
    pub fn of(index: usize) -> Style {
        STYLES[index % STYLES.len()]
    }

    /// Returns the style of an operation, which is the same in all figures.
    pub fn of_operation(name: &str) -> Style {
        let all = ["read", "write", "trim", "write_zeroes", "flush", "", "all"];
        Style::of(all.iter().position(|operation| *operation == name).unwrap_or(5))
    }

    /// Returns the options of a line with few markers.
    pub fn line(self) -> Value {
        json!({
            "mode": "lines+markers",
            "line": { "color": self.color, "dash": self.dash, "width": 2 },
            "marker": { "color": self.color, "symbol": self.marker, "size": 7, "maxdisplayed": 14 },
        })
    }

    /// Returns the color.
    pub fn color(self) -> &'static str {
        self.color
    }

    /// Returns the shape of markers.
    pub fn marker(self) -> &'static str {
        self.marker
    }

    /// Returns the options of a faint line without markers or legend entry: the windows behind a smoothed line.
    pub fn faint(self) -> Value {
        json!({
            "mode": "lines", "line": { "color": self.color, "width": 1 }, "opacity": 0.35, "showlegend": false,
        })
    }

    /// Returns the options of faint points without a legend entry.
    pub fn dots(self) -> Value {
        json!({
            "mode": "markers", "marker": { "color": self.color, "size": 3.5 }, "opacity": 0.45,
        })
    }

    /// Returns the options of an area, which is given by its outline.
    pub fn area(self) -> Value {
        let [red, green, blue] = [1, 3, 5].map(|at| u8::from_str_radix(&self.color[at..at + 2], 16).unwrap_or(0));
        json!({
            "mode": "lines", "line": { "width": 0 }, "hoverinfo": "skip", "fill": "toself",
            "fillcolor": format!("rgba({red},{green},{blue},0.22)"),
        })
    }

    /// Returns the options of bars.
    pub fn bars(self) -> Value {
        let mut marker = json!({ "color": self.color, "line": { "color": "#333333", "width": 0.5 } });
        if !self.pattern.is_empty() {
            marker["pattern"] = json!({ "shape": self.pattern, "fillmode": "overlay", "fgcolor": "#ffffff",
                "fgopacity": 0.9, "size": 7, "solidity": 0.25 });
        }
        json!({ "type": "bar", "marker": marker })
    }
}

/// Returns a trace with options and data.
pub fn trace(name: &str, options: Value, more: Value) -> Value {
    with(with(json!({ "name": plain(name) }), options), more)
}

/// Returns options with more options, which take precedence.
pub fn with(mut options: Value, more: Value) -> Value {
    if let (Value::Object(options), Value::Object(more)) = (&mut options, more) {
        options.extend(more);
    }
    options
}

/// Returns an axis with a title.
pub fn axis(title: &str) -> Value {
    json!({ "title": { "text": plain(title) } })
}

/// Minimum time on a logarithmic axis, in microseconds. Shorter times lie left of the axis, such as the latency 0 of
/// requests that the controller completes at once.
pub const MIN_US: f64 = 0.01;

/// Converts microseconds to seconds. Times are drawn in seconds with an SI prefix, such as 20ms.
pub fn seconds(us: f64) -> f64 {
    us / 1e6
}

/// Number format of times, with an SI prefix, for axes and hover labels.
const TIME: &str = "~s";

/// Returns an axis of times in seconds, with a title.
pub fn time_axis(title: &str) -> Value {
    json!({ "title": { "text": plain(title) }, "tickformat": TIME, "ticksuffix": "s" })
}

/// Returns a logarithmic axis of times in seconds, with a title, for these values in microseconds.
pub fn log_axis(title: &str, values_us: impl Iterator<Item = f64>) -> Value {
    // "complete" gives all labels one size. By default, the library draws labels between powers of ten smaller.
    let mut axis = time_axis(title);
    axis["type"] = "log".into();
    axis["minorloglabels"] = "complete".into();
    axis["minor"] = json!({ "ticks": "outside", "ticklen": 3 });
    let (least, most) = values_us
        .filter(|us| *us >= MIN_US)
        .fold((f64::INFINITY, 0.0f64), |(least, most), us| (least.min(us), most.max(us)));
    if least <= most {
        let (from, to) = (libm::log10(seconds(least)), libm::log10(seconds(most)));
        axis["labelalias"] = between_powers(from.floor() as i32, to.ceil() as i32);
        // If values hardly differ, the axis is longer, so that it has some labels.
        let margin = (0.04 * (to - from) + 0.01).max((MIN_DECADES - (to - from)) / 2.0);
        axis["range"] = json!([from - margin, to + margin]);
        // Label 1, 2 and 5 times powers of ten, or only powers of ten, depending on the available space.
        axis["dtick"] = match to - from {
            decades if decades < 0.5 => "D1".into(),
            decades if decades < 1.7 => "D2".into(),
            decades if decades < 6.0 => 1.into(),
            _ => 2.into(),
        };
    }
    axis
}

/// Least length of a logarithmic axis, in powers of ten.
const MIN_DECADES: f64 = 0.4;

/// Returns labels of times between powers of ten of seconds. The library omits the suffix of these labels.
fn between_powers(from: i32, to: i32) -> Value {
    let prefixes = ["p", "n", "\u{b5}", "m", "", "k"];
    let label = |power: i32, digit: u32| {
        let prefix = prefixes.get((power.div_euclid(3) + 4) as usize)?;
        let label = format!("{digit}{}{prefix}", "0".repeat(power.rem_euclid(3) as usize));
        Some((label.clone(), Value::from(label + "s")))
    };
    (from..to).flat_map(|power| (2..=9).filter_map(move |digit| label(power, digit))).collect()
}

/// Returns a logarithmic axis of shares, with a title. Its labels are powers of ten in percent, all of one size.
pub fn log_share_axis(title: &str) -> Value {
    json!({ "title": { "text": plain(title) }, "type": "log", "dtick": 1, "tickformat": "~%",
        "minorloglabels": "none", "minor": { "ticks": "outside", "ticklen": 3 } })
}

/// Adds markers for isolated points. A point between gaps has no line, and not every point has a marker.
pub fn with_lone_points(lines: Vec<Value>) -> Vec<Value> {
    let lone: Vec<Option<Value>> = lines.iter().map(lone_points).collect();
    let of_line = |(mut line, lone): (Value, Option<Value>)| {
        if lone.is_some() {
            // Both are shown and hidden together.
            line["legendgroup"] = line["name"].clone();
        }
        std::iter::once(line).chain(lone)
    };
    lines.into_iter().zip(lone).flat_map(of_line).collect()
}

/// Returns the points of a line that have no neighbor, as markers. Returns `None` if there are none.
fn lone_points(line: &Value) -> Option<Value> {
    let y = line["y"].as_array()?;
    let is_there = |index: usize| y.get(index).is_some_and(|value| !value.is_null());
    let is_lone =
        |index: &usize| is_there(*index) && !is_there(index + 1) && !index.checked_sub(1).is_some_and(is_there);
    let lone: Vec<usize> = (0..y.len()).filter(is_lone).collect();
    if lone.is_empty() {
        return None;
    }
    let mut points = line.clone();
    for key in ["x", "y", "customdata"] {
        if let Some(all) = line[key].as_array() {
            points[key] = lone.iter().map(|index| all[*index].clone()).collect();
        }
    }
    points["mode"] = "markers".into();
    points["marker"]["maxdisplayed"] = 0.into();
    points["legendgroup"] = line["name"].clone();
    points["showlegend"] = false.into();
    points.as_object_mut()?.remove("line");
    Some(points)
}

/// Escapes a text for the plotting library, which would interpret its markup.
pub fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_texts_is_escaped() {
        assert_eq!(plain("<b>a & b</b>"), "&lt;b&gt;a &amp; b&lt;/b&gt;");
        assert_eq!(trace("<i>", json!({}), json!({ "x": [1] })), json!({ "name": "&lt;i&gt;", "x": [1] }));
    }

    #[test]
    fn times_of_zero_do_not_stretch_the_axis() {
        let axis = |values: &[f64]| log_axis("us", values.iter().copied());
        assert_eq!(axis(&[0.0, 0.001])["range"], Value::Null);
        let wide = axis(&[0.0, 1.0, 1000.0]);
        assert_eq!((&wide["range"], &wide["dtick"]), (&json!([-6.13, -2.87]), &json!(1)));
        assert_eq!(axis(&[100.0, 200.0])["dtick"], "D1");
        assert_eq!(axis(&[100.0, 2000.0])["dtick"], "D2");
        let labels = &axis(&[90.0, 2000.0])["labelalias"];
        let reported = ["20\u{b5}", "900\u{b5}", "2m", "10m"].map(|label| labels[label].as_str());
        assert_eq!(reported, [Some("20\u{b5}s"), Some("900\u{b5}s"), Some("2ms"), None]);
    }

    #[test]
    fn lone_points_have_markers() {
        let line = |y: Value| trace("reads", Style::of(0).line(), json!({ "x": [0, 1, 2, 3, 4, 5], "y": y }));
        let drawn = with_lone_points(vec![line(json!([7, null, 8, 9, null, 5])), line(json!([1, 2, 3, 4, 5, null]))]);
        assert_eq!(drawn.len(), 3, "the second line has no isolated points");
        let lone = &drawn[1];
        assert_eq!((&lone["x"], &lone["y"], &lone["mode"]), (&json!([0, 5]), &json!([7, 5]), &json!("markers")));
        assert_eq!((&lone["showlegend"], &lone["legendgroup"]), (&json!(false), &drawn[0]["legendgroup"]));
        assert_eq!(drawn[0]["y"], json!([7, null, 8, 9, null, 5]));
    }

    #[test]
    fn looks_differ_without_color() {
        let looks: Vec<_> = (0..STYLES.len()).map(Style::of).collect();
        for (index, style) in looks.iter().enumerate() {
            let same = looks[..index].iter().find(|other| other.marker == style.marker);
            assert!(same.is_none(), "{style:?} has the same marker as another style");
        }
        assert_eq!(Style::of(15).marker, Style::of(1).marker);
    }
}
