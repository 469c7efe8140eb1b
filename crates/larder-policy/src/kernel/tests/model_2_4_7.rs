//! 2.4.7, the patch and 2.4.8 once more, on plain vectors, by reading the kernel's functions from top to bottom.
//! A vector's first element is the list's head; reclaim works at its end.

use super::super::super::{Arrival, Frame, FrameState, Frames, Reason};
use super::super::Linux247;
use super::random::{Model, agree};

#[derive(Clone, Copy, PartialEq)]
enum Kernel {
    Vanilla,
    Patched,
    Merged,
}

#[derive(Clone, Copy)]
struct Page {
    frame: Frame,
    age: u32,
    referenced: bool,
}

struct Plain {
    kernel: Kernel,
    physpages: i64,
    active_list: Vec<Page>,
    inactive_dirty_list: Vec<Page>,
    inactive_clean_list: Vec<Page>,
    memory_pressure: i64,
}

impl Plain {
    fn new(kernel: Kernel, frames: usize) -> Self {
        Self {
            kernel,
            physpages: frames as i64,
            active_list: Vec::new(),
            inactive_dirty_list: Vec::new(),
            inactive_clean_list: Vec::new(),
            memory_pressure: 0,
        }
    }

    fn nr_free_pages(&self) -> i64 {
        let used = self.active_list.len()
            + self.inactive_dirty_list.len()
            + self.inactive_clean_list.len();
        (self.physpages - used as i64).max(0)
    }

    fn inactive_target(&self) -> i64 {
        (self.memory_pressure / 64).min(self.physpages / 4)
    }

    fn freepages_high(&self) -> i64 {
        3 * (self.physpages / 128).clamp(10, 255)
    }

    fn free_shortage(&self) -> i64 {
        let have = self.nr_free_pages() + self.inactive_clean_list.len() as i64;
        (self.freepages_high() + self.inactive_target() / 3 - have).max(0)
    }

    fn inactive_shortage(&self) -> i64 {
        let have = self.nr_free_pages()
            + self.inactive_clean_list.len() as i64
            + self.inactive_dirty_list.len() as i64;
        (self.freepages_high() + self.inactive_target() - have).max(0)
    }

    fn used(&self, page: Page) -> bool {
        match self.kernel {
            Kernel::Vanilla => page.referenced || page.age > 0,
            _ => page.referenced,
        }
    }

    fn activate(&mut self, mut page: Page) {
        if self.kernel != Kernel::Vanilla {
            page.age = 2;
        }
        self.active_list.insert(0, page);
    }

    fn reclaim_page(&mut self, frames: &mut dyn Frames) -> bool {
        self.memory_pressure += 1;
        let mut maxscan = self.inactive_clean_list.len();
        while maxscan > 0 {
            maxscan -= 1;
            let page = self.inactive_clean_list.pop().unwrap();
            let state = frames.state(page.frame);
            if self.used(page) || state == FrameState::Pinned {
                self.activate(page);
            } else if state == FrameState::Dirty {
                self.inactive_dirty_list.insert(0, page);
            } else {
                frames.evicted(page.frame, None);
                return true;
            }
        }
        false
    }

    fn page_launder(&mut self, frames: &mut dyn Frames, sync: bool) {
        let mut cleaned_pages = 0;
        let mut launder_loop = 0;
        let mut maxlaunder = 0;
        loop {
            let mut maxscan = self.inactive_dirty_list.len();
            while maxscan > 0 && !self.inactive_dirty_list.is_empty() {
                maxscan -= 1;
                let page = self.inactive_dirty_list.pop().unwrap();
                if self.used(page) || frames.state(page.frame) == FrameState::Pinned {
                    self.activate(page);
                    continue;
                }
                let mut freed = frames.state(page.frame) == FrameState::Clean;
                if !freed && launder_loop == 1 && maxlaunder > 0 {
                    maxlaunder -= 1;
                    frames.write_back(page.frame);
                } else if !freed && launder_loop == 1 && sync && cleaned_pages == 0 {
                    frames.write_back(page.frame);
                    freed = frames.state(page.frame) == FrameState::Clean;
                }
                if freed {
                    self.inactive_clean_list.insert(0, page);
                    cleaned_pages += 1;
                } else {
                    self.inactive_dirty_list.insert(0, page);
                }
            }
            if launder_loop == 1 || self.free_shortage() == 0 {
                return;
            }
            launder_loop = 1;
            maxlaunder = 64;
        }
    }

    fn refill_inactive_scan(&mut self, frames: &dyn Frames, maxscan: usize, target: i64) -> i64 {
        let mut nr_deactivated = 0;
        for _ in 0..maxscan {
            let Some(mut page) = self.active_list.pop() else {
                break;
            };
            let mut page_active = true;
            if page.referenced {
                page.referenced = false;
                if page.age == 0 {
                    page.age = 2;
                }
                page.age = (page.age + 3).min(64);
            } else {
                page.age /= 2;
                page_active = page.age != 0 || frames.state(page.frame) == FrameState::Pinned;
            }
            if page_active {
                self.active_list.insert(0, page);
            } else {
                self.inactive_dirty_list.insert(0, page);
                nr_deactivated += 1;
                if target > 0 && nr_deactivated >= target {
                    break;
                }
            }
        }
        nr_deactivated
    }

    fn refill_inactive(&mut self, frames: &dyn Frames, user: bool) {
        let mut count = if user { 16 } else { self.inactive_shortage() };
        let mut maxtry = if user { 6 } else { 64 };
        loop {
            let maxscan = (self.active_list.len() / 64).max(1);
            count -= self.refill_inactive_scan(frames, maxscan, count.max(1));
            maxtry -= 1;
            if count <= 0 || self.inactive_shortage() == 0 || maxtry == 0 {
                return;
            }
        }
    }

