//! The hook that reports waits.

use std::ops::Bound::Excluded;

use frondb_core::ErrorKind;
use frondb_core::sync::{Arc, Mutex};
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::LockWait::{Forever, NoWait};
use frondb_locks::WaitNotice;

use super::Setup;

type Notices = Arc<Mutex<Vec<(u64, Vec<u64>)>>>;

/// A hook that records its notices.
fn recording_hook(setup: &Setup) -> Notices {
    let notices = Notices::default();
    let noted = Arc::clone(&notices);
    setup.manager.set_wait_hook(Some(Arc::new(move |notice: WaitNotice<'_>| {
        noted.lock().push((notice.waiter, notice.blockers.to_vec()));
    })));
    notices
}

/// Returns when the hook has been called this often.
fn until_notified(notices: &Notices, times: usize) {
    while notices.lock().len() < times {
        std::thread::yield_now();
    }
}

#[test]
fn the_hook_is_notified_of_a_wait_and_of_nothing_else() {
    let setup = Setup::new();
    let notices = recording_hook(&setup);
    let mut first = setup.holder(1, &[(0, b"a")], Shared);
    let mut second = setup.holder(2, &[(0, b"a")], Shared);
    let mut refused = setup.manager.locker(3);
    let busy = refused.lock_row(&setup.tables[0], b"a", Exclusive, NoWait);
    assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(*notices.lock(), []);
    let waiter = setup.waits(setup.manager.locker(4), 0, b"a", Exclusive);
    until_notified(&notices, 1);
    first.release_all();
    second.release_all();
    waiter.join().unwrap().1.unwrap();
    assert_eq!(*notices.lock(), [(4, vec![1, 2])]);
}

/// An upgrade goes before the waiters, which then wait for it too: the hook reports this.
#[test]
fn the_hook_is_notified_when_a_wait_gets_longer() {
    let setup = Setup::new();
    let notices = recording_hook(&setup);
    let mut writer = setup.holder(1, &[(0, b"m")], Exclusive);
    let mut reader = setup.holder(2, &[(0, b"b")], Shared);
    let (mut scan, table) = (setup.manager.locker(9), Arc::clone(&setup.tables[0]));
    let scan = std::thread::spawn(move || {
        let gap = scan.lock_gap(&table, Excluded(b"a".as_slice()), Excluded(b"z"), Forever);
        (scan, gap)
    });
    until_notified(&notices, 1);
    reader.lock_row(&setup.tables[0], b"b", Exclusive, NoWait).unwrap();
    until_notified(&notices, 2);
    assert_eq!(*notices.lock(), [(9, vec![1]), (9, vec![1, 2])]);
    writer.release_all();
    reader.release_all();
    scan.join().unwrap().1.unwrap();
}

/// The purpose of the hook: to end the wait of a transaction that others must not wait for.
#[test]
fn the_hook_may_cancel_a_wait() {
    let setup = Setup::new();
    let holder = setup.holder(1, &[(0, b"a")], Exclusive);
    let waiter = setup.manager.locker(2);
    let canceller = waiter.canceller();
    setup.manager.set_wait_hook(Some(Arc::new(move |_: WaitNotice<'_>| canceller.cancel())));
    let (_, outcome) = setup.asks(waiter, 0, b"a", Exclusive).join().unwrap();
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Cancelled);
    drop(holder);
}
