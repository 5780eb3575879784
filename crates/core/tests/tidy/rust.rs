//! Rust source as tokens, without comments: items, functions, calls and paths.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};

/// An identifier, a delimiter, or punctuation. `::` is one token, and a literal has no text.
pub struct Token {
    pub text: String,
    pub line: usize,
    /// Position of a literal in the source.
    literal: Option<Range<usize>>,
}

/// A path such as `crate::a::B`, or one of a tree of `use`.
#[derive(Debug, PartialEq, Eq)]
pub struct Path {
    pub line: usize,
    pub text: String,
    /// Name that a declaration gives it.
    pub alias: Option<String>,
    pub is_in_use: bool,
    pub is_re_export: bool,
}

/// Function with a body. The range of lines starts with the keyword `fn`, and ends after the closing brace.
pub struct Function {
    pub name: String,
    pub lines: Range<usize>,
    pub body: TokenStream,
}

/// Parses a file.
pub fn parse(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| panic!("{error} in:\n{text}"))
}

/// Returns the tokens of code.
pub fn tokens(code: TokenStream) -> Vec<Token> {
    let mut tokens = Vec::new();
    add_tokens(code, &mut tokens);
    tokens
}

fn add_tokens(code: TokenStream, tokens: &mut Vec<Token>) {
    let mut trees = code.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let mut add = |text: String, span: Span, literal: Option<Range<usize>>| {
            tokens.push(Token { text, line: span.start().line, literal });
        };
        match tree {
            TokenTree::Ident(name) => add(name.to_string(), name.span(), None),
            TokenTree::Literal(literal) => add(String::new(), literal.span(), Some(literal.span().byte_range())),
            TokenTree::Punct(punct) => {
                let is_colon = |tree: &TokenTree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ':');
                let is_first = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                let is_path = is_first && trees.next_if(is_colon).is_some();
                add(if is_path { "::".to_owned() } else { punct.to_string() }, punct.span(), None);
            }
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket => ["[", "]"],
                    Delimiter::Parenthesis | Delimiter::None => ["(", ")"],
                };
                add(open.to_owned(), group.span_open(), None);
                add_tokens(group.stream(), tokens);
                tokens.push(Token { text: close.to_owned(), line: group.span_close().start().line, literal: None });
            }
        }
    }
}

/// Returns the text of a token, or an empty one outside of the slice.
pub fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| token.text.as_str())
}

