//! A second descriptor of what somebody else has open.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_reader_is_let_go_through_the_second_one() {
        let (mut here, _there) = UnixStream::pair().unwrap();
        let second = UnixStream::from(second(&here).unwrap());
        second.shutdown(Shutdown::Both).unwrap();
        assert_eq!(here.read(&mut [0; 1]).unwrap(), 0, "the other end says nothing");
    }
}
