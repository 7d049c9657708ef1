//! Rows as bytes, for the sort area and temp files. Nothing of it outlives the sort, so it is as simple as can be.
//!
//! ```text
//! value   tag u8: 0 NULL │ 1 integer, i64 │ 2 real, f64 bits │ 3 text, u32 length, bytes │ 4 blob, u32 length, bytes
//! ```

use crate::value::{Row, Value};

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// Appends a row.
pub(super) fn encode(row: &[Value], bytes: &mut Vec<u8>) {
    for value in row {
        match value {
            Value::Null => bytes.push(NULL),
            Value::Integer(n) => {
                bytes.push(INTEGER);
                bytes.extend_from_slice(&n.to_le_bytes());
            }
            Value::Real(r) => {
                bytes.push(REAL);
                bytes.extend_from_slice(&r.to_bits().to_le_bytes());
            }
            Value::Text(text) => encode_bytes(TEXT, text.as_bytes(), bytes),
            Value::Blob(blob) => encode_bytes(BLOB, blob, bytes),
        }
    }
}

fn encode_bytes(tag: u8, value: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(tag);
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
}

/// The row again.
///
/// # Panics
/// When the bytes are not what [`encode`] wrote: a bug, as blocks of temp files have checksums.
pub(super) fn decode(mut bytes: &[u8]) -> Row {
    let mut row = Row::new();
    while let Some((tag, rest)) = bytes.split_first() {
        bytes = rest;
        row.push(match *tag {
            NULL => Value::Null,
            INTEGER => Value::Integer(i64::from_le_bytes(take(&mut bytes))),
            REAL => Value::Real(f64::from_bits(u64::from_le_bytes(take(&mut bytes)))),
            TEXT => Value::Text(String::from_utf8(take_bytes(&mut bytes)).expect("text is UTF-8")),
            BLOB => Value::Blob(take_bytes(&mut bytes)),
            other => panic!("value of kind {other} in a sort"),
        });
    }
    row
}

fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = bytes.split_first_chunk().expect("a whole value");
    *bytes = rest;
    *taken
}

fn take_bytes(bytes: &mut &[u8]) -> Vec<u8> {
    let length = u32::from_le_bytes(take(bytes)) as usize;
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_exactly() {
        let row = vec![
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Real(-0.0),
            Value::Real(1.0),
            Value::Text(String::new()),
            Value::Text("Grüße\0".into()),
            Value::Blob(vec![0, 255]),
        ];
        let mut bytes = Vec::new();
        encode(&row, &mut bytes);
        let back = decode(&bytes);
        assert_eq!(back, row);
        assert!(matches!(back[2], Value::Real(r) if r.is_sign_negative()));
        assert_eq!(decode(&[]), Row::new());
    }
}
