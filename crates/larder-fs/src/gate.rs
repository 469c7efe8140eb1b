//! Which threads answer the kernel, and which requests are set aside for threads that come back from the source.
//!
//! A thread *serves* while it takes requests of the kernel and answers those that wait for nothing. As many serve as there are CPUs:
//! more would only take turns. A thread that may wait for the source, or for a lock or a block that another call of the source holds,
//! *leaves* its place first, and one of the idle threads takes it. The last thread that serves does not leave: it sets the request
//! aside and serves on. Threads that come back take what was set aside, the oldest first, before they serve again. So one thread always
//! serves, until more is set aside than there is room for.
//!
//! One thread is enough while others come back soon. The source *stands still* when threads are away and none has come back for a while.
//! Then as many threads stay as serve at a time, but not more than half, because a thread that leaves may be away for long.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A wait that is longer is worth a change of threads.
const SLOW: Duration = Duration::from_micros(250);

/// The source stands still if no thread comes back for longer.
const STANDSTILL: Duration = Duration::from_millis(10);

/// The time of the last progress while no thread is away: later than any.
const NONE_AWAY: u64 = u64::MAX;

/// Recent waits for the source, in nanoseconds, on average.
#[derive(Debug, Default)]
pub(crate) struct Waits(AtomicU64);

impl Waits {
    /// Whether they take long as a rule.
    pub(crate) fn are_slow(&self) -> bool {
        u128::from(self.0.load(Ordering::Relaxed)) > SLOW.as_nanos()
    }

    pub(crate) fn add(&self, time: Duration) {
        let average = self.0.load(Ordering::Relaxed);
        let time = time.as_nanos() as u64;
        // A lost update is as good as a late one.
        self.0
            .store(average - average / 8 + time / 8, Ordering::Relaxed);
    }
}

/// What a thread does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<R> {
    Serve,
    /// Answers this request, which was set aside. It may wait.
    Answer(R),
    End,
}

/// Most that is set aside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) requests: usize,
    pub(crate) bytes: usize,
    /// Requests that the kernel may send at a time without a program that waits for them. Most of them are as long as requests can be,
    /// so no more than have room.
    pub(crate) background: u16,
}

pub(crate) struct Gate<R> {
    /// Threads that serve at a time.
    most: usize,
    /// Threads that do not leave while the source stands still.
    keeps: usize,
    room: Room,
    begun: Instant,
    /// When a thread came back last, or left while no other one was away, in nanoseconds since `begun`; [`NONE_AWAY`]. Written under the
    /// lock, and read without it by each request.
    moved: AtomicU64,
    state: Mutex<State<R>>,
    wake: Condvar,
}

struct State<R> {
    serving: usize,
    /// Threads that left and come back.
    away: usize,
    idle: usize,
    /// Each with its bytes. While there are some, a thread is away or an idle one was woken for them.
    aside: VecDeque<(R, usize)>,
    bytes: usize,
    ended: bool,
}

impl<R> Gate<R> {
    pub(crate) fn new(most: usize, room: Room) -> Self {
        Self {
            most,
            keeps: 1,
            room,
            begun: Instant::now(),
            moved: AtomicU64::new(NONE_AWAY),
            state: Mutex::new(State {
                serving: 0,
                away: 0,
                idle: 0,
                aside: VecDeque::new(),
                bytes: 0,
                ended: false,
            }),
            wake: Condvar::new(),
        }
    }

    /// For so many threads: while the source stands still, as many as serve at a time do not leave. More than half can leave, so that
    /// few slow calls do not keep all others waiting.
    pub(crate) fn with_threads(mut self, threads: usize) -> Self {
        self.keeps = self.most.min(threads.saturating_sub(1) / 2).max(1);
        self
    }

