//! Lines of text without a request.

pub(super) fn is_empty(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
        || line.starts_with(b"#")
        || line.starts_with(b";")
        || line.starts_with(b"//")
}

/// Returns `true` if an unreadable line is acceptable: it is empty, a comment, or a header. A header is a line in which
/// no field starts like a number, and must be the first line with content (`first`).
pub(super) fn holds_nothing(line: &[u8], first: bool) -> bool {
    let numeric = |field: &[u8]| field.first().is_some_and(|byte| byte.is_ascii_digit() || b"+-.".contains(byte));
    let is_text = |field: &[u8]| field.iter().all(|byte| !byte.is_ascii_control() && *byte < 0x80);
    let is_header = || {
        let mut fields = line.split(|byte| b", \t".contains(byte)).filter(|field| !field.is_empty());
        fields.all(|field| is_text(field) && !numeric(field))
    };
    is_empty(line) || (first && is_header())
}
