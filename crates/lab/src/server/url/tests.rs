//! What URLs mean, where the rest comes from, and that no password is ever shown.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const SECRET: &str = "s3cr@t/:%";

fn parsed(text: &str, variables: &[(&str, &str)], home: &Path) -> Address {
    parse::address(text, &Surroundings::of(variables, home)).expect(text)
}

fn shown(text: &str) -> String {
    parsed(text, &[("USER", "me")], Path::new("/nowhere")).to_string()
}

#[test]
fn urls_say_where_and_who() {
    for (text, says) in [
        ("postgres://bob@db.example:5433/sales", "postgres://bob@db.example:5433/sales"),
        ("postgresql://db.example", "postgres://me@db.example:5432/"),
        ("postgres://bob@[::1]:5433/x", "postgres://bob@[::1]:5433/x"),
        ("postgres://%2Fsock/x", "postgres://me@:5432/x?host=/sock"),
        ("postgres:///x?host=/sock&port=5444&user=eve", "postgres://eve@:5444/x?host=/sock"),
        ("mysql://bob:x@db:3307/sales", "mysql://bob@db:3307/sales"),
        ("mariadb://bob@localhost:3307", "mysql://bob@localhost:3307/"),
        ("mysql://bob@localhost/x?socket=/run/s", "mysql://bob@/x?socket=/run/s"),
    ] {
        assert_eq!(shown(text), says);
        assert_eq!(shown(says), says, "it can be typed again");
    }
}

#[test]
fn passwords_are_never_shown() {
    let text = "postgres://bob:s3cr%40t%2F%3A%25@db/sales";
    let address = parsed(text, &[], Path::new("/nowhere"));
    assert_eq!(address.password.as_ref().expect("it was given").reveal(), SECRET);
    let error = address.unreachable("refused", None);
    for shown in [format!("{address} {address:?} {error} {error:?}"), without_password(text)] {
        assert!(!shown.contains("s3cr"), "{shown}");
    }
    for text in [
        "redoubt watch postgres://bob:s3cr@t@db/x --web",
        "redoubt watch mysql://bob:s3cr/et@db/x",
        "mysql://bob@db/x?password=s3cr",
        "postgres://bob@db/x?sslpassword=s3cr",
        "postgres://bob:s3cr",
    ] {
        let parsed = parse::address(text, &Surroundings::of(&[], Path::new("/nowhere")));
        let said = parsed.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(!said.contains("s3cr"), "{said}");
        let hidden = without_password(text);
        assert!(!hidden.contains("s3cr") || !text.contains('@'), "{hidden}");
    }
    assert_eq!(
        without_password("redoubt watch postgres://bob:x@db/y --web"),
        "redoubt watch postgres://bob:…@db/y --web"
    );
    let plain = "redoubt run commit --set a=b postgres://db/x?host=/s";
    assert_eq!(without_password(plain), plain);
}

#[test]
fn what_is_no_url_says_how_one_looks() {
    for (text, word) in [
        ("oracle://db", "postgres://"),
        ("postgres://a,b/x", "several hosts"),
        ("postgres://a:port/x", "port"),
        ("postgres://a/x?sslmode=much", "verify-full"),
        ("postgres://a/x?sslmode=verify-full", "sslrootcert=FILE"),
        ("mysql://a/x?ssl-mode=VERIFY_CA", "ssl-ca=FILE"),
        ("postgres://a/x?sslmode=verify-ca&sslrootcert=/nowhere/ca", "/nowhere/ca was not read"),
        ("postgres://a/x?sslcert=/nowhere/me", "no key"),
        ("postgres://a/x?channel_binding=require", "verify-full"),
        ("postgres://a/x?colour=red", "not known here"),
        ("mysql://a/100%", "%25"),
    ] {
        let error = parse::address(text, &Surroundings::of(&[], Path::new("/nowhere"))).expect_err(text);
        assert!(error.to_string().contains(word), "{error}");
    }
    for (word, is) in [("postgres://x", true), ("mysql://", true), ("last", false), ("./a.redoubt", false)] {
        assert_eq!(is_url(word), is, "{word}");
    }
}

