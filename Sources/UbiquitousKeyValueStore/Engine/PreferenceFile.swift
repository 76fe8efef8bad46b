import Foundation
import Glibc
import RecordModel
import ServiceClient
import Wire

/// One account's copy on disk, which several processes may share.
///
/// The file is replaced whole: a draft is written, synced and renamed over it, then the folder is synced; so whatever
/// happens, the file is the old copy or the new one. Its first line has the checksum of the rest. A process that
/// changes it holds the lock on the file beside it. The file last read or written stays open, so its inode is not given
/// to another one, and a look at the inode tells whether another process wrote since.
///
/// Not for use from two threads at once.
final class PreferenceFile {
    /// The points at which a test can make a lock or a write fail.
    enum Step: CaseIterable, Sendable {
        case folderMade, locking, drafted, halfWritten, written, synced, renamed
    }

    let path: String
    private var held: Int32 = -1
    private var lockDescriptor: Int32 = -1
    /// The failure that a test injects at a step, or nil.
    private let fault: @Sendable (Step) -> Fault?

    /// How an injected failure ends a write.
    enum Fault: Sendable {
        /// The system call fails with this error number.
        case error(Int32)
        /// The process ends: nothing after it happens, not even the removal of the draft.
        case death
    }

    private static let name = "zonekeeper-preferences "
    private static let magic = name + "1 "
    /// How long another process may hold the lock, in milliseconds.
    private static let lockPatienceMilliseconds = 5000

    init(path: String, fault: @escaping @Sendable (Step) -> Fault? = { _ in nil }) {
        self.path = path
        self.fault = fault
    }

    deinit {
        unlock()
        if held >= 0 { close(held) }
    }

