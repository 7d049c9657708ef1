//! Who logs in at a server of somebody else's by a password, and is told when it is wrong.

use crate::stand::{Stand, settings};
use lab::server::url::Address;
use lab::server::{Kind, ServerError};
use std::path::Path;

const PASSWORD: &str = "tiger+scott";

/// Who a session of scott's with that password is there.
fn who(socket: &Path, password: &str) -> Result<String, ServerError> {
    let folder = socket.parent().expect("a folder").display();
    let url = format!("postgres://scott{password}@/postgres?host={folder}");
    let mut session = Address::parse(&url)?.connect_read_only("login")?;
    let rows = session.rows("select current_user")?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

/// PostgreSQL: each way to send a password. The server itself says what it lets in.
#[test]
fn each_way_to_send_a_password_works() {
    let mut stand = Stand::new();
    let mut server = stand.server(Kind::Postgres, &settings(12));
    let mut owner = server.connect("owner").expect("a session");
    let rules = server.data().join("pg_hba.conf");
    let socket = server.connector().socket();
    for (method, kept) in [("scram-sha-256", "scram-sha-256"), ("md5", "md5"), ("password", "scram-sha-256")]
    {
        let lines = format!("local all scott {method}\nlocal all all trust\n");
        std::fs::write(&rules, lines).expect("its rules");
        owner.execute("drop role if exists scott").expect("no role");
        owner.execute(&format!("set password_encryption = '{kept}'")).expect("a way to keep it");
        owner.execute(&format!("create role scott login password '{PASSWORD}'")).expect("a role");
        owner.execute("select pg_reload_conf()").expect("read again");
        // The new rules are in force a moment later.
        let refused = loop {
            match who(&socket, ":lion") {
                Ok(_) => units::clock::sleep(units::Nanos::millis(10)),
                Err(error) => break error.to_string(),
            }
        };
        assert!(refused.contains("28P01") && refused.contains(".pgpass"), "{method}: {refused}");
        assert!(!refused.contains("lion"), "a password was shown");
        assert_eq!(who(&socket, ":tiger%2Bscott").unwrap_or_else(|e| panic!("{method}: {e}")), "scott");
    }
    std::fs::write(&rules, "local all postgres trust\n").expect("its rules");
    owner.execute("select pg_reload_conf()").expect("read again");
    let refused = loop {
        match who(&socket, ":tiger%2Bscott") {
            Ok(_) => units::clock::sleep(units::Nanos::millis(10)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("pg_hba.conf") && refused.contains("28000"), "{refused}");
    drop(owner);
    server.stop().expect("stopped");
    drop(server);
    stand.end();
}
