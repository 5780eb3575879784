//! Loading of devices: a built-in device or a file, and overrides, become a checked device.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place, Problem};
use super::external::{ExternalConfig, Offer};
use super::layer::{Override, keep, leaf_paths, merge, path_at, span_of, table_of};
use super::origin::{Origin, Texts};
use super::page;
use super::path::upwards;
use super::schema::{self, Schema};
use super::structure::{LISTED, Structure};
use super::{Builtin, DeviceConfig, did_you_mean, offered};
use crate::sim::text::{read_text, shortened, shown};

/// Loads a device: a built-in one by its name, or a file by its path. Applies the overrides in order, each
/// `path=value`, and checks the device.
///
/// ```
/// let device = floatgate_core::device_file::load("tiny", &["gc.victim=fifo".to_owned()])?;
/// assert_eq!(device.gc.victim.name(), "fifo");
/// # Ok::<(), floatgate_core::device_file::ConfigError>(())
/// ```
pub fn load(name_or_path: &str, overrides: &[String]) -> Result<DeviceConfig, ConfigError> {
    load_with(&[], name_or_path, overrides)
}

/// Loads a device like [`load`], for a program whose own policies the device may name.
pub fn load_with(offers: &[Offer], name_or_path: &str, overrides: &[String]) -> Result<DeviceConfig, ConfigError> {
    match Builtin::named(name_or_path) {
        Some(device) => read_all(offers, Origin::Builtin(device.name.to_owned()), device.text, overrides),
        None => from_toml_with(offers, &DeviceConfig::file_text(name_or_path)?, name_or_path, overrides),
    }
}

/// Maximum size of a device file in bytes. A file with thousands of sources and faults is smaller.
const LARGEST: u64 = 4 << 20;

impl DeviceConfig {
    /// Reads a device file by its path. The file is read only once, because it may be a pipe. Names of built-in devices
    /// are not paths.
    pub fn file_text(name_or_path: &str) -> Result<String, ConfigError> {
        let path = Path::new(name_or_path);
        // A text with a separator or an extension is a path. Any other text is a name, unless a file has this name.
        let looks_like_path = name_or_path.contains(['/', '\\']) || path.extension().is_some();
        if path.is_dir() {
            let cause = std::io::Error::other("it is a directory; give the path of a file in it, or a built-in device");
            return Err(ConfigError::Unreadable { path: path.to_owned(), hint: String::new(), cause });
        }
        if !looks_like_path && !path.is_file() {
            let known = Builtin::names();
            let hint = did_you_mean(name_or_path, &known);
            return Err(ConfigError::UnknownDevice { name: name_or_path.to_owned(), hint, known });
        }
        read_text(path, LARGEST).map_err(|cause| {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let hint = match Builtin::named(&stem) {
                Some(device) => format!("\n`{}` is a built-in device: give its name alone", device.name),
                None => String::new(),
            };
            ConfigError::Unreadable { path: path.to_owned(), hint, cause }
        })
    }

    /// Returns the built-in device that the text of a device file names as its base.
    pub fn base_in(text: &str) -> Option<String> {
        let file: toml::Table = text.parse().ok()?;
        file.get("base")?.as_str().map(str::to_owned)
    }
}

/// Error for a file without keys.
const EMPTY: &str = "the device file is empty; start it with base = \"tiny\" or another built-in device, or print a \
                     complete one with `floatgate device show tiny --toml`";

/// End of the path of the options of an external policy.
const OPTIONS: &str = ".external.options";

/// Loads a device like [`load`], from the text of a device file. Errors name the text `path`.
pub fn from_toml(text: &str, path: &str, overrides: &[String]) -> Result<DeviceConfig, ConfigError> {
    from_toml_with(&[], text, path, overrides)
}

/// Loads a device like [`from_toml`], for a program whose own policies the device may name.
pub fn from_toml_with(
    offers: &[Offer],
    text: &str,
    path: &str,
    overrides: &[String],
) -> Result<DeviceConfig, ConfigError> {
    read_all(offers, Origin::File(path.to_owned()), text, overrides)
}

