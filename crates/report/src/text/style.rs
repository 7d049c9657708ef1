//! Colour and layout of plain text: ANSI codes only when asked for, alignment by characters.

use stats::verdict::Verdict;

/// How to emphasise. Colour never carries meaning alone: every verdict has its sign and its word.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Whether ANSI codes are written.
    pub color: bool,
}

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// The first sentence, titles.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What may be skipped, and what is withdrawn.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Blue is better, orange-yellow is worse: told apart by all kinds of colour vision.
    pub fn verdict(self, verdict: Option<Verdict>, text: &str) -> String {
        match verdict {
            Some(Verdict::Better) => self.wrap("1;34", text),
            Some(Verdict::Worse) => self.wrap("33", text),
            Some(Verdict::Same) => text.to_owned(),
            Some(Verdict::Unknown) | None => self.dim(text),
        }
    }

    /// A wait class, by its number among the 256 colours; its sign says the same.
    pub fn class(self, colour: u8, text: &str) -> String {
        self.wrap(&format!("38;5;{colour}"), text)
    }

    /// A failed rule.
    pub fn alarm(self, text: &str) -> String {
        self.wrap("1;33", text)
    }
}

/// The verdict's sign.
pub fn sign(verdict: Option<Verdict>) -> char {
    match verdict {
        Some(Verdict::Better) => '▲',
        Some(Verdict::Worse) => '▼',
        Some(Verdict::Same) => '=',
        Some(Verdict::Unknown) => '?',
        None => '–',
    }
}

/// Without control characters: a path in a record must not be able to steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Characters of `text`; every character that reports use is one column wide.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// `text` with blanks behind it, cut with `…` when it is too long.
pub fn left(text: &str, columns: usize) -> String {
    let cut = cut(text, columns);
    format!("{cut}{}", " ".repeat(columns.saturating_sub(width(&cut))))
}

/// `text` with blanks before it, cut when it is too long.
pub fn right(text: &str, columns: usize) -> String {
    let cut = cut(text, columns);
    format!("{}{cut}", " ".repeat(columns.saturating_sub(width(&cut))))
}

/// `text`, cut with `…` when it is too long.
pub fn cut(text: &str, columns: usize) -> String {
    let text = &clean(text);
    if width(text) <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// `text` in lines of at most `columns`, each after `indent` blanks; the first line begins with `first`.
pub fn fold(text: &str, columns: usize, first: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in clean(text).split([' ', '\n']).filter(|word| !word.is_empty()) {
        if !empty && width(&line) + 1 + width(word) > columns {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_and_folds() {
        assert_eq!(left("ab", 4), "ab  ");
        assert_eq!(right("µs", 4), "  µs");
        assert_eq!(left("abcdef", 4), "abc…");
        assert_eq!(left("a\x1b[2J", 5), "a\u{fffd}[2J");
        assert_eq!(fold("one two three", 9, "¹ ", 2), "¹ one two\n  three\n");
        assert_eq!(Paint { color: false }.bold("x"), "x");
        assert_eq!(Paint { color: true }.bold("x"), "\x1b[1mx\x1b[0m");
    }
}
