//! Policies of the program that loads a device, under names like those of built-in policies.
//!
//! The schema contains both kinds, so that keys are checked and names suggested for both. In the device they are
//! external policies: `victim = "coldest"` becomes `victim = { external = { name = "coldest" } }`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::external::{EXTERNAL, Offer};
use super::layer::{keep, table_of, value_at};

/// Rewrites the program's own policies in a device as external policies, and renames the keys of their sources.
pub(super) fn translate(table: &mut DeTable<'_>, offers: &[Offer]) {
    for offer in offers {
        let translated = value_at(table, offer.path()).is_some_and(|value| make_external(value, offer));
        if translated && let Some(sources) = table_of(table, "sources") {
            rename_sources(sources, offer);
        }
    }
}

/// Translates a value that names the policy. Returns `false` if it does not.
fn make_external(value: &mut Spanned<DeValue<'_>>, offer: &Offer) -> bool {
    let span = value.span();
    let options = match value.get_mut() {
        DeValue::String(name) if name == offer.name() => DeTable::new(),
        DeValue::Table(choice) => match choice.remove(offer.name()).map(Spanned::into_inner) {
            Some(DeValue::Table(options)) => options,
            _ => return false,
        },
        _ => return false,
    };
    let key = |name: &'static str| Spanned::new(span.clone(), name.into());
    let text = |text: &'static str| Spanned::new(span.clone(), DeValue::String(text.into()));
    let mut policy = DeTable::new();
    policy.insert(key("name"), text(offer.name()));
    if !offer.source().is_empty() {
        policy.insert(key("source"), text(offer.source()));
    }
    policy.insert(key("options"), Spanned::new(span.clone(), DeValue::Table(options)));
    let mut external = DeTable::new();
    external.insert(key(EXTERNAL), Spanned::new(span.clone(), DeValue::Table(policy)));
    *value.get_mut() = DeValue::Table(external);
    true
}

/// Renames the keys of a policy's sources. The source of an option becomes also that of the policy.
fn rename_sources(sources: &mut DeTable<'_>, offer: &Offer) {
    let named = format!("{}.{}", offer.path(), offer.name());
    let external = format!("{}.{EXTERNAL}", offer.path());
    let below = |key: &str| key.strip_prefix(&named).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let of_policy: Vec<_> = sources.iter().filter(|(key, _)| below(key.get_ref())).collect();
    let renamed: Vec<_> = of_policy
        .into_iter()
        .flat_map(|(key, source)| {
            let option = key.get_ref().strip_prefix(named.as_str()).filter(|rest| !rest.is_empty());
            let of_option = option.map(|rest| format!("{external}.options{rest}"));
            let new_key = |name: String| (Spanned::new(key.span(), name.into()), source.clone());
            std::iter::once(external.clone()).chain(of_option).map(new_key).collect::<Vec<_>>()
        })
        .collect();
    keep(sources, |key| !below(key));
    sources.extend(renamed);
}
