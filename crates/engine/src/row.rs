//! Rows as bytes: how the columns of a row lie in a row piece. Pure; no page, no version.
//!
//! ```text
//! content   columns   types                    bodies
//!           varint    varint each, in order    each type's bytes, in order
//!
//! type      0 NULL       1 2 3 4 5 6  whole number of 1 2 3 4 6 8 bytes      7  real, 8 bytes
//!           8 number 0   9 number 1   12 + 2n  blob of n bytes               13 + 2n  text of n bytes
//! varint    7 bits per byte, the lowest first; the eighth bit says that another byte follows
//! ```
//! Numbers little-endian. The types are SQLite's serial types, so a column costs one byte more than its shortest form. The
//! length of a row follows from its types alone; columns that a row does not have (added later) are NULL.
//!
//! Start with [`encode`] and [`decode`].

use crate::value::{Row, Value};

/// Bytes of a row that are no row: the page they came from is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

const BLOB: u64 = 12;
const TEXT: u64 = 13;

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[inline]
fn take_varint(bytes: &[u8], at: &mut usize) -> Result<u64, Malformed> {
    let first = *bytes.get(*at).ok_or(Malformed)?;
    *at += 1;
    if first < 0x80 {
        return Ok(first.into());
    }
    let (mut n, mut shift) = (u64::from(first & 0x7f), 7);
    loop {
        let byte = *bytes.get(*at).ok_or(Malformed)?;
        *at += 1;
        n |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(n);
        }
        shift += 7;
        if shift > 56 {
            return Err(Malformed);
        }
    }
}

/// The shortest type that holds a whole number.
fn integer_type(n: i64) -> u64 {
    match n {
        0 => 8,
        1 => 9,
        -0x80..0x80 => 1,
        -0x8000..0x8000 => 2,
        -0x80_0000..0x80_0000 => 3,
        -0x8000_0000..0x8000_0000 => 4,
        -0x8000_0000_0000..0x8000_0000_0000 => 5,
        _ => 6,
    }
}

fn type_of(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        Value::Integer(n) => integer_type(*n),
        Value::Real(_) => 7,
        Value::Blob(bytes) => BLOB + 2 * bytes.len() as u64,
        Value::Text(text) => TEXT + 2 * text.len() as u64,
    }
}

/// Bytes of a body.
#[inline]
fn body_bytes(kind: u64) -> Result<usize, Malformed> {
    const NUMBERS: [u8; 10] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
    match kind {
        0..10 => Ok(NUMBERS[kind as usize].into()),
        10 | 11 => Err(Malformed),
        _ => usize::try_from((kind - BLOB) / 2).map_err(|_| Malformed),
    }
}

/// Appends the content of a row to `out`.
pub(crate) fn encode(values: &[Value], out: &mut Vec<u8>) {
    put_varint(out, values.len() as u64);
    for value in values {
        put_varint(out, type_of(value));
    }
    for value in values {
        match value {
            Value::Null => {}
            Value::Integer(n) => {
                let bytes = body_bytes(integer_type(*n)).unwrap_or(8);
                out.extend_from_slice(&n.to_le_bytes()[..bytes]);
            }
            Value::Real(r) => out.extend_from_slice(&r.to_le_bytes()),
            Value::Blob(bytes) => out.extend_from_slice(bytes),
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// Walks the columns of a content: types from the head, bodies behind it.
struct Columns<'a> {
    bytes: &'a [u8],
    /// Where the next type is.
    kind_at: usize,
    /// Where the next body is.
    body_at: usize,
    left: u64,
}

impl<'a> Columns<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut kind_at = 0;
        let left = take_varint(bytes, &mut kind_at)?;
        let mut body_at = kind_at;
        for _ in 0..left {
            take_varint(bytes, &mut body_at)?;
        }
        Ok(Self { bytes, kind_at, body_at, left })
    }

    /// The next column's type and body.
    #[inline]
    fn next(&mut self) -> Result<Option<(u64, &'a [u8])>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let kind = take_varint(self.bytes, &mut self.kind_at)?;
        let end = self.body_at.checked_add(body_bytes(kind)?).ok_or(Malformed)?;
        let body = self.bytes.get(self.body_at..end).ok_or(Malformed)?;
        self.body_at = end;
        Ok(Some((kind, body)))
    }
}

