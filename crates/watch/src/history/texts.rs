//! Names and statements, each kept once and known by a number.

use std::collections::HashMap;
use std::sync::Arc;

/// A text's number.
pub type TextId = u16;

/// What is not told apart any more.
pub const OTHERS: TextId = 1;

/// More texts than this are not told apart: a client that writes values into its statements has no end of them.
const TEXTS_MAX: usize = 40_000;
/// Longer texts are cut, characters.
const TEXT_MAX: usize = 240;

#[derive(Debug)]
pub struct Texts {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TextId>,
}

impl Default for Texts {
    fn default() -> Self {
        let texts: Vec<Arc<str>> = vec!["".into(), "(others)".into()];
        let ids = texts.iter().enumerate().map(|(id, text)| (text.clone(), id as TextId)).collect();
        Self { texts, ids }
    }
}

impl Texts {
    pub fn id(&mut self, text: &str) -> TextId {
        let text = match text.len() > TEXT_MAX {
            true => text.char_indices().nth(TEXT_MAX).map_or(text, |(at, _)| &text[..at]),
            false => text,
        };
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        if self.texts.len() >= TEXTS_MAX {
            return OTHERS;
        }
        let (id, text) = (self.texts.len() as TextId, Arc::<str>::from(text));
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(usize::from(id)).map_or("", |text| text)
    }
}
