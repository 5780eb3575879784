//! Values that follow from the page size: the number of pages in a block of given size, and a mapping unit of one page.
//!
//! Both are resolved when a device is loaded. The rest of the simulator knows only numbers of pages and bytes, and both
//! ways to write a device give the same device.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::DeviceConfig;
use super::error::Problem;
use super::layer::table_of;

const PAGES: &str = "geometry.pages";
const BLOCK_SIZE: &str = "geometry.block_size";

/// Removes the number of pages or the block size if a layer gives the other one.
pub(super) fn replace(under: &mut DeTable<'_>, written: &[String]) {
    let Some(geometry) = table_of(under, "geometry") else { return };
    for (path, other) in [(PAGES, "block_size"), (BLOCK_SIZE, "pages")] {
        if written.iter().any(|written| written == path) {
            geometry.remove(other);
        }
    }
}

/// Replaces a mapping unit of `"page"` by the page size.
pub(super) fn resolve_mapping_unit(table: &mut DeTable<'_>) {
    let Some(geometry) = table_of(table, "geometry") else { return };
    let Some(size) = geometry.get("page_size").map(|size| size.get_ref().clone()) else { return };
    if let Some(unit) = geometry.get_mut("mapping_unit")
        && matches!(unit.get_ref(), DeValue::String(text) if text == "page")
    {
        *unit = Spanned::new(unit.span(), size);
    }
}

/// Computes the number of pages from the block size, if there is one. `both`: the device also gives the number of
/// pages.
pub(super) fn count_pages(device: &mut DeviceConfig, both: bool) -> Result<(), Problem> {
    let geometry = &mut device.geometry;
    let Some(block) = geometry.block_size.take() else { return Ok(()) };
    let problem = |what: String| Err(Problem::new(BLOCK_SIZE, format!("{BLOCK_SIZE} = {block}: {what}")));
    if both {
        return problem(format!("give either it or {PAGES}: one follows from the other"));
    }
    let page = geometry.page_size.0;
    if page == 0 {
        return Ok(()); // The page size is wrong, which the checks report.
    }
    if block.0 == 0 || !block.0.is_multiple_of(page) {
        return problem(format!("must be whole pages of geometry.page_size = {}", geometry.page_size));
    }
    let Ok(pages) = u32::try_from(block.0 / page) else {
        return problem(format!("too many pages: {} of geometry.page_size = {}", block.0 / page, geometry.page_size));
    };
    geometry.pages = pages;
    Ok(())
}

/// Returns the keys of a device whose values change because a layer gives another page size.
pub(super) fn following(under: &mut DeTable<'_>, written: &[String]) -> Vec<String> {
    let gives_size = written.iter().any(|path| path == "geometry.page_size");
    let Some(geometry) = table_of(under, "geometry").filter(|_| gives_size) else { return Vec::new() };
    let follows = |key: &str| match geometry.get(key).map(|value| value.get_ref()) {
        Some(DeValue::String(text)) => key == "block_size" || text == "page",
        Some(_) => key == "block_size",
        None => false,
    };
    let keys = ["block_size", "mapping_unit"].into_iter().filter(|key| follows(key));
    let keys = keys.map(|key| format!("geometry.{key}"));
    keys.filter(|path| !written.contains(path)).collect()
}

/// Returns the path of a key that was written, with the name that the key has once it is resolved.
pub(super) fn resolved(path: &str) -> &str {
    if path == BLOCK_SIZE { PAGES } else { path }
}
