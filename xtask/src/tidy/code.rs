//! Rust source with its comments and texts blanked out, so that rules see code only.

/// Same length and lines as `source`; comments, string and character literals become spaces.
///
/// Understands nested block comments, raw strings and lifetimes; that is all of the grammar that the rules need.
pub fn only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !word_before(bytes, at) => raw_end(bytes, at).unwrap_or(at),
            b'\'' => char_end(bytes, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            at += 1;
            continue;
        }
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("whole literals were blanked, so every character is still whole")
}

fn word_before(bytes: &[u8], at: usize) -> bool {
    // `br"…"` is a raw string as well, and its `b` is no word.
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') && bytes[at - 1] != b'b'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n)
}

fn comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// End of a raw string that starts at `at`; `None` when it is only a word with an r.
fn raw_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&b| b == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let rest = &bytes[open + 1..];
    Some(
        rest.windows(close.len())
            .position(|w| w == close)
            .map_or(bytes.len(), |n| open + 1 + n + close.len()),
    )
}

/// End of a character literal; `None` for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    let text = std::str::from_utf8(&bytes[at + 1..bytes.len().min(at + 14)]).unwrap_or_else(|e| {
        std::str::from_utf8(&bytes[at + 1..at + 1 + e.valid_up_to()]).unwrap_or_default()
    });
    let mut characters = text.char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        // The character behind the backslash may be a quote itself.
        characters.next()?;
        return characters.find(|&(_, c)| c == '\'').map(|(n, _)| at + 1 + n + 1);
    }
    let (n, second) = characters.next()?;
    (second == '\'').then_some(at + 1 + n + 1)
}

#[cfg(test)]
mod tests {
    use super::only;

    fn check(source: &str, code: &str) {
        assert_eq!(only(source).split_whitespace().collect::<Vec<_>>().join(" "), code, "{source}");
        assert_eq!(only(source).len(), source.len());
    }

    #[test]
    fn leaves_code_alone() {
        check("let a = 1; // print!()", "let a = 1;");
        check("a /* b /* c */ d */ e", "a e");
        check(r#"f("x \" y", g)"#, "f( , g)");
        check(r##"f(r#"a "quoted" word"#, br"raw", b)"##, "f( , b , b)");
        check(r"m('\'', 'x', '→', '\u{1F600}') + b", "m( , , , ) + b");
        check("fn f<'a>(x: &'a str) -> &'a str { x }", "fn f<'a>(x: &'a str) -> &'a str { x }");
        check("let for_r = r; \"a\nb\"", "let for_r = r;");
    }
}