#[test]
fn the_rest_comes_from_variables_and_files() {
    let home = tempfile::tempdir().expect("a directory");
    let variables =
        [("PGUSER", "eve"), ("PGPASSWORD", "p"), ("PGHOST", "db"), ("PGPORT", "7"), ("PGDATABASE", "d")];
    let address = parsed("postgres://", &variables, home.path());
    assert_eq!(address.to_string(), "postgres://eve@db:7/d");
    assert_eq!(address.password, Some(Password::new("p".into())));

    let pgpass = home.path().join(".pgpass");
    fs::write(&pgpass, "# a comment\nother:*:*:*:no\ndb:5432:*:e\\:ve:a\\\\b:c\n*:*:*:*:last\n")
        .expect("a file");
    let unread = parsed("postgres://e%3Ave@db/x", &[], home.path());
    let why = unread.refused(ServerError::said(Kind::Postgres, "28P01", "no")).to_string();
    assert!(unread.password.is_none() && why.contains("chmod 600"), "{why}");
    fs::set_permissions(&pgpass, fs::Permissions::from_mode(0o600)).expect("permissions");
    let password = |url: &str| parsed(url, &[], home.path()).password.map(|p| p.reveal().to_owned());
    assert_eq!(password("postgres://e%3Ave@db/x").as_deref(), Some("a\\b:c"));
    assert_eq!(password("postgres://bob@db/x").as_deref(), Some("last"));
    assert_eq!(password("postgres://bob:own@db/x").as_deref(), Some("own"));

    let cnf = home.path().join(".my.cnf");
    fs::write(&cnf, "[mysqld]\nuser=mysql\n[client]\nuser = bob\npassword=\"a=b\"\nport=3309\n")
        .expect("a file");
    fs::set_permissions(&cnf, fs::Permissions::from_mode(0o600)).expect("permissions");
    let address = parsed("mysql://db", &[], home.path());
    assert_eq!(address.to_string(), "mysql://bob@db:3309/");
    assert_eq!(address.password.as_ref().map(Password::reveal), Some("a=b"));
}

#[test]
fn tls_is_asked_for_in_each_products_words() {
    let home = tempfile::tempdir().expect("a directory");
    let file = |name: &str, mode: u32| {
        let path = home.path().join(name);
        fs::write(&path, "").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
        path.display().to_string()
    };
    let (ca, key) = (file("ca", 0o644), file("key", 0o600));
    let tls = |url: &str, variables: &[(&str, &str)]| {
        let parsed = parsed(url, variables, home.path());
        let again = self::parsed(&parsed.to_string(), &[], home.path());
        assert_eq!(parsed.tls, again.tls, "{parsed} can be typed again");
        parsed.tls
    };
    let mode = |url: &str, variables: &[(&str, &str)]| tls(url, variables).mode;
    assert_eq!(mode("postgres://db", &[]), TlsMode::Prefer);
    assert_eq!(mode("postgres://db?sslmode=require", &[]), TlsMode::Require);
    assert_eq!(mode("postgres://db?sslmode=disable", &[("PGSSLMODE", "require")]), TlsMode::Disable);
    assert_eq!(mode("postgres://db", &[("PGSSLMODE", "require")]), TlsMode::Require);
    assert_eq!(mode("mysql://db?ssl-mode=REQUIRED", &[]), TlsMode::Require);
    assert_eq!(mode("mysql://db?require_ssl=true", &[]), TlsMode::Require);
    // Who names an authority wants it asked.
    let asked = tls(&format!("postgres://db?sslmode=require&sslrootcert={ca}"), &[]);
    assert_eq!((asked.mode, asked.root), (TlsMode::VerifyCa, Some(ca.clone().into())));
    let full =
        tls(&format!("mysql://db?ssl-mode=verify_identity&ssl-ca={ca}&ssl-cert={ca}&ssl-key={key}"), &[]);
    assert_eq!(full.mode, TlsMode::VerifyFull);
    assert_eq!(full.identity, Some((ca.clone().into(), key.clone().into())));
    // What users keep for their clients.
    let cnf = file(".my.cnf", 0o600);
    fs::write(&cnf, format!("[client]\nssl\nssl-ca={ca}\nssl-verify-server-cert\n")).expect("a file");
    assert_eq!(mode("mysql://db", &[]), TlsMode::VerifyFull);
    assert_eq!(mode("mysql://db?ssl-mode=disabled", &[]), TlsMode::Disable);
    fs::create_dir(home.path().join(".postgresql")).expect("a folder");
    file(".postgresql/root.crt", 0o644);
    assert_eq!(mode("postgres://db?sslmode=require", &[]), TlsMode::VerifyCa);
    // A key that others can read is no secret.
    let open = file("open", 0o644);
    let url = format!("postgres://db?sslcert={ca}&sslkey={open}");
    let error = parse::address(&url, &Surroundings::of(&[], home.path())).expect_err("it is open");
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[test]
fn the_machine_is_known_as_ours() {
    for (url, local) in [
        ("postgres://localhost", true),
        ("postgres://127.0.0.1", true),
        ("postgres:///x", true),
        ("mysql://db.example", false),
    ] {
        assert_eq!(parsed(url, &[], Path::new("/nowhere")).is_local(), local, "{url}");
    }
}
