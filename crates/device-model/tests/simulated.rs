//! Measures devices with known times in virtual time with the real code, and checks their models.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(not(shuttle))]

use std::time::Duration;

use frondb_core::ErrorKind;
use frondb_core::sync::Arc;
use frondb_device::Device;
use frondb_device_model::{
    Caching, Machine, MeasureOptions, Measurement, Model, Operation, measure,
};
use frondb_testkit::timed::{DeviceTimes, Timing};
use frondb_testkit::virtual_time::{VirtualClock, VirtualExecutor};
use frondb_testkit::{MemoryDevice, Throttle, throttle};

/// A machine in virtual time, with less memory than half of the file.
fn machine() -> Machine {
    let clock = Arc::new(VirtualClock::default());
    let executor = Arc::new(VirtualExecutor::new(Arc::clone(&clock)));
    Machine { clock, executor, memory_bytes: 1 << 20, device_reads: || None }
}

fn options() -> MeasureOptions {
    MeasureOptions::new().budget(Duration::from_secs(4)).file_bytes(64 << 20)
}

fn measured(times: DeviceTimes, options: &MeasureOptions) -> Measurement {
    let machine = machine();
    let memory = Arc::new(MemoryDevice::new());
    let device = Timing::device(memory.clone(), times, Arc::clone(&machine.clock));
    let measurement = measure(&device, &machine, options, &mut |_, _| true).unwrap();
    assert_eq!(device.list("").unwrap(), Vec::<String>::new(), "the file is removed");
    measurement
}

fn reads(measurement: &Measurement) -> Model {
    Model::of(Operation::Read, &measurement.points).unwrap()
}

#[track_caller]
fn assert_within(found: f64, truth: f64, share: f64) {
    assert!((found / truth - 1.0).abs() <= share, "{found} instead of {truth}");
}

/// Start-up time in seconds, bytes per second, and requests at once of different kinds of devices.
const DEVICES: [(f64, f64, usize); 4] = [
    (500e-6, 120e6, 10), // X25-E, an SSD
    (90e-6, 2e9, 12),    // NVMe
    (8e-3, 160e6, 1),    // a disk with heads
    (1e-3, 300e6, 3),    // a network
];

#[test]
fn startup_bandwidth_and_requests_at_once_are_found_within_two_percent() {
    for (startup, bandwidth, at_once) in DEVICES {
        let budget = Duration::from_secs_f64(4000.0 * startup);
        let times = DeviceTimes::new(startup, bandwidth, at_once);
        let model = reads(&measured(times, &options().budget(budget)));
        let alone = model.lines[0].line.unwrap();
        assert_within(alone.startup_seconds, startup, 0.02);
        assert_within(alone.bytes_per_second, bandwidth, 0.02);
        assert_within(alone.half_power_bytes().unwrap(), startup * bandwidth, 0.02);
        assert!(model.is_good() && !model.limits.is_any(), "{model:?}");
        let found = model.parallelism.unwrap();
        assert_within(found.requests, at_once as f64, 0.02);
        assert!(found.is_reached);
        let most = model.lines[2].line.unwrap();
        assert_within(most.bytes_per_second, bandwidth * at_once as f64, 0.02);
    }
}

#[test]
fn more_requests_at_once_than_threads_are_a_lower_bound() {
    let model = reads(&measured(DeviceTimes::new(500e-6, 500e6, 64), &options()));
    let found = model.parallelism.unwrap();
    assert_within(found.requests, 16.0, 0.02);
    assert!(!found.is_reached);
}

#[test]
fn limits_of_a_rented_volume_are_found() {
    for startup in [100e-6, 600e-6] {
        let times = DeviceTimes {
            requests_limit: 3000.0,
            bytes_limit: 125e6,
            ..DeviceTimes::new(startup, 2e9, 64)
        };
        let measurement = measured(times, &options().budget(Duration::from_secs(20)));
        let model = reads(&measurement);
        assert_within(model.limits.requests_per_second.unwrap(), 3000.0, 0.02);
        assert_within(model.limits.bytes_per_second.unwrap(), 125e6, 0.02);
        assert_within(measurement.sequential_write_bytes_per_second, 125e6, 0.02);
        assert_within(model.half_power_bytes().unwrap(), 125e6 / 3000.0, 0.05);
    }
}