fn value(kind: u64, body: &[u8]) -> Result<Value, Malformed> {
    Ok(match kind {
        0 => Value::Null,
        1..=6 => {
            let negative = body.last().is_some_and(|high| high & 0x80 != 0);
            let mut bytes = [if negative { 0xff } else { 0 }; 8];
            bytes[..body.len()].copy_from_slice(body);
            Value::Integer(i64::from_le_bytes(bytes))
        }
        7 => Value::Real(f64::from_le_bytes(body.try_into().map_err(|_| Malformed)?)),
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        _ if kind % 2 == BLOB % 2 => Value::Blob(body.to_vec()),
        _ => Value::Text(std::str::from_utf8(body).map_err(|_| Malformed)?.to_owned()),
    })
}

/// The row of a content; bytes behind its end are ignored.
pub(crate) fn decode(content: &[u8]) -> Result<Row, Malformed> {
    let mut columns = Columns::new(content)?;
    let mut row = Row::with_capacity(columns.left.min(content.len() as u64) as usize);
    while let Some((kind, body)) = columns.next()? {
        row.push(value(kind, body)?);
    }
    Ok(row)
}

/// Only the columns `wanted`, in that order; NULL for a column that the row does not have.
pub(crate) fn decode_columns(content: &[u8], wanted: &[usize]) -> Result<Row, Malformed> {
    if !wanted.is_sorted() {
        return wanted.iter().map(|&column| one_column(content, column)).collect();
    }
    let mut columns = Columns::new(content)?;
    let mut row = Row::with_capacity(wanted.len());
    let (mut at, mut wanted) = (0, wanted.iter().copied().peekable());
    while wanted.peek().is_some() {
        let Some((kind, body)) = columns.next()? else { break };
        while wanted.next_if_eq(&at).is_some() {
            row.push(value(kind, body)?);
        }
        at += 1;
    }
    row.extend(wanted.map(|_| Value::Null));
    Ok(row)
}

/// Appends a content of only the columns `wanted`, in that order, each as it is stored; NULL for a column that the row
/// does not have.
pub(crate) fn copy_columns(content: &[u8], wanted: &[usize], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut columns = Columns::new(content)?;
    let mut stored = Vec::new();
    while let Some(column) = columns.next()? {
        stored.push(column);
    }
    let of = |column: &usize| stored.get(*column).copied().unwrap_or((0, &[]));
    put_varint(out, wanted.len() as u64);
    wanted.iter().for_each(|column| put_varint(out, of(column).0));
    wanted.iter().for_each(|column| out.extend_from_slice(of(column).1));
    Ok(())
}

fn one_column(content: &[u8], wanted: usize) -> Result<Value, Malformed> {
    let mut columns = Columns::new(content)?;
    for _ in 0..wanted {
        columns.next()?;
    }
    columns.next()?.map_or(Ok(Value::Null), |(kind, body)| value(kind, body))
}

/// Bytes that the content at the beginning of `bytes` has.
pub(crate) fn content_bytes(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut columns = Columns::new(bytes)?;
    while columns.next()?.is_some() {}
    Ok(columns.body_at)
}