    /// Keeps other processes from changing the file until `unlock`.
    /// - Throws: `PreferenceFileError` if the folder cannot be written or another process keeps the lock.
    func lock() throws(PreferenceFileError) {
        if lockDescriptor >= 0 { return }
        try makeFolder()
        try check(.locking)
        let descriptor = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("cannot be locked", errno) }
        var waited = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR, waited < Self.lockPatienceMilliseconds else {
                let reason = errno
                close(descriptor)
                throw failure("cannot be locked; does another process hold \(path).lock?", reason)
            }
            // The other process is writing a few kilobytes.
            usleep(2000)
            waited += 2
        }
        lockDescriptor = descriptor
    }

    func unlock() {
        if lockDescriptor >= 0 { close(lockDescriptor) }
        lockDescriptor = -1
    }

    enum Content {
        case missing
        /// The file is as this object last read or wrote it.
        case unchanged
        case copy(PreferenceCopy)
        /// The file was damaged and was moved aside.
        case damaged(String)
    }

    /// Reads the file if it has changed.
    /// - Throws: `PreferenceFileError` if it cannot be read.
    func read() throws(PreferenceFileError) -> Content {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return held >= 0 ? .unchanged : .missing }
            throw failure("cannot be read", errno)
        }
        if held >= 0, Self.isSame(descriptor, held) {
            close(descriptor)
            return .unchanged
        }
        let content: Content
        do throws(PreferenceFileError) {
            content = try Self.content(try contents(descriptor), path)
        } catch {
            close(descriptor)
            throw error
        }
        if held >= 0 { close(held) }
        held = descriptor
        if case .damaged(let reason) = content { return .damaged(try moveAside(reason: reason)) }
        return content
    }

    /// - Throws: if the file is of a later version and must be left as it is.
    private static func content(_ bytes: [UInt8], _ path: String) throws(PreferenceFileError) -> Content {
        do throws(PreferenceCopyError) {
            return .copy(try PreferenceCopy(try payload(bytes)))
        } catch {
            if error.isLater { throw PreferenceFileError(description: "\(path) cannot be used: \(error)") }
            return .damaged(error.description)
        }
    }

    /// Replaces the file; the caller holds the lock, so there is one draft at a time.
    /// - Throws: `PreferenceFileError`. The file is then either the old one or the new one.
    func write(_ copy: PreferenceCopy) throws(PreferenceFileError) {
        guard lockDescriptor >= 0 else {
            throw PreferenceFileError(description: "\(path) is not written without its lock")
        }
        let payload = copy.serialized()
        let bytes = Array((Self.magic + String(fnv1a(payload), radix: 16) + "\n").utf8) + payload
        let draft = path + ".new"
        // A killed process may have left one behind.
        unlink(draft)
        let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("cannot be written", errno) }
        do throws(PreferenceFileError) {
            try check(.drafted)
            try fill(descriptor, bytes)
            try check(.written)
            guard fsync(descriptor) == 0 else { throw failure("cannot be synced", errno) }
            try check(.synced)
            guard rename(draft, path) == 0 else { throw failure("cannot be replaced", errno) }
        } catch {
            close(descriptor)
            if !error.isDeath { unlink(draft) }
            throw error
        }
        if held >= 0 { close(held) }
        held = descriptor
        try check(.renamed)
        try syncFolder()
    }

    private func fill(_ descriptor: Int32, _ bytes: [UInt8]) throws(PreferenceFileError) {
        var position = 0
        while position < bytes.count {
            // In two halves, so that a test can tear the draft.
            let end = position == 0 ? (bytes.count + 1) / 2 : bytes.count
            let count = bytes[position..<end].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("cannot be written", count == 0 ? ENOSPC : errno) }
            position += count
            if position < bytes.count { try check(.halfWritten) }
        }
    }

    private func check(_ step: Step) throws(PreferenceFileError) {
        switch fault(step) {
        case nil: return
        case .error(let number): throw failure("cannot be written", number)
        case .death: throw PreferenceFileError(description: "the process ended", isDeath: true)
        }
    }

    /// Makes the folder, and those above it, each durably.
    private func makeFolder() throws(PreferenceFileError) {
        let folder = (path as NSString).deletingLastPathComponent
        var missing: [String] = []
        var above = folder
        while !Self.isFolder(above), above != "/", !above.isEmpty {
            missing.append(above)
            above = (above as NSString).deletingLastPathComponent
        }
        if missing.isEmpty { return }
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw PreferenceFileError(description: "the folder \(folder) cannot be made: \(error.localizedDescription)")
        }
        // A folder's name is in the one above it.
        for made in missing.reversed() {
            try check(.folderMade)
            try sync(folder: (made as NSString).deletingLastPathComponent)
        }
    }

    private static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
    }

    private func syncFolder() throws(PreferenceFileError) {
        try sync(folder: (path as NSString).deletingLastPathComponent)
    }

    private func sync(folder path: String) throws(PreferenceFileError) {
        let folder = open(path.isEmpty ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw failure("cannot be synced", errno) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw failure("cannot be synced", errno) }
    }

    private func contents(_ descriptor: Int32) throws(PreferenceFileError) -> [UInt8] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("cannot be read", errno) }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var position = 0
        while position < bytes.count {
            let count = bytes[position...].withUnsafeMutableBytes {
                Glibc.pread(descriptor, $0.baseAddress, $0.count, off_t(position))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("cannot be read", errno) }
            if count == 0 { break }
            position += count
        }
        return Array(bytes.prefix(position))
    }

    private static func payload(_ bytes: [UInt8]) throws(PreferenceCopyError) -> [UInt8] {
        if bytes.starts(with: name.utf8), !bytes.starts(with: magic.utf8) { throw .later }
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")), bytes.starts(with: magic.utf8) else {
            throw PreferenceCopyError("it has no first line of ours")
        }
        let sum = String(decoding: bytes[magic.utf8.count..<end], as: UTF8.self)
        let payload = Array(bytes[(end + 1)...])
        guard UInt64(sum, radix: 16) == fnv1a(payload) else { throw PreferenceCopyError("its checksum is wrong") }
        return payload
    }

    /// Keeps the damaged file for inspection.
    private func moveAside(reason: String) throws(PreferenceFileError) -> String {
        if held >= 0 { close(held) }
        held = -1
        var aside = path + ".damaged"
        var number = 1
        while FileManager.default.fileExists(atPath: aside) {
            number += 1
            aside = path + ".damaged\(number)"
        }
        guard rename(path, aside) == 0 else { throw failure("is damaged (\(reason)) and cannot be moved aside", errno) }
        try syncFolder()
        return "\(path) is damaged (\(reason)); it was moved to \(aside), and the server's values are read again"
    }

    private static func isSame(_ one: Int32, _ two: Int32) -> Bool {
        var (first, second) = (stat(), stat())
        return fstat(one, &first) == 0 && fstat(two, &second) == 0 && first.st_ino == second.st_ino
            && first.st_dev == second.st_dev
    }

    private func failure(_ what: String, _ number: Int32) -> PreferenceFileError {
        PreferenceFileError(description: "\(path) \(what): \(String(cString: strerror(number)))")
    }
}

