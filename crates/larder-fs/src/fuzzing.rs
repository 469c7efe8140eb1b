//! Garbage on the descriptor: any bytes as the kernel's messages, for the fuzz target and for a test with a seed.
//!
//! A pair of sockets stands for `/dev/fuse`: like it, they keep the bounds of messages. The other side knows which node ids and handles
//! were answered, so that messages come further than to their first check.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};

use crate::MountOptions;
use crate::transport::*;

/// The body begins with a handle that was answered.
const WITH_HANDLE: u8 = 1;
/// The body begins with a node id that was answered.
const WITH_NODE: u8 = 2;
/// The message says another length than it has.
const SHORT: u8 = 128;

/// The connection ends with the worker, also with one that panics.
struct Closing<'d>(&'d OwnedFd);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(self.0, Shutdown::Both);
    }
}

/// The kernel's side.
struct Kernel {
    socket: OwnedFd,
    unique: u64,
    nodes: Vec<u64>,
    handles: Vec<u64>,
    buffer: Vec<u8>,
}

impl Kernel {
    fn message(opcode: u32, unique: u64, node: u64, body: &[u8]) -> Vec<u8> {
        let len = 40 + body.len() as u32;
        let mut bytes = Vec::with_capacity(len as usize);
        bytes.extend(len.to_ne_bytes());
        bytes.extend(opcode.to_ne_bytes());
        bytes.extend(unique.to_ne_bytes());
        bytes.extend(node.to_ne_bytes());
        bytes.extend([0; 16]);
        bytes.extend(body);
        bytes
    }

    fn send(&self, message: &[u8]) {
        rustix::net::send(&self.socket, message, SendFlags::NOSIGNAL).expect("the worker reads");
    }

    /// The body of the next answer, if it is none of an error.
    fn answer(&mut self) -> (u64, Option<&[u8]>) {
        let (len, _) = rustix::net::recv(&self.socket, &mut self.buffer, RecvFlags::empty())
            .expect("the worker answers");
        let answer = &self.buffer[..len];
        assert!(len >= 16, "an answer of {len} bytes");
        let number = |at: usize| {
            let bytes = answer[at..at + 4].try_into();
            i32::from_ne_bytes(bytes.expect("four bytes"))
        };
        assert_eq!(number(0) as usize, len, "the answer says how long it is");
        let error = number(4);
        assert!((-4095..=0).contains(&error), "an error {error}");
        assert!(error == 0 || len == 16, "an error has nothing behind it");
        let unique = answer[8..16].try_into().expect("eight bytes");
        (
            u64::from_ne_bytes(unique),
            (error == 0).then_some(&answer[16..]),
        )
    }

    /// Sends one message, and takes its answer and that of another one, which shows that the worker goes on.
    /// Returns whether it was done.
    fn ask(&mut self, opcode: u32, node: u64, body: &[u8]) -> bool {
        self.unique += 2;
        let unique = self.unique;
        self.send(&Self::message(opcode, unique, node, body));
        let mut done = true;
        if ![FORGET, BATCH_FORGET, INTERRUPT].contains(&opcode) {
            let (of, answer) = self.answer();
            assert_eq!(of, unique, "the answer to operation {opcode}");
            done = answer.is_some();
            let word = |at: usize| {
                let bytes = answer?.get(at..at + 8)?.try_into().ok()?;
                Some(u64::from_ne_bytes(bytes))
            };
            let (node, handle) = match opcode {
                LOOKUP | SYMLINK | MKNOD | MKDIR | LINK => (word(0), None),
                OPEN | OPENDIR => (None, word(0)),
                CREATE | TMPFILE => (word(0), word(128)),
                _ => (None, None),
            };
            self.nodes.extend(node.filter(|&node| node != 0));
            self.handles.extend(handle);
        }
        self.send(&Self::message(STATFS, unique + 1, 1, &[]));
        let (of, answer) = self.answer();
        assert!(
            of == unique + 1 && answer.is_some(),
            "the worker goes on after operation {opcode}"
        );
        done
    }
}

