//! How a table is reached: by row address, by an index, or by a full scan, sorted if need be. Pure: the virtual table asks,
//! and tells SQLite.
//!
//! Every condition is tested again by SQLite on each row, so a plan may return more rows than asked for, never fewer.
//! A plan travels from planning to execution as a short text ([`Access::encode`], [`Access::decode`]).

/// How a column is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `=`
    Equal,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// No comparison: the statement wants only so many rows.
    Limit,
    /// Anything else; of no use here.
    Other,
}

/// A condition `column op value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The column; none is the row's address.
    pub column: Option<usize>,
    /// The comparison.
    pub op: Op,
    /// Whether its value is known when the search begins.
    pub usable: bool,
    /// Whether texts are compared byte by byte, as the keys of an index are.
    pub binary: bool,
}

/// A term of ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column; none is the row's address.
    pub column: Option<usize>,
    /// Largest first.
    pub descending: bool,
}

/// What is known of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// For each column, whether it may hold NULL.
    pub nullable: Vec<bool>,
    /// Its indexes.
    pub indexes: Vec<IndexShape>,
    /// About how many rows.
    pub rows: f64,
}

/// What is known of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexShape {
    /// Its columns, in key order.
    pub columns: Vec<usize>,
    /// No two rows with one key.
    pub unique: bool,
}

/// Which end comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}

/// How rows are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// All rows.
    Scan,
    /// All rows, sorted by the engine, which spills to its temp files; SQLite would sort in its own memory.
    Sort(Vec<(usize, Direction)>),
    /// The row at the address that the first argument gives.
    Row,
    /// Rows of an index whose key begins with the first `equal` arguments, then lies within the bounds.
    Index {
        /// Which of the table's indexes.
        index: usize,
        /// How many columns of the key are given.
        equal: usize,
        /// `>` or `>=` on the next column; its value is the next argument.
        low: Option<Op>,
        /// `<` or `<=` on it; its value is the argument after that.
        high: Option<Op>,
        /// From the end to the begin.
        descending: bool,
    },
}

/// A way to the rows, and its price.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How.
    pub access: Access,
    /// Which constraints give the arguments, in order.
    pub arguments: Vec<usize>,
    /// The rows come as ORDER BY wants them.
    pub ordered: bool,
    /// There is one row at most.
    pub one_row: bool,
    /// About how many rows.
    pub rows: f64,
    /// In reads of a row by address.
    pub cost: f64,
}

/// Price of a row in a full scan, in reads of a row by address: a block brings many rows at once.
const SCAN_ROW_COST: f64 = 0.05;
/// Share of the rows that one equality leaves when the index is not unique, and that a bound leaves.
const EQUAL_SHARE: f64 = 0.01;
const BOUND_SHARE: f64 = 0.3;

/// Price of each of the n·log₂n steps of a sort. High on purpose: SQLite sorts in its own memory and not in our temp files,
/// and a walk in order may end early, at a LIMIT that we are not told of.
const SORT_STEP_COST: f64 = 0.1;

/// The cheapest way.
pub fn best(shape: &Shape, constraints: &[Constraint], order: &[Order]) -> Plan {
    let mut plans = vec![scan(shape, order)];
    plans.extend(sort(shape, constraints, order));
    plans.extend(by_row(constraints));
    plans.extend((0..shape.indexes.len()).filter_map(|index| by_index(shape, index, constraints, order)));
    let total = |plan: &Plan| {
        let sort = if plan.ordered { 0.0 } else { plan.rows * plan.rows.max(2.0).log2() * SORT_STEP_COST };
        plan.cost + sort
    };
    let cheaper = |a: Plan, b: Plan| if total(&b) < total(&a) { b } else { a };
    plans.into_iter().reduce(cheaper).unwrap_or_else(|| scan(shape, order))
}

fn scan(shape: &Shape, order: &[Order]) -> Plan {
    let rows = shape.rows.max(1.0);
    Plan {
        access: Access::Scan,
        arguments: vec![],
        ordered: order.is_empty(),
        one_row: false,
        rows,
        cost: 1.0 + rows * SCAN_ROW_COST,
    }
}

/// Only where all rows are wanted: with a condition or a LIMIT, SQLite has fewer rows to sort than the table has.
fn sort(shape: &Shape, constraints: &[Constraint], order: &[Order]) -> Option<Plan> {
    if order.is_empty() || !constraints.is_empty() {
        return None;
    }
    let way = |descending| if descending { Direction::Descending } else { Direction::Ascending };
    let columns: Option<Vec<_>> =
        order.iter().map(|term| Some((term.column?, way(term.descending)))).collect();
    let rows = shape.rows.max(1.0);
    Some(Plan {
        access: Access::Sort(columns?),
        ordered: true,
        // Dearer than a walk in order, cheaper than to let SQLite sort.
        cost: 1.0 + rows * SCAN_ROW_COST + rows * rows.max(2.0).log2() * SORT_STEP_COST * 0.9,
        ..scan(shape, order)
    })
}

