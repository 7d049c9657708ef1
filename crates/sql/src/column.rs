//! What a declared type means: which values a column takes, and how a value is made to fit.
//!
//! DATE and TIMESTAMP are texts (`YYYY-MM-DD HH:MM:SS`), which sort as moments do.

use engine::Value;

/// Which values a column holds. The engine's column kinds, by the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Floating point numbers.
    Real,
    /// Texts.
    Text,
    /// Bytes.
    Blob,
    /// `NUMBER` without precision: whole numbers where they are whole, else floating point.
    Number,
    /// As it comes.
    Any,
}

/// A declared type, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its values.
    pub kind: Kind,
    /// Most characters of a text, or bytes of a blob.
    pub length_max: Option<usize>,
}

impl Type {
    /// From a name and its numbers: `NUMBER`, `[10, 2]`. None when no database has such a type.
    pub fn of(name: &str, numbers: &[i64]) -> Option<Self> {
        let upper = name.to_ascii_uppercase();
        let length = numbers.first().and_then(|&n| usize::try_from(n).ok());
        let kind = match upper.as_str() {
            // 18 digits are what a 64-bit number surely holds.
            "NUMBER" | "NUMERIC" | "DECIMAL" | "DEC" => match numbers {
                [precision] | [precision, 0] if *precision <= 18 => Kind::Integer,
                _ => Kind::Number,
            },
            "INTEGER" | "INT" | "SMALLINT" | "BIGINT" | "TINYINT" | "PLS_INTEGER" => Kind::Integer,
            "FLOAT" | "REAL" | "DOUBLE" | "BINARY_FLOAT" | "BINARY_DOUBLE" => Kind::Real,
            "VARCHAR2" | "VARCHAR" | "NVARCHAR2" | "CHAR" | "NCHAR" | "CHARACTER" | "CLOB" | "NCLOB"
            | "LONG" | "TEXT" | "DATE" | "TIMESTAMP" => Kind::Text,
            "BLOB" | "RAW" => Kind::Blob,
            "ANY" => Kind::Any,
            _ => return None,
        };
        let bounded = matches!(kind, Kind::Text | Kind::Blob) && upper != "TIMESTAMP";
        Some(Self { kind, length_max: length.filter(|_| bounded) })
    }

    /// The value as this column keeps it.
    ///
    /// # Errors
    /// Why it cannot be kept.
    pub fn fit(self, value: Value) -> Result<Value, String> {
        let value = self.convert(value);
        match (self.kind, &value) {
            (_, Value::Null) | (Kind::Any, _) => {}
            (Kind::Integer, Value::Integer(_))
            | (Kind::Number, Value::Integer(_) | Value::Real(_))
            | (Kind::Real, Value::Real(_))
            | (Kind::Text, Value::Text(_))
            | (Kind::Blob, Value::Blob(_)) => {}
            // Oracle rounds into an INTEGER, half away from zero, as `round` does.
            (Kind::Integer, Value::Real(number)) => {
                return if number.abs() < 9.2e18 {
                    Ok(Value::Integer(number.round() as i64))
                } else {
                    Err(format!("{number} is too large for an integer"))
                };
            }
            (Kind::Integer | Kind::Number | Kind::Real, other) => {
                return Err(format!("{} is no number", describe(other)));
            }
            (Kind::Text, other) => return Err(format!("{} is no text", describe(other))),
            (Kind::Blob, other) => return Err(format!("{} is no blob", describe(other))),
        }
        let length = match &value {
            Value::Text(text) => text.chars().count(),
            Value::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        match self.length_max {
            Some(most) if length > most => Err(format!("too long: {length}, at most {most}")),
            _ => Ok(value),
        }
    }

    /// `'5'` is 5 for a number, 5 is `'5'` for a text. What does not fit stays as it is.
    fn convert(self, value: Value) -> Value {
        match (self.kind, value) {
            (Kind::Integer | Kind::Number, Value::Text(text)) => {
                number_of(&text).unwrap_or(Value::Text(text))
            }
            (Kind::Integer | Kind::Number, Value::Real(number)) => whole(number),
            (Kind::Real, Value::Text(text)) => match number_of(&text) {
                Some(Value::Integer(number)) => Value::Real(number as f64),
                Some(number) => number,
                None => Value::Text(text),
            },
            (Kind::Real, Value::Integer(number)) => Value::Real(number as f64),
            (Kind::Text, Value::Integer(number)) => Value::Text(number.to_string()),
            (Kind::Text, Value::Real(number)) => Value::Text(number.to_string()),
            (_, value) => value,
        }
    }
}

/// What to look for in an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// This value.
    Value(Value),
    /// Nothing equals it, and nothing is smaller or greater: NULL.
    Nothing,
    /// Several values may equal it.
    Many,
}

