//! Numbers: as text by a format, cut off, and what SQLite is built without.

use super::date;
use engine::Value;

/// A number by a format of 9, 0, comma (G), point (D) and FM. Too large for it: `#` all over, as Oracle does.
pub fn number_text(number: f64, format: &str) -> Result<String, String> {
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

/// TO_NUMBER. Without a format: plain digits, a point, a sign, an exponent; with one, its commas are taken out.
///
/// # Errors
/// It is no number.
pub fn to_number(value: &Value, format: Option<&str>) -> Result<Value, String> {
    let text = match value {
        Value::Text(text) => text,
        Value::Blob(_) => return Err("TO_NUMBER takes no blob".into()),
        other => return Ok(other.clone()),
    };
    let plain = if format.is_some() { text.replace([',', ' ', '$'], "") } else { text.trim().to_owned() };
    match (plain.parse::<i64>(), plain.parse::<f64>()) {
        (Ok(number), _) => Ok(Value::Integer(number)),
        (_, Ok(number)) if number.is_finite() => Ok(Value::Real(number)),
        _ => Err(format!("'{text}' is no number")),
    }
}

/// TRUNC: a number cut off behind so many digits (before the point, when negative), or a date cut off below a unit.
///
/// # Errors
/// A unit that no date has; a value that is neither.
pub fn trunc(value: &Value, to: Option<&Value>) -> Result<Value, String> {
    let digits = match to {
        None => 0,
        Some(Value::Integer(digits)) => *digits as i32,
        Some(Value::Text(unit)) => return date::trunc(value, unit),
        Some(other) => return Err(format!("TRUNC to {other:?}?")),
    };
    match value {
        Value::Null => Ok(Value::Null),
        Value::Integer(number) if digits >= 0 => Ok(Value::Integer(*number)),
        Value::Integer(number) => {
            Ok(Value::Integer(number - number % 10_i64.saturating_pow(digits.unsigned_abs())))
        }
        Value::Real(number) => {
            let scale = 10_f64.powi(digits);
            Ok(whole_or_real((number * scale).trunc() / scale))
        }
        text => date::trunc(text, "DD"),
    }
}

/// A number as Oracle's NUMBER has it: whole where it is whole.
pub fn whole_or_real(number: f64) -> Value {
    // Up to here every whole number has a place of its own among the reals.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        Value::Integer(number as i64)
    } else {
        Value::Real(number)
    }
}

/// The number that a value is; none for NULL.
fn real(value: &Value) -> Result<Option<f64>, String> {
    Ok(match to_number(value, None)? {
        Value::Integer(number) => Some(number as f64),
        Value::Real(number) => Some(number),
        _ => None,
    })
}

/// ROUND: half away from zero, to so many digits behind the point (before it, when negative).
///
/// # Errors
/// No number; a date, which only TRUNC takes here.
pub fn round(values: &[Value]) -> Result<Value, String> {
    let [value, digits @ ..] = values else { return Err("ROUND takes a number".into()) };
    let (digits, value) = match (digits.first(), to_number(value, None)) {
        (None, value) => (Some(0.0), value),
        (Some(digits), value) => (real(digits)?, value),
    };
    let value = value.map_err(|words| format!("ROUND takes a number, and {words}; dates have TRUNC"))?;
    let Some(digits) = digits else { return Ok(Value::Null) };
    let places = digits.clamp(-400.0, 400.0) as i32;
    Ok(match value {
        Value::Integer(number) if places >= 0 => Value::Integer(number),
        // As many digits as a 64-bit number has; more do not change it.
        Value::Real(number) if places > 15 => whole_or_real(number),
        Value::Integer(number) => whole_or_real(nearest(number as f64, places)),
        Value::Real(number) => whole_or_real(nearest(number, places)),
        other => other,
    })
}

/// 1.005 is a little less than its digits say, so the digits are what is rounded.
fn nearest(number: f64, places: i32) -> f64 {
    let shifted = |number: f64, by: i32| -> f64 {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent = exponent.parse::<i32>().unwrap_or(0) + by;
        format!("{digits}e{exponent}").parse().unwrap_or(number)
    };
    shifted(shifted(number, places).round(), -places)
}

