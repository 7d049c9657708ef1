//! Sessions over the network are encrypted as much as the URL asks for, and believe whom it names: on real servers.

use crate::stand::{Stand, settings};
use lab::server::url::Address;
use lab::server::{Connection, Kind, ServerError};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two addresses of this machine that nobody else listens on; the certificates are made out to the first.
const NAMED: &str = "127.0.41.1";
const UNNAMED: &str = "127.0.41.2";
const MARIADB_PORT: u16 = 33_061;

/// An authority and what it has signed.
struct Papers(PathBuf);

impl Papers {
    fn new(folder: &Path) -> Self {
        let papers = Self(folder.to_owned());
        for authority in ["ca", "other"] {
            papers.openssl(&format!(
                "req -x509 -subj /CN={authority} -keyout {authority}.key -out {authority}.crt"
            ));
        }
        papers.signed("server", &format!("subjectAltName=IP:{NAMED}"));
        papers.signed("scott", "subjectAltName=DNS:scott");
        papers
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.current_dir(&self.0).args(arguments.split(' '));
        if arguments.starts_with("req") {
            command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        }
        let done = command.output().expect("openssl");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn signed(&self, name: &str, extension: &str) {
        std::fs::write(self.0.join("extension"), extension).expect("a file");
        self.openssl(&format!("req -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile extension -out {name}.crt"
        ));
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// `{ca}` → the path of `ca.crt`; `{key:scott}` → that of `scott.key`.
    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for name in ["ca", "other", "server", "scott"] {
            text = text.replace(&format!("{{{name}}}"), &self.path(&format!("{name}.crt")));
            text = text.replace(&format!("{{key:{name}}}"), &self.path(&format!("{name}.key")));
        }
        text
    }
}

fn connect(url: &str) -> Result<Box<dyn Connection>, ServerError> {
    Address::parse(url)?.connect_read_only("tls")
}

/// The one value of a query.
fn value(session: &mut dyn Connection, sql: &str) -> String {
    let rows = session.rows(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.into_iter().flatten().next_back().flatten().unwrap_or_default()
}

/// Each of `cases` (host, parameters, what is expected): a session that is `encrypted` or `plain`, or words of the refusal.
fn check(
    papers: &Papers,
    cases: &[(&str, &str, &str)],
    url: &dyn Fn(&str, &str) -> String,
    is_encrypted: &dyn Fn(&mut dyn Connection) -> bool,
) {
    for (host, parameters, expected) in cases {
        let url = url(host, &papers.filled(parameters));
        let is = match connect(&url) {
            Ok(mut session) => if is_encrypted(session.as_mut()) { "encrypted" } else { "plain" }.to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(is.contains(&papers.filled(expected)), "{url}: {is}");
        assert!(!is.contains("tiger"), "a password was shown: {is}");
    }
}

#[test]
fn postgresql_is_believed_as_the_url_says() {
    let mut stand = Stand::new();
    let papers = Papers::new(stand.folder.path());
    let mut settings = settings(12);
    settings.parameters = vec![("listen_addresses".into(), format!("{NAMED},{UNNAMED}"))];
    let mut server = stand.server(Kind::Postgres, &settings);
    let mut owner = server.connect("owner").expect("a session");
    owner.execute("create role scott login password 'tiger'").expect("a role");
    let data = server.data().to_owned();
    let url = |host: &str, parameters: &str| format!("postgres://scott:tiger@{host}/postgres?{parameters}");
    let is_encrypted = |session: &mut dyn Connection| {
        value(session, "select ssl from pg_stat_ssl where pid = pg_backend_pid()") == "t"
    };
    let mut reload = |rules: &str, then: &str| {
        std::fs::write(data.join("pg_hba.conf"), format!("local all all trust\n{rules}\n"))
            .expect("its rules");
        owner.execute(then).expect("a setting");
        // Sessions that begin when this one does not see the old setting any more do not, either.
        owner.execute("select pg_reload_conf(), pg_sleep(0.5)").expect("read again");
    };

    reload("host all scott 127.0.0.0/8 scram-sha-256", "alter system set ssl = off");
    let cases = [
        (NAMED, "", "plain"),
        (NAMED, "sslmode=disable", "plain"),
        (NAMED, "sslmode=require", "does not speak TLS; switch it on there (ssl = on"),
    ];
    check(&papers, &cases, &url, &is_encrypted);

    // Its own user alone may read its key.
    let about = std::fs::metadata(&data).expect("its folder");
    for name in ["server.crt", "server.key"] {
        let to = data.join(name);
        std::fs::copy(papers.path(name), &to).expect("a copy");
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        std::os::unix::fs::chown(&to, Some(about.uid()), Some(about.gid())).expect("an owner");
    }
    reload("host all scott 127.0.0.0/8 scram-sha-256", "alter system set ssl = on");
    let cases = [
        (NAMED, "", "encrypted"),
        (NAMED, "sslmode=disable", "plain"),
        (UNNAMED, "sslmode=require", "encrypted"),
        (NAMED, "sslmode=verify-full&sslrootcert={ca}", "encrypted"),
        (UNNAMED, "sslmode=verify-ca&sslrootcert={ca}", "encrypted"),
        (UNNAMED, "sslmode=verify-full&sslrootcert={ca}", "made out to other names"),
        (NAMED, "sslmode=verify-ca&sslrootcert={other}", "no authority in {other} has signed"),
        (NAMED, "sslmode=verify-full&sslrootcert={key:ca}", "there is no certificate in it"),
        // A certificate that is named itself needs no authority.
        (NAMED, "sslmode=verify-full&sslrootcert={server}", "encrypted"),
        (UNNAMED, "sslmode=verify-full&sslrootcert={server}", "made out to other names"),
    ];
    check(&papers, &cases, &url, &is_encrypted);

    reload("hostssl all scott 127.0.0.0/8 scram-sha-256", "select 1");
    let cases = [(NAMED, "", "encrypted"), (NAMED, "sslmode=disable", "PGSSLMODE")];
    check(&papers, &cases, &url, &is_encrypted);
    reload("hostnossl all scott 127.0.0.0/8 scram-sha-256", "select 1");
    let cases = [(NAMED, "", "plain"), (NAMED, "sslmode=require", "28000")];
    check(&papers, &cases, &url, &is_encrypted);

    // By a certificate instead of a password.
    let authority = format!("alter system set ssl_ca_file = '{}'", data.join("ca.crt").display());
    std::fs::copy(papers.path("ca.crt"), data.join("ca.crt")).expect("a copy");
    std::fs::set_permissions(data.join("ca.crt"), std::fs::Permissions::from_mode(0o644))
        .expect("permissions");
    reload("hostssl all scott 127.0.0.0/8 cert", &authority);
    let cases = [
        (NAMED, "sslmode=require&sslcert={scott}&sslkey={key:scott}", "encrypted"),
        (NAMED, "sslmode=require", "sslcert=FILE"),
    ];
    check(&papers, &cases, &url, &is_encrypted);

    drop(owner);
    server.stop().expect("stopped");
    drop(server);
    stand.end();
}

#[test]
fn mariadb_is_believed_as_the_url_says() {
    let mut stand = Stand::new();
    let papers = Papers::new(stand.folder.path());
    // It runs as a user of its own.
    for name in ["server.key", "server.crt", "ca.crt"] {
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(papers.path(name), mode).expect("permissions");
    }
    let url =
        |host: &str, parameters: &str| format!("mysql://scott:tiger@{host}:{MARIADB_PORT}/?{parameters}");
    let is_encrypted =
        |session: &mut dyn Connection| !value(session, "show session status like 'Ssl_cipher'").is_empty();
    let mut settings = settings(12);
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect::<Vec<_>>()
    };
    let port = MARIADB_PORT.to_string();
    let network =
        [("skip-networking", "0"), ("bind-address", "127.0.41.1,127.0.41.2"), ("port", port.as_str())];
    settings.parameters = pairs(&network);
    settings.parameters.push(("skip-ssl".into(), "1".into()));
    let mut without = Stand::new();
    let mut server = without.server(Kind::Mariadb, &settings);
    let user = "create user scott@localhost identified by 'tiger'";
    server.connect("owner").expect("a session").execute(user).expect("a user");
    let cases = [(NAMED, "", "plain"), (NAMED, "ssl-mode=REQUIRED", "switch it on there")];
    check(&papers, &cases, &url, &is_encrypted);
    server.stop().expect("stopped");
    drop(server);
    without.end();

    let (certificate, key, ca) =
        (papers.path("server.crt"), papers.path("server.key"), papers.path("ca.crt"));
    let files = [("ssl-cert", certificate.as_str()), ("ssl-key", &key), ("ssl-ca", &ca)];
    settings.parameters = pairs(&[&network[..], &files[..]].concat());
    settings.parameters.push(("require-secure-transport".into(), "1".into()));
    let mut server = stand.server(Kind::Mariadb, &settings);
    let mut owner = server.connect("owner").expect("a session");
    owner.execute(user).expect("a user");
    let cases = [
        (NAMED, "", "encrypted"),
        (NAMED, "ssl-mode=DISABLED", "by TLS only"),
        (UNNAMED, "ssl-mode=REQUIRED", "encrypted"),
        (NAMED, "ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}", "encrypted"),
        (UNNAMED, "ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}", "made out to other names"),
        (NAMED, "ssl-mode=VERIFY_CA&ssl-ca={other}", "no authority in {other} has signed"),
    ];
    check(&papers, &cases, &url, &is_encrypted);
    owner.execute("alter user scott@localhost require x509").expect("a rule");
    let cases = [
        (NAMED, "ssl-mode=REQUIRED&ssl-cert={scott}&ssl-key={key:scott}", "encrypted"),
        (NAMED, "ssl-mode=REQUIRED", "ssl-cert"),
    ];
    check(&papers, &cases, &url, &is_encrypted);
    drop(owner);
    server.stop().expect("stopped");
    drop(server);
    stand.end();
}
