//! The latch under every order of events: `RUSTFLAGS="--cfg loom" cargo test -p larder --lib --target-dir target/loom latch`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use super::latch::{Epoch, Latch};

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
        self.latch.write();
        self.add();
        self.latch.end_write();
    }

    fn read(&self) -> u32 {
        if !self.latch.try_read() {
            self.latch.read(false);
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
fn latch_readers_see_whole_writes_and_everybody_gets_in() {
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
fn latch_nobody_writes_while_a_writer_becomes_a_reader() {
    explore(|page| {
        let other = spawn(page, Page::write);
        page.latch.write();
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
fn latch_who_may_not_wait_gives_way_and_wakes_who_does() {
    explore(|page| {
        let writer = spawn(page, Page::write);
        let taker = spawn(page, |page| {
            if page.latch.try_write() {
                page.add();
                page.latch.end_write();
                return 1;
            }
            0
        });
        if page.latch.try_read() {
            // Holds it already, and is not kept out by who waits to write.
            page.latch.read(true);
            page.seen();
            page.latch.end_read();
            page.latch.end_read();
        }
        writer.join().unwrap();
        let taken = taker.join().unwrap();
        assert_eq!(page.read(), 1 + taken);
    });
}

#[test]
fn latch_who_comes_in_by_a_mark_is_a_reader_like_others() {
    explore(|page| {
        page.latch.mark(Epoch::number(0));
        let writer = spawn(page, Page::write);
        let reader = spawn(page, |page| {
            let entry = page.latch.enter();
            if entry.is_settled(Epoch::number(0)) {
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
            !page.latch.enter().is_settled(Epoch::number(0)),
            "the writer left the mark"
        );
        page.latch.end_read();
    });
}

#[test]
fn latch_a_mark_loses_nobody_who_comes_or_goes() {
    explore(|page| {
        let writer = spawn(page, Page::write);
        let marker = spawn(page, |page| {
            page.latch.mark(Epoch::number(0));
            page.latch.unmark();
        });
        page.read();
        marker.join().unwrap();
        writer.join().unwrap();
        assert!(page.latch.try_write(), "somebody is still counted");
    });
}
