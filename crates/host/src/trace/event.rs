//! What the kernel tells while it is traced: system calls, what io_uring does with requests, threads that are born.

use units::Nanos;

/// Something that a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, nanoseconds of the source's clock: differences count.
    pub at: Nanos,
    /// The thread.
    pub tid: u32,
    /// What.
    pub what: What,
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It entered the kernel.
    Enter {
        /// By which call.
        call: Call,
        /// With what, as far as the call has arguments.
        arguments: [u64; 6],
    },
    /// The call returned.
    Exit {
        /// Which.
        call: Call,
        /// A number of bytes, a descriptor …; negative: an errno.
        result: i64,
    },
    /// The path behind a descriptor, where the source tells it.
    Named {
        /// The descriptor.
        fd: i32,
        /// Its path.
        path: String,
    },
    /// io_uring took a request from the submission ring.
    Submitted {
        /// Which request.
        request: Request,
        /// `IORING_OP_…`.
        opcode: u8,
        /// The descriptor is a place in the ring's table of registered files.
        registered: bool,
    },
    /// A request's descriptor was looked up: not for registered files.
    FileTaken {
        /// Which request.
        request: Request,
        /// The descriptor.
        fd: i32,
    },
    /// A request could not be started without waiting and was handed to a worker of the kernel.
    ToWorker {
        /// Which request.
        request: Request,
    },
    /// A request was completed.
    Completed {
        /// Which request.
        request: Request,
        /// Bytes; negative: an errno.
        result: i32,
    },
    /// What was submitted is submitted, and the thread begins to wait for completions.
    WaitBegun,
    /// It did what had come back: its last completions, so many at most, were by nobody's call.
    WorkRun {
        /// Completions, as far as each piece of work is one.
        count: u32,
    },
    /// It made a thread, or a process.
    Born {
        /// Its number.
        tid: u32,
        /// A thread of the same process, kernel workers included.
        is_thread: bool,
    },
}

/// A request in an io_uring, until it is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The ring's address in the kernel.
    pub ring: u64,
    /// The request's; used again after its completion.
    pub address: u64,
}

macro_rules! calls {
    ($($name:ident $text:literal,)*) => {
        /// A system call that is about files, or shows who a thread works for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "their names are their manual pages'")]
        pub enum Call { $($name,)* }

        impl Call {
            /// All that are traced.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As the kernel and the manual call it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

calls! {
    Read "read",
    Write "write",
    Readv "readv",
    Writev "writev",
    Pread64 "pread64",
    Pwrite64 "pwrite64",
    Preadv "preadv",
    Pwritev "pwritev",
    Preadv2 "preadv2",
    Pwritev2 "pwritev2",
    Fsync "fsync",
    Fdatasync "fdatasync",
    SyncFileRange "sync_file_range",
    Fallocate "fallocate",
    Ftruncate "ftruncate",
    Openat "openat",
    Close "close",
    Dup "dup",
    Dup2 "dup2",
    Dup3 "dup3",
    IoSubmit "io_submit",
    IoGetevents "io_getevents",
    IoPgetevents "io_pgetevents",
    IoUringEnter "io_uring_enter",
    Recvfrom "recvfrom",
}

impl Call {
    /// Whether its first argument is the descriptor that it is about.
    pub const fn is_about_fd(self) -> bool {
        use Call as C;
        !matches!(self, C::Openat | C::IoSubmit | C::IoGetevents | C::IoPgetevents)
    }

    /// From its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|call| call.name() == name)
    }
}
