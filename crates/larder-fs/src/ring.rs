//! Requests by io_uring: buffers that the kernel fills with requests and takes back with their answers.
//!
//! The kernel has a queue for each CPU, and each queue has entries. An entry is a buffer for one request and its answer. One thread
//! owns the ring of a few queues and alone hands entries to the kernel. While an entry is not with the kernel it belongs to the thread
//! that answers it, whichever that is. The numbers are those of linux/fuse.h.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::event::EventfdFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::system::Sys;

/// struct fuse_uring_req_header: a header of a message, the fields of the operation, and `fuse_uring_ent_in_out`.
const HEADER: usize = 128 + 128 + 32;
const OPERATION: usize = 128;
const COMMIT_ID: usize = 264;
const PAYLOAD_LEN: usize = 272;

/// struct fuse_in_header.
const IN_HEADER: usize = 40;

const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;

/// The completion that says that another thread has something for the ring's. Numbers of entries are below it.
const WAKE: u64 = u64::MAX;

/// Bytes of an entry with a payload of so many.
pub(crate) fn entry_bytes(payload: usize) -> usize {
    payload + HEADER.next_multiple_of(larder::os::page_size())
}

/// The memory of an entry: the payload, and the headers behind it.
pub(crate) struct Memory {
    at: NonNull<u8>,
    payload: usize,
}

// SAFETY: a mapping that has one owner.
unsafe impl Send for Memory {}

impl Memory {
    fn new(payload: usize) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let len = entry_bytes(payload);
        // SAFETY: a new mapping, where the system likes.
        let at =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, payload })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is that long and was zeroed. It belongs to the owner of this: the kernel writes only to an entry that
        // `Ring` keeps, which does not look at it meanwhile.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.payload + HEADER) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.payload + HEADER) }
    }

    /// So many bytes of the payload.
    pub(crate) fn payload(&self, len: usize) -> &[u8] {
        &self.bytes()[..len.min(self.payload)]
    }

    fn header(&self) -> &[u8] {
        &self.bytes()[self.payload..]
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, once. `Ring` closes before it drops what the kernel has.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), entry_bytes(self.payload)) };
    }
}

/// The headers of a request, copied: the message begins with them.
pub(crate) struct Request {
    bytes: [u8; IN_HEADER + OPERATION],
    fields: usize,
    /// Bytes of its payload.
    pub(crate) payload: usize,
}

impl Request {
    pub(crate) fn header(&self) -> &[u8] {
        &self.bytes[..IN_HEADER]
    }

    pub(crate) fn fields(&self) -> &[u8] {
        &self.bytes[IN_HEADER..IN_HEADER + self.fields]
    }
}

/// A request that is to be answered once.
pub(crate) struct Entry {
    number: usize,
    queue: u16,
    /// The kernel's number of the request in it; 0 before the first.
    commit: u64,
    /// Lent to the request while it is read.
    memory: Option<Memory>,
    returns: Arc<Returns>,
}

impl Entry {
    /// The request's headers.
    ///
    /// # Errors
    /// Lengths that cannot be.
    pub(crate) fn request(&self) -> Sys<Request> {
        let memory = self.memory.as_ref().ok_or(Errno::IO)?;
        let header = memory.header();
        let payload = number(header, PAYLOAD_LEN) as usize;
        let fields = (number(header, 0) as usize)
            .checked_sub(IN_HEADER + payload)
            .filter(|&fields| fields <= OPERATION && payload <= memory.payload)
            .ok_or(Errno::IO)?;
        let mut bytes = [0; IN_HEADER + OPERATION];
        bytes[..IN_HEADER].copy_from_slice(&header[..IN_HEADER]);
        bytes[IN_HEADER..].copy_from_slice(&header[128..128 + OPERATION]);
        Ok(Request {
            bytes,
            fields,
            payload,
        })
    }

    /// Operation of the request.
    pub(crate) fn opcode(&self) -> u32 {
        self.memory
            .as_ref()
            .map_or(0, |memory| number(memory.header(), 4))
    }

    /// The memory, to read the payload. It cannot be answered before it has it back.
    pub(crate) fn lend(&mut self) -> Option<Memory> {
        self.memory.take()
    }

