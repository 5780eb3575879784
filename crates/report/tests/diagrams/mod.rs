//! Timing diagrams: the diagrams of docs/model are up to date (`FLOATGATE_BLESS=1` writes them again), boxes match the
//! timeline, and invalid files are refused with the reason.

mod figures;
mod hostile;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use figures::{Figure, figures};
use floatgate_core::internals::Advanced;
use floatgate_core::sim::time::Time;
use floatgate_core::timeline::{Kind, Phase};
use floatgate_report::diagram::{Requested, draw};
use floatgate_report::timeline::{ps, read_events};
use serde_json::Value;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn drawing(figure: &Figure) -> String {
    let requested = Requested { span: figure.span, title: Some(figure.title.to_owned()) };
    draw(&figure.timeline()[..], figure.name, &requested).unwrap_or_else(|error| panic!("{}: {error:#}", figure.name))
}

#[test]
fn the_diagrams_of_the_model_are_up_to_date() {
    let bless = std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1");
    let directory = docs().join("images/timing");
    let mut there: BTreeSet<String> = std::fs::read_dir(&directory)
        .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    for figure in figures() {
        let (svg, name) = (drawing(&figure), format!("{}.svg", figure.name));
        let path = directory.join(&name);
        if bless {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(&path, &svg).unwrap();
        }
        let drawn = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(drawn == svg, "{} is outdated; run the tests with FLOATGATE_BLESS=1", path.display());
        there.remove(&name);
    }
    assert!(there.is_empty(), "{} has files that no figure produces: {there:?}", directory.display());
}

#[test]
fn figures_take_the_calculated_time() {
    for figure in figures() {
        let from = figure.drawn().map(|slice| slice.start).min().unwrap();
        let to = figure.drawn().map(|slice| slice.end).max().unwrap();
        assert_eq!((to - from).ps(), figure.takes, "{}", figure.name);
    }
}

/// Options of `nand.advanced` that are not commands, but restrict which planes and blocks may work together.
const NO_COMMANDS: [&str; 2] = ["strict", "plane_pairs"];

#[test]
fn every_command_has_a_figure() {
    let figures = figures();
    for kind in Kind::ALL {
        assert!(figures.iter().any(|figure| figure.drawn().any(|slice| slice.kind == kind)), "no {kind:?} in figures");
    }
    for phase in [Phase::Switch, Phase::Command, Phase::Data, Phase::Cell] {
        assert!(
            figures.iter().any(|figure| figure.drawn().any(|slice| slice.phase == phase)),
            "no {phase:?} in figures"
        );
    }
    let Ok(Value::Object(options)) = serde_json::to_value(Advanced::default()) else { panic!("not a table") };
    for option in options.keys().filter(|option| !NO_COMMANDS.contains(&option.as_str())) {
        let key = format!("nand.advanced.{option}=");
        let is_drawn = figures.iter().any(|figure| figure.overrides.iter().any(|set| set.starts_with(&key)));
        assert!(is_drawn, "no figure shows `nand.advanced.{option}`; add one to figures.rs");
    }
}

#[test]
fn every_figure_is_shown_in_the_model_documentation() {
    let pages: Vec<String> = std::fs::read_dir(docs().join("model"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    for Figure { name, .. } in figures() {
        let shown = format!("](../images/timing/{name}.svg)");
        assert!(pages.iter().any(|page| page.contains(&shown)), "no page of docs/model shows {name}.svg");
    }
}

/// An operation: its category, its plane, and its phases in order of time.
type Done = (String, u64, Vec<String>);

fn operations(figure: &Figure) -> BTreeMap<u64, Done> {
    let mut phases = Vec::new();
    read_events(&figure.timeline()[..], figure.name, &mut |event| {
        if let (Some("X"), Some(op)) = (event["ph"].as_str(), event["args"]["op"].as_u64()) {
            phases.push((ps(&event["ts"]), op, event.clone()));
        }
        Ok(())
    })
    .unwrap();
    phases.sort_by_key(|phase| phase.0);
    let mut all: BTreeMap<u64, Done> = BTreeMap::new();
    for (_, op, event) in phases {
        let (what, plane) = (event["cat"].as_str().unwrap().to_owned(), event["args"]["plane"].as_u64().unwrap());
        let done = all.entry(op).or_insert((what.clone(), plane, Vec::new()));
        assert_eq!((&done.0, done.1), (&what, plane), "{}: two operations have the number {op}", figure.name);
        done.2.push(event["args"]["phase"].as_str().unwrap().to_owned());
    }
    all
}

/// Commands overlap in a plane, and planes work together. Still, each operation has exactly its own phases.
#[test]
fn phases_belong_to_their_own_operation() {
    let read = ["command", "cell", "data"].as_slice();
    let program = ["command", "data", "cell"].as_slice();
    let (suspended, erased) = (["command", "data", "cell", "cell"].as_slice(), ["command", "cell", "cell"].as_slice());
    let copied = ["command", "cell", "command", "cell"].as_slice();
    let cases: [(&str, &[&[&str]]); 8] = [
        ("multi-plane-read", &[read, read]),
        ("interleaved-two-plane-program", &[program; 4]),
        ("cache-read", &[read; 3]),
        ("cache-program", &[program; 3]),
        ("suspended-program", &[suspended, read]),
        ("suspended-erase", &[program, erased, read]),
        ("partial-write", &[read, program]),
        ("copy-back", &[program, copied]),
    ];
    let figures = figures();
    for (name, expected) in cases {
        let figure = figures.iter().find(|figure| figure.name == name).unwrap();
        let done: Vec<Vec<String>> = operations(figure).into_values().map(|done| done.2).take(expected.len()).collect();
        assert_eq!(done, expected, "{name}");
    }
    let all = operations(figures.iter().find(|figure| figure.name == "interleaved-two-plane-program").unwrap());
    assert_eq!(all.values().map(|done| done.1).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2, 3]));
}

