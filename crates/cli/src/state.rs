//! `floatgate state`: shows and checks a saved state.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use floatgate_array::ArrayHead;
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::saved_state::{Head, Section, StateError};
use floatgate_core::summary::Precondition;
use floatgate_report::number::grouped;
use floatgate_run::state::{Inspected, InspectedFile, inspect};
use floatgate_workload::quantity::readable;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::print;
use floatgate_run::text::Page;

/// `floatgate state`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check a saved state, and show its device, origin, options and sections
    Info {
        /// File written by `floatgate run --save-state` or `Simulator.save`
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print JSON instead
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Command::Info { file, json } = &args.command;
    let text = if *json { format!("{:#}\n", info(file)?) } else { reported(file)? };
    print(text)
}

/// Returns the configuration of the device of a state.
fn device_of(head: &Head, path: &Path) -> Result<DeviceConfig, Failure> {
    head.device().map_err(|error: StateError| Failure::mistake(format!("{}: {error}", path.display())))
}

/// Returns the description of a file as JSON.
fn info(path: &Path) -> Result<Value, Failure> {
    let mut json = match inspect(path)? {
        InspectedFile::Device(state) => device_json(&state, path)?,
        InspectedFile::Array(head, members) => {
            let states = members.iter().map(|member| member.as_ref().map(|state| device_json(state, path)).transpose());
            let mut json = serde_json::to_value(&head).unwrap_or_default();
            json["members"] = states.collect::<Result<Vec<_>, _>>()?.into();
            json
        }
    };
    json["bytes"] = path.metadata().map(|data| data.len()).unwrap_or_default().into();
    Ok(json)
}

/// Returns the description of the state of a single SSD as JSON.
fn device_json((head, sections): &Inspected, path: &Path) -> Result<Value, Failure> {
    let shape = device_of(head, path)?.shape();
    let section = |s: &Section| json!({ "name": s.name, "bytes": s.bytes, "digest": format!("{:016x}", s.digest) });
    let mut json = serde_json::to_value(head).unwrap_or_default();
    json["options"] = json!({ "media": shape.media, "policy": shape.policy });
    json["sections"] = sections.iter().map(section).collect();
    Ok(json)
}

/// Returns the description of a file as text.
fn reported(path: &Path) -> Result<String, Failure> {
    let mut page = Page::default();
    match inspect(path)? {
        InspectedFile::Device(state) => device_lines(&mut page, &state, path)?,
        InspectedFile::Array(head, members) => {
            let ArrayHead { options, members: names, .. } = &head;
            let level = options.level;
            let count = names.len();
            page.line("array", format!("{}, level {level} of {count} SSDs ({})", head.device, head.config_digest));
            origin(&mut page, &head.precondition, &head.floatgate, head.seed);
            page.line("size", size(path, members.iter().flatten().flat_map(|(_, sections)| sections)));
            for (number, (name, member)) in names.iter().zip(&members).enumerate() {
                page.gap();
                match member {
                    None => page.line(&format!("member {number}"), format!("{name}, which had failed")),
                    Some(state) => {
                        page.line(&format!("member {number}"), "");
                        device_lines(&mut page, state, path)?;
                    }
                }
            }
        }
    }
    Ok(page.text)
}

/// Adds the lines of the state of a single SSD.
fn device_lines(page: &mut Page, (head, sections): &Inspected, path: &Path) -> Result<(), Failure> {
    let device = device_of(head, path)?;
    let shape = device.shape();
    let logical = readable(u128::from(device.logical_bytes()));
    page.line("device", format!("{} of {logical} ({})", head.device, head.config_digest));
    origin(page, &head.precondition, &head.floatgate, head.seed);
    page.line("size", size(path, sections));
    page.gap();
    page.line("options", "that a device must have to load this state");
    for (name, digest, options) in
        [("  media", &head.media_digest, &shape.media), ("  policy", &head.policy_digest, &shape.policy)]
    {
        page.line(name, digest);
        for (path, value) in options.as_object().into_iter().flatten() {
            page.line("", format!("{path} = {value}"));
        }
    }
    page.gap();
    page.line("sections", "with their bytes before compression and their digests, which are all correct");
    for Section { name, bytes, digest } in sections {
        page.line("", format!("{name:<18} {:>18}  {digest:016x}", grouped(*bytes)));
    }
    Ok(())
}

/// Adds the lines about the origin of a state.
fn origin(page: &mut Page, state: &Precondition, version: &str, seed: u64) {
    page.line("state", reached(state));
    page.line("saved by", format!("floatgate {version}, with seed {seed}"));
}

/// Returns the size of a file, and that of these sections before compression.
fn size<'a>(path: &Path, sections: impl IntoIterator<Item = &'a Section>) -> String {
    let in_file = path.metadata().map(|data| data.len()).unwrap_or_default();
    let in_all: u64 = sections.into_iter().map(|section| section.bytes).sum();
    format!("{} bytes, {} before compression", grouped(in_file), grouped(in_all))
}

fn reached(state: &Precondition) -> String {
    let Precondition { requested, reached } = state;
    let amplification =
        reached.write_amplification.map_or(String::new(), |wa| format!(", write amplification {wa:.2}"));
    let mapped = reached.mapped * 100.0;
    format!("{requested}: {:.1} drive writes{amplification}, {mapped:.0} % of the units mapped", reached.drive_writes)
}