/// Good conversations to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_ne_bytes()).collect() };
    let message = |opcode: u32, what: u8, node: u8, body: &[u8]| {
        [&[opcode as u8, what, node, body.len() as u8], body].concat()
    };
    let plain = |opcode, node, body: &[u8]| message(opcode, 0, node, body);
    // The first one that was answered has number 1.
    let first = |opcode, node, body: &[u8]| message(opcode, WITH_HANDLE | 1 << 2, node, body);
    let named = |fields: &[u32], names: &[u8]| [&words(fields), names].concat();
    let file = [
        plain(LOOKUP, 0, b"a\0"),
        plain(OPEN, 1, &words(&[2, 0])),
        first(WRITE, 1, &named(&[0, 0, 5, 0, 4, 0, 0, 0, 0, 0], b"text")),
        first(READ, 1, &words(&[0, 0, 0, 0, 9000, 0, 0, 0, 0, 0])),
        first(FALLOCATE, 1, &words(&[0, 0, 100, 0, 9000, 0, 3, 0])),
        first(LSEEK, 1, &words(&[0, 0, 0, 0, 4, 0])),
        plain(
            SETATTR,
            1,
            &words(&[[1 << 3, 0, 0, 0, 5000, 0].as_slice(), &[0; 16]].concat()),
        ),
        first(
            COPY_FILE_RANGE,
            1,
            &words(&[0, 0, 0, 0, 1, 0, 0, 0, 8000, 0, 99, 0, 0, 0]),
        ),
        first(FSYNC, 1, &words(&[0, 0, 0, 0])),
        plain(SETXATTR, 1, &named(&[3, 0], b"user.x\0abc")),
        plain(GETXATTR, 1, &named(&[100, 0], b"user.x\0")),
        plain(LISTXATTR, 1, &words(&[100, 0])),
        first(RELEASE, 1, &words(&[0, 0, 0, 0, 0, 0])),
        plain(FORGET, 1, &words(&[1, 0])),
        plain(GETATTR, 1, &words(&[0, 0, 0, 0])),
    ];
    let names = [
        plain(MKDIR, 0, &named(&[0o755, 0], b"new\0")),
        plain(CREATE, 1, &named(&[2, 0o600, 0, 0], b"file\0")),
        plain(MKNOD, 1, &named(&[0o10_600, 0, 0, 0], b"pipe\0")),
        plain(SYMLINK, 1, b"link\0../../target\0"),
        plain(READLINK, 4, &[]),
        message(RENAME, WITH_NODE | 1 << 2, 0, &named(&[0, 0], b"a\0b\0")),
        message(LINK, WITH_NODE | 2 << 2, 0, &named(&[0, 0], b"again\0")),
        plain(OPENDIR, 1, &words(&[0, 0])),
        message(
            READDIRPLUS,
            WITH_HANDLE | 2 << 2,
            1,
            &words(&[0, 0, 0, 0, 4096, 0]),
        ),
        message(
            READDIR,
            WITH_HANDLE | 2 << 2,
            1,
            &words(&[0, 0, 0, 0, 4096, 0]),
        ),
        message(RELEASEDIR, WITH_HANDLE | 2 << 2, 1, &words(&[0, 0, 0, 0])),
        plain(UNLINK, 1, b"pipe\0"),
        plain(RMDIR, 0, b"new\0"),
        plain(BATCH_FORGET, 0, &words(&[1, 0, 1, 0, 1, 0])),
        plain(TMPFILE, 0, &named(&[2, 0o600, 0, 0], b"\0")),
    ];
    let init = [
        &[254],
        words(&[7, 41, 131_072, u32::MAX, u32::MAX]).as_slice(),
    ]
    .concat();
    vec![file.concat(), names.concat(), init]
}

/// Takes bytes as messages to a file system over `source`, and checks each answer.
///
/// Each message is an operation, what to put into it, a node, and the length of the body, a byte each, and the body. A first byte of
/// 255 makes one message of all others as they are, one of 254 the first message of a connection. Returns how many were done.
///
/// # Panics
/// A wrong answer, or none.
pub fn converse(source: &Path, input: &[u8]) -> usize {
    let flags = SocketFlags::CLOEXEC;
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let (device, socket) = pair.expect("two sockets");
    let system = MountOptions::new(source, source)
        .cache_bytes(1 << 20)
        .prepare(source)
        .expect("a file system");
    let device = Arc::new(device);
    let kernel = Kernel {
        socket,
        unique: 0,
        nodes: vec![1],
        handles: vec![0],
        buffer: vec![0; 2 << 20],
    };
    if let Some(body) = input.strip_prefix(&[254]) {
        let mut kernel = kernel;
        kernel.send(&Kernel::message(INIT, 1, 0, body));
        let greeted = greet(&device, &system, false).is_ok();
        if greeted {
            assert_eq!(kernel.answer().1.map(<[u8]>::len), Some(64));
        }
        return greeted.into();
    }
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _end = Closing(&device);
            let requests = Requests::new(1, system.aside);
            Worker::new(&system, Arc::clone(&device), &requests).run()
        });
        // Its socket goes if this panics, and so the worker ends.
        let mut kernel = kernel;
        let done = talk(&mut kernel, input);
        if done.is_some() {
            kernel.send(&Kernel::message(DESTROY, 1, 1, &[]));
        }
        let end = worker.join().expect("the worker ends");
        assert_eq!(end.is_ok(), done.is_some(), "{end:?}");
        done.unwrap_or(0)
    })
}

