//! Random histories against a bitmap: no page is allocated twice or lost, no page in use is punched
//! or cut off, a full disk changes nothing, and a space that is reopened from the list of used
//! extents equals the one before.

use std::collections::{BTreeMap, BTreeSet};

use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_core::{ErrorKind, RunId};
use frondb_space::{Class, Extent, Reclaim, Space, SpaceOptions, TailMove};
use frondb_testkit::{CrashMode, MemoryDevice};

const PAGE: usize = 4096;
const CLASSES: [Class; 3] = [Class::Merge, Class::Base, Class::Blob];

struct Model {
    device: MemoryDevice,
    options: SpaceOptions,
    space: Arc<Space>,
    prng: Prng,
    /// Extents in use, each with the run id from which the bytes of its last page were made.
    live: Vec<(Extent, RunId)>,
    /// Every page in use.
    pages: BTreeSet<(u32, u32)>,
    next: u64,
    full: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let options = SpaceOptions {
            file_bytes_max: [4 << 20, 1 << 40][prng.index(2)],
            grow_bytes: 1 << 20,
            direct: prng.chance(1, 2),
            reserve_bytes: [0, 600 << 10][prng.index(2)],
            slack_bytes: [0, 2 << 20][prng.index(2)],
        };
        let device = MemoryDevice::new();
        let space = Space::open(Arc::new(device.clone()), options, []).unwrap();
        let (live, pages) = (Vec::new(), BTreeSet::new());
        Self { device, options, space, prng, live, pages, next: 1, full: 0 }
    }

    fn step(&mut self) {
        match self.prng.below(100) {
            0..45 => self.acquire(),
            45..80 => self.release(),
            80..85 => self.below(),
            85..90 => self.reclaim(),
            90..94 => self.space.lend_reserve(self.prng.below(1 << 20)).unwrap(),
            94..97 => {
                let spare = [0, 100, 1000, 1 << 30][self.prng.index(4)] * PAGE as u64;
                self.device.set_capacity(self.device.used_bytes() + spare);
            }
            97..98 => self.reopen(CrashMode::KeepAll),
            98..99 => self.reopen(CrashMode::LoseUnsynced),
            _ => self.check(),
        }
    }

    /// Acquires extents until they have all pages of the request, as a builder does, and writes a
    /// page into each extent.
    fn acquire(&mut self) {
        let mut wanted = 1 + self.prng.below(700) as u32;
        let class = CLASSES[self.prng.index(CLASSES.len())];
        let reserved = self.prng.chance(1, 4);
        while wanted > 0 {
            let before = self.space.free_extents();
            let got = if reserved {
                self.space.acquire_reserved(wanted, class)
            } else {
                self.space.acquire(wanted, class)
            };
            let mut extent = match got {
                Ok(extent) => extent,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                    let now = self.space.free_extents();
                    assert!(
                        now.iter().map(|e| e.bytes()).sum::<u64>()
                            >= before.iter().map(|e| e.bytes()).sum()
                    );
                    self.full += 1;
                    return;
                }
            };
            assert!((1..=wanted).contains(&extent.pages));
            if self.prng.chance(1, 3) {
                extent = self.space.shrink(extent, 1 + self.prng.below(extent.pages.into()) as u32);
            }
            self.add(extent);
            wanted -= extent.pages.min(wanted);
        }
    }

    fn add(&mut self, extent: Extent) {
        for page in extent.page..extent.end() {
            assert!(
                self.pages.insert((extent.file, page)),
                "{extent} contains a page that is in use"
            );
        }
        let run = RunId(self.next);
        self.next += 1;
        // Disk space is reserved for the extent, so this write cannot fail on a full disk.
        self.space.write(WriteCause::Flush, extent, last_page(extent), &page_of(run)).unwrap();
        self.live.push((extent, run));
    }

    fn release(&mut self) {
        for _ in 0..self.prng.below(4) {
            if self.live.is_empty() {
                return;
            }
            let (extent, run) = self.live.swap_remove(self.prng.index(self.live.len()));
            self.verify(extent, run);
            for page in extent.page..extent.end() {
                assert!(self.pages.remove(&(extent.file, page)));
            }
            self.space.release(extent);
        }
    }

    fn below(&mut self) {
        let Some(tail) = self.space.tail_move_wanted() else { return };
        let pages = 1 + self.prng.below(100) as u32;
        match self.space.acquire_below(pages, tail) {
            Ok(Some(extent)) => {
                assert!(extent.end() <= tail.limit && extent.file == tail.file);
                assert!(!TailMove::concerns(tail, extent));
                self.add(extent);
            }
            Ok(None) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace),
        }
    }

    fn reclaim(&mut self) {
        let mode = [Reclaim::Busy, Reclaim::Idle][self.prng.index(2)];
        while self.space.reclaim_step(mode).unwrap() {}
        let stats = self.space.stats();
        if mode == Reclaim::Idle {
            let keep = self.options.reserve_bytes / PAGE as u64 * PAGE as u64;
            assert!(stats.allocated_bytes <= stats.used_bytes + keep, "{stats:?}");
            assert!(self.device.used_bytes() <= stats.used_bytes + keep, "{stats:?}");
        }
    }

    /// Syncs, loses power, and opens the space again with the extents in use, as from a manifest.
    fn reopen(&mut self, mode: CrashMode) {
        self.space.sync().unwrap();
        let free = self.space.free_extents();
        let device = self.device.crash(mode);
        device.set_capacity(u64::MAX);
        self.device = device;
        let used = self.live.iter().map(|(extent, _)| *extent);
        let device = Arc::new(self.device.clone());
        self.space = Space::open(device, self.options, used).unwrap();
        if mode == CrashMode::KeepAll {
            assert_eq!(self.space.free_extents(), free);
        }
        self.check();
    }

    /// Used and free extents together cover the files, each page once.
    fn check(&self) {
        let mut all = self.pages.clone();
        for free in self.space.free_extents() {
            for page in free.page..free.end() {
                assert!(all.insert((free.file, page)), "page {page} is free and in use");
            }
        }
        let stats = self.space.stats();
        assert_eq!(all.len() as u64 * PAGE as u64, stats.file_bytes);
        assert_eq!(self.pages.len() as u64 * PAGE as u64, stats.used_bytes);
        let mut ends = BTreeMap::new();
        for (file, page) in all {
            let end = ends.entry(file).or_insert(0);
            assert_eq!(page, *end, "a page of file {file} is lost");
            *end += 1;
        }
        for &(extent, run) in &self.live {
            self.verify(extent, run);
        }
    }

    fn verify(&self, extent: Extent, run: RunId) {
        let mut page = frondb_core::mem::Buf::zeroed(PAGE);
        self.space.read(extent, last_page(extent), &mut page).unwrap();
        assert!(page[..] == page_of(run)[..], "the content of {extent} is lost");
    }
}

fn last_page(extent: Extent) -> u64 {
    u64::from(extent.pages - 1) * PAGE as u64
}

fn page_of(run: RunId) -> frondb_core::mem::Buf {
    let mut page = frondb_core::mem::Buf::zeroed(PAGE);
    Prng::new(run.get()).fill(&mut page);
    page
}

#[test]
fn random_histories_never_share_or_lose_an_extent() {
    let mut full = 0;
    for seed in 0..20 {
        println!("seed {seed}");
        let mut model = Model::new(seed);
        for _ in 0..400 {
            model.step();
        }
        model.check();
        full += model.full;
        // When everything is released and reclaimed, only the reserve takes disk space.
        for (extent, _) in std::mem::take(&mut model.live) {
            model.space.release(extent);
        }
        model.pages.clear();
        model.reclaim();
        while model.space.reclaim_step(Reclaim::Idle).unwrap() {}
        assert!(model.device.used_bytes() <= model.options.reserve_bytes);
        model.check();
    }
    assert!(full > 20, "the disk was full only {full} times");
}
