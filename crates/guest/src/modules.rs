//! Kernel modules: finds them and sorts them by their dependencies.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::GuestError;

/// All modules below a directory: paths, indexed by name.
pub struct Modules(BTreeMap<String, PathBuf>);

/// Module that can be loaded.
#[derive(Debug)]
pub struct Module {
    /// Name of the module, with `_` instead of `-`.
    pub name: String,
    /// Contents of the module, decompressed.
    pub bytes: Vec<u8>,
}

impl Modules {
    /// Finds the modules of a kernel in `lib/modules/VERSION`.
    pub fn find(directory: &Path) -> Result<Modules, GuestError> {
        let mut found = BTreeMap::new();
        let mut open = vec![directory.to_owned()];
        while let Some(place) = open.pop() {
            for entry in fs::read_dir(&place).map_err(GuestError::at(&place))? {
                let path = entry.map_err(GuestError::at(&place))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    open.push(path);
                } else if let Some((module, "ko" | "ko.xz")) = name.split_once('.') {
                    found.insert(module.replace('-', "_"), path);
                }
            }
        }
        Ok(Modules(found))
    }

    /// Returns these modules and their dependencies, in an order in which they can be loaded. Modules without a file
    /// are built into the kernel.
    pub fn in_order(&self, names: &[&str]) -> Result<Vec<Module>, GuestError> {
        let mut loaded = Vec::new();
        for name in names {
            self.load(name, &mut loaded, 0)?;
        }
        Ok(loaded)
    }

    fn load(&self, name: &str, loaded: &mut Vec<Module>, depth: u32) -> Result<(), GuestError> {
        let name = name.replace('-', "_");
        let Some(path) = self.0.get(&name) else { return Ok(()) };
        if loaded.iter().any(|module| module.name == name) {
            return Ok(());
        }
        if depth > 20 {
            return Err(GuestError::Unusable(format!("the kernel module {name} depends on itself")));
        }
        let bytes = read(path)?;
        for needed in needs(&bytes) {
            self.load(&needed, loaded, depth + 1)?;
        }
        loaded.push(Module { name, bytes });
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, GuestError> {
    let bytes = fs::read(path).map_err(GuestError::at(path))?;
    if path.extension().is_none_or(|extension| extension != "xz") {
        return Ok(bytes);
    }
    let mut whole = Vec::new();
    liblzma::read::XzDecoder::new(&bytes[..]).read_to_end(&mut whole).map_err(GuestError::at(path))?;
    Ok(whole)
}

/// Returns the direct dependencies of a module: the line `depends=` of its section `.modinfo`, where lines end with a
/// NUL.
fn needs(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let line = module[at + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(line);
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(needs: &str) -> Vec<u8> {
        format!("ELF\0license=GPL\0depends={needs}\0name=x\0").into_bytes()
    }

    #[test]
    fn modules_follow_their_dependencies() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("fs")).unwrap();
        let mut packed = Vec::new();
        liblzma::read::XzEncoder::new(&module("crc-x,jbd2")[..], 1).read_to_end(&mut packed).unwrap();
        fs::write(at("fs/ext4.ko.xz"), packed).unwrap();
        fs::write(at("jbd2.ko"), module("")).unwrap();
        fs::write(at("crc-x.ko"), module("jbd2")).unwrap();
        let modules = Modules::find(directory.path()).unwrap();
        let order = modules.in_order(&["built_in", "ext4", "jbd2"]).unwrap();
        assert_eq!(order.iter().map(|module| &module.name[..]).collect::<Vec<_>>(), ["jbd2", "crc_x", "ext4"]);
        assert_eq!(order[2].bytes, module("crc-x,jbd2"));
        fs::write(at("jbd2.ko"), module("crc-x")).unwrap();
        assert!(Modules::find(directory.path()).unwrap().in_order(&["ext4"]).is_err());
    }
}