impl Type {
    /// What to look for in an index where SQLite compares this column with `value`, by SQLite's rules of affinity.
    ///
    /// `constant`: the value is a literal. Otherwise a number may come from a column of numbers; then SQLite compares as numbers do,
    /// and the texts `5` and `05` are both 5.
    pub fn probe(self, value: Value, constant: bool) -> Probe {
        match (self.kind, value) {
            (_, Value::Null) => Probe::Nothing,
            (Kind::Integer | Kind::Number | Kind::Real, Value::Text(text)) => {
                Probe::Value(number_of(&text).unwrap_or(Value::Text(text)))
            }
            (Kind::Text, Value::Integer(number)) if constant => Probe::Value(Value::Text(number.to_string())),
            (Kind::Text, Value::Integer(_) | Value::Real(_)) => Probe::Many,
            (Kind::Any, Value::Integer(_) | Value::Real(_)) if !constant => Probe::Many,
            (_, value) => Probe::Value(value),
        }
    }
}

/// A type as SQLite reports it, without the word that `declared_for_sqlite` put before it.
pub fn undeclared(declared: &str) -> &str {
    let stem = declared.strip_prefix("TEXT ").or_else(|| declared.strip_prefix("BLOB "));
    stem.filter(|stem| crate::statement::declared_type(stem).is_some()).unwrap_or(declared)
}

fn number_of(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(Value::Integer(number));
    }
    // Rust also reads "inf" and "nan", which no database calls numbers.
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    text.parse().ok().filter(|n: &f64| plain && n.is_finite()).map(whole)
}

/// A whole number as an integer where it is one exactly: below 2⁵³ every whole `f64` is.
fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        Value::Integer(number as i64)
    } else {
        Value::Real(number)
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => format!("'{}'", text.chars().take(20).collect::<String>()),
        Value::Blob(bytes) => format!("a blob of {} bytes", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, numbers: &[i64], value: Value, expected: Result<Value, &str>) {
        let column = Type::of(name, numbers).expect(name);
        let fitted = column.fit(value);
        assert_eq!(fitted.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e), "{name}");
    }

    #[test]
    fn numbers_as_oracle_keeps_them() {
        check("NUMBER", &[], Value::Real(2.0), Ok(Value::Integer(2)));
        check("number", &[], Value::Text(" 2.5 ".into()), Ok(Value::Real(2.5)));
        check("NUMBER", &[10], Value::Real(2.5), Ok(Value::Integer(3)));
        check("NUMBER", &[], Value::Text("nan".into()), Err("'nan' is no number"));
        check("FLOAT", &[], Value::Integer(1), Ok(Value::Real(1.0)));
        check("INTEGER", &[], Value::Real(1e300), Err(&format!("{} is too large for an integer", 1e300)));
    }

    #[test]
    fn texts_have_a_length_in_characters() {
        check("VARCHAR2", &[3], Value::Text("süß".into()), Ok(Value::Text("süß".into())));
        check("VARCHAR2", &[2], Value::Text("süß".into()), Err("too long: 3, at most 2"));
        check("VARCHAR2", &[2], Value::Integer(42), Ok(Value::Text("42".into())));
        check("RAW", &[1], Value::Blob(vec![1, 2]), Err("too long: 2, at most 1"));
        check("RAW", &[1], Value::Null, Ok(Value::Null));
    }

    #[test]
    fn probes_find_what_sqlite_finds_equal() {
        let probe =
            |name: &str, value: Value, constant| Type::of(name, &[]).expect(name).probe(value, constant);
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(probe("NUMBER", text(" 5 "), false), Probe::Value(Value::Integer(5)));
        assert_eq!(probe("NUMBER", text("a"), false), Probe::Value(text("a")));
        assert_eq!(probe("FLOAT", Value::Integer(5), false), Probe::Value(Value::Integer(5)));
        assert_eq!(probe("VARCHAR2", Value::Integer(5), true), Probe::Value(text("5")));
        assert_eq!(probe("VARCHAR2", Value::Integer(5), false), Probe::Many);
        assert_eq!(probe("VARCHAR2", Value::Real(5.0), true), Probe::Many);
        assert_eq!(probe("ANY", Value::Integer(5), false), Probe::Many);
        assert_eq!(probe("ANY", Value::Integer(5), true), Probe::Value(Value::Integer(5)));
        assert_eq!(probe("ANY", text("5"), false), Probe::Value(text("5")));
        assert_eq!(probe("RAW", Value::Null, true), Probe::Nothing);
    }

    #[test]
    fn the_word_for_sqlite_is_taken_off() {
        assert_eq!(undeclared("TEXT VARCHAR2(10)"), "VARCHAR2(10)");
        assert_eq!(undeclared("BLOB LONG RAW"), "LONG RAW");
        assert_eq!(undeclared("BLOB BLOB"), "BLOB");
        assert_eq!(undeclared("BLOB"), "BLOB");
        assert_eq!(undeclared("NUMBER"), "NUMBER");
    }

    #[test]
    fn unknown_types_are_none() {
        assert_eq!(Type::of("XMLTYPE", &[]), None);
    }
}
