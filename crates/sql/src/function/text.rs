//! Texts: filled up, capitalised, by number.

/// LPAD, or RPAD: so many characters, filled up with `fill` or cut off. None when `fill` is empty.
pub fn pad(text: &str, length: i64, fill: &str, left: bool) -> Option<String> {
    let length = usize::try_from(length).unwrap_or(0);
    let have = text.chars().count();
    if have >= length {
        return Some(text.chars().take(length).collect());
    }
    let filling: String =
        if fill.is_empty() { return None } else { fill.chars().cycle().take(length - have).collect() };
    Some(if left { filling + text } else { text.to_owned() + &filling })
}

/// INITCAP: each word with a capital.
pub fn initcap(text: &str) -> String {
    let mut inside = false;
    let letter = |c: char| {
        let cased: String = if inside { c.to_lowercase().collect() } else { c.to_uppercase().collect() };
        inside = c.is_alphanumeric();
        cased
    };
    text.chars().map(letter).collect()
}

/// CHR.
pub fn chr(number: i64) -> Option<String> {
    u32::try_from(number).ok().and_then(char::from_u32).map(String::from)
}

/// ASCII: the number of the first character.
pub fn ascii(text: &str) -> Option<i64> {
    text.chars().next().map(|c| i64::from(u32::from(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_filled_up_and_capitalised() {
        assert_eq!(pad("süß", 5, "*-", true).as_deref(), Some("*-süß"));
        assert_eq!(pad("abc", 2, " ", false).as_deref(), Some("ab"));
        assert_eq!(pad("abc", -1, " ", false).as_deref(), Some(""));
        assert_eq!(pad("a", 2, "", false), None);
        assert_eq!(initcap("db FILE-sequential read2x"), "Db File-Sequential Read2x");
        assert_eq!((chr(65).as_deref(), ascii("Az"), ascii("")), (Some("A"), Some(65), None));
    }
}
