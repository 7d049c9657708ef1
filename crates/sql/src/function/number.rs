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
            Ok(Value::Real((number * scale).trunc() / scale))
        }
        text => date::trunc(text, "DD"),
    }
}

/// MOD, FLOOR, CEIL, POWER, SQRT, LN, LOG, EXP by name; none when a value is NULL or no number, or the result is none.
pub fn arithmetic(name: &str, values: &[Value]) -> Option<Value> {
    let number = |at: usize| match values.get(at)? {
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    if let ("mod", [Value::Integer(a), Value::Integer(b)]) = (name, values) {
        // As Oracle: the sign of the first, and by zero the first itself.
        return Some(Value::Integer(a.checked_rem(*b).unwrap_or(*a)));
    }
    if let ("floor" | "ceil", [Value::Integer(number)]) = (name, values) {
        return Some(Value::Integer(*number));
    }
    let a = number(0)?;
    let result = match name {
        "mod" => match number(1)? {
            0.0 => a,
            b => a % b,
        },
        "floor" => a.floor(),
        "ceil" => a.ceil(),
        "power" => a.powf(number(1)?),
        "sqrt" => a.sqrt(),
        "ln" => a.ln(),
        "log" => number(1)?.ln() / a.ln(),
        "exp" => a.exp(),
        _ => return None,
    };
    let whole = matches!(name, "floor" | "ceil") && result.abs() < 9.0e15;
    result.is_finite().then_some(if whole { Value::Integer(result as i64) } else { Value::Real(result) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cut_off() {
        assert_eq!(trunc(&Value::Real(2.789), None), Ok(Value::Real(2.0)));
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
            assert_eq!(arithmetic(name, values), expected, "{name} {values:?}");
        };
        check("mod", &[Value::Integer(-7), Value::Integer(3)], Some(Value::Integer(-1)));
        check("mod", &[Value::Integer(7), Value::Integer(0)], Some(Value::Integer(7)));
        check("floor", &[Value::Real(-1.5)], Some(Value::Integer(-2)));
        check("power", &[Value::Integer(2), Value::Integer(10)], Some(Value::Real(1024.0)));
        check("sqrt", &[Value::Integer(-1)], None);
        check("log", &[Value::Integer(10), Value::Null], None);
    }
}
