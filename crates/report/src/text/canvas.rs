//! A canvas of braille dots: two by four dots in each character cell, so a curve in a terminal is smooth.

/// Width × height in character cells; coordinates are dots from the top left.
pub struct Canvas {
    columns: usize,
    rows: usize,
    dots: Vec<u8>,
    marks: Vec<Option<char>>,
}

/// Bit of the braille pattern for each dot of a cell, by row and column (Unicode 1.1, block U+2800).
const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

impl Canvas {
    /// An empty canvas.
    pub fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, dots: vec![0; columns * rows], marks: vec![None; columns * rows] }
    }

    /// Width in dots.
    pub fn width(&self) -> usize {
        self.columns * 2
    }

    /// Height in dots.
    pub fn height(&self) -> usize {
        self.rows * 4
    }

    /// Sets one dot; outside the canvas nothing happens.
    pub fn set(&mut self, x: i64, y: i64) {
        if x >= 0 && y >= 0 && (x as usize) < self.width() && (y as usize) < self.height() {
            let (x, y) = (x as usize, y as usize);
            self.dots[y / 4 * self.columns + x / 2] |= BITS[y % 4][x % 2];
        }
    }

    /// A straight line of dots, by Bresenham's algorithm.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (mut x, mut y) = (from.0.round() as i64, from.1.round() as i64);
        let (x1, y1) = (to.0.round() as i64, to.1.round() as i64);
        let (dx, dy) = ((x1 - x).abs(), -(y1 - y).abs());
        let (sx, sy) = (if x < x1 { 1 } else { -1 }, if y < y1 { 1 } else { -1 });
        let mut error = dx + dy;
        loop {
            self.set(x, y);
            if x == x1 && y == y1 {
                return;
            }
            let twice = 2 * error;
            if twice >= dy {
                error += dy;
                x += sx;
            }
            if twice <= dx {
                error += dx;
                y += sy;
            }
        }
    }

    /// A vertical line of every other dot, behind the curve.
    pub fn dotted_column(&mut self, x: f64) {
        for y in (0..self.height()).step_by(3) {
            self.set(x.round() as i64, y as i64);
        }
    }

    /// A horizontal line of every third dot.
    pub fn dotted_row(&mut self, y: f64) {
        for x in (0..self.width()).step_by(4) {
            self.set(x as i64, y.round() as i64);
        }
    }

    /// Puts a whole character over the cell of a dot.
    pub fn mark(&mut self, x: f64, y: f64, mark: char) {
        let column = ((x.round().max(0.0) as usize) / 2).min(self.columns.saturating_sub(1));
        let row = ((y.round().max(0.0) as usize) / 4).min(self.rows.saturating_sub(1));
        if let Some(cell) = self.marks.get_mut(row * self.columns + column) {
            *cell = Some(mark);
        }
    }

    /// The rows as text, top first; empty cells are spaces.
    pub fn rows(&self) -> Vec<String> {
        (0..self.rows)
            .map(|row| {
                (0..self.columns)
                    .map(|column| {
                        let cell = row * self.columns + column;
                        self.marks[cell].unwrap_or_else(|| match self.dots[cell] {
                            0 => ' ',
                            bits => char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' '),
                        })
                    })
                    .collect()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_lines_and_marks() {
        let mut canvas = Canvas::new(4, 2);
        canvas.line((0.0, 7.0), (7.0, 0.0));
        canvas.mark(7.0, 7.0, '◆');
        canvas.set(-1, 99);
        assert_eq!(canvas.rows(), ["  ⡠⠊", "⡠⠊ ◆"]);
    }
}
