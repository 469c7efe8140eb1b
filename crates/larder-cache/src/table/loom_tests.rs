//! The latch and the pins under every order of events: `RUSTFLAGS="--cfg loom" cargo test -p larder-cache --lib`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use super::epoch::{CurrentEpochs, Epoch};
use super::latch::Latch;
use super::pins::Pins;

/// Two words that only a writer may change, and only together.
#[derive(Default)]
struct Page {
    latch: Latch,
    words: [AtomicU32; 2],
}

impl Page {
    fn add(&self) {
        for word in &self.words {
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
    }

    fn seen(&self) -> u32 {
        let [one, two] = [&self.words[0], &self.words[1]].map(|word| word.load(Relaxed));
        assert_eq!(one, two, "torn");
        one
    }

    fn write(&self) {
        self.latch.write(|| true).unwrap();
        self.add();
        self.latch.end_write();
    }

    fn read(&self) -> u32 {
        if !self.latch.try_read() {
            assert_eq!(self.latch.read(|| true), Ok(true));
        }
        let seen = self.seen();
        self.latch.end_read();
        seen
    }
}

fn explore(test: impl Fn(&Arc<Page>) + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || test(&Arc::new(Page::default())));
}

fn spawn<T: 'static>(
    page: &Arc<Page>,
    work: impl FnOnce(&Page) -> T + 'static,
) -> thread::JoinHandle<T> {
    let page = Arc::clone(page);
    thread::spawn(move || work(&page))
}

#[test]
fn latch_readers_see_whole_writes_and_every_thread_gets_in() {
    explore(|page| {
        let writer = spawn(page, Page::write);
        let reader = spawn(page, Page::read);
        let mine = page.read();
        assert!(mine <= 1 && reader.join().unwrap() <= 1);
        writer.join().unwrap();
        assert_eq!(page.read(), 1);
    });
}

#[test]
fn latch_two_writers_take_turns() {
    explore(|page| {
        let one = spawn(page, Page::write);
        let two = spawn(page, Page::write);
        page.read();
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(page.read(), 2);
    });
}

#[test]
fn latch_no_thread_writes_while_a_writer_becomes_a_reader() {
    explore(|page| {
        let other = spawn(page, Page::write);
        page.latch.write(|| true).unwrap();
        page.add();
        let mine = page.seen();
        page.latch.downgrade();
        assert_eq!(page.seen(), mine);
        page.latch.end_read();
        other.join().unwrap();
        assert_eq!(page.read(), 2);
    });
}

#[test]
fn latch_a_thread_that_may_not_wait_gives_way_and_wakes_one_that_does() {
    explore(|page| {
        let writer = spawn(page, Page::write);
        let taker = spawn(page, |page| {
            if page.latch.try_write().is_some() {
                page.add();
                page.latch.end_write();
                return 1;
            }
            0
        });
        if page.latch.try_read() {
            // This thread is in already, and a writer that waits does not keep it out.
            assert!(page.latch.push());
            page.seen();
            page.latch.end_read();
            page.latch.end_read();
        }
        writer.join().unwrap();
        let taken = taker.join().unwrap();
        assert_eq!(page.read(), 1 + taken);
    });
}

/// The frame is given to another block, in the hands of a thread that waits for those that waited for the former one.
#[test]
fn latch_waiters_for_a_block_that_is_gone_do_not_wait_for_the_next_one() {
    const HERE: u32 = 0;
    explore(|page| {
        assert!(page.latch.try_write().is_some());
        let here = |page: &Page| page.words[0].load(Relaxed) == HERE;
        let writer = spawn(page, move |page| page.latch.write(|| here(page)));
        let reader = spawn(page, move |page| {
            match page.latch.wait_for_writer(|| here(page)) {
                true => page.latch.read(|| here(page)),
                false => Ok(false),
            }
        });
        page.words[0].store(HERE + 1, Relaxed);
        page.latch.changed();
        assert_eq!(writer.join().unwrap(), None);
        assert_eq!(reader.join().unwrap(), Ok(false));
        page.latch.end_write();
        assert!(page.latch.try_read(), "no mark is left");
    });
}

#[test]
fn latch_a_reader_that_enters_by_a_mark_is_one_like_others() {
    explore(|page| {
        page.latch.mark(Epoch::number(0));
        let writer = spawn(page, Page::write);
        let reader = spawn(page, |page| {
            let entry = page.latch.enter();
            if entry.is_saturated(Epoch::number(0)) {
                page.seen();
                page.latch.end_read();
            } else if page.latch.entered(&entry) {
                page.latch.end_read();
            }
        });
        page.read();
        reader.join().unwrap();
        writer.join().unwrap();
        assert_eq!(page.read(), 1);
        assert!(
            !page.latch.enter().is_saturated(Epoch::number(0)),
            "the writer left the mark"
        );
        page.latch.end_read();
    });
}

