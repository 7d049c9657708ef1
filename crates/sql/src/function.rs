//! What Oracle's functions compute. Pure: values in, a value or words out; the moment is given by the caller.
//!
//! A date is a text `YYYY-MM-DD HH:MM:SS`, as SQLite's own date functions take and give it.

use engine::Value;

/// NVL.
pub fn nvl(value: Value, instead: Value) -> Value {
    if value == Value::Null { instead } else { value }
}

/// DECODE: `DECODE(x, a, A, b, B, otherwise)`; here NULL equals NULL.
///
/// # Errors
/// Fewer than three values.
pub fn decode(values: &[Value]) -> Result<Value, String> {
    let [value, pairs @ ..] = values else { return Err("DECODE needs at least three values".into()) };
    if pairs.len() < 2 {
        return Err("DECODE needs at least three values".into());
    }
    let mut pairs = pairs.chunks_exact(2);
    let found = pairs.by_ref().find(|pair| same(&pair[0], value)).map(|pair| pair[1].clone());
    Ok(found.or_else(|| pairs.remainder().first().cloned()).unwrap_or(Value::Null))
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Integer(a), Value::Real(b)) | (Value::Real(b), Value::Integer(a)) => *a as f64 == *b,
        _ => a == b,
    }
}

/// `sysdate()` and `sysdate(days)`: the moment moved by days. `unix_seconds` is now.
pub fn sysdate(unix_seconds: u64, days: f64) -> String {
    let moved = unix_seconds as f64 + (days * 86_400.0).round();
    // Before 1970 there is nothing to ask for here; as a cast, negative becomes 0.
    let text = units::clock::utc_at(moved as u64);
    text.trim_end_matches('Z').replace('T', " ")
}

/// TO_CHAR of anything, with a format or without.
///
/// # Errors
/// A format that is not understood.
pub fn to_char(value: &Value, format: Option<&str>) -> Result<Value, String> {
    let text = match (value, format) {
        (Value::Null, _) => return Ok(Value::Null),
        (Value::Integer(number), None) => number.to_string(),
        (Value::Real(number), None) => number.to_string(),
        (Value::Text(text), None) => text.clone(),
        (Value::Integer(number), Some(format)) => number_text(*number as f64, format)?,
        (Value::Real(number), Some(format)) => number_text(*number, format)?,
        (Value::Text(text), Some(format)) => match text.trim().parse() {
            Ok(number) => number_text(number, format)?,
            Err(_) => date_text(text, format)?,
        },
        (Value::Blob(_), _) => return Err("TO_CHAR takes no blob".into()),
    };
    Ok(Value::Text(text))
}

/// A number by a format of 9, 0, comma (G), point (D) and FM. Too large for it: `#` all over, as Oracle does.
fn number_text(number: f64, format: &str) -> Result<String, String> {
    let upper = format.to_ascii_uppercase().replace('G', ",").replace('D', ".");
    let fill = !upper.starts_with("FM");
    let mask = upper.trim_start_matches("FM");
    if mask.is_empty()
        || !mask.chars().all(|c| matches!(c, '9' | '0' | ',' | '.'))
        || mask.matches('.').count() > 1
    {
        return Err(format!("{format} is no number format here; there are 9 0 , . G D FM"));
    }
    let (whole_mask, part_mask) = mask.split_once('.').unwrap_or((mask, ""));
    let rounded = format!("{:.*}", part_mask.len(), number.abs());
    let (whole, part) = rounded.split_once('.').unwrap_or((rounded.as_str(), ""));
    let whole = if whole == "0" && !whole_mask.contains('0') && !part_mask.is_empty() { "" } else { whole };
    let places = whole_mask.chars().filter(|&c| c != ',').count();
    if whole.len() > places {
        return Ok("#".repeat(mask.len() + 1));
    }
    let mut digits = whole.chars().rev();
    // From the first 0 of the format on, places without a digit are written as 0.
    let least = whole_mask.find('0').map_or(0, |at| whole_mask[at..].chars().filter(|&c| c != ',').count());
    let mut out = String::new();
    let mut written = 0;
    for sign in whole_mask.chars().rev() {
        if sign == ',' {
            if written < whole.len() || written < least {
                out.push(',');
            } else if fill {
                out.push(' ');
            }
            continue;
        }
        match digits.next() {
            Some(digit) => out.push(digit),
            None if written < least => out.push('0'),
            None if fill => out.push(' '),
            None => {}
        }
        written += 1;
    }
    let body: String = out.chars().rev().collect();
    let minus = number < 0.0 && rounded.bytes().any(|b| b.is_ascii_digit() && b != b'0');
    let blanks = body.len() - body.trim_start().len();
    let sign = if minus {
        "-"
    } else if fill {
        " "
    } else {
        ""
    };
    let point = if part_mask.is_empty() { String::new() } else { format!(".{part}") };
    Ok(format!("{}{sign}{}{point}", &body[..blanks], &body[blanks..]))
}