    pub(crate) fn give_back(&mut self, memory: Memory) {
        self.memory = Some(memory);
    }

    /// Writes the answer.
    ///
    /// # Errors
    /// It is longer than the buffer.
    pub(crate) fn fill(&mut self, unique: u64, error: i32, pieces: &[&[u8]]) -> Sys<()> {
        let memory = self.memory.as_mut().ok_or(Errno::IO)?;
        let room = memory.payload;
        let len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        if len > room {
            return Err(Errno::MSGSIZE);
        }
        let (payload, header) = memory.bytes_mut().split_at_mut(room);
        let mut at = 0;
        for piece in pieces {
            payload[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        header[..4].copy_from_slice(&(16 + len as u32).to_ne_bytes());
        header[4..8].copy_from_slice(&error.to_ne_bytes());
        header[8..16].copy_from_slice(&unique.to_ne_bytes());
        header[PAYLOAD_LEN..PAYLOAD_LEN + 4].copy_from_slice(&(len as u32).to_ne_bytes());
        Ok(())
    }

    /// Sends the answer that was written.
    pub(crate) fn send(self) {
        let returns = Arc::clone(&self.returns);
        returns.put(self);
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Answered entries on their way to the thread of their ring.
pub(crate) struct Returns {
    state: Mutex<Returned>,
    wake: OwnedFd,
}

#[derive(Default)]
struct Returned {
    entries: Vec<Entry>,
    /// The ring's thread waits in the kernel.
    asleep: bool,
    /// The connection has ended, as another thread found.
    ended: bool,
    /// The ring is gone.
    closed: bool,
}

impl Returns {
    fn state(&self) -> MutexGuard<'_, Returned> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, entry: Entry) {
        let mut state = self.state();
        if state.closed {
            drop(state);
            return drop(entry);
        }
        state.entries.push(entry);
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.wake();
        }
    }

    fn wake(&self) {
        // It has a counter, which does not overflow.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// The ring's thread is to end.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.wake();
    }
}

/// A ring, which one thread uses, with the entries of some queues.
///
/// The kernel writes to entries only within system calls of this thread (`IORING_SETUP_DEFER_TASKRUN`), and not once the ring is closed.
pub(crate) struct Ring {
    ring: IoUring<squeue::Entry128>,
    /// Those that the kernel has, by number. They go after the ring.
    kernels: Vec<Option<Entry>>,
    returns: Arc<Returns>,
    answered: Vec<Entry>,
    has_poll: bool,
}

impl Ring {
    /// A ring with so many entries for each of these queues.
    ///
    /// # Errors
    /// The system has no io_uring for this process, or too little memory.
    pub(crate) fn new(
        device: BorrowedFd<'_>,
        queues: &[(u16, usize)],
        payload: usize,
    ) -> io::Result<Self> {
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let returns = Arc::new(Returns {
            state: Mutex::default(),
            wake,
        });
        let mut kernels = Vec::new();
        for &(queue, depth) in queues {
            for _ in 0..depth {
                kernels.push(Some(Entry {
                    number: kernels.len(),
                    queue,
                    commit: 0,
                    memory: Some(Memory::new(payload)?),
                    returns: Arc::clone(&returns),
                }));
            }
        }
        // A place for each entry and for the wake.
        let places = (kernels.len() as u32 + 1).next_power_of_two();
        let ring = IoUring::<squeue::Entry128>::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_r_disabled()
            .build(places)?;
        ring.submitter().register_files(&[device.as_raw_fd()])?;
        Ok(Self {
            ring,
            kernels,
            returns,
            answered: Vec::new(),
            has_poll: false,
        })
    }

    pub(crate) fn returns(&self) -> Arc<Returns> {
        Arc::clone(&self.returns)
    }

    /// Hands all entries to the kernel. The calling thread is the ring's from now on.
    ///
    /// # Errors
    /// Those of the ring.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings()?;
        let mut vectors = Vec::with_capacity(self.kernels.len());
        for (number, entry) in self.kernels.iter().enumerate() {
            let Some((memory, queue)) = entry
                .as_ref()
                .and_then(|entry| Some((entry.memory.as_ref()?, entry.queue)))
            else {
                continue;
            };
            let payload = memory.at.as_ptr();
            vectors.push([
                libc::iovec {
                    iov_base: payload.wrapping_add(memory.payload).cast(),
                    iov_len: HEADER,
                },
                libc::iovec {
                    iov_base: payload.cast(),
                    iov_len: memory.payload,
                },
            ]);
            let vector = vectors.last().map_or(0, |vector| vector.as_ptr() as u64);
            let command = command(REGISTER, queue, 0, number, Some(vector));
            // SAFETY: the kernel reads the vector when it takes the command, which it has done below or never does, and `vectors`
            // does not move. The memory stays until the ring is closed.
            unsafe { self.ring.submission().push(&command) }.map_err(io::Error::other)?;
        }
        // Where memory is short it takes a part of them, and the rest must not be left behind the vectors.
        while !self.ring.submission().is_empty() {
            self.submit()?;
        }
        drop(vectors);
        Ok(())
    }

    /// Hands the kernel what is in the queue, or a part of it if it has no memory for more.
    fn submit(&self) -> io::Result<()> {
        match self.ring.submit() {
            Err(error) if !is_passing(error.raw_os_error()) => Err(error),
            _ => Ok(()),
        }
    }

    /// Hands the kernel what has been answered, without waiting.
    ///
    /// # Errors
    /// Those of the ring.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.commit_all()? {
            self.submit()?;
        }
        Ok(())
    }

    /// Takes what has been answered. Whether there was something.
    fn commit_all(&mut self) -> io::Result<bool> {
        let mut answered = std::mem::take(&mut self.answered);
        {
            let mut state = self.returns.state();
            state.asleep = false;
            std::mem::swap(&mut state.entries, &mut answered);
        }
        let any = !answered.is_empty();
        for entry in answered.drain(..) {
            self.commit(entry)?;
        }
        self.answered = answered;
        Ok(any)
    }

    fn commit(&mut self, entry: Entry) -> io::Result<()> {
        let number = entry.number;
        let command = command(COMMIT_AND_FETCH, entry.queue, entry.commit, number, None);
        self.kernels[number] = Some(entry);
        // SAFETY: the kernel has the memory that it was registered with, which stays until the ring is closed, and which no other
        // thread has: it is in `kernels` now.
        unsafe { self.ring.submission().push(&command) }.map_err(io::Error::other)
    }

    /// Hands the kernel what has been answered, and waits for requests. False when the connection has ended.
    ///
    /// # Errors
    /// Those of the ring, or an answer that the kernel does not take.
    pub(crate) fn wait(&mut self, requests: &mut Vec<Entry>) -> io::Result<bool> {
        while requests.is_empty() {
            if !self.has_poll {
                let descriptor = types::Fd(self.returns.wake.as_raw_fd());
                let poll = opcode::PollAdd::new(descriptor, libc::POLLIN as u32).multi(true);
                let poll = squeue::Entry128::from(poll.build().user_data(WAKE));
                // SAFETY: it points to nothing.
                unsafe { self.ring.submission().push(&poll) }.map_err(io::Error::other)?;
                self.has_poll = true;
            }
            self.commit_all()?;
            let idle = {
                let mut state = self.returns.state();
                if state.ended {
                    return Ok(false);
                }
                state.asleep = state.entries.is_empty();
                state.asleep
            };
            if idle {
                match self.ring.submit_and_wait(1) {
                    Ok(_) => {}
                    Err(error) if is_passing(error.raw_os_error()) => {}
                    Err(error) => return Err(error),
                }
            }
            self.returns.state().asleep = false;
            loop {
                let next = self.ring.completion().next();
                let Some(done) = next else {
                    break;
                };
                if done.user_data() == WAKE {
                    self.has_poll &= cqueue::more(done.flags());
                    continue;
                }
                let slot = self.kernels.get_mut(done.user_data() as usize);
                let Some(mut entry) = slot.and_then(Option::take) else {
                    continue;
                };
                match -done.result() {
                    0 => {
                        let memory = entry.memory.as_ref().map(Memory::header);
                        let commit = memory.and_then(|header| header[COMMIT_ID..].first_chunk());
                        entry.commit = commit.map_or(0, |bytes| u64::from_ne_bytes(*bytes));
                        requests.push(entry);
                    }
                    libc::ENOTCONN | libc::ECONNABORTED | libc::ECANCELED | libc::ENODEV => {
                        return Ok(false);
                    }
                    // It did not take the buffer. A queue has others, and if one has none, the kernel sends all by the descriptor.
                    _ if entry.commit == 0 => {}
                    // It was not looked at.
                    error if is_passing(Some(error)) => self.commit(entry)?,
                    error => return Err(io::Error::from_raw_os_error(error)),
                }
            }
        }
        Ok(true)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut state = self.returns.state();
        state.closed = true;
        // They keep `returns`.
        let left = std::mem::take(&mut state.entries);
        drop(state);
        drop(left);
    }
}

