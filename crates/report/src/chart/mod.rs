//! Drawings: scales, the SVG pen, and one file for each kind of chart. They know numbers and labels, no records.

pub mod bar;
pub mod break_even;
pub mod cell;
pub mod curve;
pub mod interaction;
pub mod ranked;
mod scale;
pub mod sizes;
pub mod spark;
pub mod strips;
mod svg;
pub mod timeline;
pub mod winners;

pub use scale::{Scale, extent};
pub use svg::{Anchor, Svg, escape};