    fn nanoseconds(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.begun).as_nanos() as u64
    }

    fn stands_still(&self, now: Instant) -> bool {
        let moved = self.moved.load(Ordering::Relaxed);
        u128::from(self.nanoseconds(now).saturating_sub(moved)) > STANDSTILL.as_nanos()
    }

    /// Threads that are to stay at the kernel's side.
    fn stay(&self, now: Instant) -> usize {
        match self.stands_still(now) {
            true => self.keeps,
            false => 1,
        }
    }

    /// One thread more is away.
    fn goes(&self, state: &mut State<R>, now: Instant) {
        state.away += 1;
        if state.away == 1 {
            self.moved.store(self.nanoseconds(now), Ordering::Relaxed);
        }
    }

    /// One thread less is away, which is progress.
    fn comes(&self, state: &mut State<R>, now: Instant) {
        state.away -= 1;
        let moved = match state.away {
            0 => NONE_AWAY,
            _ => self.nanoseconds(now),
        };
        self.moved.store(moved, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread comes to answer requests. Waits until it is needed.
    pub(crate) fn enter(&self) -> Next<R> {
        self.next(self.state(), Instant::now())
    }

    /// A thread that left has waited, and its request is answered.
    pub(crate) fn back(&self) -> Next<R> {
        let mut state = self.state();
        let now = Instant::now();
        self.comes(&mut state, now);
        self.next(state, now)
    }

    fn next(&self, mut state: MutexGuard<'_, State<R>>, mut now: Instant) -> Next<R> {
        loop {
            if state.ended {
                return Next::End;
            }
            // A place that no thread has comes first. While the source stands still so do all places that are to stay: with what is
            // aside the thread would be away, too. A thread that has just come back shows that it does not.
            if state.serving >= self.stay(now)
                && let Some((request, bytes)) = state.aside.pop_front()
            {
                state.bytes -= bytes;
                self.goes(&mut state, now);
                return Next::Answer(request);
            }
            if state.serving < self.most {
                state.serving += 1;
                return Next::Serve;
            }
            state.idle += 1;
            let woken = self.wake.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            now = Instant::now();
        }
    }

    /// A thread that serves is about to wait. True if it may, and is to come [`back`](Self::back); false if its request was set aside
    /// and it serves on. If waits are `slow` as a rule, or the source stands still, an idle thread takes the place at once, else only if
    /// no other thread serves.
    pub(crate) fn leave(&self, slow: bool, bytes: usize, aside: impl FnOnce() -> R) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let stay = self.stay(now);
        // Without this thread. Idle threads that were woken for what is aside are not idle any more.
        let left = state.serving - 1 + state.idle.saturating_sub(state.aside.len());
        // One of any length has room; and what holds no memory of its own, as inodes that the kernel forgets.
        let has_room = bytes == 0
            || state.aside.is_empty()
            || state.aside.len() < self.room.requests && state.bytes + bytes <= self.room.bytes;
        // A thread that is away takes it. Without one, or without room, there is no other way than to wait.
        if left < stay && state.away > 0 && has_room && !state.ended {
            state.bytes += bytes;
            state.aside.push_back((aside(), bytes));
            return false;
        }
        state.serving -= 1;
        self.goes(&mut state, now);
        let least = if slow || stay > 1 { self.most } else { 1 };
        let wakes = state.serving < least && state.idle > 0;
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
        true
    }

    /// A thread that serves has a request, which came at this time. While the source stands still an idle thread serves beside it, where
    /// fewer serve than are to stay: those that left before it was known had no other to take their places. Else this is one load.
    pub(crate) fn relieve(&self, now: Instant) {
        if self.keeps == 1 || !self.stands_still(now) {
            return;
        }
        let state = self.state();
        let wakes = state.serving < self.keeps && state.idle > 0;
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Sets a request aside for a thread that is away or idle. For threads that take requests elsewhere, and have a place for each.
    pub(crate) fn put(&self, request: R) {
        let mut state = self.state();
        if state.ended {
            drop(state);
            return drop(request);
        }
        state.aside.push_back((request, 0));
        let wakes = state.idle > 0;
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Looks for a request that is set aside.
    pub(crate) fn find<T>(&self, found: impl FnMut(&R) -> Option<T>) -> Option<T> {
        let state = self.state();
        state
            .aside
            .iter()
            .map(|(request, _)| request)
            .find_map(found)
    }

    /// Takes out a request that is set aside, if it still is.
    pub(crate) fn remove(&self, is_it: impl Fn(&R) -> bool) -> Option<R> {
        let mut state = self.state();
        let at = state.aside.iter().position(|(request, _)| is_it(request));
        let (request, bytes) = state.aside.remove(at?)?;
        state.bytes -= bytes;
        Some(request)
    }

    /// No thread is needed any more, and no request is answered.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        let left = std::mem::take(&mut state.aside);
        drop(state);
        drop(left);
        self.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    const ROOM: Room = Room {
        requests: 3,
        bytes: 100,
        background: 1,
    };

    /// A gate for so many threads, for which time enough has passed that the source may [stand still](stand_still).
    fn gate_for(most: usize, threads: usize) -> Gate<u32> {
        let mut gate = Gate::new(most, ROOM).with_threads(threads);
        gate.begun -= Duration::from_secs(1);
        gate
    }

    /// No thread has come back since the gate was made.
    fn stand_still(gate: &Gate<u32>) {
        assert!(gate.state().away > 0);
        gate.moved.store(0, Ordering::Relaxed);
    }

    /// Waits until so many threads are idle.
    fn until_idle(gate: &Gate<u32>, idle: usize) {
        while gate.state().idle != idle {
            std::thread::yield_now();
        }
    }

    fn serve(gate: &Gate<u32>) {
        assert_eq!(gate.enter(), Next::Serve);
    }

    /// Four threads that serve would leave at once. How many do.
    fn four_leave(gate: &Gate<u32>) -> usize {
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            let leave = || {
                start.wait();
                usize::from(gate.leave(false, 0, || 0))
            };
            let all: Vec<_> = (0..4).map(|_| scope.spawn(leave)).collect();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        })
    }

    #[test]
    fn one_that_leaves_lets_another_in() {
        let gate = Gate::new(1, ROOM);
        serve(&gate);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| gate.enter());
            until_idle(&gate, 1);
            assert!(gate.leave(false, 0, || 0));
            assert_eq!(other.join().unwrap(), Next::Serve);
            // The other one has the place, and has left it now.
            assert!(!gate.leave(false, 0, || 7));
            assert_eq!(gate.back(), Next::Answer(7));
            let first = scope.spawn(|| gate.back());
            until_idle(&gate, 1);
            gate.end();
            assert_eq!(first.join().unwrap(), Next::End);
        });
    }

    #[test]
    fn without_need_no_thread_is_woken() {
        let gate = Gate::new(2, ROOM);
        serve(&gate);
        serve(&gate);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| gate.enter());
            until_idle(&gate, 1);
            // One serves still.
            assert!(gate.leave(false, 0, || 0));
            assert_eq!(gate.back(), Next::Serve);
            until_idle(&gate, 1);
            // A wait that takes long is worth it.
            assert!(gate.leave(true, 0, || 0));
            assert_eq!(other.join().unwrap(), Next::Serve);
            gate.end();
        });
    }

    #[test]
    fn of_all_that_leave_at_once_one_serves() {
        for _ in 0..500 {
            let gate = Gate::new(4, ROOM);
            (0..4).for_each(|_| serve(&gate));
            let left = four_leave(&gate);
            assert_eq!((left, gate.state().serving), (3, 1));
            assert_eq!(gate.state().aside.len(), 1);
        }
    }

    #[test]
    fn while_the_source_stands_still_as_many_stay_as_serve_at_a_time() {
        let gate = gate_for(2, 5);
        serve(&gate);
        serve(&gate);
        std::thread::scope(|scope| {
            let enter = || gate.enter();
            let idle = [scope.spawn(enter), scope.spawn(enter)];
            until_idle(&gate, 2);
            assert!(gate.leave(false, 0, || 0));
            // It is not known yet, and one serves.
            gate.relieve(gate.begun);
            let state = gate.state();
            assert_eq!((state.serving, state.idle), (1, 2));
            drop(state);
            stand_still(&gate);
            gate.relieve(Instant::now());
            until_idle(&gate, 1);
            assert_eq!(gate.state().serving, 2);
            // Two stay with the idle one, which takes the place at once.
            assert!(gate.leave(false, 0, || 0));
            until_idle(&gate, 0);
            assert_eq!(gate.state().serving, 2);
            assert!(!gate.leave(false, 0, || 1));
            assert!(!gate.leave(true, 0, || 2));
            assert_eq!(gate.state().serving, 2);
            for idle in idle {
                assert_eq!(idle.join().unwrap(), Next::Serve);
            }
            // The first one that comes back is progress, and takes what was set aside.
            assert_eq!(gate.back(), Next::Answer(1));
            assert_eq!(gate.back(), Next::Answer(2));
        });
    }

    #[test]
    fn a_thread_that_is_woken_in_a_standstill_serves_and_takes_nothing_that_is_aside() {
        let gate = gate_for(2, 5);
        serve(&gate);
        serve(&gate);
        assert!(gate.leave(false, 0, || 0));
        assert!(!gate.leave(false, 0, || 1), "the last one");
        stand_still(&gate);
        assert_eq!(gate.enter(), Next::Serve);
        // As many serve as are to stay, so that a further one may be away.
        assert_eq!(gate.enter(), Next::Answer(1));
    }

    #[test]
    fn half_of_the_threads_can_leave_in_a_standstill() {
        let keeps = |most, threads| gate_for(most, threads).keeps;
        assert_eq!((keeps(2, 8), keeps(16, 32), keeps(16, 17)), (2, 15, 8));
        assert_eq!((keeps(2, 3), keeps(1, 2), keeps(1, 1)), (1, 1, 1));
    }

    #[test]
    fn of_all_that_would_leave_in_a_standstill_none_does_that_is_to_stay() {
        for _ in 0..500 {
            let gate = gate_for(4, 9);
            (0..4).for_each(|_| serve(&gate));
            assert!(gate.leave(false, 0, || 0));
            serve(&gate);
            stand_still(&gate);
            let left = four_leave(&gate);
            let state = gate.state();
            assert_eq!((left, state.serving, state.aside.len()), (0, 4, 4));
        }
    }

    #[test]
    fn the_last_one_that_comes_back_ends_a_standstill() {
        let gate = gate_for(2, 5);
        serve(&gate);
        serve(&gate);
        assert!(gate.leave(false, 0, || 0));
        stand_still(&gate);
        assert!(!gate.leave(false, 0, || 1));
        assert_eq!(gate.back(), Next::Answer(1));
        assert_eq!(gate.back(), Next::Serve);
        assert_eq!(gate.moved.load(Ordering::Relaxed), NONE_AWAY);
        assert!(gate.leave(false, 0, || 0));
    }

    #[test]
    fn threads_that_come_back_take_the_oldest_first() {
        let gate = Gate::new(3, ROOM);
        (0..3).for_each(|_| serve(&gate));
        assert!(gate.leave(true, 0, || 0) && gate.leave(true, 0, || 0));
        for request in 1..=3 {
            assert!(!gate.leave(true, 0, || request));
        }
        // Whichever comes back, also the same again, while another one does not.
        for request in 1..=3 {
            assert_eq!(gate.back(), Next::Answer(request));
        }
        assert_eq!(gate.back(), Next::Serve);
    }

    #[test]
    fn a_thread_that_was_woken_for_one_request_takes_no_place() {
        let gate = Gate::new(1, ROOM);
        serve(&gate);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| gate.enter());
            until_idle(&gate, 1);
            gate.put(1);
            assert_eq!(first.join().unwrap(), Next::Answer(1));
            let second = scope.spawn(|| gate.enter());
            until_idle(&gate, 1);
            let mut state = gate.state();
            // As if it had not woken yet.
            state.aside.push_back((2, 0));
            drop(state);
            assert!(!gate.leave(true, 0, || 3));
            gate.wake.notify_one();
            assert_eq!(second.join().unwrap(), Next::Answer(2));
            assert_eq!(gate.back(), Next::Answer(3));
            gate.end();
        });
    }

    #[test]
    fn what_is_set_aside_can_be_taken_out() {
        let gate = Gate::new(2, ROOM);
        serve(&gate);
        serve(&gate);
        assert!(gate.leave(true, 0, || 0));
        (1..=3).for_each(|request| assert!(!gate.leave(true, 30, || request)));
        assert_eq!(gate.find(|&one| (one > 1).then_some(one * 10)), Some(20));
        assert_eq!(gate.remove(|&one| one == 2), Some(2));
        assert_eq!(gate.remove(|&one| one == 2), None);
        assert_eq!(gate.state().bytes, 60);
        assert_eq!(gate.back(), Next::Answer(1));
        assert_eq!(gate.back(), Next::Answer(3));
    }

    #[test]
    fn there_is_room_for_so_many_requests_and_bytes() {
        for (bytes, fit) in [(1, ROOM.requests), (60, 1), (101, 1)] {
            let gate = Gate::new(2, ROOM);
            serve(&gate);
            serve(&gate);
            assert!(gate.leave(true, 0, || 0));
            for request in 0..fit {
                assert!(!gate.leave(true, bytes, || request as u32));
            }
            // It waits itself then, and the next one that comes back serves before it takes anything.
            assert!(gate.leave(true, bytes, || 9));
            assert_eq!(gate.back(), Next::Serve);
            for request in 0..fit {
                assert_eq!(gate.back(), Next::Answer(request as u32));
            }
            assert_eq!(gate.state().bytes, 0);
        }
    }

    #[test]
    fn a_thread_that_is_alone_sets_nothing_aside() {
        let gate = Gate::new(1, ROOM);
        serve(&gate);
        assert!(gate.leave(true, 0, || 0), "none would take it");
        assert_eq!(gate.back(), Next::Serve);
    }

    #[test]
    fn all_but_one_take_what_rings_set_aside() {
        let gate = Gate::new(1, ROOM);
        let meet = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| match gate.enter() {
                    // As at a descriptor from which nothing comes.
                    Next::Serve => {}
                    Next::Answer(_) => {
                        meet.wait();
                        assert_eq!(gate.back(), Next::End);
                    }
                    Next::End => panic!("too early"),
                });
            }
            until_idle(&gate, 3);
            (0..3).for_each(|request| gate.put(request));
            meet.wait();
            gate.end();
        });
    }

    #[test]
    fn what_is_left_at_the_end_is_dropped() {
        let gate = Gate::new(1, ROOM);
        serve(&gate);
        let request = std::sync::Arc::new(());
        let other: Gate<std::sync::Arc<()>> = Gate::new(1, ROOM);
        other.put(request.clone());
        other.end();
        other.put(request.clone());
        assert_eq!(std::sync::Arc::strong_count(&request), 1);
    }

    #[test]
    fn few_fast_waits_end_a_slow_time() {
        let waits = Waits::default();
        assert!(!waits.are_slow());
        waits.add(Duration::from_millis(3));
        assert!(waits.are_slow());
        (0..10).for_each(|_| waits.add(Duration::from_micros(10)));
        assert!(!waits.are_slow());
    }
}