fn is_passing(error: Option<i32>) -> bool {
    matches!(error, Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

/// A command for an entry; one that registers it has its vector.
fn command(
    operation: u32,
    queue: u16,
    commit: u64,
    number: usize,
    vector: Option<u64>,
) -> squeue::Entry128 {
    // struct fuse_uring_cmd_req: flags, number of the request, queue.
    let mut bytes = [0; 80];
    bytes[8..16].copy_from_slice(&commit.to_ne_bytes());
    bytes[16..18].copy_from_slice(&queue.to_ne_bytes());
    let mut entry = opcode::UringCmd80::new(types::Fixed(0), operation)
        .cmd(bytes)
        .addr(vector)
        .build()
        .user_data(number as u64);
    if vector.is_some() {
        const { assert!(size_of::<squeue::Entry128>() == 128) };
        // SAFETY: it is the kernel's struct io_uring_sqe (`repr(C)`), which has its length at byte 24. The crate has no way to set it.
        unsafe { (&raw mut entry).cast::<u32>().add(6).write(2) };
    }
    entry
}

/// What a mount has of rings: queues with their entries, for each thread.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// For each ring the queues and how many entries they have.
    pub(crate) rings: Vec<Vec<(u16, usize)>>,
    /// The rings' threads belong to one CPU each, that of their first queue.
    pub(crate) pinned: bool,
}

/// Most entries of a queue.
const DEEPEST: usize = 64;

impl Plan {
    /// So that all entries take an eighth of the bytes, where that is two entries or more for each CPU that is there. The kernel
    /// wants an entry also for each that may come. None if they take more than a quarter.
    pub(crate) fn new(cpus: &Cpus, bytes: usize, entry: usize, threads: usize) -> Option<Self> {
        let online = cpus.online.len().max(1);
        let absent = cpus.possible.saturating_sub(online);
        let depth = ((bytes / 8 / entry).saturating_sub(absent) / online).clamp(2, DEEPEST);
        if (absent + depth * online) * entry > bytes / 4 {
            return None;
        }
        let threads = threads.clamp(1, online);
        let mut rings = vec![Vec::new(); threads];
        for (at, &cpu) in cpus.online.iter().enumerate() {
            rings[at % threads].push((cpu, depth));
        }
        let others = (0..cpus.possible as u16).filter(|cpu| !cpus.online.contains(cpu));
        for (at, cpu) in others.enumerate() {
            rings[at % threads].push((cpu, 1));
        }
        Some(Self {
            rings,
            pinned: threads == online,
        })
    }

    pub(crate) fn entries(&self) -> usize {
        self.rings.iter().flatten().map(|(_, depth)| depth).sum()
    }
}

/// The CPUs of this machine.
#[derive(Debug, Clone)]
pub(crate) struct Cpus {
    online: Vec<u16>,
    possible: usize,
}

impl Cpus {
    pub(crate) fn new() -> io::Result<Self> {
        let of = |name: &str| {
            let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{name}"))?;
            list(text.trim()).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        let (mut online, possible) = (of("online")?, of("possible")?.len());
        online.retain(|&cpu| usize::from(cpu) < possible);
        Ok(Self { online, possible })
    }
}

/// `0-3,8`.
fn list(text: &str) -> Option<Vec<u16>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u16>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

/// Why there is no ring, and what to do.
pub(crate) fn unavailable(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => format!(
            "{error}; permit io_uring (kernel.io_uring_disabled, seccomp), or mount without it"
        ),
        // One of the ring's flags.
        Some(libc::EINVAL) => missing(),
        _ => format!("{error}; mount without it"),
    }
}

/// Why the kernel does not offer it, and what to do.
pub(crate) fn missing() -> String {
    const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";
    match std::fs::read_to_string(PARAMETER) {
        Ok(text) if text.trim() == "Y" => {
            "the kernel does not offer it for this mount; mount without it".to_owned()
        }
        Ok(_) => format!("it is switched off; as root, echo Y > {PARAMETER}, or mount without it"),
        Err(_) => {
            "the kernel lacks it (Linux 6.14, CONFIG_FUSE_IO_URING); mount without it".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_come_as_ranges() {
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(list("a"), None);
    }

    #[test]
    fn entries_take_an_eighth_of_the_budget() {
        let cpus = |online: u16, possible| Cpus {
            online: (0..online).collect(),
            possible,
        };
        let entry = 132 << 10;
        let plan = Plan::new(&cpus(4, 4), 64 << 20, entry, 4).unwrap();
        assert!(plan.pinned && plan.rings.len() == 4);
        assert!((56..=62).contains(&plan.entries()), "{}", plan.entries());
        // Fewer threads have several queues, and CPUs that may come have an entry.
        let plan = Plan::new(&cpus(4, 16), 64 << 20, entry, 2).unwrap();
        assert!(!plan.pinned && plan.rings.len() == 2);
        let mut queues: Vec<_> = plan.rings.concat();
        queues.sort_unstable();
        assert!(queues.iter().map(|queue| queue.0).eq(0..16));
        assert!(queues[..4].iter().all(|queue| queue.1 == queues[0].1));
        assert!(queues[4..].iter().all(|queue| queue.1 == 1));
        assert!(Plan::new(&cpus(64, 64), 4 << 20, entry, 16).is_none());
    }

    #[test]
    fn an_answer_has_the_kernels_places() {
        let returns = Arc::new(Returns {
            state: Mutex::default(),
            wake: rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
        });
        let mut memory = Memory::new(8192).unwrap();
        let header = &mut memory.bytes_mut()[8192..];
        header[..4].copy_from_slice(&(40 + 16 + 5_u32).to_ne_bytes());
        header[4..8].copy_from_slice(&16_u32.to_ne_bytes());
        header[128..132].copy_from_slice(&7_u32.to_ne_bytes());
        header[PAYLOAD_LEN..PAYLOAD_LEN + 4].copy_from_slice(&5_u32.to_ne_bytes());
        let mut entry = Entry {
            number: 0,
            queue: 0,
            commit: 9,
            memory: Some(memory),
            returns: Arc::clone(&returns),
        };
        let request = entry.request().unwrap();
        assert_eq!(
            (entry.opcode(), request.fields().len(), request.payload),
            (16, 16, 5)
        );
        assert_eq!(request.fields()[0], 7);
        assert_eq!(entry.fill(3, 0, &[&[1; 8193]]), Err(Errno::MSGSIZE));
        entry.fill(3, -5, &[b"ab", b"c"]).unwrap();
        let memory = entry.lend().unwrap();
        assert_eq!(entry.fill(3, 0, &[]), Err(Errno::IO));
        assert_eq!(memory.payload(3), b"abc");
        assert_eq!(number(memory.header(), 0), 19);
        assert_eq!(number(memory.header(), 4) as i32, -5);
        assert_eq!(number(memory.header(), PAYLOAD_LEN), 3);
        entry.give_back(memory);
        // A length that cannot be.
        entry.memory.as_mut().unwrap().bytes_mut()[8192] = 41;
        assert!(entry.request().is_err());
        entry.send();
        assert_eq!(returns.state().entries.len(), 1);
        // They hold each other.
        returns.state().entries.clear();
    }
}