fn read_all(offers: &[Offer], origin: Origin, text: &str, overrides: &[String]) -> Result<DeviceConfig, ConfigError> {
    let read = |overrides: &[String]| read_once(offers, origin.clone(), text, overrides);
    match read(overrides) {
        Err(ConfigError::Refused(problems)) if !overrides.is_empty() => {
            let problems = problems.into_iter().map(|problem| blamed(problem, read, overrides));
            Err(ConfigError::Refused(problems.collect()))
        }
        read => read,
    }
}

/// Changes the place of a problem to the overrides that cause it, if no override sets the key itself. The line of the
/// key may be in a file that the user has not written.
fn blamed(
    problem: Problem,
    read: impl Fn(&[String]) -> Result<DeviceConfig, ConfigError>,
    overrides: &[String],
) -> Problem {
    if problem.place.as_ref().is_some_and(Place::is_override) {
        return problem;
    }
    let persists = |overrides: &[String]| match read(overrides) {
        Ok(_) => false,
        Err(error) => error.problems().iter().any(|other| other.path == problem.path),
    };
    if persists(&[]) {
        return problem;
    }
    let decides = |index: &usize| {
        let others = overrides.iter().enumerate().filter(|(other, _)| other != index);
        !persists(&others.map(|(_, text)| text.clone()).collect::<Vec<_>>())
    };
    let mut causes: Vec<usize> = (0..overrides.len()).filter(decides).collect();
    if causes.is_empty() {
        causes = (0..overrides.len()).collect();
    }
    let causes: Vec<&str> = causes.into_iter().map(|index| overrides[index].as_str()).collect();
    let path = &problem.path;
    let whose = match &problem.place {
        Some(place) if place.is_of_builtin() => format!("is set in {}", place.origin),
        Some(place) => format!("is set in {place}"),
        None => "is the default".to_owned(),
    };
    let message = format!(
        "{}; {path} {whose}, and conflicts with this: change this value, or override the other with --set {path}=...",
        problem.message
    );
    Problem { path: problem.path.clone(), message, place: Some(Place::of_overrides(&causes)) }
}

/// Loads a device like [`read_all`], but leaves problems at the places of their keys, wherever those are.
fn read_once(offers: &[Offer], origin: Origin, text: &str, overrides: &[String]) -> Result<DeviceConfig, ConfigError> {
    let malformed = |problem| ConfigError::Malformed(vec![problem]);
    let overrides =
        overrides.iter().map(|text| Override::new(text)).collect::<Result<Vec<_>, _>>().map_err(malformed)?;
    let mut loader = Loader { schema: Schema::with(offers), texts: Texts::default(), problems: Vec::new() };
    let table = loader.layers(origin, text, &overrides).map_err(malformed)?;
    loader.device(table)
}

struct Loader {
    schema: Schema,
    texts: Texts,
    /// Problems found in single layers.
    problems: Vec<Problem>,
}

