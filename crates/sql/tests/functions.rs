//! Oracle's functions give what Oracle's manual says, asked through SQL.
//!
//! Source: Oracle Database SQL Language Reference 19c, chapter 7; its own examples where it has some.

mod support;

use support::{Database, database, refused};

fn check(db: &mut Database, expression: &str, expected: &str) {
    support::check(db, &format!("select {expression} from dual"), expected);
}

#[test]
fn for_any_value() {
    let db = &mut database();
    check(db, "nvl(null, 'x'), nvl(1, 2), nvl2(null, 1, 2), nvl2(0, 1, 2), coalesce(null, 3)", "x|1|2|1|3");
    check(db, "nullif(1, 1), nullif(1, 2)", "|1");
    check(
        db,
        "decode(2, 1, 'one', 2, 'two', 'many'), decode(3, 1, 'one'), decode(null, null, 'nothing')",
        "two||nothing",
    );
    check(
        db,
        "greatest(1, 3.925, 2.4), least('HARRY', 'HARRIOT', 'HAROLD'), greatest(1, null)",
        "3.925|HAROLD|",
    );
    refused(db, "select decode(1) from dual", "DECODE");
}

#[test]
fn for_numbers() {
    let db = &mut database();
    check(db, "trunc(15.79, 1), trunc(15.79, -1), trunc(15.79), trunc(-15.79)", "15.7|10|15|-15");
    check(db, "round(15.193, 1), round(15.193, -1), round(-2.5), round(50.0) || '%'", "15.2|20|-3|50%");
    check(db, "mod(11, 4), mod(11, -4), mod(-11, 4), mod(11, 0)", "3|3|-3|11");
    check(db, "ceil(268651.8), floor(15.7), floor(-1.2), abs(-15), sign(-15)", "268652|15|-2|15|-1");
    check(
        db,
        "power(3, 2), round(power(2, 0.5), 3), sqrt(26) > 5.09901951, log(10, 100), ln(1), exp(0)",
        "9|1.414|1|2|0|1",
    );
    check(db, "power(null, 2), round(null), mod(1, null), trunc(null)", "|||");
    refused(db, "select sqrt(-1) from dual", "SQRT has no result");
    refused(db, "select ln(0) from dual", "LN has no result");
    refused(db, "select power(10, 400) from dual", "POWER has no result");
    refused(db, "select round(sysdate) from dual", "TRUNC");
}

#[test]
fn for_texts() {
    let db = &mut database();
    check(
        db,
        "lpad('Page 1', 15, '*.'), rpad('x', 2) || '|', lpad('abc', 2), lpad(7, 3.9, '0')",
        "*.*.*.*.*Page 1|x ||ab|007",
    );
    check(db, "initcap('the soap'), upper('a'), lower('A'), length('Cand')", "The Soap|A|a|4");
    check(
        db,
        "instr('CORPORATE FLOOR', 'OR', 3, 2), instr('CORPORATE FLOOR', 'OR', -3, 2), instr('abc', 'x')",
        "14|2|0",
    );
    check(db, "substr('/u01/users01.dbf', instr('/u01/users01.dbf', '/', -1) + 1)", "users01.dbf");
    check(
        db,
        "substr('ABCDEFG', 3, 4), substr('ABCDEFG', -5, 4), replace('JACK', 'J', 'BL')",
        "CDEF|CDEF|BLACK",
    );
    check(db, "ltrim('<==>X<==>', '<>='), rtrim('X<==>', '<>='), trim(' x ')", "X<==>|X|x");
    check(db, "chr(67) || chr(65) || chr(84), ascii('A')", "CAT|65");
    check(db, "lpad(null, 2), initcap(null), instr(null, 'a'), ascii(null), chr(null)", "||||");
    check(db, "case when 'abc' like 'A%' then 1 else 0 end", "0");
    refused(db, "select instr('a', 'a', 1, 0) from dual", "from 1");
}

#[test]
fn for_dates() {
    let db = &mut database();
    check(
        db,
        "to_char(to_date('21.11.2026', 'DD.MM.YYYY'), 'YYYY-MM-DD'), to_number('1,5', '9,9') + 1",
        "2026-11-21|16",
    );
    check(
        db,
        "to_timestamp('2026-11-21 15:04', 'YYYY-MM-DD HH24:MI'), to_date(null)",
        "2026-11-21 15:04:00|",
    );
    check(
        db,
        "trunc(sysdate), trunc(sysdate, 'MM'), trunc(date '2026-11-21', 'Q')",
        "1970-01-01 00:00:00|1970-01-01 00:00:00|2026-10-01 00:00:00",
    );
    check(db, "round(julianday(sysdate) - julianday(sysdate - 1/48), 3)", "0.021");
    check(
        db,
        "add_months(date '2026-01-31', 1), last_day(date '2024-02-01')",
        "2026-02-28 00:00:00|2024-02-29 00:00:00",
    );
    check(db, "add_months(null, 1), last_day(null)", "|");
    refused(db, "select to_date('soon') from dual", "'soon' is no date");
    refused(db, "select sysdate - to_date('2026-11-21') from dual", "julianday");
}

#[test]
fn over_many_rows() {
    let db = &mut database();
    let over = "median(n), round(stddev(n), 3), round(variance(n), 3), listagg(n, ',') within group (order by n desc)";
    let rows = "(select 1 n union all select 2 union all select 4)";
    support::check(db, &format!("select {over} from {rows}"), "2|1.528|2.333|4,2,1");
    support::check(db, &format!("select median(n), stddev(n), variance(n) from {rows} where n > 4"), "||");
    let share = "select n, ratio_to_report(n) over () * 7 share from";
    support::check(db, &format!("{share} {rows} order by n"), "1|1\n2|2\n4|4");
}
