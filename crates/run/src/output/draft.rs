//! Draft of an output file: a regular file is written under a temporary name and renamed when it is complete. A device
//! node or a pipe cannot be replaced, so it is written in place. The temporary name is random, because another user of
//! the directory could put a link or a file at a name that can be guessed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use floatgate_report::digests::{Content, Hasher};
use tempfile::TempPath;

use super::pipe::{self, Wait};

/// Size of the write buffer in bytes.
const BUFFER: usize = 1 << 18;

/// End of the name of a file that is being written.
const SUFFIX: &str = ".partial";

/// Number of random letters and digits in the name of a file that is being written.
const RANDOM: usize = 12;

/// Maximum length of a chain of symbolic links, as in Linux.
const MAX_LINKS: usize = 40;

/// Output file that is being written.
#[derive(Debug)]
pub struct Draft {
    file: BufWriter<Sink>,
    /// Path that the user gave.
    place: PathBuf,
    /// Draft and target path. `None` if the file is written in place.
    beside: Option<Beside>,
    /// True if the draft is kept when this value is dropped.
    stays: bool,
}

/// Paths of a regular file that is being written.
#[derive(Debug)]
struct Beside {
    /// Target, after following symbolic links.
    target: PathBuf,
    /// File in the directory of the target, which is removed when it is dropped.
    partial: TempPath,
}

/// Returns the files that are being written to become the file at `place`, and those that killed processes have left.
pub fn partials(place: &Path) -> Vec<PathBuf> {
    let target = resolved(place).unwrap_or_else(|_| place.to_owned());
    let Ok((directory, start)) = parts(&target) else { return Vec::new() };
    let is_partial = |name: &OsStr| {
        let random = name.as_encoded_bytes().strip_prefix(start.as_encoded_bytes());
        let random = random.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        random.is_some_and(|random| random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric))
    };
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut found: Vec<PathBuf> =
        names.filter(|name| is_partial(name)).map(|name| target.with_file_name(name)).collect();
    found.sort();
    found
}

/// Returns the directory of a file, and the start of its temporary names.
fn parts(target: &Path) -> io::Result<(&Path, OsString)> {
    let name = target.file_name().ok_or_else(|| io::Error::other("the path does not end in the name of a file"))?;
    let mut start = name.to_owned();
    start.push(".");
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((directory, start))
}

/// Follows symbolic links. The target need not exist, because opening a dangling link creates its target.
pub fn resolved(place: &Path) -> io::Result<PathBuf> {
    let mut at = place.to_owned();
    for _ in 0..MAX_LINKS {
        if !fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink()) {
            return Ok(at);
        }
        let to = fs::read_link(&at)?;
        at = at.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(io::Error::other("too many symbolic links"))
}

impl Draft {
    /// Creates a file. Fails if its path is a directory or is not writable. If it is a pipe, waits for its reader as
    /// specified by `wait`.
    pub fn new(place: &Path, wait: &Wait) -> Result<Draft> {
        anyhow::ensure!(!place.is_dir(), "cannot write {}: it is a directory", place.display());
        // Errors name the path that the user gave, not the draft.
        let cannot = || format!("cannot write {}", place.display());
        let found = fs::metadata(place).ok();
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            anyhow::ensure!(!is_socket(place), "cannot write {}: it is a socket", place.display());
            let file = pipe::open(place, wait).with_context(cannot)?;
            return Ok(Draft::of(file, place, None, wait));
        }
        let target = resolved(place).with_context(cannot)?;
        let (file, partial) = create(&target, found.as_ref()).with_context(cannot)?;
        Ok(Draft::of(file, place, Some(Beside { target, partial }), wait))
    }

    /// Fails if a file cannot be written. A pipe is not opened, because its reader would see the end of the file.
    pub fn check(place: &Path) -> Result<()> {
        if pipe::is_pipe(place) { Ok(()) } else { Draft::new(place, &Wait::default()).map(drop) }
    }

    fn of(file: File, place: &Path, beside: Option<Beside>, wait: &Wait) -> Draft {
        let file = BufWriter::with_capacity(BUFFER, Sink { file, hasher: Hasher::default(), wait: wait.clone() });
        Draft { file, place: place.to_owned(), beside, stays: false }
    }

    /// Keeps the draft of a regular file if it is not published.
    pub fn kept(mut self) -> Draft {
        self.stays = true;
        self
    }

    /// Creates a complete file with these bytes, which can be published.
    pub fn whole(place: &Path, bytes: &[u8], wait: &Wait) -> Result<Draft> {
        let mut draft = Draft::new(place, wait)?;
        draft.write(bytes)?;
        draft.complete()?;
        Ok(draft)
    }

    /// Returns the path that the user gave.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Returns the path of the partial file, or `None` if the file is written in place.
    pub fn written(&self) -> Option<&Path> {
        self.beside.as_ref().map(|beside| &*beside.partial)
    }

    /// Returns the size and digest of the file, which must be complete.
    pub fn content(&self) -> Content {
        self.file.get_ref().hasher.content()
    }

    /// Returns the writer of the content.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.file
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| format!("cannot write {}", self.place.display()))
    }

    /// Flushes the file to the disk, device node or pipe.
    pub fn complete(&mut self) -> Result<()> {
        let sync = |file: &File| if self.beside.is_some() { file.sync_all() } else { Ok(()) };
        let done = self.file.flush().and_then(|()| sync(&self.file.get_ref().file));
        done.with_context(|| format!("cannot write {}", self.place.display()))
    }

    /// Renames the file to its final path. It must be complete.
    pub fn publish(mut self) -> Result<()> {
        let Some(Beside { target, partial }) = self.beside.take() else { return Ok(()) };
        let renamed = partial.persist(target).map_err(|error| error.error);
        renamed.with_context(|| format!("cannot write {}", self.place.display()))
    }

    /// Returns the error with the path of the file.
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.place.display()))
    }
}

