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

/// INSTR: where the `nth` occurrence of `part` begins, in characters from 1, searched from `from` on; backwards from the
/// end when `from` is negative. 0 when there is none.
///
/// # Errors
/// `nth` below 1 (ORA-01428).
pub fn instr(text: &str, part: &str, from: i64, nth: i64) -> Result<i64, String> {
    let Some(skipped) = usize::try_from(nth).ok().and_then(|nth| nth.checked_sub(1)) else {
        return Err(format!("INSTR counts occurrences from 1, not {nth}"));
    };
    let (text, part): (Vec<char>, Vec<char>) = (text.chars().collect(), part.chars().collect());
    let begins = |&at: &usize| text[at..].starts_with(&part);
    let (count, away) = (text.len(), usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX));
    let found = match from {
        0 => None,
        1.. => (away - 1..count).filter(begins).nth(skipped),
        _ => count.checked_sub(away).and_then(|last| (0..=last).rev().filter(begins).nth(skipped)),
    };
    Ok(found.filter(|_| !part.is_empty()).map_or(0, |at| at as i64 + 1))
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

    #[test]
    fn parts_are_found_from_either_end() {
        let check = |from, nth, expected| {
            assert_eq!(instr("CORPORATE FLOOR", "OR", from, nth), Ok(expected), "{from} {nth}");
        };
        check(1, 1, 2);
        check(3, 2, 14);
        check(-3, 2, 2);
        check(-1, 1, 14);
        check(1, 4, 0);
        check(0, 1, 0);
        check(99, 1, 0);
        check(-99, 1, 0);
        assert_eq!(instr("süß/süß.dbf", "/", -1, 1), Ok(4));
        assert!(instr("a", "a", 1, 0).is_err());
    }
}
