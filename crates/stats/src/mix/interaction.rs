//! Mean values of a closed network whose stations slow each other down: reads behind the log's writes on one device, the log's writer
//! behind gets on a processor.
//!
//! Stations of [`super::network_throughput`] serve at rates that depend on how many are there, not on who is elsewhere. Where parts share a
//! device or processors that is not enough: a station's residence time is then measured with all the others busy in known numbers, alone and
//! in pairs, and taken as linear in them, `W = s + Σ aⱼ nⱼ` with `s, aⱼ ≥ 0`. One station with `a = s` is the arrival theorem for an
//! exponential server (Reiser & Lavenberg 1980: `W = S (1 + n)`, Schweitzer's approximation of what an arrival sees).

/// Residence time at one station against how many are at each: `base + Σ slopes[j] · present[j]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Residence {
    /// With nobody anywhere, seconds (or a stretch without unit).
    pub base: f64,
    /// What one at each station adds.
    pub slopes: Vec<f64>,
}

impl Residence {
    /// The least relative squares over `points`: how many were at each station on average, and the residence time, positive. Each point
    /// says as many stations as the first. No coefficient is negative: those that would be are left out, the worst first.
    ///
    /// `None` for no points.
    pub fn fit(points: &[(Vec<f64>, f64)]) -> Option<Self> {
        let stations = points.first()?.0.len();
        let mut kept: Vec<usize> = (0..=stations).collect();
        loop {
            let coefficients = least_squares(points, &kept);
            let worst = kept.iter().zip(&coefficients).enumerate().min_by(|a, b| a.1.1.total_cmp(b.1.1));
            match worst {
                Some((at, (_, value))) if *value < 0.0 && kept.len() > 1 => {
                    kept.remove(at);
                }
                _ => {
                    let of = |column: usize| {
                        kept.iter().position(|k| *k == column).map_or(0.0, |at| coefficients[at].max(0.0))
                    };
                    return Some(Self { base: of(0), slopes: (1..=stations).map(of).collect() });
                }
            }
        }
    }

    /// With `present` at the stations.
    pub fn at(&self, present: &[f64]) -> f64 {
        self.base + self.slopes.iter().zip(present).map(|(slope, n)| slope * n).sum::<f64>()
    }
}

/// Column 0 is the constant, column j + 1 the presence at station j; rows are divided by the value. Normal equations by elimination.
fn least_squares(points: &[(Vec<f64>, f64)], columns: &[usize]) -> Vec<f64> {
    let row = |(present, value): &(Vec<f64>, f64)| -> Vec<f64> {
        columns.iter().map(|c| if *c == 0 { 1.0 } else { present[*c - 1] } / value).collect()
    };
    let size = columns.len();
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for point in points {
        let row = row(point);
        for (i, line) in matrix.iter_mut().enumerate() {
            for j in 0..size {
                line[j] += row[i] * row[j];
            }
            line[size] += row[i];
        }
    }
    for i in 0..size {
        // Columns that the points do not tell apart get nothing: a trace of a ridge keeps the elimination going.
        matrix[i][i] *= 1.0 + 1e-9;
        let pivot = matrix[i][i];
        if pivot.abs() < 1e-300 {
            continue;
        }
        let base = matrix[i].clone();
        for (_, line) in matrix.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = line[i] / pivot;
            line.iter_mut().zip(&base).for_each(|(value, above)| *value -= factor * above);
        }
    }
    (0..size)
        .map(|i| if matrix[i][i].abs() < 1e-300 { 0.0 } else { matrix[i][size] / matrix[i][i] })
        .collect()
}

