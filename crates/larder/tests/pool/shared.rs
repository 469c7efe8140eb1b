//! A pool in a memfd whose pages a second process reads in place.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use crate::common::fork::fork;
use crate::common::{alone, builder, command, role};
use larder::os::page_size;
use larder::pages::{PagePool, PoolError, SharedPages};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Runs a test of this file again as the second process, with a socket as its standard input.
#[track_caller]
fn second(test: &str, act: &str) -> (Child, UnixStream) {
    let (here, there) = UnixStream::pair().unwrap();
    let child = command(test, act)
        .stdin(OwnedFd::from(there))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    (child, here)
}

fn send_descriptor(socket: &UnixStream, fd: BorrowedFd<'_>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let byte = [std::io::IoSlice::new(b"d")];
    sendmsg(socket, &byte, &mut control, SendFlags::empty()).unwrap();
}

fn receive_descriptor(socket: impl AsFd) -> OwnedFd {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    recvmsg(
        socket,
        &mut [std::io::IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::empty(),
    )
    .unwrap();
    control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        })
        .unwrap()
}

fn pool() -> PagePool {
    PagePool::builder()
        .shared()
        .limit_bytes(1 << 20)
        .build()
        .unwrap()
}

/// What the second process does with the socket that is its standard input.
fn be_second(act: &str) {
    let stdin = std::io::stdin();
    let mut socket = UnixStream::from(stdin.as_fd().try_clone_to_owned().unwrap());
    let number = |socket: &mut UnixStream| {
        let mut bytes = [0; 8];
        socket.read_exact(&mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes) as usize)
    };
    match act {
        // Sums each page that is named, and answers with the sum.
        "read" => {
            let pages = SharedPages::map(receive_descriptor(&socket)).unwrap();
            while let Some(offset) = number(&mut socket) {
                // SAFETY: the first process keeps the page until it has the answer.
                let page = unsafe { pages.page(offset) }.unwrap();
                let sum: u64 = page.iter().map(|&byte| u64::from(byte)).sum();
                socket.write_all(&sum.to_le_bytes()).unwrap();
            }
        }
        // Takes a page's number and ends without an answer.
        "crash" => {
            let _pages = SharedPages::map(receive_descriptor(&socket)).unwrap();
            number(&mut socket).unwrap();
            std::process::abort();
        }
        // Is the pool's process, and ends with a page handed out.
        "give" => {
            let pool = pool();
            let mut page = pool.get().unwrap();
            page.fill(3);
            send_descriptor(&socket, pool.descriptor().unwrap());
            let offset = pool.offset(&page).unwrap() as u64;
            socket.write_all(&offset.to_le_bytes()).unwrap();
            std::process::abort();
        }
        other => panic!("no such act: {other}"),
    }
}

fn is_second() -> bool {
    role().inspect(|act| be_second(act)).is_some()
}

#[test]
fn a_second_process_reads_pages_where_they_are() {
    if is_second() {
        return;
    }
    let (mut child, mut socket) = second("a_second_process_reads_pages_where_they_are", "read");
    let pool = pool();
    send_descriptor(&socket, pool.descriptor().unwrap());
    for value in [1_u8, 7, 0, 255] {
        let mut page = pool.get().unwrap();
        page.fill(value);
        let offset = pool.offset(&page).unwrap() as u64;
        socket.write_all(&offset.to_le_bytes()).unwrap();
        let mut sum = [0; 8];
        socket.read_exact(&mut sum).unwrap();
        assert_eq!(
            u64::from_le_bytes(sum),
            u64::from(value) * page.len() as u64,
            "every byte is {value}"
        );
    }
    drop(socket);
    assert!(child.wait().unwrap().success());
}

