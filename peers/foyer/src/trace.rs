//! Which blocks are asked for.

use units::{Rng, Seed};

/// A kind of trace.
#[derive(Clone, Copy)]
pub enum Trace {
    /// Every block as often as any other.
    Uniform,
    /// Few blocks often, many rarely.
    Skewed,
    /// The same, and between it now and then a scan of everything.
    SkewedWithScans,
}

/// All.
pub const TRACES: [Trace; 3] = [Trace::Uniform, Trace::Skewed, Trace::SkewedWithScans];

impl Trace {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Skewed => "skewed",
            Self::SkewedWithScans => "skewed with scans",
        }
    }

    /// `count` of them, among `blocks`.
    pub fn references(self, blocks: u64, count: u64) -> Vec<u64> {
        let mut rng = Rng::new(Seed(11));
        let mut places: Vec<u64> = (0..blocks).collect();
        rng.shuffle(&mut places);
        // A power of a uniform number: rank r is wanted in proportion to r to the power of -0.8.
        let skewed = |rng: &mut Rng| {
            let uniform = rng.below(1 << 40) as f64 / (1_u64 << 40) as f64;
            places[((blocks as f64) * uniform.powi(5)) as usize]
        };
        let mut all = Vec::with_capacity(count as usize);
        while (all.len() as u64) < count {
            match self {
                Self::Uniform => all.push(rng.below(blocks)),
                Self::Skewed => all.push(skewed(&mut rng)),
                Self::SkewedWithScans => {
                    all.extend((0..3 * blocks).map(|_| skewed(&mut rng)));
                    all.extend(0..blocks);
                }
            }
        }
        all.truncate(count as usize);
        all
    }
}
