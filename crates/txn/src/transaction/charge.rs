//! [`Charge`]: the memory of a write set, charged to the memory budget.

use frondb_core::budget::{Part, Reservation};

use crate::context::Transactions;

/// The charge of a write set on the memory budget. It is updated from time to time.
#[derive(Default)]
pub(super) struct Charge {
    reservation: Option<Reservation>,
    /// Bytes written since the last update.
    pub(super) pending: u64,
}

impl Charge {
    pub(super) fn clear(&mut self, txns: &Transactions) {
        if let Some(reservation) = self.reservation.take() {
            txns.spill.resize(reservation.bytes(), 0);
        }
        self.pending = 0;
    }

    /// Changes the charge to `bytes`. Returns the new total of all write sets, in bytes.
    pub(super) fn set(&mut self, txns: &Transactions, bytes: u64) -> u64 {
        self.pending = 0;
        let reservation =
            self.reservation.get_or_insert_with(|| txns.reads.budget.reserve(Part::Other, 0));
        let before = reservation.bytes();
        reservation.resize(bytes);
        txns.spill.resize(before, bytes)
    }
}
