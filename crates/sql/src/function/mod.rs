//! What Oracle's functions compute. Pure: values in, a value or words out; the moment is given by the caller.
//!
//! A date is a text `YYYY-MM-DD HH:MM:SS`, as SQLite's own date functions take and give it. Here are those for any value;
//! `number`, `text` and `date` have theirs, `aggregate` those over many rows.

pub mod aggregate;
mod date;
mod number;
mod text;

pub use date::{add_months, last_day, sysdate, to_date};
pub use number::{arithmetic, round, to_number, trunc, whole_or_real};
pub use text::{ascii, chr, initcap, instr, pad};

use date::date_text;
use engine::Value;
use engine::btree::encode_key;
use number::number_text;

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

/// GREATEST, or LEAST: in the order of an index; NULL when one of them is NULL.
pub fn extreme(values: Vec<Value>, greatest: bool) -> Value {
    if values.contains(&Value::Null) {
        return Value::Null;
    }
    let key = |value: &Value| encode_key(std::slice::from_ref(value));
    let found =
        if greatest { values.into_iter().max_by_key(key) } else { values.into_iter().min_by_key(key) };
    found.unwrap_or(Value::Null)
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

    #[test]
    fn extremes() {
        let values = || vec![Value::Integer(2), Value::Real(2.5), Value::Integer(-1)];
        assert_eq!(extreme(values(), true), Value::Real(2.5));
        assert_eq!(extreme(values(), false), Value::Integer(-1));
        assert_eq!(extreme(vec![Value::Integer(1), Value::Null], true), Value::Null);
    }
}
