//! `dba_source`: lines of program text, as many as are wanted, the same ones always.
//!
//! Oracle's has the text of stored programs, and people fill test tables with it. Ours is made up line by line: what matters
//! is that lines differ in length and content as program text does, so that neither rows nor blocks are all alike.

use super::objects::OWNER;
use engine::{Row, Value};

/// Lines of one package.
const LINES: u64 = 400;

const NOUNS: [&str; 16] = [
    "account",
    "balance",
    "booking",
    "branch",
    "charge",
    "customer",
    "delivery",
    "district",
    "invoice",
    "item",
    "ledger",
    "order",
    "payment",
    "price",
    "stock",
    "warehouse",
];
const VERBS: [&str; 8] = ["add", "check", "close", "compute", "fetch", "lock", "move", "update"];

/// The first `count` lines.
pub fn lines(count: u64) -> impl Iterator<Item = Row> {
    (0..count).map(|n| {
        let (package, line) = (n / LINES, n % LINES + 1);
        let name = format!("{}_{}_{}", pick(&VERBS, package), pick(&NOUNS, package / 8), package);
        vec![
            Value::Text(OWNER.to_owned()),
            Value::Text(name.to_ascii_uppercase()),
            Value::Text("PACKAGE BODY".to_owned()),
            Value::Integer(line as i64),
            Value::Text(format!("{}\n", text(&name, line, mix(n)))),
        ]
    })
}

fn text(name: &str, line: u64, chance: u64) -> String {
    let noun = |shift: u32| pick(&NOUNS, chance >> shift);
    let verb = pick(&VERBS, chance >> 4);
    let indent = " ".repeat(2 * (1 + (chance >> 40) as usize % 4));
    if line == 1 {
        return format!("PACKAGE BODY {name} IS");
    }
    if line == LINES {
        return format!("END {name};");
    }
    match chance % 16 {
        0 => String::new(),
        1..=2 => format!("{indent}-- {verb} the {} of this {} before the {}", noun(8), noun(12), noun(16)),
        3 => format!(
            "{indent}PROCEDURE {verb}_{}(p_{} IN NUMBER, p_{} OUT VARCHAR2) IS",
            noun(8),
            noun(12),
            noun(16)
        ),
        4 => format!("{indent}END {verb}_{};", noun(8)),
        5..=7 => format!("{indent}l_{}_{} := nvl(p_{}, 0) + {};", noun(8), noun(12), noun(16), chance >> 52),
        8..=9 => format!("{indent}IF l_{} > {} AND l_{} IS NOT NULL THEN", noun(8), chance >> 54, noun(12)),
        10 => format!("{indent}END IF;"),
        11..=12 => format!(
            "{indent}SELECT {0}_id, sum({1}) INTO l_{0}, l_{1} FROM {2}s WHERE {0}_id = p_{0} GROUP BY {0}_id;",
            noun(8),
            noun(12),
            noun(16)
        ),
        13 => format!(
            "{indent}UPDATE {}s SET {} = l_{} WHERE {}_id = :{};",
            noun(8),
            noun(12),
            noun(12),
            noun(8),
            chance >> 58
        ),
        14 => format!("{indent}{verb}_{}(l_{}, l_{});", noun(8), noun(12), noun(16)),
        _ => format!("{indent}RETURN l_{};", noun(8)),
    }
}

fn pick<'a>(words: &[&'a str], n: u64) -> &'a str {
    words[(n % words.len() as u64) as usize]
}

/// Bits that look like chance and are the same for the same number (splitmix64).
fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_always_and_differ_among_each_other() {
        let rows: Vec<_> = lines(2 * LINES).collect();
        assert_eq!(rows, lines(2 * LINES).collect::<Vec<_>>());
        let length = |row: &Row| match &row[4] {
            Value::Text(text) => text.len(),
            other => panic!("{other:?}"),
        };
        let bytes: usize = rows.iter().map(length).sum();
        let mean = bytes / rows.len();
        assert!((20..60).contains(&mean), "{mean} bytes a line");
        let mut texts: Vec<_> = rows.iter().map(|row| format!("{:?}", row[4])).collect();
        texts.sort();
        texts.dedup();
        assert!(texts.len() > 500, "{} different lines", texts.len());
    }
}