// The same, with problems noted rather than thrown.
extension PreferenceFile {
    struct Loaded {
        var copy: PreferenceCopy
        var problem: String?
        /// Whether the file may be replaced.
        var isReadable: Bool
    }

    func load() -> Loaded {
        let new = PreferenceCopy(device: UUID().uuidString)
        do throws(PreferenceFileError) {
            switch try read() {
            case .copy(let copy): return Loaded(copy: copy, isReadable: true)
            case .missing, .unchanged: return Loaded(copy: new, isReadable: true)
            case .damaged(let reason): return Loaded(copy: new, problem: reason, isReadable: true)
            }
        } catch {
            return Loaded(copy: new, problem: error.description, isReadable: false)
        }
    }

    /// Writes the copy, and returns whether that succeeded. The first problem is kept.
    @discardableResult
    func save(_ copy: PreferenceCopy, _ problem: inout String?) -> Bool {
        do throws(PreferenceFileError) {
            try write(copy)
            return true
        } catch {
            problem = problem ?? error.description
            return false
        }
    }

    /// Writes which user will get the values of an unowned file, before they are in that user's file. If the process
    /// ends in between, no other user gets them.
    @discardableResult
    func mark(_ copy: PreferenceCopy, for account: String?, _ problem: inout String?) -> Bool {
        if copy.rows.isEmpty || copy.claimant == account { return true }
        var marked = copy
        marked.claimant = account
        return save(marked, &problem)
    }

    /// The values of an unowned file that the user may have; nil if there are none or they are marked for another user.
    func claim(for account: String?, _ problem: inout String?) -> (file: PreferenceFile, copy: PreferenceCopy)? {
        let loaded = load()
        guard loaded.isReadable, !loaded.copy.rows.isEmpty else { return nil }
        guard loaded.copy.claimant == nil || loaded.copy.claimant == account else { return nil }
        return mark(loaded.copy, for: account, &problem) ? (self, loaded.copy) : nil
    }
}

struct PreferenceFileError: Error, CustomStringConvertible {
    var description: String
    /// In tests only: the process ended here.
    var isDeath = false
}

/// Where the copies of one app's preferences are: a folder for a container and environment, with a file a user.
struct PreferencePlace: Hashable, Sendable {
    /// The folder, which need not exist.
    let folder: String

    /// Where this program's preferences were while it had no configuration, if that is known.
    var unconfiguredFolder: String?

    init(folder: String) { self.folder = folder }

    /// The place of a container's preferences under the user's data folder.
    /// - Parameter variables: the process's environment, as in `DataFolder.path(_:)`.
    init(container: String, environment: String, variables: [String: String]) {
        let place = "\(DataFolder.fileName(container))/\(DataFolder.fileName(environment))"
        folder = "\(DataFolder.path(variables))/preferences/\(place)"
    }

    /// The file of a user's copy; nil for the values set while no user was signed in.
    func path(of account: String?) -> String {
        // No encoded user name begins with a dash.
        account.map { "\(folder)/\(DataFolder.fileName($0)).json" } ?? "\(folder)/-nobody.json"
    }

    /// The files that may hold values set while no user was signed in. The first user to sign in gets them.
    var unownedPaths: [String] {
        [path(of: nil)] + (unconfiguredFolder.map { [PreferencePlace(folder: $0).path(of: nil)] } ?? [])
    }

    /// The user of a session when the server was last asked.
    func rememberedAccount(of session: String) -> String? {
        guard let bytes = FileManager.default.contents(atPath: sessionPath(session)) else { return nil }
        return (try? JSONParser.parse(Array(bytes)))?["account"]?.string
    }

    /// Keeps what the server said for a start without a network. If that fails, the next start asks the server first.
    func remember(_ account: String, of session: String) {
        guard rememberedAccount(of: session) != account else { return }
        let text = JSONValue.object([JSONValue.Member("account", .string(account))]).serialized()
        let path = sessionPath(session)
        try? Data(text).write(to: URL(filePath: path), options: .atomic)
        try? FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    private func sessionPath(_ session: String) -> String {
        "\(folder)/-session-\(String(fnv1a(Array(session.utf8)), radix: 16)).json"
    }
}
