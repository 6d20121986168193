//! The data of a path, written with one decimal: finer than a pixel, and short. A shape begins at a place or so far from the one
//! before, whichever is shorter.

use std::fmt::Write;

/// A path that grows.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathData {
    text: String,
    /// Where the pen is, in tenths; at the beginning nowhere.
    pen: Option<(i64, i64)>,
}

impl PathData {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A filled rectangle.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64) -> &mut Self {
        self.shape(x, y, &[(width, 0.0), (0.0, height), (-width, 0.0)])
    }

    /// A closed shape from a point on, by steps.
    pub fn shape(&mut self, x: f64, y: f64, steps: &[(f64, f64)]) -> &mut Self {
        self.open(x, y, steps);
        self.text.push('z');
        // Closing leads back to the beginning.
        self.pen = Some((tenths(x), tenths(y)));
        self
    }

    /// A line from a point on, by steps.
    pub fn open(&mut self, x: f64, y: f64, steps: &[(f64, f64)]) -> &mut Self {
        self.move_to(x, y);
        for (dx, dy) in steps {
            match (*dx, *dy) {
                (dx, 0.0) => self.op('h', &[dx]),
                (0.0, dy) => self.op('v', &[dy]),
                (dx, dy) => self.op('l', &[dx, dy]),
            };
        }
        // The end of rounded steps need not be that of the steps.
        self.pen = None;
        self
    }

    /// A line between two points.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) -> &mut Self {
        self.move_to(from.0, from.1).op('L', &[to.0, to.1]);
        self.pen = Some((tenths(to.0), tenths(to.1)));
        self
    }

    /// Lifts the pen and sets it down.
    fn move_to(&mut self, x: f64, y: f64) -> &mut Self {
        let begin = self.text.len();
        self.op('M', &[x, y]);
        let middle = self.text.len();
        if let Some((from_x, from_y)) = self.pen {
            let by = |to: f64, from: i64| (tenths(to) - from) as f64 / 10.0;
            self.op('m', &[by(x, from_x), by(y, from_y)]);
            if self.text.len() - middle < middle - begin {
                self.text.drain(begin..middle);
            } else {
                self.text.truncate(middle);
            }
        }
        self
    }

    fn op(&mut self, letter: char, numbers: &[f64]) -> &mut Self {
        self.text.push(letter);
        for (n, number) in numbers.iter().enumerate() {
            let rounded = tenths(*number) as f64 / 10.0;
            // A minus sign separates by itself; -0 is 0.
            let rounded = if rounded == 0.0 { 0.0 } else { rounded };
            if n > 0 && rounded >= 0.0 {
                self.text.push(' ');
            }
            // Writing into a string does not fail.
            let _ = write!(self.text, "{rounded}");
        }
        self
    }
}

fn tenths(number: f64) -> i64 {
    (number * 10.0).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_short() {
        let mut path = PathData::default();
        path.rect(1.0, 2.04, 3.5, 10.0).line((0.0, -0.01), (5.0, -2.0));
        assert_eq!(path.as_str(), "M1 2h3.5v10h-3.5zM0 0L5-2");
    }

    #[test]
    fn a_shape_begins_relative_to_the_one_before_where_that_is_shorter() {
        let mut path = PathData::default();
        path.rect(1_000.0, 56.0, 2.0, 24.0).rect(1_003.04, 50.0, 2.0, 30.0).line((1_006.0, 0.0), (1_006.0, 9.0));
        path.open(1_009.0, 9.0, &[(0.0, -3.0), (2.0, 0.0)]).rect(1_012.0, 9.0, 1.0, 1.0);
        assert_eq!(path.as_str(), "M1000 56h2v24h-2zm3-6h2v30h-2zm3-50L1006 9m3 0v-3h2M1012 9h1v1h-1z");
    }
}
