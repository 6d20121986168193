//! The data of a path, written with one decimal: finer than a pixel, and short.

use std::fmt::Write;

/// A path that grows.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathData(String);

impl PathData {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A filled rectangle.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64) -> &mut Self {
        self.op('M', &[x, y]).op('h', &[width]).op('v', &[height]).op('h', &[-width]);
        self.0.push('z');
        self
    }

    /// A closed shape from a point on, by steps.
    pub fn shape(&mut self, x: f64, y: f64, steps: &[(f64, f64)]) -> &mut Self {
        self.op('M', &[x, y]);
        for (dx, dy) in steps {
            match (*dx, *dy) {
                (dx, 0.0) => self.op('h', &[dx]),
                (0.0, dy) => self.op('v', &[dy]),
                (dx, dy) => self.op('l', &[dx, dy]),
            };
        }
        self.0.push('z');
        self
    }

    /// A line between two points.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) -> &mut Self {
        self.op('M', &[from.0, from.1]).op('L', &[to.0, to.1])
    }

    fn op(&mut self, letter: char, numbers: &[f64]) -> &mut Self {
        self.0.push(letter);
        for (n, number) in numbers.iter().enumerate() {
            let rounded = (number * 10.0).round() / 10.0;
            // A minus sign separates by itself; -0 is 0.
            let rounded = if rounded == 0.0 { 0.0 } else { rounded };
            if n > 0 && rounded >= 0.0 {
                self.0.push(' ');
            }
            // Writing into a string does not fail.
            let _ = write!(self.0, "{rounded}");
        }
        self
    }
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
}