/// Transactions per second of `sessions` that never think: the fixed point of `nⱼ = X · demand[j] · W[j](n)`, `Σ nⱼ = sessions`.
///
/// `demands`: what one transaction asks of each station, in the unit that its residence is per: visits, or seconds where the residence is a
/// stretch. 0 when nothing is demanded.
pub fn interacting_throughput(demands: &[f64], residences: &[Residence], sessions: u32) -> f64 {
    const STEPS: usize = 2_000;
    const DAMPING: f64 = 0.2;
    let total = f64::from(sessions);
    let mut present = vec![total / demands.len().max(1) as f64; demands.len()];
    let mut throughput = 0.0;
    for _ in 0..STEPS {
        let times: Vec<f64> =
            demands.iter().zip(residences).map(|(demand, w)| demand * w.at(&present)).collect();
        let cycle: f64 = times.iter().sum();
        if cycle <= 0.0 {
            return 0.0;
        }
        throughput = total / cycle;
        for (n, time) in present.iter_mut().zip(&times) {
            *n += DAMPING * (throughput * time - *n);
        }
    }
    throughput
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_what_would_be_negative_is_left_out() {
        let truth = Residence { base: 2.0, slopes: vec![0.5, 0.0, 1.5] };
        let places = [
            [0., 0., 1.],
            [1., 0., 0.],
            [4., 0., 0.],
            [2., 2., 0.],
            [0., 3., 1.],
            [1., 1., 4.],
            [0., 8., 0.],
        ];
        let points: Vec<_> = places.iter().map(|p| (p.to_vec(), truth.at(p))).collect();
        let found = Residence::fit(&points).expect("points");
        assert!((found.base - 2.0).abs() < 1e-4 && (found.slopes[0] - 0.5).abs() < 1e-4, "{found:?}");
        assert!(found.slopes[1].abs() < 1e-4 && (found.slopes[2] - 1.5).abs() < 1e-4, "{found:?}");
        let falling: Vec<_> = (1..5).map(|n| (vec![f64::from(n)], 10.0 - f64::from(n))).collect();
        let found = Residence::fit(&falling).expect("points");
        assert_eq!(found.slopes, [0.0]);
        assert!(found.base > 5.0 && found.base < 9.0, "{found:?}");
        assert_eq!(Residence::fit(&[]), None);
    }

    #[test]
    fn without_interaction_it_is_sessions_over_time() {
        let fixed = |base| Residence { base, slopes: vec![0.0, 0.0] };
        let x = interacting_throughput(&[2.0, 1.0], &[fixed(1e-3), fixed(3e-3)], 10);
        assert!((x * 5e-3 / 10.0 - 1.0).abs() < 1e-9, "{x}");
        assert_eq!(interacting_throughput(&[0.0], &[fixed(1.0)], 10), 0.0);
    }

    #[test]
    fn servers_that_queue_saturate() {
        // W = S (1 + n): with many sessions the throughput tends to 1 / S.
        let server = |s: f64, at: usize| {
            let slopes = (0..2).map(|j| if j == at { s } else { 0.0 }).collect();
            Residence { base: s, slopes }
        };
        let x = |n| interacting_throughput(&[1.0, 1.0], &[server(1e-3, 0), server(2e-3, 1)], n);
        assert!(x(1) < 1.0 / 3e-3 && x(64) > 470.0 && x(64) <= 500.0 * 1.001, "{} {}", x(1), x(64));
    }

    #[test]
    fn a_station_that_slows_another_costs_both() {
        let alone = [
            Residence { base: 1e-3, slopes: vec![0.0, 0.0] },
            Residence { base: 1e-3, slopes: vec![0.0, 0.0] },
        ];
        let shared = [
            Residence { base: 1e-3, slopes: vec![0.0, 5e-4] },
            Residence { base: 1e-3, slopes: vec![5e-4, 0.0] },
        ];
        let x = |r: &[Residence; 2]| interacting_throughput(&[1.0, 1.0], r, 4);
        // Two are at each by symmetry: both take 2 ms instead of 1.
        assert!((x(&alone) - 2_000.0).abs() < 1e-6 && (x(&shared) - 1_000.0).abs() < 1e-3, "{}", x(&shared));
    }
}
