//! A socket in a directory, on which the process that has a database open answers other processes.
//!
//! Every process that may reach the directory and write to the socket may connect; the socket has
//! the mode of the device's files. The address of the socket names the open directory
//! (`/proc/self/fd/N/NAME`), so the path of the directory may be of any length. Without `/proc` the
//! address is the path itself, which must be short.
//!
//! The socket of a killed process stays as a file that refuses connections. [`Listener`] replaces
//! such a file, so its caller must hold the directory's lock.
//!
//! Thread-safe. A write to a closed connection is an error, not a signal.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    self, AddressFamily, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};

#[cfg(target_os = "linux")]
use rustix::process::Uid;

use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::{ErrorKind, Result};

use super::PosixDevice;

/// Maximum number of connections that wait for [`Listener::accept`].
const BACKLOG: i32 = 8;

/// Longest time that a call of a connection waits for the other side.
const PATIENCE: Duration = Duration::from_secs(30);

/// A socket that accepts connections; dropping it removes the file.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    dir: OwnedFd,
    name: String,
    is_stopped: AtomicBool,
}

/// A connection between two processes; dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
}

impl PosixDevice {
    /// Creates a socket; it replaces a socket that another process has left. REQUIRES: the caller
    /// holds the lock of the directory.
    ///
    /// # Errors
    /// `Exists` if something else than a socket has the name; `Io`, for example if the file system
    /// has no sockets.
    pub fn listen(&self, name: &str) -> Result<Listener> {
        let failed = |errno| self.error("make the socket", name, errno);
        let dir = self
            .dir
            .try_clone()
            .map_err(|error| frondb_core::Error::io("make the socket", &self.full(name), &error))?;
        match fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_socket() => {
                remove(&dir, name).map_err(failed)?;
            }
            Ok(_) => {
                let message = format!("{} exists and is no socket", self.full(name));
                return Err(frondb_core::Error::new(ErrorKind::Exists, message));
            }
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let address = self.address(name).map_err(failed)?;
        let socket = new_socket().map_err(failed)?;
        // The file gets the mode of the socket, less the umask, so it never has more bits than
        // `mode`.
        let mode = Mode::from_raw_mode(self.modes.file());
        fs::fchmod(&socket, mode).map_err(failed)?;
        net::bind(&socket, &address).map_err(failed)?;
        let listener =
            Listener { socket, dir, name: name.to_owned(), is_stopped: AtomicBool::new(false) };
        listener.widen(mode).map_err(failed)?;
        net::listen(&listener.socket, BACKLOG).map_err(failed)?;
        Ok(listener)
    }

    /// Connects to the socket of another process.
    ///
    /// # Errors
    /// `NotFound` if there is no socket, or no process listens on it; `Busy` if the owner accepts
    /// no connection for 30 s; `Io` otherwise, for example without permission to write to the
    /// socket.
    pub fn connect(&self, name: &str) -> Result<Connection> {
        let failed = |errno| match errno {
            Errno::AGAIN => frondb_core::Error::new(ErrorKind::Busy, silent().to_string()),
            // The socket was left by a process that was killed.
            Errno::CONNREFUSED => self.error("connect to the socket", name, Errno::NOENT),
            _ => self.error("connect to the socket", name, errno),
        };
        let address = self.address(name).map_err(failed)?;
        let connection = Connection { socket: new_socket().map_err(failed)? };
        connection.wait_for(Some(PATIENCE)).map_err(failed)?;
        retry_on_intr(|| net::connect(&connection.socket, &address)).map_err(failed)?;
        Ok(connection)
    }

    fn address(&self, name: &str) -> rustix::io::Result<SocketAddrUnix> {
        let dir = PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_raw_fd()));
        let dir = if dir.exists() { dir } else { self.path.clone() };
        SocketAddrUnix::new(dir.join(name))
    }
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

