//! Keys as bytes: `memcmp` of two keys orders as the values do, column by column.
//!
//! The order is SQLite's, except that NULL comes last, as in Oracle: numbers, text, blobs, NULL. Integers and reals are one
//! order, exact over their whole ranges: no integer is rounded to a real to be compared. Numbers that are equal have equal
//! bytes, so `1` and `1.0` are the same key, as in SQLite's unique indexes; [`decode_key`] gives them back as integers.
//!
//! ```text
//! integer       18+8-n..  n bytes, complemented magnitude     negative, n = 8 … 1
//!               20                                            zero
//!               21..28    n bytes, magnitude, big-endian      positive, n = 1 … 8
//! real          the integer below it, FF, 8 bytes of the real  when it has a fraction
//!               as the integer                                 when it is one that fits 64 bits
//!               17 or 29, 8 bytes of the real                  below or above all integers
//! text          40, bytes with 00 written as 00 FF, 00
//! blob          50, bytes with 00 written as 00 FF, 00
//! NULL          F0
//! ```
//! "Bytes of the real" are its bits with the sign turned (all bits when negative), big-endian: they order as reals do.
//!
//! Why a fraction sorts right: what follows the integer `k` in a key is the end, or the tag of the next column, at most F0;
//! what follows `k` in `k.5` is FF, which is greater than either. The same holds for 00 FF in texts. So [`AFTER`] = FE,
//! appended to the encoding of some leading columns, is a position after all keys that begin with these values and before
//! all others: the end of a prefix range.

use crate::value::Value;
use std::ops::Bound;

const BELOW: u8 = 0x17;
const ZERO: u8 = 0x20;
const ABOVE: u8 = 0x29;
const TEXT: u8 = 0x40;
const BLOB: u8 = 0x50;
const NULL: u8 = 0xF0;
const FRACTION: u8 = 0xFF;
const END: u8 = 0x00;
const ESCAPED: u8 = 0xFF;

/// See the module's text: greater than whatever may follow a column's value, smaller than what may continue it.
pub(super) const AFTER: u8 = 0xFE;

const _: () = assert!(BELOW + 9 == ZERO && ZERO + 9 == ABOVE);
const _: () = assert!(ABOVE < TEXT && TEXT < BLOB && BLOB < NULL && NULL < AFTER && AFTER < FRACTION);
const _: () = assert!(END < BELOW && AFTER < ESCAPED);

/// 2⁶³: the first real above all integers; its negative is the smallest integer.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

/// `values` as bytes that compare (`memcmp`) as the values do: numbers in one order, then text, then blobs, NULL last.
pub fn encode_key(values: &[Value]) -> Vec<u8> {
    let mut key = Vec::with_capacity(values.len() * 12);
    for value in values {
        encode_value(value, &mut key);
    }
    key
}

/// Appends one column's bytes to `key`.
pub fn encode_value(value: &Value, key: &mut Vec<u8>) {
    match value {
        Value::Null => key.push(NULL),
        Value::Integer(n) => push_integer(*n, key),
        Value::Real(r) => push_real(*r, key),
        Value::Text(text) => push_bytes(TEXT, text.as_bytes(), key),
        Value::Blob(bytes) => push_bytes(BLOB, bytes, key),
    }
}

/// The values of a key. A number comes back as an integer when it is one that fits 64 bits, whatever it was: who knows that
/// a column holds reals turns it back, which is exact. `None` when the bytes are no key.
pub fn decode_key(mut key: &[u8]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    while !key.is_empty() {
        values.push(take_value(&mut key)?);
    }
    Some(values)
}

