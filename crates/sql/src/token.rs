//! Words, literals and signs of a statement. Knows no grammar.

use crate::SqlError;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword without quotes; `$` and `#` may be inside, as in Oracle.
    Word,
    /// A name in double quotes, backticks or brackets.
    Quoted,
    /// A text in single quotes, or in the curved ones that word processors and blogs make of them.
    Text,
    /// A number, a letter for a size behind it included: `100M`.
    Number,
    /// `:name`, `?`, `?1`, `@name`.
    Parameter,
    /// One sign, or one of `<=`, `>=`, `<>`, `!=`, `||`, `==`.
    Sign,
}

/// A piece of a statement; blanks and comments are between tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// As it was typed, quotes included.
    pub text: &'a str,
    /// Byte offset of its begin.
    pub start: usize,
}

impl Token<'_> {
    /// Byte offset behind it.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this keyword.
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is this sign.
    pub fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// What is between the quotes, doubled quotes made single; anything else as it is.
    pub fn unquoted(&self) -> String {
        let mut letters = self.text.chars();
        match (self.kind, letters.next()) {
            (Kind::Quoted | Kind::Text, Some(open)) => {
                letters.next_back();
                let close = closing(open);
                letters.as_str().replace(&format!("{close}{close}"), &close.to_string())
            }
            _ => self.text.to_owned(),
        }
    }
}

/// The quote that ends what `open` begins.
fn closing(open: char) -> char {
    match open {
        '[' => ']',
        '‘' => '’',
        same => same,
    }
}

/// Whether a letter may begin a name.
pub fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Whether a letter may be inside a name.
pub fn in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '#')
}

/// A quote or comment that never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unended;

/// Where a comment at the begin of `rest` ends (offset in `rest`); none when no comment begins there. A block comment that
/// never ends is `Err`.
pub fn comment_end(rest: &str) -> Result<Option<usize>, Unended> {
    if rest.starts_with("--") {
        return Ok(Some(rest.find('\n').unwrap_or(rest.len())));
    }
    if let Some(inside) = rest.strip_prefix("/*") {
        return inside.find("*/").map(|at| Some(at + 4)).ok_or(Unended);
    }
    Ok(None)
}

/// Where a quote that begins `rest` ends (offset behind its last quote); none when no quote begins there. One that never
/// ends is `Err`.
pub fn quote_end(rest: &str) -> Result<Option<usize>, Unended> {
    let open = match rest.chars().next() {
        Some(c @ ('\'' | '"' | '`' | '[' | '‘')) => c,
        _ => return Ok(None),
    };
    let close = closing(open);
    let mut at = open.len_utf8();
    while let Some(found) = rest[at..].find(close) {
        at += found + close.len_utf8();
        // A doubled quote stands for one. In brackets there is no such thing.
        if close == ']' || !rest[at..].starts_with(close) {
            return Ok(Some(at));
        }
        at += close.len_utf8();
    }
    Err(Unended)
}

/// All tokens of `text`.
///
/// # Errors
/// A quote or comment that does not end, or a sign that no statement has.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, SqlError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        match comment_end(rest) {
            Ok(Some(length)) => {
                at += length;
                continue;
            }
            Ok(None) => {}
            Err(Unended) => return Err(SqlError::at(at, "this comment does not end; close it with */")),
        }
        let (kind, length) = token_at(rest, first, at)?;
        found.push(Token { kind, text: &rest[..length], start: at });
        at += length;
    }
    Ok(found)
}

/// Kind and length of the token at the begin of `rest`.
fn token_at(rest: &str, first: char, at: usize) -> Result<(Kind, usize), SqlError> {
    match quote_end(rest) {
        Ok(Some(length)) => {
            let text = matches!(first, '\'' | '‘');
            return Ok((if text { Kind::Text } else { Kind::Quoted }, length));
        }
        Ok(None) => {}
        Err(Unended) => {
            return Err(SqlError::at(
                at,
                format!("this quote does not end; close it with {}", closing(first)),
            ));
        }
    }
    if begins_name(first) {
        return Ok((Kind::Word, span(rest, in_name)));
    }
    let mut letters = rest.chars().skip(1);
    let second = letters.next();
    if first.is_ascii_digit() || (first == '.' && second.is_some_and(|c| c.is_ascii_digit())) {
        return Ok((Kind::Number, number_length(rest)));
    }
    if first == '?' || (matches!(first, ':' | '@') && second.is_some_and(in_name)) {
        return Ok((Kind::Parameter, 1 + span(&rest[1..], in_name)));
    }
    let pair =
        second.is_some_and(|c| matches!((first, c), ('<', '=' | '>') | ('>' | '!' | '=', '=') | ('|', '|')));
    Ok((Kind::Sign, if pair { 2 } else { first.len_utf8() }))
}

fn span(text: &str, inside: impl Fn(char) -> bool) -> usize {
    text.find(|c| !inside(c)).unwrap_or(text.len())
}

/// Digits, a point, an exponent with its sign, and a letter for a size.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let sign = matches!(byte, b'+' | b'-')
            && matches!(bytes[at - 1], b'e' | b'E')
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || sign) {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(Kind, &str)]) {
        let found = tokens(text).expect(text);
        let found: Vec<_> = found.iter().map(|t| (t.kind, t.text)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_may_hold_dollars_and_hashes() {
        check("v$log.GROUP#", &[(Kind::Word, "v$log"), (Kind::Sign, "."), (Kind::Word, "GROUP#")]);
        check("größe_1 [a b]", &[(Kind::Word, "größe_1"), (Kind::Quoted, "[a b]")]);
    }

    #[test]
    fn comments_are_no_tokens() {
        check(
            "a -- b ; '\n c /* d ' */ /*+ full(t) */ e",
            &[(Kind::Word, "a"), (Kind::Word, "c"), (Kind::Word, "e")],
        );
    }

    #[test]
    fn quotes_double_to_stand_for_one() {
        check("'it''s' \"a\"\"b\"", &[(Kind::Text, "'it''s'"), (Kind::Quoted, "\"a\"\"b\"")]);
        assert_eq!(tokens("'it''s'").expect("a text")[0].unquoted(), "it's");
        assert_eq!(tokens("‘curved’").expect("a text")[0].unquoted(), "curved");
    }

    #[test]
    fn numbers_and_sizes() {
        check(
            "100M 1e-3 .5 1-2",
            &[
                (Kind::Number, "100M"),
                (Kind::Number, "1e-3"),
                (Kind::Number, ".5"),
                (Kind::Number, "1"),
                (Kind::Sign, "-"),
                (Kind::Number, "2"),
            ],
        );
    }

    #[test]
    fn signs_and_parameters() {
        check(
            "a<>:b||?1",
            &[
                (Kind::Word, "a"),
                (Kind::Sign, "<>"),
                (Kind::Parameter, ":b"),
                (Kind::Sign, "||"),
                (Kind::Parameter, "?1"),
            ],
        );
    }

    #[test]
    fn what_never_ends_is_shown() {
        assert_eq!(tokens("a 'b").expect_err("open").offset, Some(2));
        assert_eq!(tokens("a /* b").expect_err("open").offset, Some(2));
    }
}
