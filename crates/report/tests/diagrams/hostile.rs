//! Robustness of timing diagrams: invalid files are refused with the reason and a remedy. No file causes a panic or
//! unbounded memory use.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use floatgate_core::config::units::Duration;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_report::diagram::{MOST_PHASES, MOST_PLANES, Requested, draw};

use crate::figures::{Figure, US, figures};

const WHOLE: (Time, Time) = (Time::ZERO, Time::NEVER);

fn drawn(bytes: &[u8], span: (Time, Time)) -> Result<String, String> {
    let requested = Requested { span, title: None };
    draw(bytes, "there.json.gz", &requested).map_err(|error| format!("{error:#}"))
}

#[track_caller]
fn refused(bytes: &[u8]) -> String {
    match drawn(bytes, WHOLE) {
        Err(said) => said,
        Ok(_) => panic!("an invalid file was drawn"),
    }
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

/// Returns the figure with the most kinds of events.
fn example() -> Figure {
    figures().into_iter().find(|figure| figure.name == "suspended-erase").unwrap()
}

const HEAD: &str = r#"{"displayTimeUnit":"ns","otherData":{"schema":"floatgate-timeline-1","device":"d","config_digest":"0"},"traceEvents":["#;

/// Returns a timeline of planes of one channel, with `programs` consecutive programs in each.
fn timeline(planes: u64, programs: u64) -> Vec<u8> {
    let mut lines =
        vec![HEAD.to_owned(), r#"{"ph":"M","pid":0,"name":"process_name","args":{"name":"host"}}"#.to_owned()];
    for plane in 0..planes {
        let thread = plane + 2;
        lines.push(format!(
            r#",{{"ph":"M","pid":1,"tid":{thread},"name":"thread_name","args":{{"name":"chip 0 die 0 plane {plane}"}}}}"#
        ));
    }
    for program in 0..programs {
        for plane in 0..planes {
            let (op, thread) = (program * planes + plane, plane + 2);
            lines.push(format!(
                r#",{{"ph":"X","pid":1,"tid":{thread},"ts":{}.000000,"dur":50.000000,"cat":"host write","name":"host write","args":{{"op":{op},"phase":"cell","plane":{plane},"lun":0,"block":0,"page":{program}}}}}"#,
                program * 100
            ));
        }
    }
    lines.push("]}\n".to_owned());
    packed(lines.join("\n").replace("\n,", ",\n").as_bytes())
}

#[test]
fn files_that_are_not_timelines_are_refused() {
    for bytes in [&b""[..], b"no gzip", &packed(b""), &packed(b"[1, 2]"), &packed(b"{\"a\":1}\n"), &packed(&[0xff; 9])]
    {
        let said = refused(bytes);
        assert!(
            said.starts_with("there.json.gz is not a timeline: `floatgate run ... --out DIR --timeline`"),
            "{said}"
        );
    }
    let longer = unpacked(&example().timeline()) + "more\n";
    assert!(refused(&packed(longer.as_bytes())).contains("has data after its end"));
    let other = packed(HEAD.replace("timeline-1", "timeline-9").as_bytes());
    assert!(refused(&other).contains("does not have schema floatgate-timeline-1"), "{}", refused(&other));
}

#[test]
fn truncated_files_are_refused() {
    let whole = example().timeline();
    assert!(drawn(&whole, WHOLE).is_ok());
    for length in 0..whole.len() {
        let said = refused(&whole[..length]);
        assert!(said.contains("there.json.gz"), "{length}: {said}");
    }
    let text = unpacked(&whole);
    for (at, _) in text.match_indices('\n').filter(|(at, _)| *at + 1 < text.len()) {
        let said = refused(&packed(&text.as_bytes()[..=at]));
        assert!(said.contains("is truncated") || said.contains("is not a timeline"), "{said}");
    }
}

#[test]
fn an_endless_line_does_not_exhaust_memory() {
    for head in [String::new(), format!("{HEAD}\n")] {
        let long = format!("{head}{}", " ".repeat(8 << 20));
        assert!(refused(&packed(long.as_bytes())).contains("a line is longer than 1 MiB"));
    }
}

#[test]
fn invalid_events_are_shown() {
    let text = unpacked(&example().timeline());
    let spoiled = [
        (r#""cat":"host write""#, r#""cat":"<b>""#, "an unknown operation"),
        (r#""phase":"cell""#, r#""phase":"sleep""#, "an unknown phase"),
        (r#","plane":0"#, r#","plane":77"#, "a plane without a name"),
        ("chip 0 die 0 plane 0", "chip x die 0 plane 0", "invalid digit"),
        (r#""name":"read","args""#, r#""name":"look","args""#, "an unknown request operation"),
        (r#""request":1"#, r#""request":"one""#, "a number is missing"),
    ];
    for (from, to, expected) in spoiled {
        assert!(text.contains(from), "{from} is missing");
        let said = refused(&packed(text.replace(from, to).as_bytes()));
        assert!(
            said.contains("has an invalid event: {") && said.ends_with(expected) || said.contains(expected),
            "{said}"
        );
    }
}

/// Returns the span that an error message proposes.
fn proposed(said: &str) -> (Time, Time) {
    let (from, to) = said.rsplit_once("such as ").unwrap().1.split_once("..").unwrap();
    let time = |text: &str| text.parse::<Duration>().unwrap().time();
    (if from.is_empty() { Time::ZERO } else { time(from) }, time(to))
}

#[test]
fn too_many_phases_are_refused_with_a_shorter_span() {
    let many = timeline(2, 400);
    let said = refused(&many);
    assert!(said.contains("has 800 phases in this span, but a diagram shows at most 300"), "{said}");
    assert_eq!(proposed(&said), (Time::ZERO, Time(MOST_PHASES as u64 / 2 * 100 * US)));
    let boxes = |svg: &str| svg.matches("class=\"box program\"").count();
    assert_eq!(boxes(&drawn(&many, proposed(&said)).unwrap()), MOST_PHASES);
    // A span from the middle on includes operations that are in flight there.
    let middle = (Time(10_020 * US), Time::NEVER);
    let said = drawn(&many, middle).unwrap_err();
    assert_eq!(proposed(&said), (middle.0, Time(25_000 * US)), "{said}");
    assert_eq!(boxes(&drawn(&many, proposed(&said)).unwrap()), MOST_PHASES);
}

#[test]
fn too_many_planes_are_refused() {
    let said = refused(&timeline(MOST_PLANES as u64 + 1, 2));
    assert!(
        said.contains("activity on more planes in this span than a diagram can show (48)")
            && said.ends_with("a smaller device"),
        "{said}"
    );
    assert!(drawn(&timeline(MOST_PLANES as u64, 2), WHOLE).is_ok());
}

#[test]
fn a_span_without_activity_is_refused_with_the_span_of_activity() {
    let some = timeline(1, 3);
    let said = drawn(&some, (Time(60 * US), Time(90 * US))).unwrap_err();
    assert!(said.contains("no channel or cell activity in this span") && said.ends_with("0ps and 250us"), "{said}");
    assert!(refused(&timeline(1, 0)).ends_with("nothing happened in the recorded span"));
}

/// Changes bytes at random and replaces numbers by extreme values. Each file must be drawn or refused.
#[test]
fn any_file_is_drawn_or_refused() {
    let text = unpacked(&example().timeline());
    let numbers = ["-1", "0", "1e300", "-1e300", "18446744073709551615", "0.000001", "null", "\"\"", "[]"];
    let mut rng = Rng::new(1, "hostile");
    let places: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
    let mut drawings = 0;
    for case in 0..3000 {
        let mut bytes = text.clone().into_bytes();
        if case % 2 == 0 {
            let at = places[rng.below(places.len() as u64) as usize];
            let number = numbers[rng.below(numbers.len() as u64) as usize];
            let end = at + text[at..].find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(0);
            bytes.splice(at..end, number.bytes());
        } else {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        if let Ok(svg) = drawn(&packed(&bytes), WHOLE) {
            roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("case {case}: {error}"));
            drawings += 1;
        }
    }
    assert!(drawings > 100, "{drawings}");
}