fn remove(dir: &OwnedFd, name: &str) -> rustix::io::Result<()> {
    match fs::unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

impl Listener {
    /// Waits for the next connection. `None` once the listener is stopped.
    ///
    /// # Errors
    /// An error of the system, for example too many open files; the next call may succeed.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        loop {
            let accepted = net::accept_with(&self.socket, SocketFlags::CLOEXEC);
            if self.is_stopped.load(Ordering::Acquire) {
                return Ok(None);
            }
            match accepted {
                Ok(socket) => {
                    let connection = Connection { socket };
                    connection.wait_for(Some(PATIENCE))?;
                    return Ok(Some(connection));
                }
                // The other side has given up, or a signal has interrupted the call.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Restores the mode bits of the file that the umask removed. Uses a descriptor, because
    /// another process that may write to the directory could have replaced the file with a link.
    fn widen(&self, mode: Mode) -> rustix::io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&self.dir, &self.name, flags, Mode::empty())?;
        let found = fs::fstat(&file)?.st_mode;
        if !FileType::from_raw_mode(found).is_socket() {
            return Err(Errno::NOTSOCK);
        }
        if Mode::from_raw_mode(found) == mode {
            return Ok(());
        }
        fs::chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), mode)
    }

    /// Ends a wait in [`accept`](Self::accept) and removes the file.
    pub fn stop(&self) {
        if self.is_stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        // Remove the file while this process has the lock of the directory: a later owner makes a
        // socket of its own.
        let _ = remove(&self.dir, &self.name);
        // If this fails, a thread waits in `accept` until the process ends.
        let _ = net::shutdown(self.socket.as_fd(), Shutdown::Both);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

fn silent() -> io::Error {
    let text = format!("the other process has not answered for {} s", PATIENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl Connection {
    /// Limits the time that a call waits for the other side; `None` means no limit.
    fn wait_for(&self, timeout: Option<Duration>) -> rustix::io::Result<()> {
        sockopt::set_socket_timeout(&self.socket, Timeout::Recv, timeout)?;
        sockopt::set_socket_timeout(&self.socket, Timeout::Send, timeout)
    }

    /// Removes the limit of 30 s on how long calls wait for the other side.
    ///
    /// # Errors
    /// An error of the system.
    pub fn wait_for_ever(&self) -> io::Result<()> {
        Ok(self.wait_for(None)?)
    }

    /// Returns whether the other process runs as the user of this process, or as root. Outside of
    /// Linux always `true`: there only the permission to connect protects the socket.
    #[must_use]
    pub fn is_from_own_user(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            let is_own = |user: Uid| user.is_root() || user == rustix::process::geteuid();
            sockopt::socket_peercred(&self.socket).is_ok_and(|peer| is_own(peer.uid))
        }
        #[cfg(not(target_os = "linux"))]
        true
    }

    /// Closes the connection for both sides; a thread of this process that waits on it returns.
    pub fn shut(&self) {
        let _ = net::shutdown(self.socket.as_fd(), Shutdown::Both);
    }
}

fn timed(errno: Errno) -> io::Error {
    if errno == Errno::AGAIN { silent() } else { errno.into() }
}

impl Read for &Connection {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        retry_on_intr(|| rustix::io::read(&self.socket, &mut *buf)).map_err(timed)
    }
}

impl Write for &Connection {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        retry_on_intr(|| net::send(&self.socket, buf, SendFlags::NOSIGNAL)).map_err(timed)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;
    use crate::Modes;

    fn answered(listener: &Listener) {
        let connection = listener.accept().unwrap().unwrap();
        let mut byte = [0];
        (&connection).read_exact(&mut byte).unwrap();
        (&connection).write_all(&[byte[0] + 1]).unwrap();
    }

    fn ask(device: &PosixDevice) -> frondb_core::Result<u8> {
        let connection = device.connect("SOCKET")?;
        let mut byte = [1];
        (&connection).write_all(&byte).unwrap();
        (&connection).read_exact(&mut byte).unwrap();
        Ok(byte[0])
    }

    fn in_folder(name: &str, test: impl FnOnce(&Path)) {
        // Longer than the address of a socket may be.
        let long = "d".repeat(120);
        let top = std::env::temp_dir().join(format!("frondb-{name}-{}", std::process::id()));
        let path = top.join(long);
        PosixDevice::create(&path).unwrap();
        test(&path);
        std::fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn a_socket_answers_until_it_is_stopped() {
        in_folder("socket", |path| {
            let modes = Modes::new(0o660, None).unwrap();
            let device = PosixDevice::open(path).unwrap().with_modes(modes);
            let missing = ask(&device).unwrap_err();
            assert_eq!(missing.kind(), ErrorKind::NotFound);
            let listener = device.listen("SOCKET").unwrap();
            let mode = std::fs::metadata(path.join("SOCKET")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o660);
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    answered(&listener);
                    answered(&listener);
                    assert!(listener.accept().unwrap().is_none(), "it was stopped");
                });
                assert_eq!((ask(&device).unwrap(), ask(&device).unwrap()), (2, 2));
                listener.stop();
                waiting.join().unwrap();
            });
            assert!(!path.join("SOCKET").exists());
        });
    }

    #[test]
    fn a_socket_that_was_left_is_refused_and_replaced() {
        in_folder("left-socket", |path| {
            let device = PosixDevice::open(path).unwrap();
            let listener = device.listen("SOCKET").unwrap();
            // As after a kill: the file stays, and no process listens.
            let mut left = std::mem::ManuallyDrop::new(listener);
            net::shutdown(left.socket.as_fd(), Shutdown::Both).unwrap();
            drop(std::mem::take(&mut left.name));
            assert_eq!(ask(&device).unwrap_err().kind(), ErrorKind::NotFound);
            let listener = device.listen("SOCKET").unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| answered(&listener));
                assert_eq!(ask(&device).unwrap(), 2);
            });
        });
    }

    #[test]
    fn only_a_socket_is_replaced() {
        in_folder("no-socket", |path| {
            let device = PosixDevice::open(path).unwrap();
            std::fs::write(path.join("SOCKET"), "letter").unwrap();
            assert_eq!(device.listen("SOCKET").unwrap_err().kind(), ErrorKind::Exists);
            assert_eq!(device.connect("SOCKET").unwrap_err().kind(), ErrorKind::NotFound);
            assert_eq!(std::fs::read(path.join("SOCKET")).unwrap(), b"letter");
            std::fs::remove_file(path.join("SOCKET")).unwrap();
            std::fs::create_dir(path.join("SOCKET")).unwrap();
            assert_eq!(device.listen("SOCKET").unwrap_err().kind(), ErrorKind::Exists);
            std::fs::remove_dir(path.join("SOCKET")).unwrap();
            // The mode is set on the socket, not on the target of a link.
            std::fs::write(path.join("target"), "").unwrap();
            std::fs::set_permissions(path.join("target"), PermissionsExt::from_mode(0o600))
                .unwrap();
            std::os::unix::fs::symlink("target", path.join("SOCKET")).unwrap();
            assert_eq!(device.listen("SOCKET").unwrap_err().kind(), ErrorKind::Exists);
            let mode = std::fs::metadata(path.join("target")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        });
    }

    #[test]
    fn a_side_that_says_nothing_is_waited_for_only_so_long() {
        in_folder("silent-socket", |path| {
            let device = PosixDevice::open(path).unwrap();
            let listener = device.listen("SOCKET").unwrap();
            let connection = device.connect("SOCKET").unwrap();
            let accepted = listener.accept().unwrap().unwrap();
            assert!(connection.is_from_own_user() && accepted.is_from_own_user());
            for mut side in [&connection, &accepted] {
                side.wait_for(Some(Duration::from_millis(1))).unwrap();
                assert_eq!(side.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
            // While the other side reads nothing, the system buffers some bytes and accepts no
            // more.
            let mut side = &connection;
            let full = std::iter::repeat_with(|| side.write(&[0; 4096])).find_map(Result::err);
            assert_eq!(full.map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
        });
    }

    #[test]
    fn writing_to_a_closed_connection_is_an_error() {
        in_folder("closed-socket", |path| {
            let device = PosixDevice::open(path).unwrap();
            let listener = device.listen("SOCKET").unwrap();
            let connection = device.connect("SOCKET").unwrap();
            drop(listener.accept().unwrap());
            let mut failed = Ok(());
            while failed.is_ok() {
                failed = (&connection).write_all(&[0; 4096]);
            }
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        });
    }
}
