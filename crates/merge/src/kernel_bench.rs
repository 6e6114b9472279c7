//! The body of the bench workload `merge`: the kernel alone, in memory, on one core.