/// Returns code with a blank between two tokens.
fn joined(code: &[TokenTree]) -> String {
    let tokens = tokens(code.iter().cloned().collect());
    tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns the source without literals. Line numbers stay the same.
pub fn without_literals(text: &str) -> String {
    let (mut kept, mut end) = (String::with_capacity(text.len()), 0);
    // The text of a doc comment is a literal too.
    let literals = tokens(parse(text)).into_iter().filter_map(|token| token.literal);
    for literal in literals.filter(|literal| !text[literal.start..].starts_with('/')) {
        kept.push_str(&text[end..literal.start]);
        kept.extend(text[literal.clone()].chars().filter(|c| *c == '\n'));
        end = literal.end;
    }
    kept + &text[end..]
}

fn is_block(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Returns the items of a file, or the statements of a block. Each ends with a block or a `;`.
fn items(code: TokenStream) -> Vec<Vec<TokenTree>> {
    let is_end = |tree: &TokenTree| is_block(tree) || matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ';');
    Vec::from_iter(code).split_inclusive(is_end).map(<[_]>::to_vec).collect()
}

/// Start of a module of tests.
pub const TESTS: &str = "# [ cfg ( test ) ] mod ";

/// Returns a file without the items that start with one of `heads`, whose tokens are separated by blanks.
pub fn without(code: TokenStream, heads: &[&str]) -> TokenStream {
    let is_kept = |item: &Vec<TokenTree>| {
        let text = joined(&item[..item.len() - 1]) + " ";
        !heads.iter().any(|head| text.starts_with(head) || text.contains(&format!("] {head}")))
    };
    items(code).into_iter().filter(is_kept).flatten().collect()
}

/// Returns the `impl` blocks of a file with what each is for, such as `Type` or `Trait for Type`, and the other code.
pub fn impls(code: TokenStream) -> (Vec<(String, TokenStream)>, TokenStream) {
    // Attributes before it have their names in brackets.
    let start = |item: &[TokenTree]| item.iter().position(|tree| matches!(tree, TokenTree::Ident(_)));
    let is_impl = |item: &Vec<TokenTree>| start(item).is_some_and(|at| item[at].to_string() == "impl");
    let (blocks, others): (Vec<_>, Vec<_>) = items(code).into_iter().partition(is_impl);
    let block = |mut item: Vec<TokenTree>| {
        let body = item.pop().into_iter().collect();
        (joined(&item[start(&item).map_or(0, |at| at + 1)..]), body)
    };
    (blocks.into_iter().map(block).collect(), others.into_iter().flatten().collect())
}

/// Returns the functions that have a name and a body, also those inside of others.
pub fn functions(code: TokenStream) -> Vec<Function> {
    let mut found = Vec::new();
    for item in items(code) {
        let is_named =
            |pair: &[TokenTree]| matches!(pair, [TokenTree::Ident(word), TokenTree::Ident(_)] if word == "fn");
        if let (Some(at), Some(TokenTree::Group(body))) =
            (item.windows(2).position(is_named), item.last().filter(|tree| is_block(tree)))
        {
            let lines = item[at].span().start().line..body.span_close().start().line + 1;
            found.push(Function { name: item[at + 1].to_string(), lines, body: body.stream() });
        }
        for tree in item {
            if let TokenTree::Group(group) = tree {
                found.extend(functions(group.stream()));
            }
        }
    }
    found
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the functions that a body calls, each with the two tokens before its name.
pub fn calls(body: &[Token]) -> impl Iterator<Item = ([&str; 2], &str)> {
    let is_call = |at: &usize| text(body, at + 1) == "(" && text(body, *at).starts_with(in_name);
    let before = |at: usize, count: usize| text(body, at.wrapping_sub(count));
    (0..body.len()).filter(is_call).map(move |at| ([before(at, 2), before(at, 1)], text(body, at)))
}

/// Returns the paths of more than one part in code, and all that `use` declares.
pub fn paths(code: &[Token]) -> Vec<Path> {
    let (mut paths, mut at) = (Vec::new(), 0);
    while at < code.len() {
        let before = |count: usize| text(code, at.wrapping_sub(count));
        let is_in_use = before(1) == "use" && text(code, at) != "<";
        let is_path = text(code, at).starts_with(in_name) && text(code, at + 1) == "::" && before(1) != "::";
        let is_re_export = is_in_use && matches!(before(2), "pub" | ")");
        let mut found = Vec::new();
        at = if is_in_use || is_path { add_paths(code, at, "", &mut found) } else { at + 1 };
        paths.extend(found.into_iter().map(|path| Path { is_in_use, is_re_export, ..path }));
    }
    paths
}

/// Adds the path that starts at a token, or all paths of a tree of `use`, and returns the index after its end.
fn add_paths(code: &[Token], start: usize, prefix: &str, found: &mut Vec<Path>) -> usize {
    let (mut path, mut at) = (prefix.to_owned(), start);
    loop {
        if text(code, at) == "{" {
            at += 1;
            while !matches!(text(code, at), "}" | "") {
                at = add_paths(code, at, &path, found);
                at += usize::from(text(code, at) == ",");
            }
            return at + 1;
        }
        path += text(code, at);
        let next = text(code, at + 2);
        if text(code, at + 1) != "::" || !(next.starts_with(in_name) || matches!(next, "{" | "*")) {
            break;
        }
        path += "::";
        at += 2;
    }
    let alias = (text(code, at + 1) == "as").then(|| text(code, at + 2).to_owned());
    let end = if alias.is_some() { at + 3 } else { at + 1 };
    let line = code[start].line;
    found.push(Path { line, text: path, alias, is_in_use: false, is_re_export: false });
    end
}

/// Returns the groups of nodes of a graph that lead to each other, or to themselves.
pub fn circles<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached = |from: &&'a str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![*from]);
        while let Some(node) = open.pop() {
            open.extend(edges.get(node).into_iter().flatten().filter(|next| seen.insert(**next)));
        }
        (*from, seen)
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(reached).collect();
    let leads = |from: &str, to: &str| reach.get(from).is_some_and(|nodes| nodes.contains(to));
    let circle = |node: &&'a str| reach[node].iter().copied().filter(|other| leads(other, node)).collect();
    edges.keys().map(circle).filter(|circle: &BTreeSet<_>| !circle.is_empty()).collect()
}
