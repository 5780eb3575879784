//! HTML page with figures and tables: a single file that needs no network.
//!
//! The page contains the plotting library in compressed form. assets/report.js decompresses it and draws the figures,
//! whose data are in the page as JSON. When all figures are drawn, `data-state` of the root element is `ready`. If a
//! figure cannot be drawn, `data-state` is `failed`, and `data-failure` contains the reason. scripts/check_report.py
//! checks these attributes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value, json};

use crate::figure::Figure;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
/// Plotting library, compressed with gzip, for pages that are not standalone files.
pub const PLOTLY: &[u8] = include_bytes!("../assets/plotly-cartesian.min.js.gz");

/// A page that is being built.
#[derive(Debug, Default)]
pub struct Page {
    body: String,
    /// Ids and titles of the sections.
    sections: Vec<(&'static str, &'static str)>,
    figures: Map<String, Value>,
}

impl Page {
    /// Adds markup to the current section, or before the first section.
    pub fn add(&mut self, markup: &Markup) {
        self.body.push_str(&markup.0);
    }

    /// Starts a section.
    pub fn section(&mut self, id: &'static str, title: &'static str) {
        self.sections.push((id, title));
        self.add(&html! { h2 id=(id) { (title) } });
    }

    /// Adds figures, side by side if there is space. Wide figures take the full width.
    pub fn figures(&mut self, figures: Vec<Figure>) {
        if figures.is_empty() {
            return;
        }
        let one = figures.len() == 1;
        self.add(&html! {
            div.figures {
                @for figure in &figures {
                    figure id=(figure.id) class=[(one || figure.wide).then_some("wide")] {
                        h3 { (figure.title) }
                        div.plot data-figure=(figure.id) role="img" aria-label=(figure.title)
                            style=(format!("--height:{}px", figure.height)) {}
                        figcaption { (figure.caption) }
                    }
                }
            }
        });
        for Figure { id, data, mut layout, height, .. } in figures {
            layout["height"] = height.into();
            self.figures.insert(id, json!({ "data": data, "layout": layout }));
        }
    }

    /// Returns the whole page as HTML: `head`, links to the sections, and the sections.
    pub fn finish(self, title: &str, head: &Markup) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="generator" content=(concat!("floatgate ", env!("CARGO_PKG_VERSION")));
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    (head)
                    div.warning id="no-figures" hidden { b { "The figures cannot be drawn: " } span {} }
                    noscript { div.warning { b { "The figures need JavaScript." } " The tables do not." } }
                    nav { @for (id, title) in &self.sections { a href=(format!("#{id}")) { (title) } } }
                    (PreEscaped(&self.body))
                    script id="figures" type="application/json" { (PreEscaped(in_script(&Value::Object(self.figures)))) }
                    script id="plotly" type="application/gzip+base64" { (PreEscaped(BASE64.encode(PLOTLY))) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string() + "\n"
    }
}

/// Returns JSON that cannot end the script element around it.
fn in_script(json: &Value) -> String {
    json.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn json_does_not_end_its_element() {
        let json = json!({ "name": "</script><script>alert(1)</script>" });
        let text = in_script(&json);
        assert!(!text.contains('<'));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json);
    }

    #[test]
    fn the_plotting_library_is_the_documented_version() {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(PLOTLY).read_to_end(&mut text).unwrap();
        let readme = include_str!("../assets/README.md");
        let digest = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&text));
        assert!(readme.contains(&digest), "assets/README.md does not have the digest {digest}");
        let version = text.windows(60).find(|w| w.starts_with(b"* plotly.js (cartesian"));
        let version = String::from_utf8_lossy(version.expect("the library starts with its name"));
        let version = version.split(" v").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
        assert!(readme.contains(version), "assets/README.md does not have the version {version}");
    }
}