impl Loader {
    /// Parses all layers and merges them.
    fn layers<'t>(
        &mut self,
        origin: Origin,
        text: &'t str,
        overrides: &'t [Override<'t>],
    ) -> Result<DeTable<'t>, Problem> {
        let mut table = self.file(origin, text, &mut Vec::new())?;
        for over in overrides {
            let mut over = over.parse(&mut self.texts)?;
            self.check_sources(&mut over);
            self.merge(&mut table, over, &Origin::Override);
        }
        Ok(table)
    }

    /// Reads and checks the device in a table.
    fn device(mut self, mut table: DeTable<'_>) -> Result<DeviceConfig, ConfigError> {
        page::resolve_mapping_unit(&mut table);
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(Structure::problems(&self.schema, &self.texts, &table));
        if !problems.is_empty() {
            for problem in problems.iter_mut().filter(|problem| problem.place.is_none()) {
                problem.message = format!("{}: {}", self.texts.name(), problem.message);
            }
            return Err(ConfigError::Malformed(problems));
        }
        offered::translate(&mut table, &self.schema.offers);
        let mut device = self.read(&table).map_err(|problem| ConfigError::Malformed(vec![problem]))?;
        let problems = self.problems_of_offered(&device);
        if !problems.is_empty() {
            return Err(ConfigError::Malformed(self.placed(problems, &table)));
        }
        page::count_pages(&mut device, table_of(&mut table, "geometry").is_some_and(|g| g.contains_key("pages")))
            .map_err(|problem| ConfigError::Refused(self.placed(vec![problem], &table)))?;
        match device.check() {
            Ok(()) => {
                device.spread_sources(&leaf_paths(&table));
                Ok(device)
            }
            Err(ConfigError::Refused(problems)) => Err(ConfigError::Refused(self.placed(problems, &table))),
            Err(other) => Err(other),
        }
    }

    /// Parses a device file and merges it into its base. `names` are the built-in devices that were followed so far.
    fn file<'t>(&mut self, origin: Origin, text: &'t str, names: &mut Vec<String>) -> Result<DeTable<'t>, Problem> {
        let mut table = self.texts.parse(origin.clone(), text)?;
        self.check_sources(&mut table);
        if let (Origin::File(path), true) = (&origin, table.is_empty()) {
            return Err(Problem::new("base", format!("{path}: {EMPTY}")));
        }
        let base = table.remove("base");
        if let (Origin::File(path), false) = (&origin, table.contains_key("name")) {
            // The name of the base is not used, because a result must not be taken for one of the base.
            let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            table.insert(Spanned::new(0..0, "name".into()), Spanned::new(0..0, DeValue::String(stem.into())));
        }
        let Some(base) = base else { return Ok(table) };
        let span = base.span();
        let DeValue::String(name) = base.into_inner() else {
            return Err(self.texts.problem("base", "`base` is the name of a built-in device", span));
        };
        let Some(device) = Builtin::named(&name).filter(|device| !names.iter().any(|n| n == device.name)) else {
            let known = Builtin::names();
            let message = if names.iter().any(|n| *n == name) {
                format!("`base`: `{name}` would be based on itself")
            } else {
                format!(
                    "`base`: no built-in device is called `{name}`{}\nbuilt-in devices: {}",
                    did_you_mean(&name, &known),
                    known.join(", ")
                )
            };
            return Err(self.texts.problem("base", &message, span));
        };
        names.push(device.name.to_owned());
        if let (Origin::File(_), false) = (&origin, table.contains_key("description")) {
            // The description of the base may not apply to this device.
            let description = DeValue::String(format!("based on {name}").into());
            table.insert(Spanned::new(0..0, "description".into()), Spanned::new(0..0, description));
        }
        let mut under = self.file(Origin::Builtin(device.name.to_owned()), device.text, names)?;
        self.merge(&mut under, table, &origin);
        Ok(under)
    }

    /// Merges a layer into a device. Removes the sources of the values that the layer replaces. The source of a value
    /// of the layer is the one that the layer gives, or the layer itself.
    fn merge<'t>(&self, under: &mut DeTable<'t>, mut over: DeTable<'t>, origin: &Origin) {
        let mut paths = leaf_paths(&over);
        page::replace(under, &paths);
        paths.extend(page::following(under, &paths));
        if let Some(sources) = sources_of(under) {
            let given: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
            keep(sources, |key| !upwards(key).any(|path| given.contains(path)));
        }
        if !over.contains_key("sources") {
            let nothing = DeValue::Table(DeTable::new());
            over.insert(Spanned::new(0..0, "sources".into()), Spanned::new(0..0, nothing));
        }
        if let Some(sources) = sources_of(&mut over) {
            for path in paths {
                if !upwards(&path).any(|key| sources.contains_key(key)) {
                    let source = DeValue::String(origin.as_source().into());
                    sources.insert(Spanned::new(0..0, path.into()), Spanned::new(0..0, source));
                }
            }
        }
        merge(&self.schema, Some(self.schema.root()), under, over);
        let left = leaf_paths(under);
        if let Some(sources) = sources_of(under) {
            let covered: BTreeSet<&str> = left.iter().flat_map(|path| upwards(path)).collect();
            keep(sources, |key| covered.contains(key));
        }
    }

    /// Reports keys of `[sources]` that no device has. Later steps would drop them silently, like those of replaced
    /// values.
    fn check_sources(&mut self, over: &mut DeTable<'_>) {
        let Some(sources) = sources_of(over) else { return };
        let all = self.schema.paths();
        let known: BTreeSet<&str> = all.iter().flat_map(|path| upwards(path)).collect();
        let names: Vec<&str> = known.iter().copied().collect();
        // The schema does not have the options of external policies.
        let of_external = |key: &str| upwards(key).any(|above| known.contains(above) && above.ends_with(OPTIONS));
        let is_known = |key: &str| known.contains(key) || of_external(key);
        let unknown: Vec<_> = sources.keys().filter(|key| !is_known(key.get_ref())).collect();
        for key in unknown.iter().take(LISTED) {
            let name = shown(key.get_ref());
            let hint = did_you_mean(key.get_ref(), &names);
            let hint = if hint.is_empty() { ";".to_owned() } else { hint };
            let message = format!(
                "sources: unknown key `{name}`{hint} write the path of a key of this device in quotes, such as \
                 \"nand.read\" = \"data sheet\""
            );
            self.problems.push(self.texts.problem(&format!("sources.{name}"), &message, key.span()));
        }
        if unknown.len() > LISTED {
            self.problems.push(Problem::of_others(unknown.len() - LISTED));
        }
    }

    /// Deserializes the device.
    fn read(&self, table: &DeTable<'_>) -> Result<DeviceConfig, Problem> {
        let deserializer = toml::Deserializer::from(Spanned::new(0..0, table.clone()));
        DeviceConfig::deserialize(deserializer).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let path = path_at(table, &span).unwrap_or_default();
            let what = shortened(&self.in_words(&path, error.message())).into_owned();
            let message = if path.is_empty() { what } else { format!("`{path}`: {what}") };
            self.texts.problem(&path, &message, span)
        })
    }

    /// Returns the problems with options of the program's own policies.
    fn problems_of_offered(&self, device: &DeviceConfig) -> Vec<Problem> {
        let externals = device.externals().into_iter();
        let problem = |(path, config): (&'static str, Cow<'_, ExternalConfig>)| {
            let offered = |offer: &&Offer| (offer.path(), offer.name()) == (path, config.name.as_str());
            let what = self.schema.offers.iter().find(offered)?.check(&config.options).err()?;
            Some(Problem::new(path, format!("`{path}`: `{}`: {}", config.name, shortened(&what))))
        };
        externals.filter_map(problem).collect()
    }

    /// Rewords an error of serde without the names of Rust's types.
    fn in_words(&self, path: &str, message: &str) -> String {
        if let Some(new) = schema::new_value(path, message) {
            return format!("{message}, which is now `{new}`");
        }
        let Some(what) = message.strip_suffix("expected u32") else { return message.to_owned() };
        let node = path.split('.').try_fold(self.schema.root(), |node, key| self.schema.child(node, key));
        let least = node.and_then(|node| node["minimum"].as_u64()).unwrap_or(0);
        if what.contains("integer `") && !what.contains("`-") {
            format!("{what}expected a whole number from {least} to {}", u32::MAX)
        } else {
            format!("{what}expected a whole number, {least} or more")
        }
    }

    /// Returns the problems with the places of their keys, and the number of problems that are not listed.
    fn placed(&self, problems: Vec<Problem>, table: &DeTable<'_>) -> Vec<Problem> {
        let place = |path: &str| self.texts.place(span_of(table, path)?);
        let more = problems.len().saturating_sub(LISTED);
        let placed = |problem: Problem| Problem { place: place(&problem.path), ..problem };
        let listed = problems.into_iter().take(LISTED).map(placed);
        listed.chain((more > 0).then(|| Problem::of_others(more))).collect()
    }
}

fn sources_of<'a, 't>(table: &'a mut DeTable<'t>) -> Option<&'a mut DeTable<'t>> {
    table_of(table, "sources")
}