/// Whether two contents differ in one of `columns` (ascending), compared as stored.
pub(crate) fn differs_in(a: &[u8], b: &[u8], columns: &[usize]) -> Result<bool, Malformed> {
    debug_assert!(columns.is_sorted());
    let (mut a, mut b) = (Columns::new(a)?, Columns::new(b)?);
    let mut at = 0;
    for &wanted in columns {
        let (mut left, mut right) = (None, None);
        while at <= wanted {
            (left, right) = (a.next()?, b.next()?);
            at += 1;
        }
        // A column that is not there is as good as NULL.
        if left.unwrap_or((0, &[])) != right.unwrap_or((0, &[])) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bytes compared at a stroke; a slice comparison of a fixed length needs no loop.
const STRIDE: usize = 32;

/// How many bytes at the beginning are the same.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let strides = a.chunks_exact(STRIDE).zip(b.chunks_exact(STRIDE)).take_while(|(a, b)| a == b).count();
    let at = strides * STRIDE;
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

/// How many bytes at the end are the same.
pub(crate) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let strides = a.rchunks_exact(STRIDE).zip(b.rchunks_exact(STRIDE)).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - strides * STRIDE], &b[..b.len() - strides * STRIDE]);
    strides * STRIDE + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Rng, Seed};

    fn round_trip(row: &[Value]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(row, &mut bytes);
        assert_eq!(decode(&bytes).unwrap(), row);
        assert_eq!(content_bytes(&bytes).unwrap(), bytes.len());
        bytes
    }

    #[test]
    fn every_width_of_number_comes_back() {
        for shift in 0..64 {
            for n in [1i64 << shift, (1i64 << shift).wrapping_sub(1), (1i64 << shift).wrapping_neg()] {
                for n in [n, n.wrapping_neg(), n.wrapping_sub(1), !n] {
                    round_trip(&[Value::Integer(n)]);
                }
            }
        }
        assert_eq!(round_trip(&[Value::Integer(0), Value::Integer(1)]), [2, 8, 9]);
        assert_eq!(round_trip(&[Value::Integer(-2)]), [1, 1, 0xfe]);
    }

    #[test]
    fn bytes_are_as_the_ruler_says() {
        let row = [Value::Null, Value::Text("ab".into()), Value::Blob(vec![7]), Value::Real(1.0)];
        let mut expected = vec![4, 0, 17, 14, 7, b'a', b'b', 7];
        expected.extend_from_slice(&1f64.to_le_bytes());
        assert_eq!(round_trip(&row), expected);
        assert_eq!(round_trip(&[]), [0]);
    }

    #[test]
    fn columns_are_picked_in_any_order() {
        let row: Row = (0..5).map(|n| Value::Integer(n * 1000)).collect();
        let bytes = round_trip(&row);
        for wanted in [&[1usize, 3][..], &[3, 1], &[4, 4, 0], &[], &[0, 1, 2, 3, 4]] {
            let expected: Row = wanted.iter().map(|&column| row[column].clone()).collect();
            assert_eq!(decode_columns(&bytes, wanted).unwrap(), expected, "{wanted:?}");
            let mut copied = Vec::new();
            copy_columns(&bytes, wanted, &mut copied).unwrap();
            assert_eq!(decode(&copied).unwrap(), expected, "{wanted:?}");
        }
        assert_eq!(decode_columns(&bytes, &[4, 9]).unwrap(), [Value::Integer(4000), Value::Null]);
        assert_eq!(decode_columns(&bytes, &[9, 4]).unwrap(), [Value::Null, Value::Integer(4000)]);
    }

    #[test]
    fn differences_are_seen_in_the_columns_asked_for() {
        let a = round_trip(&[Value::Integer(1), Value::Text("x".into()), Value::Null]);
        let b = round_trip(&[Value::Integer(2), Value::Text("x".into())]);
        for (columns, differ) in [(&[0usize][..], true), (&[1, 2], false), (&[2, 7], false), (&[0, 1], true)]
        {
            assert_eq!(differs_in(&a, &b, columns).unwrap(), differ, "{columns:?}");
        }
    }

    #[test]
    fn damaged_bytes_never_panic_and_never_reach_beyond() {
        let mut rng = Rng::new(Seed(11));
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..rng.below(24)).map(|_| rng.next_u64() as u8).collect();
            if let Ok(length) = content_bytes(&bytes) {
                assert!(length <= bytes.len());
            }
            let _ = decode(&bytes);
            let _ = decode_columns(&bytes, &[0, 2]);
            let _ = copy_columns(&bytes, &[2, 0], &mut Vec::new());
        }
        assert_eq!(decode(&[1, 15, 0xff]), Err(Malformed), "text that is no UTF-8");
        assert_eq!(decode(&[1, 10]), Err(Malformed), "a type that is none");
        assert_eq!(decode(&[0xff; 12]), Err(Malformed), "a number without end");
    }
}