fn by_row(constraints: &[Constraint]) -> Option<Plan> {
    let at = constraints.iter().position(|c| c.usable && c.column.is_none() && c.op == Op::Equal)?;
    Some(Plan {
        access: Access::Row,
        arguments: vec![at],
        ordered: true,
        one_row: true,
        rows: 1.0,
        cost: 1.0,
    })
}

fn by_index(shape: &Shape, index: usize, constraints: &[Constraint], order: &[Order]) -> Option<Plan> {
    let IndexShape { columns, unique } = &shape.indexes[index];
    let find = |column: usize, ops: &[Op]| {
        constraints
            .iter()
            .position(|c| c.usable && c.binary && c.column == Some(column) && ops.contains(&c.op))
    };
    let mut arguments = Vec::new();
    for &column in columns {
        let Some(at) = find(column, &[Op::Equal]) else { break };
        arguments.push(at);
    }
    let equal = arguments.len();
    let next = columns.get(equal).copied();
    let low = next.and_then(|column| find(column, &[Op::Greater, Op::GreaterOrEqual]));
    let high = next.and_then(|column| find(column, &[Op::Less, Op::LessOrEqual]));
    arguments.extend(low);
    arguments.extend(high);
    let descending = in_order(shape, columns, equal, low.is_some() || high.is_some(), order);
    if arguments.is_empty() && (descending.is_none() || order.is_empty()) {
        return None;
    }
    let one = *unique && equal == columns.len();
    let mut rows = shape.rows.max(1.0);
    if one {
        rows = 1.0;
    } else {
        rows *= EQUAL_SHARE.powi(equal as i32);
        rows *= BOUND_SHARE.powi(i32::from(low.is_some()) + i32::from(high.is_some()));
    }
    let rows = rows.max(1.0);
    let access = Access::Index {
        index,
        equal,
        low: low.map(|at| constraints[at].op),
        high: high.map(|at| constraints[at].op),
        descending: descending.unwrap_or(false),
    };
    Some(Plan {
        access,
        arguments,
        ordered: order.is_empty() || descending.is_some() || one,
        one_row: one,
        rows,
        cost: 2.0 + rows,
    })
}

/// Whether walking the index gives the order that is wanted: forwards (`Some(false)`), backwards (`Some(true)`), or not.
///
/// NULLs are last in our keys and first for SQLite, so a column that may be NULL gives SQLite's order only where a
/// condition on it keeps NULLs out.
fn in_order(shape: &Shape, columns: &[usize], equal: usize, bounded: bool, order: &[Order]) -> Option<bool> {
    let Some(first) = order.first() else { return Some(false) };
    let mut terms = order.iter().peekable();
    // Columns that are equal in all rows may stand anywhere in ORDER BY; here they are skipped where they lead.
    while terms.next_if(|term| term.column.is_some_and(|c| columns[..equal].contains(&c))).is_some() {}
    let mut descending = None;
    for (place, &column) in columns.iter().enumerate().skip(equal) {
        let Some(term) = terms.next() else { break };
        let no_nulls = !shape.nullable.get(column).copied().unwrap_or(true) || (place == equal && bounded);
        let same_way = *descending.get_or_insert(term.descending) == term.descending;
        if term.column != Some(column) || !no_nulls || !same_way {
            return None;
        }
    }
    if terms.next().is_some() {
        return None;
    }
    Some(descending.unwrap_or(first.descending))
}

impl Access {
    /// As text: `S`, `R`, `O` (column `A`|`D`) `,` …, or `I` index `,` equal `,` low `,` high `,` `A`|`D`.
    pub fn encode(&self) -> String {
        match self {
            Self::Scan => "S".into(),
            Self::Sort(columns) => {
                let term = |(column, way): &(usize, Direction)| {
                    format!("{column}{}", if *way == Direction::Ascending { 'A' } else { 'D' })
                };
                format!("O{}", columns.iter().map(term).collect::<Vec<_>>().join(","))
            }
            Self::Row => "R".into(),
            Self::Index { index, equal, low, high, descending } => {
                let sign = |op: &Option<Op>| match op {
                    Some(Op::Greater | Op::Less) => 'x',
                    Some(_) => 'i',
                    None => '-',
                };
                let way = if *descending { 'D' } else { 'A' };
                format!("I{index},{equal},{},{},{way}", sign(low), sign(high))
            }
        }
    }

