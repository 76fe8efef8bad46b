import Foundation
import ServiceClient
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A fetched file in the staging folder. Those that nothing refers to any more are removed after a while.
final class StagedFile: Sendable {
    let url: URL
    private let staging: AssetStaging

    init(url: URL, staging: AssetStaging) {
        self.url = url
        self.staging = staging
    }

    deinit { staging.released(url.path) }
}

/// Where fetched files are: a folder of this process among the system's temporary files (`TMPDIR`), for the user's eyes
/// only.
///
/// A file that no asset refers to is removed ten minutes later, when the next one is fetched: an app may have kept its
/// URL. The folder goes when the process ends. What a process that was killed left behind is removed by the next one
/// that fetches a file.
final class AssetStaging: Sendable {
    /// Files that nothing refers to, in the order in which they were let go of.
    private struct Released {
        var path: String
        var since: ContinuousClock.Instant
    }

    private struct State {
        var folder: String?
        var count = 0
        var released: [Released] = []
    }

    private let root: String
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State())

    /// How long a file stays that nothing refers to.
    static let graceSeconds = 600

    static let shared: AssetStaging = {
        let staging = AssetStaging(
            root: FileManager.default.temporaryDirectory.appendingPathComponent("zonekeeper-assets-\(getuid())").path)
        atexit { AssetStaging.shared.removeAll() }
        return staging
    }()

    /// - Parameters:
    ///   - root: holds a folder of each process, and a locked file for each that runs.
    ///   - now: the clock.
    init(root: String, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.root = root
        self.now = now
    }

    /// A new file to write to. It counts as referred to until `released(_:)`.
    /// - Throws: `AssetFileError` if it cannot be made.
    func newFile() throws(AssetFileError) -> AssetSink {
        let (path, expired) = try state.withLock { state throws(AssetFileError) in
            let folder: String
            if let known = state.folder { folder = known } else { folder = try makeFolder() }
            state.folder = folder
            state.count += 1
            let limit = now() - .seconds(Self.graceSeconds)
            let expired = state.released.prefix { $0.since <= limit }
            state.released.removeFirst(expired.count)
            return ("\(folder)/\(state.count)", expired.map(\.path))
        }
        for path in expired { unlink(path) }
        return try AssetSink(creating: path)
    }

    fileprivate func released(_ path: String) {
        let since = now()
        state.withLock { $0.released.append(Released(path: path, since: since)) }
    }

    /// Removes everything of this process.
    func removeAll() {
        let folder = state.withLock { state in
            defer { (state.folder, state.released) = (nil, []) }
            return state.folder
        }
        guard let folder else { return }
        try? FileManager.default.removeItem(atPath: folder)
        unlink(folder + Self.lockEnding)
    }

    // MARK: Folders

    private static let lockEnding = ".lock"

    private func makeFolder() throws(AssetFileError) -> String {
        try makePrivate(root)
        removeAbandoned()
        while true {
            let folder = "\(root)/\(getpid())-\(UInt32.random(in: 0 ... .max))"
            let lock = open(folder + Self.lockEnding, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard lock >= 0 else {
                if errno == EEXIST { continue }
                throw .notWritten(path: folder, code: errno)
            }
            var status = stat()
            // The descriptor stays open, and with it the lock, for as long as the process lives. Another process may
            // have taken the file for one that was left behind before it was locked.
            guard flock(lock, LOCK_EX | LOCK_NB) == 0, fstat(lock, &status) == 0, status.st_nlink > 0 else {
                close(lock)
                continue
            }
            try makePrivate(folder)
            return folder
        }
    }

    /// Makes a folder, or takes one that is there and is the user's own.
    private func makePrivate(_ path: String) throws(AssetFileError) {
        if mkdir(path, 0o700) == 0 { return }
        var status = stat()
        guard errno == EEXIST else { throw .notWritten(path: path, code: errno) }
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == getuid(),
            status.st_mode & 0o077 == 0
        else { throw .notWritten(path: path, code: EACCES) }
    }

    /// Removes the folders of processes that have ended: their locks can be had.
    private func removeAbandoned() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        where name.hasSuffix(Self.lockEnding) {
            let path = "\(root)/\(name)"
            let lock = open(path, O_RDWR | O_CLOEXEC)
            guard lock >= 0 else { continue }
            if flock(lock, LOCK_EX | LOCK_NB) == 0 {
                try? FileManager.default.removeItem(atPath: String(path.dropLast(Self.lockEnding.count)))
                unlink(path)
            }
            close(lock)
        }
    }
}
