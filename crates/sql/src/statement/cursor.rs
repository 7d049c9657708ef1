//! Walking over tokens: what is expected next, and the words for what came instead.

use crate::SqlError;
use crate::token::{Kind, Token};

/// A place among the tokens of a statement.
pub struct Cursor<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
}

/// The last part of a name with dots that begins at `at` (`sys.t` is `t`: owners are tolerated, there is one), and the
/// place behind it.
pub fn qualified(tokens: &[Token<'_>], mut at: usize) -> (Option<String>, usize) {
    let name = |at: usize| tokens.get(at).filter(|t| matches!(t.kind, Kind::Word | Kind::Quoted));
    let mut found = name(at);
    while found.is_some() && tokens.get(at + 1).is_some_and(|t| t.is_sign(".")) {
        at += 2;
        found = name(at);
    }
    (found.map(Token::unquoted), at + 1)
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str, tokens: &'a [Token<'a>]) -> Self {
        Self { text, tokens, at: 0 }
    }

    pub fn peek(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.at)
    }

    pub fn next(&mut self) -> Option<&'a Token<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Byte offset of the next token, or the end.
    pub fn offset(&self) -> usize {
        self.peek().map_or(self.text.trim_end().len(), |token| token.start)
    }

    /// Steps over these keywords when all of them come next.
    pub fn eat(&mut self, keywords: &[&str]) -> bool {
        let there =
            keywords.iter().enumerate().all(|(n, k)| self.tokens.get(self.at + n).is_some_and(|t| t.is(k)));
        if there {
            self.at += keywords.len();
        }
        there
    }

    /// Steps over one of these keywords and says which.
    pub fn eat_one(&mut self, keywords: &[&'static str]) -> Option<&'static str> {
        keywords.iter().copied().find(|keyword| self.eat(&[keyword]))
    }

    pub fn eat_sign(&mut self, sign: &str) -> bool {
        let there = self.peek().is_some_and(|t| t.is_sign(sign));
        self.at += usize::from(there);
        there
    }

    /// These keywords must come next.
    pub fn expect(&mut self, keywords: &[&str]) -> Result<(), SqlError> {
        for keyword in keywords {
            if !self.eat(&[keyword]) {
                return Err(self.expected(keyword));
            }
        }
        Ok(())
    }

    pub fn expect_sign(&mut self, sign: &str) -> Result<(), SqlError> {
        if self.eat_sign(sign) { Ok(()) } else { Err(self.expected(sign)) }
    }

    /// What was expected, and what is there.
    pub fn expected(&self, what: &str) -> SqlError {
        let found = match self.peek() {
            Some(token) => format!("found {}", token.text),
            None => "the statement ends here".into(),
        };
        SqlError::at(self.offset(), format!("expected {what}, {found}"))
    }

    /// A name; an owner before it is left out.
    pub fn name(&mut self, what: &str) -> Result<String, SqlError> {
        let (name, behind) = qualified(self.tokens, self.at);
        let name = name.ok_or_else(|| self.expected(what))?;
        self.at = behind;
        Ok(name)
    }

    /// `(a, b, c)`.
    pub fn names(&mut self, what: &str) -> Result<Vec<String>, SqlError> {
        self.expect_sign("(")?;
        let mut names = vec![self.name(what)?];
        // ASC is how keys are; DESC would be an index of another order, which we do not have.
        loop {
            self.eat(&["ASC"]);
            if self.peek().is_some_and(|t| t.is("DESC")) {
                return Err(SqlError::at(
                    self.offset(),
                    "an index has ascending keys; leave DESC out, it is also walked backwards",
                ));
            }
            if !self.eat_sign(",") {
                break;
            }
            names.push(self.name(what)?);
        }
        self.expect_sign(")")?;
        Ok(names)
    }

    /// A text in single quotes.
    pub fn quoted(&mut self, what: &str) -> Result<String, SqlError> {
        match self.peek() {
            Some(token) if token.kind == Kind::Text => {
                self.at += 1;
                Ok(token.unquoted())
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A whole number, with its sign.
    pub fn integer(&mut self, what: &str) -> Result<i64, SqlError> {
        let start = self.at;
        let minus = self.eat_sign("-");
        let number = self.peek().filter(|t| t.kind == Kind::Number).and_then(|t| t.text.parse::<i64>().ok());
        match number {
            Some(number) => {
                self.at += 1;
                Ok(if minus { -number } else { number })
            }
            None => {
                self.at = start;
                Err(self.expected(what))
            }
        }
    }

    /// `100M`, `100 M`, `8192`: bytes, letters are powers of 1024.
    pub fn bytes(&mut self) -> Result<u64, SqlError> {
        let what = "a size such as 100M";
        let place = self.offset();
        let token = self.peek().filter(|t| t.kind == Kind::Number).ok_or_else(|| self.expected(what))?;
        self.at += 1;
        let digits = token.text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let mut unit = token.text[digits.len()..].to_ascii_uppercase();
        if unit.is_empty()
            && let Some(letter) = self.eat_one(&["K", "M", "G", "T"])
        {
            unit = letter.into();
        }
        let shift = match unit.as_str() {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            "T" => 40,
            _ => return Err(SqlError::at(place, format!("expected {what}, found {}", token.text))),
        };
        let number: u64 = digits
            .parse()
            .map_err(|_| SqlError::at(place, format!("expected {what}, found {}", token.text)))?;
        number
            .checked_mul(1 << shift)
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| SqlError::at(place, format!("{} is no size that a file can have", token.text)))
    }

    /// All that is left, as a place in the text; at least one token.
    pub fn rest(&mut self, what: &str) -> Result<std::ops::Range<usize>, SqlError> {
        if self.peek().is_none() {
            return Err(self.expected(what));
        }
        let range = self.offset()..self.tokens.last().map_or(0, Token::end);
        self.at = self.tokens.len();
        Ok(range)
    }

    /// The text from `start` to the end of the last token that was stepped over.
    pub fn text_from(&self, start: usize) -> &'a str {
        let end = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(start, Token::end);
        &self.text[start..end.max(start)]
    }

    /// Nothing more may come.
    pub fn end(&self) -> Result<(), SqlError> {
        match self.peek() {
            None => Ok(()),
            Some(token) => {
                Err(SqlError::at(token.start, format!("the statement should end before {}", token.text)))
            }
        }
    }
}