#[test]
fn pages_of_a_reader_that_ended_come_back() {
    if is_second() {
        return;
    }
    let (mut child, mut socket) = second("pages_of_a_reader_that_ended_come_back", "crash");
    let pool = pool();
    send_descriptor(&socket, pool.descriptor().unwrap());
    let page = pool.get().unwrap();
    let offset = pool.offset(&page).unwrap() as u64;
    socket.write_all(&offset.to_le_bytes()).unwrap();
    let mut answer = [0; 8];
    assert!(
        socket.read_exact(&mut answer).is_err(),
        "the socket closes without an answer"
    );
    drop(page);
    pool.trim();
    assert_eq!(
        pool.stats().held_bytes,
        0,
        "and they leave the memfd, although it is open"
    );
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_page_outlives_the_process_that_made_it() {
    if is_second() {
        return;
    }
    let (mut child, mut socket) = second("a_page_outlives_the_process_that_made_it", "give");
    let pages = SharedPages::map(receive_descriptor(&socket)).unwrap();
    let mut offset = [0; 8];
    socket.read_exact(&mut offset).unwrap();
    assert!(!child.wait().unwrap().success(), "it has ended");
    // SAFETY: no process is left that writes.
    let page = unsafe { pages.page(u64::from_le_bytes(offset) as usize) }.unwrap();
    assert!(page.iter().all(|&byte| byte == 3));
}

#[test]
fn what_goes_back_leaves_the_memfd_and_comes_zeroed() {
    let pool = pool();
    let held = || {
        rustix::fs::fstat(pool.descriptor().unwrap())
            .unwrap()
            .st_blocks
            * 512
    };
    pool.get().unwrap().fill(9);
    assert!(held() > 0);
    pool.trim();
    assert_eq!(held(), 0, "holes are punched, not only unmapped");
    assert!(pool.get_zeroed().unwrap().iter().all(|&byte| byte == 0));
}

#[test]
fn a_descriptor_whose_size_may_change_is_refused() {
    let memfd = rustix::fs::memfd_create("plain", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&memfd, 1 << 20).unwrap();
    let refused = SharedPages::map(&memfd).unwrap_err();
    assert!(
        matches!(refused, PoolError::System(error) if error.raw_os_error() == 1),
        "{refused}"
    );
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert!(SharedPages::map(&file).is_err(), "no memfd at all");
    let pool = pool();
    let shrunk = rustix::fs::ftruncate(pool.descriptor().unwrap(), 0);
    assert!(shrunk.is_err(), "the size is sealed");
}

#[test]
fn a_memfd_that_is_not_whole_pages_is_refused() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    for bytes in [0, 5000] {
        let memfd = memfd_create("odd", flags).unwrap();
        ftruncate(&memfd, bytes).unwrap();
        fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let refused = SharedPages::map(&memfd).unwrap_err();
        assert!(
            matches!(refused, PoolError::System(error) if error.raw_os_error() == libc::EINVAL),
            "{refused}"
        );
        assert!(refused.to_string().contains("whole pages"), "{refused}");
    }
}

/// The child of a fork does not have the pages: what it maps at their addresses is its own, and stays when its copy of the pool goes.
#[test]
fn a_child_keeps_what_it_maps_where_the_pages_are() {
    alone("a_child_keeps_what_it_maps_where_the_pages_are", |mode| {
        let pages = builder(mode).shared().limit_bytes(1 << 20);
        let pool = pages.build().unwrap();
        let page = pool.get().unwrap();
        let at = page.as_ptr().cast_mut();
        drop(page);
        let status = fork(|| {
            // SAFETY: a fresh mapping, which replaces none. It is shared, so that a hole in it shows.
            let mapped = unsafe {
                libc::mmap(
                    at.cast(),
                    page_size(),
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                    -1,
                    0,
                )
            };
            assert_eq!(mapped.cast::<u8>(), at, "nothing is there");
            // SAFETY: just mapped.
            unsafe { at.write(7) };
            // SAFETY: the child's copy, used once.
            let pool = unsafe { core::ptr::read(&raw const pool) };
            pool.trim();
            drop(pool);
            // SAFETY: as above. Where the mapping is gone, a signal ends the child.
            assert_eq!(unsafe { at.read_volatile() }, 7, "it is the child's");
        });
        assert_eq!(status, 0, "mode {mode}");
    });
}

#[test]
fn places_outside_have_no_page() {
    let (pool, other) = (pool(), PagePool::new().unwrap());
    assert_eq!(pool.offset(&other.get().unwrap()), None);
    let pages = SharedPages::map(pool.descriptor().unwrap()).unwrap();
    for offset in [1, pool.page_size() - 1, 1 << 40, usize::MAX] {
        // SAFETY: no page is written.
        assert!(unsafe { pages.page(offset) }.is_none(), "{offset}");
    }
}
