//! Generator of the job reference, `docs/reference/synthetic.md`, from the text next to this file and the table of
//! keys.

use std::fmt::Write;

use super::catalog::{Effect, OTHERS};
use super::engines::{ENGINES, Kind};
use super::keys::{Group, KEYS, Key};

/// Returns the page.
pub fn reference_page() -> String {
    let tables = [
        ("{where}", Group::Where),
        ("{strides}", Group::Strides),
        ("{how-much}", Group::HowMuch),
        ("{how-fast}", Group::HowFast),
        ("{flushes}", Group::Flushes),
        ("{verify}", Group::Verify),
        ("{jobs}", Group::Jobs),
        ("{logs}", Group::Logs),
        ("{again}", Group::Again),
    ];
    let mut page = include_str!("reference.md").to_owned();
    for (mark, group) in tables {
        page = page.replace(mark, table(group).trim_end());
    }
    page = page.replace("{engines}", engines().trim_end());
    page.replace("{without-effect}", &without_effect()).replace("{refused}", refused().trim_end())
}

/// Returns the list of options without effect on the requests, with their defaults.
fn without_effect() -> String {
    let list = OTHERS.iter().filter(|other| other.effect == Effect::None).map(|other| match other.default {
        "" => format!("`{}`", other.name),
        default => format!("`{}` ({default})", other.name),
    });
    list.collect::<Vec<_>>().join(", ")
}

/// Returns the table of refused options.
fn refused() -> String {
    let mut table = String::from("| key | accepted values | otherwise |\n|---|---|---|\n");
    for other in OTHERS {
        let (values, instead) = match other.effect {
            Effect::None => continue,
            Effect::UnlessOff { off, instead } => {
                let default = Some(other.default).filter(|default| !default.is_empty());
                (default.iter().chain(off).map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "), instead)
            }
            Effect::Refused { instead } => (String::new(), instead),
        };
        let _ = writeln!(table, "| `{}` | {values} | {instead} |", other.name);
    }
    table.replace("|  |", "| |")
}

/// Returns the table of engines.
fn engines() -> String {
    let mut table = String::from("| engines | effect |\n|---|---|\n");
    for (kind, names) in ENGINES {
        let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let effect = match kind {
            Kind::Synchronous => {
                "One request is outstanding, whatever `iodepth` is. A warning says so. With a rate or `read_iolog`, \
                 a request waits for the previous one, and its latency includes the wait."
            }
            Kind::Asynchronous => "`iodepth` requests are outstanding.",
            Kind::NoData => "An error: the engine transfers no data to or from a device.",
        };
        let _ = writeln!(table, "| {names} | {effect} |");
    }
    table
}

/// Returns the table of a group.
fn table(group: Group) -> String {
    let mut table = String::from("| key | default | meaning | in fio |\n|---|---|---|---|\n");
    for Key { names, default, meaning, in_fio, .. } in KEYS.iter().filter(|key| key.group == group) {
        let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(table, "| {names} | {default} | {meaning} | {in_fio} |");
    }
    table.replace("|  |", "| |").replace("|  |", "| |")
}
