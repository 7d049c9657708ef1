//! The second theme of wait classes keeps its promise: classes are told apart by all kinds of colour vision.

use std::collections::BTreeMap;

const CSS: &str = include_str!("../src/page/page.css");

/// Linear red, green and blue, 0–1.
type Light = [f64; 3];

/// Machado, Oliveira and Fernandes 2009, severity 1.0: what remains of linear light without one kind of cone.
const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
    ("full sight", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "no red cones",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "no green cones",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "no blue cones",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// The classes of a run of ours: what a reader must keep apart. Queueing and Cluster are other databases'.
const CLASSES: [&str; 11] = [
    "cpu",
    "scheduler",
    "user-i-o",
    "system-i-o",
    "concurrency",
    "application",
    "commit",
    "configuration",
    "administrative",
    "network",
    "other",
];

fn light(hex: &str) -> Light {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits")) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    [channel(1), channel(3), channel(5)]
}

/// Ottosson's Oklab: distances are differences as they look.
fn oklab(rgb: Light) -> [f64; 3] {
    let mix = |m: [f64; 3]| (m[0] * rgb[0] + m[1] * rgb[1] + m[2] * rgb[2]).max(0.0).cbrt();
    let l = mix([0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9]);
    let m = mix([0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6]);
    let s = mix([0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5]);
    [
        0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
    ]
}

fn seen(rgb: Light, sight: &[[f64; 3]; 3]) -> Light {
    sight.map(|row| row.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0))
}

fn difference(a: &str, b: &str, sight: &[[f64; 3]; 3]) -> f64 {
    let (a, b) = (oklab(seen(light(a), sight)), oklab(seen(light(b), sight)));
    a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

/// Colours by class of the rule that begins with `head`.
fn theme(head: &str) -> BTreeMap<&'static str, &'static str> {
    let rule = CSS.split(head).nth(1).and_then(|rest| rest.split('}').next()).expect("the rule is there");
    let colours = rule.split("--c-").skip(1).filter_map(|part| part.split(';').next()?.split_once(": "));
    colours.collect()
}

/// The smallest difference between any two classes, and between neighbours in the chart, over all kinds of sight.
fn smallest(theme: &BTreeMap<&str, &str>, neighbours: bool) -> (f64, String) {
    let mut worst = (f64::INFINITY, String::new());
    for (index, a) in CLASSES.iter().enumerate() {
        let others = &CLASSES[index + 1..];
        for b in if neighbours { &others[..others.len().min(1)] } else { others } {
            for (name, sight) in &SIGHTS {
                let found = difference(theme[a], theme[b], sight);
                if found < worst.0 {
                    worst = (found, format!("{a} and {b}, {name}: {found:.3}"));
                }
            }
        }
    }
    worst
}

/// 0.02 is just seen side by side; small areas beside a white line need several times that.
#[test]
fn the_safe_theme_is_told_apart_by_all_eyes() {
    let light = theme(":root:has(#safe-colours:checked) {\n");
    let mut dark = light.clone();
    dark.extend(theme(":root:has(#safe-colours:checked) { "));
    assert_ne!(light, dark);
    for safe in [light, dark] {
        let (any, which) = smallest(&safe, false);
        assert!(any >= 0.07, "{which}");
        let (near, which) = smallest(&safe, true);
        assert!(near >= 0.13, "neighbours: {which}");
    }
}

/// What the switch is for: the classic theme would not hold.
#[test]
fn the_classic_theme_is_not() {
    let classic = theme("/* Wait classes.");
    assert_eq!(classic["commit"], "#e46800");
    assert!(smallest(&classic, false).0 < 0.05);
}
