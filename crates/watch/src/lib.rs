//! Top activity of a database over time: what was seen, what of it is shown, and its drawing.
//!
//! Pure: no server, no clock, no terminal. Who samples hands over [`history::Look`]s; [`history::History`] keeps them within fixed
//! bounds; [`view::View`] is what the user chose (time, selection, drill); [`board::Board`] is what follows from both, in
//! numbers; [`draw`] puts it onto the cells of a terminal, [`web`] hands it to a page. So every picture can be tested as text.
#![forbid(unsafe_code)]

pub mod board;
pub mod class;
pub mod draw;
pub mod history;
pub mod view;
pub mod web;