#[test]
fn latch_a_mark_loses_no_reader_that_comes_or_goes() {
    explore(|page| {
        let writer = spawn(page, Page::write);
        let marker = spawn(page, |page| {
            page.latch.mark(Epoch::number(0));
            page.latch.unmark();
        });
        page.read();
        marker.join().unwrap();
        writer.join().unwrap();
        assert!(
            page.latch.try_write().is_some(),
            "a reader is still counted"
        );
    });
}

/// A page whose readers may pin it.
struct Pinned {
    page: Page,
    pins: Pins,
    now: CurrentEpochs,
}

const EPOCH: Epoch = Epoch::number(0);

impl Pinned {
    /// In an open epoch, and marked.
    fn new() -> Arc<Self> {
        let this = Self {
            page: Page::default(),
            pins: Pins::new(),
            now: CurrentEpochs::new(),
        };
        // The reader's, which loom must have seen before there are threads.
        this.pins.give_back(this.pins.row().unwrap().0);
        this.pins.open(EPOCH);
        this.now.set(EPOCH, EPOCH);
        this.page.latch.mark(EPOCH);
        Arc::new(this)
    }

    fn end(&self) {
        self.now.set(Epoch::NEVER, Epoch::NEVER);
        self.pins.close();
    }

    fn write(&self) {
        assert!(self.pins.write(&self.page.latch, || true));
        self.page.add();
        self.page.latch.end_write();
    }

    fn try_write(&self) -> u32 {
        let alone = self.pins.try_write(&self.page.latch);
        if alone {
            self.page.add();
            self.page.latch.end_write();
        }
        alone.into()
    }

    /// What a reader sees that is in by its pin; nothing if it may not enter so.
    fn read(&self) -> Option<u32> {
        let (_, row) = self.pins.row().unwrap();
        let mine = row.free().unwrap();
        let is_in = mine.enter(&self.page.latch, &self.now);
        let seen = is_in.then(|| self.page.seen());
        mine.leave(&self.page.latch);
        seen
    }
}

fn explore_pinned(test: impl Fn(&Arc<Pinned>) + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || test(&Pinned::new()));
}

fn spawn_pinned<T: 'static>(
    all: &Arc<Pinned>,
    work: impl FnOnce(&Pinned) -> T + 'static,
) -> thread::JoinHandle<T> {
    let all = Arc::clone(all);
    thread::spawn(move || work(&all))
}

#[test]
fn latch_a_pinned_reader_sees_whole_writes_and_keeps_no_thread_waiting() {
    explore_pinned(|all| {
        let writer = spawn_pinned(all, Pinned::write);
        assert!(all.read().is_none_or(|seen| seen <= 1));
        writer.join().unwrap();
        assert_eq!(all.page.read(), 1);
        assert_eq!(all.read(), None, "the writer left the mark");
    });
}

#[test]
fn latch_what_was_pinned_when_the_epoch_ended_is_found_without_a_barrier() {
    explore_pinned(|all| {
        let reader = spawn_pinned(all, Pinned::read);
        let ender = spawn_pinned(all, |all| {
            all.end();
            all.try_write()
        });
        assert!(reader.join().unwrap().is_none_or(|seen| seen <= 1));
        let written = ender.join().unwrap();
        assert_eq!(all.page.read(), written);
        assert_eq!(all.try_write(), 1, "a pin was left");
    });
}

#[test]
fn latch_a_writer_without_the_lock_meets_the_end_of_the_epoch() {
    explore_pinned(|all| {
        let reader = spawn_pinned(all, Pinned::read);
        let ender = spawn_pinned(all, Pinned::end);
        all.write();
        assert!(reader.join().unwrap().is_none_or(|seen| seen <= 1));
        ender.join().unwrap();
        assert_eq!(all.page.read(), 1);
    });
}

#[test]
fn latch_a_writer_that_steps_back_for_a_pin_lets_others_in_and_finds_it_again() {
    explore_pinned(|all| {
        let (_, row) = all.pins.row().unwrap();
        let mine = row.free().unwrap();
        assert!(mine.enter(&all.page.latch, &all.now));
        let writer = spawn_pinned(all, Pinned::write);
        let taker = spawn_pinned(all, Pinned::try_write);
        assert_eq!(all.page.seen(), 0);
        // As a thread does that is in already and enters again, and as a block is written back that a writer may have
        // for a moment.
        while !all.page.latch.push() {
            assert!(all.page.latch.wait_for_writer(|| true));
        }
        assert_eq!(all.page.seen(), 0);
        all.page.latch.end_read();
        mine.leave(&all.page.latch);
        writer.join().unwrap();
        let taken = taker.join().unwrap();
        assert_eq!(all.page.read(), 1 + taken);
    });
}

#[test]
fn latch_a_sweep_does_not_hide_a_pin() {
    explore_pinned(|all| {
        let reader = spawn_pinned(all, Pinned::read);
        all.end();
        all.page.latch.unmark();
        let written = all.try_write();
        assert!(reader.join().unwrap().is_none_or(|seen| seen <= written));
        assert_eq!(all.page.read(), written);
    });
}