const MONTHS: [&str; 12] = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
];

/// A date by a format.
fn date_text(date: &str, format: &str) -> Result<String, String> {
    let date = Date::read(date).ok_or_else(|| format!("'{date}' is neither a number nor a date"))?;
    let mut out = String::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').ok_or("a quote in the format does not end")?;
            out.push_str(&quoted[..end]);
            rest = &quoted[end + 1..];
            continue;
        }
        let upper = rest.to_ascii_uppercase();
        // Longest first: MONTH before MON before MM, HH24 before HH.
        let names = ["YYYY", "MONTH", "HH24", "HH12", "MON", "YY", "MM", "MI", "DD", "HH", "SS", "AM", "PM"];
        if let Some(name) = names.iter().find(|name| upper.starts_with(*name)) {
            out.push_str(&date.part(name));
            rest = &rest[name.len()..];
        } else if first.is_alphanumeric() {
            return Err(format!("{format} is no date format here; there are {}", names.join(" ")));
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(out)
}

struct Date {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl Date {
    /// `YYYY-MM-DD`, with ` HH:MM:SS` or `THH:MM:SSZ` behind it or not.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('Z');
        let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
        let numbers = |text: &str, sign| -> Option<Vec<u32>> {
            text.split(sign).map(|part: &str| part.split('.').next()?.parse().ok()).collect()
        };
        let [year, month, day] = numbers(day, '-')?[..] else { return None };
        let [hour, minute, second] = numbers(time, ':')?[..] else { return None };
        let fits =
            (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
        fits.then_some(Self { year, month, day, hour, minute, second })
    }

    fn part(&self, name: &str) -> String {
        let month = MONTHS[self.month as usize - 1];
        let hour12 = (self.hour + 11) % 12 + 1;
        match name {
            "YYYY" => format!("{:04}", self.year),
            "YY" => format!("{:02}", self.year % 100),
            "MONTH" => format!("{month:<9}"),
            "MON" => month[..3].into(),
            "MM" => format!("{:02}", self.month),
            "DD" => format!("{:02}", self.day),
            "HH24" => format!("{:02}", self.hour),
            "HH" | "HH12" => format!("{hour12:02}"),
            "MI" => format!("{:02}", self.minute),
            "SS" => format!("{:02}", self.second),
            _ => if self.hour < 12 { "AM" } else { "PM" }.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value, format: Option<&str>, expected: Result<&str, &str>) {
        match (to_char(&value, format), expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found, Value::Text(expected.into()), "{value:?} {format:?}")
            }
            (Err(found), Err(words)) => assert!(found.contains(words), "{found}"),
            (found, _) => panic!("{value:?} {format:?}: {found:?}"),
        }
    }

    #[test]
    fn numbers_as_text() {
        check(Value::Integer(851_968), None, Ok("851968"));
        check(Value::Integer(1_234_567), Some("999,999,999"), Ok("   1,234,567"));
        check(Value::Integer(-12), Some("FM999,990.00"), Ok("-12.00"));
        check(Value::Real(0.5), Some("990.00"), Ok("   0.50"));
        check(Value::Real(0.5), Some("FM999.9"), Ok(".5"));
        check(Value::Integer(1000), Some("99"), Ok("###"));
        check(Value::Integer(7), Some("FM000"), Ok("007"));
        check(Value::Integer(7), Some("L99"), Err("no number format"));
    }

    #[test]
    fn dates_as_text() {
        let at = || Value::Text("2026-11-21 15:04:09".into());
        check(at(), Some("DD-MON-YY hh:mi:ss PM"), Ok("21-NOV-26 03:04:09 PM"));
        check(at(), Some("yyyy\"Y\"mm hh24"), Ok("2026Y11 15"));
        check(at(), Some("Q"), Err("no date format"));
        check(Value::Text("soon".into()), Some("YYYY"), Err("neither a number nor a date"));
    }

    #[test]
    fn moments_move_by_days() {
        assert_eq!(sysdate(951_782_400, 0.0), "2000-02-29 00:00:00");
        assert_eq!(sysdate(951_782_400, -5.0 / 1440.0), "2000-02-28 23:55:00");
    }

    #[test]
    fn decode_and_nvl() {
        let [one, two, text] = [Value::Integer(1), Value::Real(2.0), Value::Text("a".into())];
        assert_eq!(nvl(Value::Null, one.clone()), one);
        let found = decode(&[Value::Integer(2), one.clone(), Value::Null, two.clone(), text.clone()]);
        assert_eq!(found, Ok(text.clone()));
        assert_eq!(decode(&[Value::Null, Value::Null, text.clone()]), Ok(text.clone()));
        assert_eq!(decode(&[one.clone(), two.clone(), one.clone(), text.clone()]), Ok(text));
        assert_eq!(decode(&[one.clone(), two.clone(), one.clone()]), Ok(Value::Null));
        assert!(decode(&[one.clone(), two]).is_err());
    }
}