/// Returns how many were done, and none after a message that is none, with which a connection ends.
fn talk(kernel: &mut Kernel, input: &[u8]) -> Option<usize> {
    if let Some(garbage) = input.strip_prefix(&[255]) {
        let len = garbage.first_chunk().map(|len| u32::from_ne_bytes(*len));
        if len != Some(garbage.len() as u32) || garbage.len() < 40 {
            kernel.send(garbage);
            return None;
        }
        return Some(0);
    }
    let (mut input, mut done) = (input, 0);
    while let [opcode, what, node, len, rest @ ..] = input {
        let (body, others) = rest.split_at(rest.len().min(usize::from(*len)));
        input = others;
        let opcode = u32::from(*opcode);
        if opcode == DESTROY {
            continue;
        }
        let mut body = body.to_vec();
        let known = |all: &[u64], which: u8| all[usize::from(which) % all.len()].to_ne_bytes();
        let begin = match *what & (WITH_HANDLE | WITH_NODE) {
            WITH_HANDLE => Some(known(&kernel.handles, what >> 2 & 31)),
            WITH_NODE => Some(known(&kernel.nodes, what >> 2 & 31)),
            _ => None,
        };
        if let (Some(number), Some(begin)) = (begin, body.first_chunk_mut()) {
            *begin = number;
        }
        if opcode == COPY_FILE_RANGE
            && let Some(to) = body.get_mut(24..32)
        {
            to.copy_from_slice(&known(&kernel.handles, (kernel.handles.len() - 1) as u8));
        }
        // Not more than the test has room for.
        let length = match opcode {
            FALLOCATE => Some(16..24),
            COPY_FILE_RANGE => Some(40..48),
            _ => None,
        };
        if let Some(length) = length.and_then(|length| body.get_mut(length)) {
            length[3..].fill(0);
        }
        let node = match node {
            255 => u64::MAX,
            node => u64::from_ne_bytes(known(&kernel.nodes, *node)),
        };
        if what & SHORT != 0 {
            let mut bytes = Kernel::message(opcode, 1, node, &body);
            bytes.pop();
            kernel.send(&bytes);
            return None;
        }
        done += usize::from(kernel.ask(opcode, node, &body));
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are the same in each run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % end.max(1)
        }
    }

    #[test]
    fn garbage_on_the_descriptor_is_answered() {
        let outer = tempfile::tempdir().unwrap();
        let source = outer.path().join("source");
        let mut random = Random(7);
        let mut inputs = seeds();
        // An owner of a number that stands for none.
        let body = [&[2, 0, 0, 0], [0; 72].as_slice(), &[255; 12]].concat();
        inputs.push([&[SETATTR as u8, 0, 0, body.len() as u8], body.as_slice()].concat());
        for _ in 0..400 {
            let mut input = inputs[random.below(3)].clone();
            for _ in 0..random.below(8) {
                let at = random.below(input.len());
                match random.below(4) {
                    0 => input[at] = random.below(256) as u8,
                    1 => input[at] ^= 1 << random.below(8),
                    2 => drop(input.splice(at..at, (0..9).map(|_| 0xff))),
                    _ => input.truncate(at + 1),
                }
            }
            inputs.push(input);
        }
        for len in 0..100 {
            let garbage = (0..len).map(|_| random.below(256) as u8);
            inputs.push(std::iter::once(255).chain(garbage).collect());
        }
        let mut done = Vec::new();
        for input in inputs {
            std::fs::create_dir(&source).unwrap();
            std::fs::write(source.join("a"), [1; 10_000]).unwrap();
            done.push(converse(&source, &input));
            std::fs::remove_dir_all(&source).unwrap();
            let outside = std::fs::read_dir(outer.path()).unwrap().count();
            assert_eq!(outside, 0, "{input:?}");
        }
        // A directory is not empty, so it stays.
        assert_eq!(done[..3], [15, 14, 1]);
    }
}
