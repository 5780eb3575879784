//! Paths of keys, such as `gc.soft_threshold`.

/// Keys about the device file rather than the device.
pub(super) const ABOUT: [&str; 5] = ["base", "name", "version", "description", "sources"];

/// Returns `a.b`, or `b` at the top level.
pub(super) fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

/// Returns a path and its ancestors: `a.b.c`, `a.b` and `a`.
pub(super) fn upwards(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('.').map(|(above, _)| above))
}

/// Returns `true` if `path` is `key` or below it.
pub(super) fn covers(key: &str, path: &str) -> bool {
    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
