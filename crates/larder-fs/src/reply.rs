//! Where the answer to a request goes: the way that the request came.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use crate::ring::{Entry, Memory};
use crate::system::Sys;

/// The connection to the kernel.
pub(crate) type Device = Arc<OwnedFd>;

/// The way of an answer.
pub(crate) enum Reply {
    /// By the descriptor that the request came by: the kernel takes it by no other.
    Device(Device),
    /// In the entry that the request came in; none when it is sent.
    Ring(Option<Entry>),
}

impl Reply {
    /// Sends an answer of one piece or more.
    pub(crate) fn send(&mut self, unique: u64, error: i32, pieces: &[&[u8]]) -> io::Result<()> {
        match self {
            Self::Device(device) => send(device, unique, error, pieces),
            Self::Ring(slot) => {
                if let Some(entry) = slot {
                    entry.fill(unique, error, pieces)?;
                }
                if let Some(entry) = slot.take() {
                    entry.send();
                }
                Ok(())
            }
        }
    }

    /// Answers a request.
    pub(crate) fn answer(&mut self, unique: u64, pieces: Sys<&[&[u8]]>) {
        let sent = match pieces {
            Ok(pieces) => self.send(unique, 0, pieces),
            Err(error) => self.send(unique, -error.raw_os_error(), &[]),
        };
        if sent.is_err() {
            // The kernel did not take the answer; an error it takes.
            let _ = self.send(unique, -libc::EIO, &[]);
        }
    }

    /// For another thread, which answers later.
    pub(crate) fn detach(&mut self) -> Self {
        match self {
            Self::Device(device) => Self::Device(Arc::clone(device)),
            Self::Ring(entry) => Self::Ring(entry.take()),
        }
    }

    /// What the request was read from goes back to its entry.
    pub(crate) fn give_back(&mut self, memory: Memory) {
        if let Self::Ring(Some(entry)) = self {
            entry.give_back(memory);
        }
    }
}

/// Sends a message of one piece or more by the descriptor.
pub(crate) fn send(device: &Device, unique: u64, error: i32, pieces: &[&[u8]]) -> io::Result<()> {
    let len = 16 + pieces.iter().map(|piece| piece.len()).sum::<usize>();
    let mut header = [0; 16];
    header[..4].copy_from_slice(&(len as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&error.to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    let mut all = Vec::with_capacity(pieces.len() + 1);
    all.push(IoSlice::new(&header));
    all.extend(pieces.iter().map(|piece| IoSlice::new(piece)));
    match rustix::io::writev(&**device, &all) {
        // The program that asked was interrupted, or the mount has ended.
        Ok(_) | Err(Errno::NOENT | Errno::NODEV) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