    fn do_try_to_free_pages(&mut self, frames: &mut dyn Frames, user: bool) {
        if self.free_shortage() > 0 {
            self.page_launder(frames, user);
        }
        if self.free_shortage() > 0 || self.inactive_shortage() > 0 {
            self.refill_inactive(frames, user);
        }
    }

    fn kswapd(&mut self, frames: &mut dyn Frames) {
        for _ in 0..2 {
            if self.inactive_shortage() > 0 || self.free_shortage() > 0 {
                self.do_try_to_free_pages(frames, false);
            }
            if self.free_shortage() == 0 || self.inactive_shortage() == 0 {
                return;
            }
        }
    }

    fn forget(&mut self, frame: Frame) -> Page {
        for list in [
            &mut self.active_list,
            &mut self.inactive_dirty_list,
            &mut self.inactive_clean_list,
        ] {
            if let Some(at) = list.iter().position(|page| page.frame == frame) {
                return list.remove(at);
            }
        }
        panic!("frame {frame} is on no list");
    }

    fn find(&mut self, frame: Frame) -> &mut Page {
        self.active_list
            .iter_mut()
            .chain(&mut self.inactive_dirty_list)
            .chain(&mut self.inactive_clean_list)
            .find(|page| page.frame == frame)
            .unwrap()
    }

    fn deactivate_page(&mut self, frame: Frame) {
        let page = self.find(frame);
        page.age = 0;
        page.referenced = false;
        if let Some(at) = self.active_list.iter().position(|page| page.frame == frame) {
            let page = self.active_list.remove(at);
            self.inactive_dirty_list.insert(0, page);
        }
    }

    fn check_used_once(&mut self, frame: Frame) {
        if self.kernel == Kernel::Vanilla {
            return;
        }
        let active = self.active_list.iter().any(|page| page.frame == frame);
        if self.kernel == Kernel::Merged && active {
            return;
        }
        let merged = self.kernel == Kernel::Merged;
        let page = self.find(frame);
        if page.age == 0 {
            page.age = 2;
            page.referenced = false;
        } else if merged {
            let page = self.forget(frame);
            self.active_list.insert(0, page);
        }
    }
}

impl Model for Plain {
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.memory_pressure += 1;
        let vanilla = self.kernel == Kernel::Vanilla;
        let page = Page {
            frame,
            age: if vanilla { 2 } else { 0 },
            referenced: false,
        };
        if vanilla {
            self.active_list.insert(0, page);
        } else {
            self.inactive_dirty_list.insert(0, page);
        }
        if arrival.reason != Reason::Readahead {
            self.check_used_once(frame);
        }
        if vanilla && arrival.reason == Reason::Write {
            self.deactivate_page(frame);
        }
    }

    fn touch(&mut self, frame: Frame, _: u32) {
        self.find(frame).referenced = true;
        self.check_used_once(frame);
    }

    fn evict(&mut self, frames: &mut dyn Frames) -> bool {
        if self.inactive_shortage() > self.inactive_target() / 2 && self.free_shortage() > 0 {
            self.kswapd(frames);
        }
        for _ in 0..128 {
            if self.reclaim_page(frames) {
                return true;
            }
            self.do_try_to_free_pages(frames, true);
            if !self.inactive_dirty_list.is_empty() || !self.inactive_clean_list.is_empty() {
                break;
            }
        }
        if self.reclaim_page(frames) {
            return true;
        }
        let all = self
            .active_list
            .iter()
            .chain(&self.inactive_dirty_list)
            .chain(&self.inactive_clean_list);
        let oldest = all
            .rev()
            .find(|page| frames.state(page.frame) != FrameState::Pinned)
            .map(|page| page.frame);
        if let Some(frame) = oldest {
            self.forget(frame);
            frames.evicted(frame, None);
        }
        oldest.is_some()
    }

    fn remove(&mut self, frame: Frame) {
        self.forget(frame);
        if self.memory_pressure > 2 {
            self.memory_pressure -= 1;
        }
    }

    fn resize(&mut self, frames: usize) {
        self.physpages = frames as i64;
    }

    fn tick(&mut self, frames: &mut dyn Frames) {
        self.kswapd(frames);
        self.memory_pressure -= self.memory_pressure / 64;
        let inactive = self.nr_free_pages()
            + self.inactive_dirty_list.len() as i64
            + self.inactive_clean_list.len() as i64;
        let active = (self.active_list.len() as i64).max(self.physpages / 2);
        if active > 10 * inactive {
            self.refill_inactive_scan(frames, self.active_list.len() / 16, 0);
        } else if active > 3 * inactive {
            self.refill_inactive_scan(frames, self.active_list.len() / 256, 0);
        }
    }

    fn drop_behind(&mut self, frame: Frame) {
        if self.kernel == Kernel::Vanilla {
            self.deactivate_page(frame);
        }
    }
}

#[test]
fn vanilla_agrees_with_a_plain_restatement() {
    agree(Linux247::new, |frames| Plain::new(Kernel::Vanilla, frames));
}

#[test]
fn use_once_agrees_with_a_plain_restatement() {
    agree(Linux247::use_once, |frames| {
        Plain::new(Kernel::Patched, frames)
    });
}

#[test]
fn linux_2_4_8_agrees_with_a_plain_restatement() {
    agree(Linux247::merged, |frames| {
        Plain::new(Kernel::Merged, frames)
    });
}
