//! The network between: connections that break with replies on their way, and a path that goes away while another stays.

use crate::restart::storm;
use crate::stand::{Conf, PORT, Server, VERSIONS, alone, options, target};
use nfs::{Mount, Path, Target, Version};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use units::{Nanos, clock};

/// Stands between client and server.
#[derive(Clone, Default)]
struct Proxy {
    streams: Arc<Mutex<Vec<TcpStream>>>,
    /// Replies are thrown away.
    mute: Arc<AtomicBool>,
}

impl Proxy {
    /// Result: the port that it listens on, too.
    fn start() -> (Self, u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let proxy = Self::default();
        let its = proxy.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)).expect("the server listens");
                its.pump(client.try_clone().expect("a stream"), server.try_clone().expect("a stream"), false);
                its.pump(server, client, true);
            }
        });
        (proxy, port)
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream, replies: bool) {
        self.streams.lock().expect("no panic").push(from.try_clone().expect("a stream"));
        let mute = self.mute.clone();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                if !(replies && mute.load(Ordering::Acquire)) && to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }

    /// What was sent is done by the server, and nobody hears of it; then all connections break.
    fn cut(&self) {
        self.mute.store(true, Ordering::Release);
        clock::sleep(Nanos::millis(40));
        for stream in self.streams.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.mute.store(false, Ordering::Release);
    }
}

#[test]
fn lost_replies_lose_no_write() {
    alone("cut::lost_replies_lose_no_write", || {
        let _server = Server::start(&Conf::default());
        for version in VERSIONS {
            let (proxy, port) = Proxy::start();
            let mount = Mount::open(Target { port, ..target(version) }, options()).expect("a mount");
            let network = storm(&mount, version, 0, 5, &mut || proxy.cut());
            assert_eq!(network.sessions, 0, "{version}: the server still knew the session: {network:?}");
        }
    });
}

#[test]
fn a_path_that_goes_away_is_left_for_another() {
    alone("cut::a_path_that_goes_away_is_left_for_another", || {
        let _server = Server::start(&Conf::default());
        let ip = |what: &str| {
            let status = Command::new("ip").args(["addr", what, "10.99.0.2/32", "dev", "lo"]).status();
            assert!(status.expect("ip is in package iproute2").success());
        };
        for version in [Version::V3, Version::V41] {
            ip("add");
            let path = |last| Path { remote: Ipv4Addr::new(10, 99, 0, last).into(), local: None };
            let target = Target { paths: vec![path(1), path(2)], ..target(version) };
            let mount = Mount::open(target, options()).expect("a mount");
            let network = storm(&mount, version, 1, 1, &mut || ip("del"));
            assert!(network.reconnects == 1 && network.sessions == 0, "{version}: {network:?}");
        }
    });
}
