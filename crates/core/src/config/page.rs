//! What follows from the size of a page: the pages of a block of so many bytes, and a mapping unit of a page.
//!
//! Both are resolved when a device is loaded, so that the rest of the simulator knows pages and bytes only, and a
//! device written either way is the same.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::DeviceConfig;
use super::error::Problem;
use super::layer::table_of;

const PAGES: &str = "geometry.pages";
const BLOCK_SIZE: &str = "geometry.block_size";

/// Of the number of pages and the size of a block, a layer that has one replaces the other.
pub(super) fn replace(under: &mut DeTable<'_>, written: &[String]) {
    let Some(geometry) = table_of(under, "geometry") else { return };
    for (path, other) in [(PAGES, "block_size"), (BLOCK_SIZE, "pages")] {
        if written.iter().any(|written| written == path) {
            geometry.remove(other);
        }
    }
}

/// A mapping unit of `"page"` becomes the size of the page.
pub(super) fn put_in_units(table: &mut DeTable<'_>) {
    let Some(geometry) = table_of(table, "geometry") else { return };
    let Some(size) = geometry.get("page_size").map(|size| size.get_ref().clone()) else { return };
    if let Some(unit) = geometry.get_mut("mapping_unit")
        && matches!(unit.get_ref(), DeValue::String(text) if text == "page")
    {
        *unit = Spanned::new(unit.span(), size);
    }
}

/// Where a device says how large its blocks are, their pages are counted. `both`: it says how many there are, too.
pub(super) fn count_pages(device: &mut DeviceConfig, both: bool) -> Result<(), Problem> {
    let geometry = &mut device.geometry;
    let Some(block) = geometry.block_size.take() else { return Ok(()) };
    let problem = |what: String| Err(Problem::new(BLOCK_SIZE, format!("{BLOCK_SIZE} = {block}: {what}")));
    if both {
        return problem(format!("give it or {PAGES}, not both: the one follows from the other"));
    }
    let page = geometry.page_size.0;
    if page == 0 {
        return Ok(()); // What is wrong is the page: the checks say so.
    }
    if block.0 == 0 || !block.0.is_multiple_of(page) {
        return problem(format!("must be whole pages of geometry.page_size = {}", geometry.page_size));
    }
    let Ok(pages) = u32::try_from(block.0 / page) else {
        return problem(format!("{} pages of geometry.page_size = {}: too many", block.0 / page, geometry.page_size));
    };
    geometry.pages = pages;
    Ok(())
}

/// The paths of figures that were written, as those that they are once resolved.
pub(super) fn written(paths: Vec<String>) -> Vec<String> {
    paths.into_iter().map(|path| if path == BLOCK_SIZE { PAGES.to_owned() } else { path }).collect()
}
