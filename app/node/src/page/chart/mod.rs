//! Charts: SVG made by the server, each with a sentence for those who cannot see it. Shapes of one kind are one path.

pub(crate) mod bars;
pub(crate) mod days;
pub(crate) mod path;
pub(crate) mod strip;