/// Linux counts the requests of a cgroup in periods of 0.1 s, and lets the requests of a period
/// through at once.
#[test]
fn limits_that_let_bursts_through_are_found() {
    let times = DeviceTimes {
        requests_limit: 3000.0,
        bytes_limit: 125e6,
        limit_period_seconds: 0.1,
        ..DeviceTimes::new(50e-6, 2e9, 8)
    };
    let measurement = measured(times, &options().budget(Duration::from_secs(30)));
    let limits = reads(&measurement).limits;
    assert_within(limits.requests_per_second.unwrap(), 3000.0, 0.03);
    assert_within(limits.bytes_per_second.unwrap(), 125e6, 0.03);
}

/// The throttle that the engine's tests use, which adds its waits to the times of the device.
#[test]
fn limits_before_a_device_are_found() {
    let machine = machine();
    let limits = throttle::Limits { bytes_per_second: 100_000_000, calls_per_second: 2000 };
    let times = DeviceTimes::new(50e-6, 3e9, 8);
    let memory = Arc::new(MemoryDevice::new());
    let device = Arc::new(Timing::device(memory, times, Arc::clone(&machine.clock)));
    let limited = Throttle::over(device, limits, Arc::clone(&machine.clock));
    let budget = Duration::from_secs(20);
    let measurement =
        measure(&limited, &machine, &options().budget(budget), &mut |_, _| true).unwrap();
    let model = reads(&measurement);
    assert_within(model.limits.requests_per_second.unwrap(), 2000.0, 0.02);
    assert_within(model.limits.bytes_per_second.unwrap(), 100e6, 0.02);
}

#[test]
fn writes_and_syncs_are_measured() {
    let options = options().writes(true).threads(&[1, 4]);
    let measurement = measured(DeviceTimes::new(1e-3, 200e6, 2), &options);
    let writes = Model::of(Operation::Write, &measurement.points).unwrap();
    assert_within(writes.lines[0].line.unwrap().startup_seconds, 1e-3, 0.02);
    assert_within(writes.parallelism.unwrap().requests, 2.0, 0.02);
    // A write of 4 KiB, and a sync, which takes the start-up time.
    assert_within(measurement.syncs.seconds_p50, 2e-3 + 4096.0 / 200e6, 0.01);
    let per_request = 1e-3 + f64::from(4 << 20) / 200e6;
    let sequential = f64::from(4 << 20) / per_request;
    assert_within(measurement.sequential_write_bytes_per_second, sequential, 0.06);
}

#[test]
fn the_measurement_keeps_to_its_time() {
    let measurement = measured(DeviceTimes::new(100e-6, 1e9, 4), &options());
    assert_within(measurement.seconds, 4.0, 0.1);
    assert_eq!(measurement.points.len(), 33);
    assert_eq!(measurement.caching, Caching::Outgrown, "64 MiB beside 1 MiB of memory");
}

#[test]
fn a_file_that_fits_in_memory_is_doubtful() {
    let machine = Machine { memory_bytes: 1 << 30, ..machine() };
    let times = DeviceTimes::new(1e-3, 200e6, 2);
    let memory = Arc::new(MemoryDevice::new());
    let device = Timing::device(memory, times, Arc::clone(&machine.clock));
    let found = measure(&device, &machine, &options(), &mut |_, _| true).unwrap();
    assert!(found.caching.is_doubtful());
}

#[test]
fn too_little_space_is_refused_and_nothing_stays() {
    let machine = machine();
    let device = MemoryDevice::new();
    device.set_capacity(100 << 20);
    let error = measure(&device, &machine, &options(), &mut |_, _| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(error.message().contains("134217728"), "{error}");
    assert_eq!(device.list("").unwrap(), Vec::<String>::new());
}

#[test]
fn a_cancelled_measurement_leaves_nothing() {
    let machine = machine();
    let device = MemoryDevice::new();
    let mut steps = 0;
    let error = measure(&device, &machine, &options(), &mut |_, _| {
        steps += 1;
        steps < 25
    })
    .unwrap_err();
    assert_eq!((error.kind(), steps), (ErrorKind::Cancelled, 25));
    assert_eq!(device.list("").unwrap(), Vec::<String>::new());
    assert_eq!(device.used_bytes(), 0);
}

#[test]
fn a_failed_request_ends_the_measurement() {
    let machine = machine();
    let times = DeviceTimes::new(1e-4, 200e6, 2);
    let memory = Arc::new(MemoryDevice::new());
    let device = Timing::device(memory.clone(), times, Arc::clone(&machine.clock));
    let mut steps = 0;
    let error = measure(&device, &machine, &options(), &mut |_, _| {
        steps += 1;
        if steps == 60 {
            memory.stop_after(0);
        }
        true
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}
