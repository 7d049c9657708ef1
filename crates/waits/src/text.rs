//! Texts that sessions name in a word: SQL statements, actions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts kept at most; the id of a later one is right, but leads to no text.
const TEXTS_MAX: usize = 20_000;

/// Stands for a text: the same one always, in each run (FNV-1a, 64 bits, mixed). Printed like an `sql_id`: 13 letters and digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u64);

impl TextId {
    /// Of a text. Never 0, which in a place means that there is none.
    pub fn of(text: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325, step);
        // FNV leaves the high bits of short texts alike, and these are the first characters that people compare.
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Self((mixed ^ (mixed >> 32)).max(1))
    }
}

impl fmt::Display for TextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 32] = b"0123456789abcdfghjkmnpqrstuvwxyz";
        let digit = |place: u32| char::from(DIGITS[(self.0 >> (5 * place) & 31) as usize]);
        (0..13).rev().try_for_each(|place| fmt::Write::write_char(f, digit(place)))
    }
}

/// All texts of a registry.
#[derive(Default)]
pub(crate) struct Texts(Mutex<BTreeMap<TextId, Arc<str>>>);

impl Texts {
    pub fn keep(&self, text: &str) -> TextId {
        let id = TextId::of(text);
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() < TEXTS_MAX && !texts.contains_key(&id) {
            texts.insert(id, text.into());
        }
        id
    }

    pub fn get(&self, id: TextId) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn all(&self) -> Vec<(TextId, Arc<str>)> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.iter().map(|(id, text)| (*id, text.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_look_like_sql_ids_and_lead_back() {
        let texts = Texts::default();
        let (one, two) = (texts.keep("SELECT 1"), texts.keep("SELECT 2"));
        assert_ne!(one, two);
        assert_eq!(one, texts.keep("SELECT 1"));
        assert_eq!(texts.get(one).as_deref(), Some("SELECT 1"));
        assert_eq!(texts.all().len(), 2);
        assert_eq!(texts.get(TextId(7)), None);
        assert_eq!(one.to_string().len(), 13);
        assert_ne!(one.to_string()[..3], two.to_string()[..3]);
        assert_eq!(TextId(0).to_string(), "0000000000000");
        assert_eq!(TextId(u64::MAX).to_string(), "gzzzzzzzzzzzz");
    }

    #[test]
    fn a_full_store_still_gives_ids() {
        let texts = Texts::default();
        for n in 0..TEXTS_MAX {
            texts.keep(&n.to_string());
        }
        let late = texts.keep("late");
        assert_eq!(late, TextId::of("late"));
        assert_eq!(texts.get(late), None);
        assert_eq!(texts.get(texts.keep("7")).as_deref(), Some("7"));
    }
}