    /// Back; none when it is no text of ours.
    pub fn decode(text: &str) -> Option<Self> {
        match text {
            "S" => return Some(Self::Scan),
            "R" => return Some(Self::Row),
            _ => {}
        }
        if let Some(terms) = text.strip_prefix('O') {
            let term = |text: &str| match text.strip_suffix('A') {
                Some(column) => Some((column.parse().ok()?, Direction::Ascending)),
                None => Some((text.strip_suffix('D')?.parse().ok()?, Direction::Descending)),
            };
            return terms.split(',').map(term).collect::<Option<_>>().map(Self::Sort);
        }
        let parts: Vec<_> = text.strip_prefix('I')?.split(',').collect();
        let [index, equal, low, high, way] = parts[..] else { return None };
        let bound = |text: &str, exclusive, inclusive| match text {
            "-" => Some(None),
            "x" => Some(Some(exclusive)),
            "i" => Some(Some(inclusive)),
            _ => None,
        };
        Some(Self::Index {
            index: index.parse().ok()?,
            equal: equal.parse().ok()?,
            low: bound(low, Op::Greater, Op::GreaterOrEqual)?,
            high: bound(high, Op::Less, Op::LessOrEqual)?,
            descending: match way {
                "A" => false,
                "D" => true,
                _ => return None,
            },
        })
    }
}

/// The columns that a statement needs, from SQLite's mask: bit n is column n, bit 63 stands for all from 63 on.
pub fn columns_used(mask: u64, columns: usize) -> Vec<usize> {
    (0..columns).filter(|&column| mask & (1 << column.min(63)) != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            nullable: vec![false, true, true],
            indexes: vec![
                IndexShape { columns: vec![0], unique: true },
                IndexShape { columns: vec![1, 2], unique: false },
            ],
            rows: 100_000.0,
        }
    }

    fn on(column: usize, op: Op) -> Constraint {
        Constraint { column: Some(column), op, usable: true, binary: true }
    }

    fn by(column: usize, descending: bool) -> Order {
        Order { column: Some(column), descending }
    }

    fn check(constraints: &[Constraint], order: &[Order], access: &str, arguments: &[usize], ordered: bool) {
        let plan = best(&shape(), constraints, order);
        let found = (plan.access.encode(), plan.arguments, plan.ordered);
        assert_eq!(found, (access.to_owned(), arguments.to_vec(), ordered), "{constraints:?} {order:?}");
        assert_eq!(Access::decode(access), Some(plan.access));
    }

    #[test]
    fn nothing_known_is_a_scan() {
        check(&[], &[], "S", &[], true);
        check(&[on(2, Op::Equal)], &[], "S", &[], true);
        check(&[Constraint { usable: false, ..on(0, Op::Equal) }], &[], "S", &[], true);
        check(&[Constraint { binary: false, ..on(0, Op::Equal) }], &[], "S", &[], true);
        check(&[on(0, Op::Other)], &[], "S", &[], true);
    }

    #[test]
    fn a_row_address_beats_everything() {
        let row = Constraint { column: None, ..on(0, Op::Equal) };
        check(&[on(0, Op::Equal), row], &[by(1, true)], "R", &[1], true);
    }

    #[test]
    fn the_longest_prefix_of_an_index() {
        check(&[on(0, Op::Equal)], &[], "I0,1,-,-,A", &[0], true);
        check(&[on(2, Op::Equal), on(1, Op::Equal)], &[], "I1,2,-,-,A", &[1, 0], true);
        check(
            &[on(2, Op::LessOrEqual), on(1, Op::Equal), on(2, Op::Greater)],
            &[],
            "I1,1,x,i,A",
            &[1, 2, 0],
            true,
        );
    }

    #[test]
    fn order_by_an_index() {
        check(&[], &[by(0, true)], "I0,0,-,-,D", &[], true);
        // Column 1 may be NULL: our keys have NULLs last, SQLite wants them first.
        check(&[], &[by(1, false)], "O1A", &[], true);
        check(&[], &[by(1, true), by(2, false)], "O1D,2A", &[], true);
        check(&[on(1, Op::Greater)], &[by(1, true)], "I1,0,x,-,D", &[0], true);
        check(
            &[on(1, Op::Equal), on(2, Op::Greater)],
            &[by(1, false), by(2, true)],
            "I1,1,x,-,D",
            &[0, 1],
            true,
        );
        check(
            &[on(1, Op::Equal), on(2, Op::Greater)],
            &[by(2, false), by(0, false)],
            "I1,1,x,-,A",
            &[0, 1],
            false,
        );
    }

    #[test]
    fn fewer_rows_than_the_table_has_are_sorted_by_sqlite() {
        let limit = Constraint { column: None, ..on(0, Op::Limit) };
        check(&[limit], &[by(1, false)], "S", &[], false);
        check(&[on(2, Op::Equal)], &[by(1, false)], "S", &[], false);
    }

    #[test]
    fn the_mask_names_columns() {
        assert_eq!(columns_used(0b101, 3), [0, 2]);
        assert_eq!(columns_used(1 << 63, 66), [63, 64, 65]);
        assert_eq!(columns_used(0, 3), [0_usize; 0]);
    }

    #[test]
    fn foreign_text_is_no_plan() {
        for text in ["", "X", "I", "I0,1", "I0,1,-,-,Z", "Ia,1,-,-,A", "O", "O1", "OxA"] {
            assert_eq!(Access::decode(text), None, "{text}");
        }
    }
}