/// Creates a file that will replace `target`, with the permissions of the file that it replaces, and locks it. Removes
/// what killed processes have left. Fails if another process writes the same file, because one result would be lost.
fn create(target: &Path, replaced: Option<&Metadata>) -> Result<(File, TempPath)> {
    for abandoned in partials(target) {
        remove_abandoned(&abandoned)?;
    }
    let (directory, start) = parts(target)?;
    loop {
        let mut code = None;
        let open = |path: &Path| {
            let opened = OpenOptions::new().write(true).create_new(true).open(path);
            opened.inspect_err(|error| code = error.raw_os_error())
        };
        let made = tempfile::Builder::new().prefix(&start).suffix(SUFFIX).rand_bytes(RANDOM).make_in(directory, open);
        // `tempfile` adds the random path to its errors.
        let made = made.map_err(|error| code.map_or(error, io::Error::from_raw_os_error))?;
        let (file, partial) = made.into_parts();
        // Another writer may have removed the file before it was locked here.
        if !lock(&file) || !is_at(&file, &partial)? {
            continue;
        }
        replaced.map_or(Ok(()), |replaced| file.set_permissions(replaced.permissions()))?;
        return Ok((file, partial));
    }
}

/// Removes a file that a killed process has left, or a link. Fails if another process of this user writes it.
fn remove_abandoned(partial: &Path) -> Result<()> {
    // A file of another user that cannot be opened or removed is not in the way of a random name.
    let Ok(file) = open_itself(partial) else {
        let _ = fs::remove_file(partial);
        return Ok(());
    };
    anyhow::ensure!(lock(&file) || !is_own(&file), "another process is writing it");
    if is_at(&file, partial)? {
        let _ = fs::remove_file(partial);
    }
    Ok(())
}