/// A box of a drawing.
struct Drawn {
    span: (u64, u64),
    op: Option<u64>,
    left: f64,
    width: f64,
    class: String,
}

fn boxes(svg: &str) -> Vec<Drawn> {
    let document = roxmltree::Document::parse(svg).expect("not XML");
    let is_box = |node: &roxmltree::Node| node.attribute("class").is_some_and(|class| class.starts_with("box "));
    let number = |node: roxmltree::Node, name: &str| node.attribute(name).and_then(|text| text.parse::<u64>().ok());
    let boxed = |node: roxmltree::Node| {
        let rect = node.children().find(|child| child.has_tag_name("rect")).unwrap();
        let length = |name: &str| rect.attribute(name).unwrap().parse::<f64>().unwrap();
        Drawn {
            span: (number(node, "data-from-ps").unwrap(), number(node, "data-to-ps").unwrap()),
            op: number(node, "data-op"),
            left: length("x"),
            width: length("width"),
            class: node.attribute("class").unwrap().trim_start_matches("box ").to_owned(),
        }
    };
    document.descendants().filter(is_box).map(boxed).collect()
}

#[test]
fn boxes_match_the_events_of_the_timeline() {
    for figure in figures() {
        let drawn = boxes(&drawing(&figure));
        let mut events = Vec::new();
        let (from, to) = (figure.span.0.ps(), figure.span.1.ps());
        read_events(&figure.timeline()[..], figure.name, &mut |event| {
            let span = (ps(&event["ts"]), ps(&event["ts"]) + ps(&event["dur"]));
            if event["ph"] == "X" && span.0 < to && span.1 > from {
                events.push((span, event["args"]["op"].as_u64()));
            }
            Ok(())
        })
        .unwrap();
        let mut spans: Vec<_> =
            drawn.iter().filter(|drawn| drawn.class != "register").map(|drawn| (drawn.span, drawn.op)).collect();
        spans.sort_unstable();
        events.sort_unstable();
        assert_eq!(spans, events, "{}", figure.name);
        // The data transfers of a plane are drawn twice: on the channel, and in the register.
        let count = |class: &str| drawn.iter().filter(|drawn| drawn.class.starts_with(class)).count();
        assert_eq!(count("register"), count("data"), "{}", figure.name);
        assert_to_scale(&figure, &drawn);
    }
}

/// Asserts that all boxes have the same time scale, except boxes of minimum width.
fn assert_to_scale(figure: &Figure, drawn: &[Drawn]) {
    let whole: Vec<&Drawn> = drawn
        .iter()
        .filter(|drawn| Time(drawn.span.0) >= figure.span.0 && Time(drawn.span.1) <= figure.span.1)
        .collect();
    let from = whole.iter().map(|drawn| drawn.span.0).min().unwrap();
    let longest = whole.iter().max_by_key(|drawn| drawn.span.1 - drawn.span.0).unwrap();
    let scale = longest.width / (longest.span.1 - longest.span.0) as f64;
    let begin = longest.left - (longest.span.0 - from) as f64 * scale;
    for drawn in whole {
        let left = begin + (drawn.span.0 - from) as f64 * scale;
        let width = ((drawn.span.1 - drawn.span.0) as f64 * scale).max(2.0);
        assert!((drawn.left - left).abs() < 0.05 && (drawn.width - width).abs() < 0.05, "{}: {left}", figure.name);
    }
}
