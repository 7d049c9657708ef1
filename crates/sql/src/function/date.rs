//! Dates: read and written by a format, moved, cut off.

use engine::Value;

/// `sysdate()` and `sysdate(days)`: the moment moved by days. `unix_seconds` is now.
pub fn sysdate(unix_seconds: u64, days: f64) -> String {
    let moved = unix_seconds as f64 + (days * 86_400.0).round();
    // Before 1970 there is nothing to ask for here; as a cast, negative becomes 0.
    let text = units::clock::utc_at(moved as u64);
    text.trim_end_matches('Z').replace('T', " ")
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
pub fn date_text(date: &str, format: &str) -> Result<String, String> {
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

/// The parts of a format: names of parts, and what stands between them.
const PARTS: [&str; 11] = ["YYYY", "MONTH", "HH24", "HH12", "MON", "YY", "MM", "MI", "DD", "HH", "SS"];

/// TO_DATE and TO_TIMESTAMP: a text by a format; without one, a date as we write it.
///
/// # Errors
/// It does not look so.
pub fn to_date(text: &str, format: Option<&str>) -> Result<String, String> {
    let wrong = || format!("'{text}' is no date{}", format.map_or(String::new(), |f| format!(" like {f}")));
    let Some(mut format) = format else {
        return Date::read(text).map(|date| date.to_text()).ok_or_else(wrong);
    };
    let mut date = Date { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0 };
    let mut rest = text.trim();
    while let Some(first) = format.chars().next() {
        let upper = format.to_ascii_uppercase();
        let Some(part) = PARTS.iter().find(|part| upper.starts_with(*part)) else {
            // What stands between may be any sign, as in Oracle.
            format = &format[first.len_utf8()..];
            rest = rest.strip_prefix(|c: char| !c.is_alphanumeric()).unwrap_or(rest);
            continue;
        };
        format = &format[part.len()..];
        rest = date.take(part, rest).ok_or_else(wrong)?;
    }
    let date = if rest.is_empty() { Date::read(&date.to_text()) } else { None };
    date.map(|date| date.to_text()).ok_or_else(wrong)
}

/// TRUNC of a date: everything below the unit is at its least.
pub fn trunc(value: &Value, unit: &str) -> Result<Value, String> {
    let text = match value {
        Value::Null => return Ok(Value::Null),
        Value::Text(text) => text,
        other => return Err(format!("TRUNC of {other:?} by a unit")),
    };
    let mut date = Date::read(text).ok_or_else(|| format!("'{text}' is neither a number nor a date"))?;
    let below = match unit.to_ascii_uppercase().as_str() {
        "Q" => {
            date.month = (date.month - 1) / 3 * 3 + 1;
            4
        }
        "YYYY" | "YEAR" | "YY" | "Y" => 5,
        "MM" | "MONTH" | "MON" => 4,
        "DD" | "DDD" | "J" => 3,
        "HH" | "HH24" | "HH12" => 2,
        "MI" => 1,
        _ => return Err(format!("{unit} is no unit here; there are YYYY Q MM DD HH24 MI")),
    };
    let parts = [&mut date.second, &mut date.minute, &mut date.hour, &mut date.day, &mut date.month];
    for (at, part) in parts.into_iter().take(below).enumerate() {
        *part = u32::from(at >= 3);
    }
    Ok(Value::Text(date.to_text()))
}

/// ADD_MONTHS: the last day of a month stays the last day, and a day that the new month has not becomes its last.
///
/// # Errors
/// No date; outside the years 1 to 9999.
pub fn add_months(text: &str, months: i64) -> Result<String, String> {
    let mut date = Date::read(text).ok_or_else(|| format!("'{text}' is no date"))?;
    let was_last = date.day >= date.last_day();
    let moved = i64::from(date.year * 12 + date.month - 1).saturating_add(months);
    let year = u32::try_from(moved.div_euclid(12)).ok().filter(|year| (1..=9999).contains(year));
    date.year = year.ok_or_else(|| format!("{months} months from '{text}' is no date"))?;
    date.month = moved.rem_euclid(12) as u32 + 1;
    date.day = if was_last { date.last_day() } else { date.day.min(date.last_day()) };
    Ok(date.to_text())
}

/// LAST_DAY of the month, at the same time of day.
///
/// # Errors
/// No date.
pub fn last_day(text: &str) -> Result<String, String> {
    let mut date = Date::read(text).ok_or_else(|| format!("'{text}' is no date"))?;
    date.day = date.last_day();
    Ok(date.to_text())
}

impl Date {
    /// Of its month.
    fn last_day(&self) -> u32 {
        let leap =
            self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    fn to_text(&self) -> String {
        let Self { year, month, day, hour, minute, second } = self;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }

    /// Reads one part from the begin of `text`; what is left.
    fn take<'a>(&mut self, part: &str, text: &'a str) -> Option<&'a str> {
        if matches!(part, "MONTH" | "MON") {
            let word = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
            let upper = text[..word].to_ascii_uppercase();
            let fits = |name: &&str| upper.len() >= 3 && name.starts_with(&upper);
            self.month = MONTHS.iter().position(fits)? as u32 + 1;
            return Some(&text[word..]);
        }
        let most = if part == "YYYY" { 4 } else { 2 };
        let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number: u32 = text[..length].parse().ok()?;
        *match part {
            "YYYY" | "YY" => &mut self.year,
            "MM" => &mut self.month,
            "DD" => &mut self.day,
            "MI" => &mut self.minute,
            "SS" => &mut self.second,
            _ => &mut self.hour,
        } = if part == "YY" { 2000 + number } else { number };
        Some(&text[length..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_dates() {
        let check = |text: &str, format: Option<&str>, expected: Option<&str>| {
            assert_eq!(to_date(text, format).ok().as_deref(), expected, "{text} {format:?}");
        };
        check("2026-11-21", None, Some("2026-11-21 00:00:00"));
        check("21.11.2026 9:05", Some("DD.MM.YYYY HH24:MI"), Some("2026-11-21 09:05:00"));
        check("21-nov-26", Some("DD-MON-YY"), Some("2026-11-21 00:00:00"));
        check("20261121093000", Some("YYYYMMDDHH24MISS"), Some("2026-11-21 09:30:00"));
        check("2026-13-01", Some("YYYY-MM-DD"), None);
        check("2026-11-21 x", Some("YYYY-MM-DD"), None);
        check("soon", None, None);
    }

    #[test]
    fn dates_are_cut_off() {
        let at = Value::Text("2026-11-21 15:04:09".into());
        let check = |unit: &str, expected: &str| {
            assert_eq!(trunc(&at, unit), Ok(Value::Text(expected.into())), "{unit}");
        };
        check("dd", "2026-11-21 00:00:00");
        check("MM", "2026-11-01 00:00:00");
        check("yyyy", "2026-01-01 00:00:00");
        check("MI", "2026-11-21 15:04:00");
        check("Q", "2026-10-01 00:00:00");
        assert!(trunc(&at, "IW").is_err());
    }

    #[test]
    fn moments_move_by_days() {
        assert_eq!(sysdate(951_782_400, 0.0), "2000-02-29 00:00:00");
        assert_eq!(sysdate(951_782_400, -5.0 / 1440.0), "2000-02-28 23:55:00");
    }

    #[test]
    fn months_are_added() {
        let check = |text: &str, months: i64, expected: &str| {
            assert_eq!(add_months(text, months).as_deref(), Ok(expected), "{text} {months}");
        };
        check("2026-01-31", 1, "2026-02-28 00:00:00");
        check("2024-02-29 12:30:00", 12, "2025-02-28 12:30:00");
        check("2025-02-28", 12, "2026-02-28 00:00:00");
        check("2023-02-28", 12, "2024-02-29 00:00:00");
        check("2026-03-15", -3, "2025-12-15 00:00:00");
        assert!(add_months("2026-03-15", i64::MAX).is_err());
        assert_eq!(last_day("2000-02-01 10:00:00").as_deref(), Ok("2000-02-29 10:00:00"));
        assert_eq!(last_day("1900-02-01").as_deref(), Ok("1900-02-28 00:00:00"));
        assert!(last_day("soon").is_err());
    }
}