/// A range of leading values as a range of encoded keys: `Included` takes in, and `Excluded` leaves out, every key that begins
/// with these values, whatever its further columns are.
///
/// An unbounded end takes in NULLs, which come last; `Excluded(&[Value::Null])` leaves them out.
pub fn key_range(from: Bound<&[Value]>, to: Bound<&[Value]>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let after = |values: &[Value]| {
        let mut key = encode_key(values);
        key.push(AFTER);
        key
    };
    let from = match from {
        Bound::Included(values) => Bound::Included(encode_key(values)),
        Bound::Excluded(values) => Bound::Included(after(values)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let to = match to {
        Bound::Included(values) => Bound::Excluded(after(values)),
        Bound::Excluded(values) => Bound::Excluded(encode_key(values)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (from, to)
}

fn push_integer(n: i64, key: &mut Vec<u8>) {
    let magnitude = n.unsigned_abs();
    let bytes = (u64::BITS - magnitude.leading_zeros()).div_ceil(8) as u8;
    let (tag, digits) = if n < 0 { (ZERO - bytes, !magnitude) } else { (ZERO + bytes, magnitude) };
    key.push(tag);
    key.extend_from_slice(&digits.to_be_bytes()[8 - usize::from(bytes)..]);
}

fn push_real(r: f64, key: &mut Vec<u8>) {
    if r.is_nan() {
        // SQLite stores NaN as NULL.
        key.push(NULL);
    } else if r >= INTEGERS_END {
        key.push(ABOVE);
        key.extend_from_slice(&ordered(r));
    } else if r < -INTEGERS_END {
        key.push(BELOW);
        key.extend_from_slice(&ordered(r));
    } else {
        let floor = r.floor();
        push_integer(floor as i64, key);
        if floor != r {
            key.push(FRACTION);
            key.extend_from_slice(&ordered(r));
        }
    }
}

/// Bits that order as the reals do; -0.0 never arrives here.
fn ordered(r: f64) -> [u8; 8] {
    let bits = r.to_bits();
    let turned = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    turned.to_be_bytes()
}

fn real_of(ordered: [u8; 8]) -> f64 {
    let turned = u64::from_be_bytes(ordered);
    f64::from_bits(if turned >> 63 == 1 { turned & !(1 << 63) } else { !turned })
}

fn push_bytes(tag: u8, bytes: &[u8], key: &mut Vec<u8>) {
    key.reserve(bytes.len() + 2);
    key.push(tag);
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == END) {
        key.extend_from_slice(&rest[..=zero]);
        key.push(ESCAPED);
        rest = &rest[zero + 1..];
    }
    key.extend_from_slice(rest);
    key.push(END);
}

fn take<'a>(key: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, rest) = key.split_at_checked(bytes)?;
    *key = rest;
    Some(taken)
}

fn take_value(key: &mut &[u8]) -> Option<Value> {
    let tag = take(key, 1)?[0];
    match tag {
        NULL => Some(Value::Null),
        TEXT => String::from_utf8(take_bytes(key)?).ok().map(Value::Text),
        BLOB => take_bytes(key).map(Value::Blob),
        BELOW | ABOVE => take_real(key),
        _ if (BELOW..=ABOVE).contains(&tag) => take_number(tag, key),
        _ => None,
    }
}

fn take_real(key: &mut &[u8]) -> Option<Value> {
    take(key, 8)?.try_into().ok().map(|bytes| Value::Real(real_of(bytes)))
}

fn take_number(tag: u8, key: &mut &[u8]) -> Option<Value> {
    let bytes = usize::from(tag.abs_diff(ZERO));
    let mut wide = [if tag < ZERO { 0xFF } else { 0 }; 8];
    wide[8 - bytes..].copy_from_slice(take(key, bytes)?);
    if key.first() == Some(&FRACTION) {
        take(key, 1)?;
        return take_real(key);
    }
    let digits = u64::from_be_bytes(wide);
    // The complement of 2⁶³ turns back into the smallest integer, which has no positive twin.
    let n = if tag < ZERO { (!digits as i64).wrapping_neg() } else { digits as i64 };
    Some(Value::Integer(n))
}

fn take_bytes(key: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let zero = key.iter().position(|byte| *byte == END)?;
        bytes.extend_from_slice(&key[..zero]);
        *key = &key[zero + 1..];
        if key.first() != Some(&ESCAPED) {
            return Some(bytes);
        }
        bytes.push(END);
        *key = &key[1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;
    use units::{Rng, Seed};

    /// The order that keys must have, computed another way: numbers as exact (integer part, fraction) pairs.
    fn model(a: &Value, b: &Value) -> Ordering {
        let class = |value: &Value| match value {
            Value::Integer(_) | Value::Real(_) => 0,
            Value::Text(_) => 1,
            Value::Blob(_) => 2,
            Value::Null => 3,
        };
        match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
            (Value::Real(a), Value::Real(b)) => a.partial_cmp(b).expect("no NaN"),
            (Value::Integer(a), Value::Real(b)) => integer_real(*a, *b),
            (Value::Real(a), Value::Integer(b)) => integer_real(*b, *a).reverse(),
            (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
            _ => class(a).cmp(&class(b)),
        }
    }

    /// As `sqlite3IntFloatCompare` decides: whole parts as 128-bit integers, then the fraction.
    fn integer_real(n: i64, r: f64) -> Ordering {
        if r.is_infinite() {
            return if r > 0.0 { Ordering::Less } else { Ordering::Greater };
        }
        if r.abs() >= 1e30 {
            return 0.0.partial_cmp(&r).expect("no NaN");
        }
        let whole = r.trunc() as i128;
        i128::from(n).cmp(&whole).then_with(|| 0.0.partial_cmp(&r.fract()).expect("no NaN"))
    }

    fn edge_numbers() -> Vec<Value> {
        let mut values = vec![
            Value::Real(f64::NEG_INFINITY),
            Value::Real(f64::INFINITY),
            Value::Real(f64::MAX),
            Value::Real(f64::MIN),
            Value::Real(f64::MIN_POSITIVE),
            Value::Real(-f64::MIN_POSITIVE),
            Value::Real(5e-324),
            Value::Real(-5e-324),
            Value::Real(-0.0),
            Value::Real(INTEGERS_END),
            Value::Real(-INTEGERS_END),
            Value::Real(9_223_372_036_854_774_784.0),
            Value::Real(-9_223_372_036_854_777_856.0),
        ];
        for shift in 0..63 {
            for near in [-1, 0, 1] {
                let n = (1_i64 << shift).wrapping_add(near);
                for n in [n, n.wrapping_neg()] {
                    values.push(Value::Integer(n));
                    for real in [n as f64, n as f64 + 0.5, n as f64 - 0.25, (n as f64).next_up()] {
                        values.push(Value::Real(real));
                    }
                }
            }
        }
        values.extend([i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1].map(Value::Integer));
        values
    }

    #[test]
    fn integers_and_reals_are_one_exact_order() {
        let values = edge_numbers();
        let keys: Vec<_> = values.iter().map(|value| encode_key(std::slice::from_ref(value))).collect();
        for (a, key_a) in values.iter().zip(&keys) {
            for (b, key_b) in values.iter().zip(&keys) {
                assert_eq!(key_a.cmp(key_b), model(a, b), "{a:?} {b:?}");
            }
        }
    }

    /// Small alphabets, so that prefixes, zero bytes and equal values are common.
    fn any_value(rng: &mut Rng) -> Value {
        let bytes = |rng: &mut Rng| -> Vec<u8> {
            (0..rng.below(4)).map(|_| [0, 1, b'a', 0x7F][rng.below(4) as usize]).collect()
        };
        match rng.below(8) {
            0 => Value::Null,
            1 => Value::Integer(rng.below(5) as i64 - 2),
            2 => Value::Integer(rng.next_u64() as i64 >> rng.below(64)),
            3 => Value::Real(rng.below(17) as f64 / 4.0 - 2.0),
            4 => Value::Real((rng.next_u64() as i64 >> rng.below(64)) as f64),
            5 => Value::Real(rng.normal() * 10_f64.powi(rng.below(40) as i32 - 20)),
            6 => Value::Text(String::from_utf8(bytes(rng)).expect("ASCII")),
            _ => {
                let mut blob = bytes(rng);
                if rng.below(2) == 0 {
                    blob.push(0xFF);
                }
                Value::Blob(blob)
            }
        }
    }

    #[test]
    fn keys_of_several_columns_order_as_their_values() {
        let mut rng = Rng::new(Seed(0xB7EE));
        for _ in 0..200_000 {
            let a: Vec<_> = (0..3).map(|_| any_value(&mut rng)).collect();
            let mut b: Vec<_> = (0..3).map(|_| any_value(&mut rng)).collect();
            let same = rng.below(4) as usize;
            b[..same.min(3)].clone_from_slice(&a[..same.min(3)]);
            let wanted = a.iter().zip(&b).map(|(a, b)| model(a, b)).find(|o| o.is_ne());
            assert_eq!(encode_key(&a).cmp(&encode_key(&b)), wanted.unwrap_or(Ordering::Equal), "{a:?} {b:?}");
        }
    }

    #[test]
    fn keys_are_read_back() {
        let mut rng = Rng::new(Seed(7));
        for _ in 0..50_000 {
            let values: Vec<_> = (0..rng.below(4)).map(|_| any_value(&mut rng)).collect();
            let back = decode_key(&encode_key(&values)).expect("a key");
            assert_eq!(back.len(), values.len());
            for (value, back) in values.iter().zip(&back) {
                assert!(model(value, back).is_eq(), "{value:?} {back:?}");
                let integers = -INTEGERS_END..INTEGERS_END;
                let whole = matches!(value, Value::Real(r) if r.fract() == 0.0 && integers.contains(r));
                assert_eq!(matches!((value, back), (Value::Real(_), Value::Integer(_))), whole, "{value:?}");
            }
        }
        assert_eq!(
            decode_key(&encode_key(&[Value::Integer(i64::MIN)])),
            Some(vec![Value::Integer(i64::MIN)])
        );
        assert_eq!(encode_key(&[Value::Real(f64::NAN)]), encode_key(&[Value::Null]));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in [&[0x21][..], &[0x40, b'a'], &[0x40, 0xC3, 0x00], &[0x99], &[0x20, 0xFF, 1], &[0xFE]] {
            assert_eq!(decode_key(bad), None, "{bad:x?}");
        }
    }

    #[test]
    fn prefix_ranges_take_in_all_further_columns_and_nothing_else() {
        let mut rng = Rng::new(Seed(11));
        for _ in 0..100_000 {
            let row = [any_value(&mut rng), any_value(&mut rng)];
            let prefix = [any_value(&mut rng)];
            let key = encode_key(&row);
            let (from, to) = key_range(Bound::Included(&prefix), Bound::Included(&prefix));
            let inside = |range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)| {
                std::ops::RangeBounds::<Vec<u8>>::contains(range, &key)
            };
            assert_eq!(inside(&(from, to)), model(&row[0], &prefix[0]).is_eq(), "{row:?} {prefix:?}");
            let above = key_range(Bound::Excluded(&prefix), Bound::Unbounded);
            assert_eq!(inside(&above), model(&row[0], &prefix[0]).is_gt(), "{row:?} {prefix:?}");
            let below = key_range(Bound::Unbounded, Bound::Excluded(&prefix));
            assert_eq!(inside(&below), model(&row[0], &prefix[0]).is_lt(), "{row:?} {prefix:?}");
        }
    }
}
