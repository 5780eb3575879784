//! Generator of the job reference, `docs/reference/synthetic.md`, from the text next to this file and the table of
//! keys.

use std::fmt::Write;

use super::engines::{ENGINES, Kind};
use super::keys::{Group, KEYS, Key, NOT_SUPPORTED, WITHOUT_MEANING};

/// Returns the page.
pub fn reference_page() -> String {
    let tables = [
        ("{where}", Group::Where),
        ("{strides}", Group::Strides),
        ("{how-much}", Group::HowMuch),
        ("{how-fast}", Group::HowFast),
        ("{flushes}", Group::Flushes),
        ("{jobs}", Group::Jobs),
        ("{logs}", Group::Logs),
        ("{again}", Group::Again),
    ];
    let mut page = include_str!("reference.md").to_owned();
    for (mark, group) in tables {
        page = page.replace(mark, table(group).trim_end());
    }
    let host = WITHOUT_MEANING.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let unsupported = NOT_SUPPORTED.iter().map(|(key, _)| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    page = page.replace("{engines}", engines().trim_end());
    page.replace("{without-meaning}", &host).replace("{not-supported}", &unsupported)
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
