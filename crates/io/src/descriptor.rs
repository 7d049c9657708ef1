//! A second descriptor of what somebody else has open, and what can be said of a socket.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A descriptor of our own of the socket or file that `open` holds, for drivers that show only its number. Both must be closed before
/// it is.
///
/// # Errors
/// The process has too many open files.
pub fn second(open: &impl AsRawFd) -> std::io::Result<OwnedFd> {
    // SAFETY: whoever gives its number keeps it open as long as it is borrowed, which is until the end of this call.
    let descriptor = unsafe { BorrowedFd::borrow_raw(open.as_raw_fd()) };
    descriptor.try_clone_to_owned()
}

/// Has a socket leave by the interface of the peer's own network, whatever routes say (`SO_DONTROUTE`): what is behind a gateway cannot be reached by it.
///
/// # Errors
/// It is no socket.
pub fn dont_route(socket: &impl AsFd) -> std::io::Result<()> {
    let yes: libc::c_int = 1;
    // SAFETY: the descriptor is open while it is borrowed; the kernel reads the option's value, which is as long as said, before the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_DONTROUTE,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    #[test]
    fn routes_are_left_out_where_it_was_said() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let in_force = || {
            let (mut value, mut size): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
            let (level, option) = (libc::SOL_SOCKET, libc::SO_DONTROUTE);
            // SAFETY: both pointers are to locals of the sizes that are told.
            let result = unsafe {
                libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut size)
            };
            assert_eq!(result, 0);
            value != 0
        };
        assert!(!in_force());
        dont_route(&socket).unwrap();
        assert!(in_force());
        assert!(dont_route(&std::fs::File::open("/dev/null").unwrap()).is_err(), "it is no socket");
    }

    #[test]
    fn a_reader_is_let_go_through_the_second_one() {
        let (mut here, _there) = UnixStream::pair().unwrap();
        let second = UnixStream::from(second(&here).unwrap());
        second.shutdown(Shutdown::Both).unwrap();
        assert_eq!(here.read(&mut [0; 1]).unwrap(), 0, "the other end says nothing");
    }
}