/// MOD, FLOOR, CEIL, POWER, SQRT, LN, LOG, EXP by name; NULL when a value is.
///
/// # Errors
/// No number; one that the function has no result for (ORA-01428).
pub fn arithmetic(name: &str, values: &[Value]) -> Result<Value, String> {
    let numbers: Option<Vec<f64>> = values.iter().map(real).collect::<Result<_, _>>()?;
    let Some(numbers) = numbers else { return Ok(Value::Null) };
    match (name, values) {
        // As Oracle: the sign of the first, and by zero the first itself.
        ("mod", [Value::Integer(a), Value::Integer(b)]) => {
            return Ok(Value::Integer(if *b == 0 { *a } else { a.wrapping_rem(*b) }));
        }
        ("floor" | "ceil", [Value::Integer(number)]) => return Ok(Value::Integer(*number)),
        _ => {}
    }
    let result = match (name, &numbers[..]) {
        ("mod", [a, 0.0]) => *a,
        ("mod", [a, b]) => a % b,
        ("floor", [a]) => a.floor(),
        ("ceil", [a]) => a.ceil(),
        ("power", [a, b]) => a.powf(*b),
        ("sqrt", [a]) => a.sqrt(),
        ("ln", [a]) => a.ln(),
        ("log", [base, a]) if *base == 10.0 => a.log10(),
        ("log", [base, a]) if *base == 2.0 => a.log2(),
        ("log", [base, a]) => a.ln() / base.ln(),
        ("exp", [a]) => a.exp(),
        _ => return Err(format!("{} does not take {} values", name.to_uppercase(), values.len())),
    };
    if !result.is_finite() {
        return Err(format!("{} has no result for {numbers:?}", name.to_uppercase()));
    }
    Ok(whole_or_real(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cut_off() {
        assert_eq!(trunc(&Value::Real(2.789), None), Ok(Value::Integer(2)));
        assert_eq!(trunc(&Value::Real(-2.789), Some(&Value::Integer(1))), Ok(Value::Real(-2.7)));
        assert_eq!(trunc(&Value::Integer(1_234), Some(&Value::Integer(-2))), Ok(Value::Integer(1_200)));
        assert_eq!(trunc(&Value::Null, None), Ok(Value::Null));
    }

    #[test]
    fn texts_become_numbers() {
        assert_eq!(to_number(&Value::Text(" 12 ".into()), None), Ok(Value::Integer(12)));
        assert_eq!(to_number(&Value::Text("1,234.5".into()), Some("9,999.9")), Ok(Value::Real(1234.5)));
        assert!(to_number(&Value::Text("1,234".into()), None).is_err());
        assert!(to_number(&Value::Text("inf".into()), None).is_err());
    }

    #[test]
    fn arithmetic_as_oracle_has_it() {
        let check = |name: &str, values: &[Value], expected: Option<Value>| {
            assert_eq!(arithmetic(name, values).ok(), expected, "{name} {values:?}");
        };
        let [int, real] = [Value::Integer, |n: i64| Value::Real(n as f64 / 10.0)];
        check("mod", &[int(11), int(4)], Some(int(3)));
        check("mod", &[int(11), int(-4)], Some(int(3)));
        check("mod", &[int(-11), int(4)], Some(int(-3)));
        check("mod", &[int(11), int(0)], Some(int(11)));
        check("mod", &[int(i64::MIN), int(-1)], Some(int(0)));
        check("mod", &[real(75), int(2)], Some(real(15)));
        check("floor", &[real(157)], Some(int(15)));
        check("floor", &[real(-15)], Some(int(-2)));
        check("ceil", &[Value::Real(268_651.8)], Some(int(268_652)));
        check("power", &[int(3), int(2)], Some(int(9)));
        check("power", &[int(2), int(-1)], Some(real(5)));
        check("sqrt", &[int(81)], Some(int(9)));
        check("sqrt", &[int(-1)], None);
        check("ln", &[int(1)], Some(int(0)));
        check("ln", &[int(0)], None);
        check("log", &[int(10), int(1000)], Some(int(3)));
        check("log", &[int(2), int(8)], Some(int(3)));
        check("log", &[int(10), int(0)], None);
        check("exp", &[int(0)], Some(int(1)));
        check("log", &[int(10), Value::Null], Some(Value::Null));
        check("sqrt", &[Value::Text(" 16 ".into())], Some(int(4)));
        check("sqrt", &[Value::Text("x".into())], None);
    }

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        let check = |value: f64, digits: i64, expected: f64| {
            let found = round(&[Value::Real(value), Value::Integer(digits)]);
            assert_eq!(found, Ok(whole_or_real(expected)), "{value} {digits}");
        };
        check(15.193, 1, 15.2);
        check(15.193, -1, 20.0);
        check(1.005, 2, 1.01);
        check(2.5, 0, 3.0);
        check(-2.5, 0, -3.0);
        check(1e-300, 2, 0.0);
        check(1e300, 2, 1e300);
        assert_eq!(round(&[Value::Real(15.193)]), Ok(Value::Integer(15)));
        assert_eq!(round(&[Value::Integer(1_250), Value::Integer(-2)]), Ok(Value::Integer(1_300)));
        assert_eq!(round(&[Value::Null, Value::Integer(1)]), Ok(Value::Null));
        assert_eq!(round(&[Value::Integer(1), Value::Null]), Ok(Value::Null));
        assert!(round(&[Value::Text("2026-11-21".into())]).is_err_and(|words| words.contains("TRUNC")));
    }
}
