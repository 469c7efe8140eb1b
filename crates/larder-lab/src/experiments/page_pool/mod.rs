//! The page pool against its peers.

mod handover;
mod loops;
mod ring;
mod shapes;
mod threads;