/// Opens a file for writing, without following a link or waiting for the reader of a pipe.
#[cfg(unix)]
fn open_itself(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

/// Returns `true` if the file belongs to the user of this process.
#[cfg(unix)]
fn is_own(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

/// Returns `true`: without locks, no file of another process is noticed.
#[cfg(not(unix))]
fn is_own(_: &File) -> bool {
    true
}

/// Opens a file for writing.
#[cfg(not(unix))]
fn open_itself(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Locks a file or directory until it is closed or the process ends. Returns `false` if another process holds the lock.
/// On file systems without locks, returns `true` and locks nothing.
#[cfg(unix)]
pub fn lock(file: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(rustix::io::Errno::WOULDBLOCK)
}

/// Returns `true` and locks nothing.
#[cfg(not(unix))]
pub fn lock(_: &File) -> bool {
    true
}

#[cfg(unix)]
fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(not(unix))]
fn is_socket(_: &Path) -> bool {
    false
}

/// Returns `true` if the path is this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let opened = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns `true`: without locks, the check is not needed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// File, and the digest of its contents.
#[derive(Debug)]
struct Sink {
    file: File,
    hasher: Hasher,
    /// Wait for the reader of a pipe.
    wait: Wait,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = pipe::write(&self.file, bytes, &self.wait).map_err(|error| match error.kind() {
            // A broken pipe is ignored only for standard output, so the error gets another kind here.
            io::ErrorKind::BrokenPipe => io::Error::other("its reader has closed it"),
            _ => error,
        })?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Errors name the file.
impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(&error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let (Some(beside), true) = (&mut self.beside, self.stays) {
            beside.partial.disable_cleanup(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(place: &Path, bytes: &[u8]) {
        Draft::whole(place, bytes, &Wait::default()).unwrap().publish().unwrap();
    }

    fn error(place: &Path) -> String {
        format!("{:#}", Draft::whole(place, b"page", &Wait::default()).unwrap_err())
    }

    #[test]
    fn errors_name_the_path_that_the_user_gave() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("missing/page.html");
        let said = error(&place);
        assert!(said.starts_with(&format!("cannot write {}: ", place.display())), "{said}");
        assert_eq!(error(directory.path()), format!("cannot write {}: it is a directory", directory.path().display()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn unpublished_drafts_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("file");
        let mut draft = Draft::new(&place, &Wait::default()).unwrap();
        draft.write(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut draft = Draft::new(&place, &Wait::default()).unwrap();
        draft.write(b"whole").unwrap();
        draft.complete().unwrap();
        assert!(!place.exists());
        draft.publish().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("far")).unwrap();
        fs::write(at("far/target"), "old").unwrap();
        fs::set_permissions(at("far/target"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("far/target", at("link")).unwrap();
        symlink("link", at("chain")).unwrap();
        symlink("far/none", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let draft = Draft::new(&at("chain"), &Wait::default()).unwrap();
        assert_eq!(partials(&at("chain")), [draft.written().unwrap().to_owned()]);
        assert_eq!(draft.written().unwrap().parent().unwrap(), at("far"));
        drop(draft);
        published(&at("chain"), b"new");
        published(&at("dangling"), b"made");
        assert_eq!(fs::read(at("far/target")).unwrap(), b"new");
        assert_eq!(fs::metadata(at("far/target")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(at("far/none")).unwrap(), b"made");
        assert!(["link", "chain", "dangling"].iter().all(|name| at(name).is_symlink()));
        assert!(error(&at("loop")).ends_with("too many symbolic links"), "{}", error(&at("loop")));
    }

    #[cfg(unix)]
    #[test]
    fn pipes_are_written_in_place_and_sockets_refused() {
        use std::os::unix::fs::FileTypeExt;
        use std::os::unix::net::UnixListener;
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap();
        assert!(made.success());
        let reader = std::process::Command::new("cat").arg(at("fifo")).stdout(std::process::Stdio::piped()).spawn();
        published(&at("fifo"), b"heard");
        assert_eq!(reader.unwrap().wait_with_output().unwrap().stdout, b"heard");
        assert!(fs::metadata(at("fifo")).unwrap().file_type().is_fifo());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        assert!(error(&at("socket")).ends_with("socket: it is a socket"), "{}", error(&at("socket")));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn leftovers_are_removed_and_links_not_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let left = at("file.0123456789aB.partial");
        fs::write(at("victim"), "kept").unwrap();
        for leave in [
            &|| symlink("victim", &left),
            &|| fs::hard_link(at("victim"), &left),
            &|| symlink("none", &left),
            &|| fs::write(&left, "left by a killed process"),
            &|| {
                fs::write(&left, "read-only")
                    .and_then(|()| fs::set_permissions(&left, fs::Permissions::from_mode(0o400)))
            },
        ] as [&dyn Fn() -> io::Result<()>; 5]
        {
            leave().unwrap();
            published(&at("file"), b"new");
            assert_eq!(fs::read(at("victim")).unwrap(), b"kept");
            assert_eq!(fs::read(at("file")).unwrap(), b"new");
            assert!(fs::symlink_metadata(at("file")).unwrap().is_file());
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        }
        for other in
            ["file.partial", "file.0123456789a.partial", "file.0123456789a-.partial", "xfile.0123456789aB.partial"]
        {
            fs::write(at(other), "of somebody else").unwrap();
        }
        published(&at("file"), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6);
    }

    #[test]
    fn temporary_names_differ_from_run_to_run() {
        let directory = tempfile::tempdir().unwrap();
        let names: std::collections::BTreeSet<PathBuf> = (0..20)
            .map(|_| Draft::new(&directory.path().join("file"), &Wait::default()).unwrap())
            .map(|draft| draft.written().unwrap().to_owned())
            .collect();
        assert_eq!(names.len(), 20);
    }

    #[cfg(unix)]
    #[test]
    fn a_path_has_one_writer_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("file");
        let first = Draft::new(&place, &Wait::default()).unwrap();
        assert!(error(&place).ends_with("file: another process is writing it"), "{}", error(&place));
        drop(first);
        published(&place, b"second");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
