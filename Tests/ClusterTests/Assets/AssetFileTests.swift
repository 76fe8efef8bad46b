import Crypto
import Foundation
import Glibc
import RecordModel
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// A disk that fails from one of its calls on, as one does that goes away, or once.
final class FailingDisk: LogDisk {
    private let calls = Mutex(0)
    private let failing: Range<Int>
    private let code: Int32
    private let operations: Set<String>?

    /// - Parameter operations: which calls are counted and may fail; nil for all.
    init(failing: Range<Int> = Int.max..<Int.max, code: Int32 = EIO, calls operations: Set<String>? = nil) {
        self.failing = failing
        self.code = code
        self.operations = operations
    }

    var count: Int { calls.withLock(\.self) }

    private func call(_ operation: String) throws(DiskError) {
        guard operations?.contains(operation) != false else { return }
        let number = calls.withLock { calls in
            defer { calls += 1 }
            return calls
        }
        if failing.contains(number) { throw DiskError(operation: operation, path: "", code: code) }
    }

    func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile {
        try call("open")
        return try PosixDisk().open(path, creating: creating)
    }
    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        try call("pwrite")
        return try PosixDisk().write(bytes, to: file, at: offset)
    }
    func stamp(_ file: DiskFile, _ time: Int64) throws(DiskError) {
        try call("fsync")
        try PosixDisk().stamp(file, time)
    }
    func rename(_ path: String, to newPath: String) throws(DiskError) {
        try call("rename")
        try PosixDisk().rename(path, to: newPath)
    }
    func remove(_ path: String) throws(DiskError) {
        try call("unlink")
        try PosixDisk().remove(path)
    }
    func syncFolder(_ path: String) throws(DiskError) {
        try call("fsync")
        try PosixDisk().syncFolder(path)
    }
}

/// A disk that looks at something whenever it syncs a folder.
private final class WatchedFolders: LogDisk {
    private let state = Mutex<(look: (@Sendable () -> Bool)?, seen: [Bool])>((nil, []))
    var seen: [Bool] { state.withLock(\.seen) }

    func watch(_ look: @escaping @Sendable () -> Bool) { state.withLock { $0.look = look } }

    func syncFolder(_ path: String) throws(DiskError) {
        state.withLock { state in
            if let look = state.look { state.seen.append(look()) }
        }
        try PosixDisk().syncFolder(path)
    }
}

/// A disk that cannot read a file any more, nor open it, as where a sector is worn out.
final class WornDisk: LogDisk {
    private let worn = Mutex<(file: DiskFile, opens: Bool)?>(nil)

    /// - Parameter opens: whether the file can still be opened.
    func wear(_ path: String, opens: Bool) throws {
        let file = try DiskFile(path: path, flags: O_RDONLY)
        worn.withLock { $0 = (file, opens) }
    }

    private func check(_ file: DiskFile, _ operation: String) throws(DiskError) {
        guard let worn = worn.withLock(\.self), try worn.file.isSame(as: file) else { return }
        if operation == "pread" || !worn.opens { throw DiskError(operation: operation, path: file.path, code: EIO) }
    }

    func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile {
        let file = try PosixDisk().open(path, creating: creating)
        try check(file, "open")
        return file
    }
    func read(
        into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int
    ) throws(DiskError) -> Int {
        try check(file, "pread")
        return try file.read(into: buffer, at: offset)
    }
}

@Suite("the files of assets on one node")
struct AssetFileTests {
    private let folder = NSTemporaryDirectory() + "zonekeeper-assets-\(UUID().uuidString)"
    private static let key = [UInt8](repeating: 9, count: 32)
    private static let time: Int64 = 1_700_000_000_000

    private func files(_ disk: any LogDisk = PosixDisk(), key: [UInt8]? = nil) throws -> AssetFiles {
        let files = AssetFiles(folder: folder, disk: disk, key: key) { .random(in: 0 ... .max) }
        try files.prepare()
        return files
    }

    private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

    private func reference(_ bytes: [UInt8]) -> AssetReference {
        AssetReference(sha256: Array(SHA256.hash(data: bytes)), size: UInt64(bytes.count))
    }

    private func keep(_ bytes: [UInt8], in files: AssetFiles, pieces: Int = 10_000) throws -> AssetReference {
        var writer = try files.begin(limit: .max)
        do {
            for start in stride(from: 0, to: bytes.count, by: pieces) {
                try writer.write(Array(bytes[start..<min(bytes.count, start + pieces)]))
            }
            return try files.keep(&writer, time: Self.time)
        } catch {
            files.abandon(writer)
            throw error
        }
    }

    @Test(
        "a file is read as it was written, whole and in ranges, in the clear and sealed",
        arguments: [0, 1, 65_535, 65_536, 65_537, 200_000], [false, true])
    func ranges(_ count: Int, _ isSealed: Bool) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = try files(key: isSealed ? Self.key : nil)
        let bytes = bytes(count)
        let asset = try keep(bytes, in: files)
        #expect(asset == reference(bytes))
        let file = try #require(try files.open(asset))
        #expect(try file.bytes(0..<UInt64(count)) == bytes)
        for range in [0..<count / 2, count / 3..<count, count / 2..<count / 2] {
            #expect(try file.bytes(UInt64(range.lowerBound)..<UInt64(range.upperBound)) == Array(bytes[range]))
        }
        let path =
            folder + "/" + Hex.encode(Array(asset.sha256.prefix(1))) + "/"
            + Hex.encode(Array(asset.sha256.dropFirst()))
        let stored = try Data(contentsOf: URL(filePath: path))
        if count > 32 { #expect((stored.range(of: Data(bytes.prefix(32))) != nil) != isSealed) }
    }

    @Test("where a bit of a sealed file is another, its chunk does not open")
    func sealed() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = try files(key: Self.key)
        let asset = try keep(bytes(100_000), in: files)
        try flip(asset, at: 90_000)
        let file = try #require(try files.open(asset))
        #expect(try file.bytes(0..<65_536).count == 65_536)
        #expect(throws: AssetError.missing) { try file.bytes(0..<100_000) }
    }

    fileprivate static let otherKey = [UInt8](repeating: 8, count: 32)

    @Test(
        "files are not used without the key that sealed them, and nothing changes",
        arguments: [nil, AssetFileTests.otherKey])
    func wrongKey(_ key: [UInt8]?) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let asset = try keep(bytes(100), in: files(key: Self.key))
        #expect(try listFolder(at: folder).contains("key-check"))
        let check = try readWholeFile(at: folder + "/key-check")
        #expect(throws: AssetKeyFault.self) { try files(key: key) }
        #expect(try files(key: Self.key).open(asset)?.bytes(0..<100) == bytes(100))
        // The files tell it, too, where the check was lost or a disk changed it.
        try removeFile(at: folder + "/key-check")
        #expect(throws: AssetKeyFault.self) { try files(key: key) }
        try replaceFile(at: folder + "/key-check", with: check.map { $0 ^ 1 })
        #expect(throws: AssetKeyFault.self) { try files(key: key) }
        #expect(try files(key: Self.key).open(asset)?.bytes(0..<100) == bytes(100))
        #expect(try readWholeFile(at: folder + "/key-check") == check)
        try FileManager.default.removeItem(atPath: folder)
        _ = try files(key: key)
    }

    @Test("a key that is configured later is taken, and files in the clear are read on")
    func laterKey() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let asset = try keep(bytes(100), in: files())
        let sealed = try keep(bytes(200), in: files(key: Self.key))
        let files = try files(key: Self.key)
        #expect(try files.open(asset)?.bytes(0..<100) == bytes(100))
        #expect(try files.open(sealed)?.bytes(0..<200) == bytes(200))
        #expect(throws: AssetKeyFault.self) { try self.files() }
    }

    @Test("a full disk keeps no node from starting with a key for the first time")
    func keyOnFullDisk() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        _ = try files(FailingDisk(failing: 0..<Int.max, code: ENOSPC, calls: ["pwrite"]), key: Self.key)
        #expect(try !listFolder(at: folder).contains("key-check"))
        _ = try files(key: Self.key)
        #expect(throws: AssetKeyFault.self) { try files(key: Self.otherKey) }
    }

    private func flip(_ asset: AssetReference, at offset: Int) throws {
        let digits = Hex.encode(asset.sha256)
        let file = try DiskFile(path: "\(folder)/\(digits.prefix(2))/\(digits.dropFirst(2))", flags: O_RDWR)
        let byte = try file.bytes(at: offset, count: 1)[0] ^ 1
        _ = try withUnsafeBytes(of: byte) { raw in try file.write(raw, at: offset) }
    }

    @Test("wherever the disk fails, a file is there whole or not at all, and a restart leaves nothing else")
    func failures() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let bytes = bytes(150_000)
        let asset = reference(bytes)
        let sound = FailingDisk()
        _ = try keep(bytes, in: files(sound))
        let steps = sound.count
        #expect(steps > 6)
        for step in 0..<steps {
            for end in [step + 1, Int.max] {
                try? FileManager.default.removeItem(atPath: folder)
                let disk = FailingDisk(failing: step..<end)
                let kept = try? keep(bytes, in: files(disk))
                let again = try files()
                let found = try again.open(asset)
                if kept != nil { #expect(found != nil, "step \(step)") }
                if let found { #expect(try found.bytes(0..<asset.size) == bytes, "step \(step)") }
                #expect(try listFolder(at: folder + "/incoming").isEmpty, "step \(step)")
            }
        }
    }

    @Test("wherever the disk fails while a file is stored again, the copy that was there or the new one stays")
    func failuresOfSecondCopy() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let bytes = bytes(1_000)
        let asset = try keep(bytes, in: files())
        let sound = FailingDisk()
        _ = try keep(bytes, in: files(sound))
        for step in 0..<sound.count {
            for end in [step + 1, Int.max] {
                _ = try? keep(bytes, in: files(FailingDisk(failing: step..<end)))
                #expect(try files().open(asset)?.bytes(0..<1_000) == bytes, "step \(step)")
            }
        }
    }

    @Test("a file that has its name and is not durable yet is not found by who asks to keep it")
    func nameIsHeld() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let disk = WatchedFolders()
        let files = try files(disk)
        disk.watch { files.names.withLockIfAvailable { _ in } == nil }
        _ = try keep(bytes(10), in: files)
        #expect(disk.seen == [true, true])
    }

    @Test("one byte over the limit is refused, and nothing stays")
    func limit() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = try files()
        var writer = try files.begin(limit: 100)
        try writer.write(bytes(100))
        #expect(throws: AssetError.tooLarge(limit: 100)) { try writer.write([1]) }
        files.abandon(writer)
        #expect(try listFolder(at: folder + "/incoming").isEmpty)
    }

    @Test("what is something else than was expected is not kept")
    func expected() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = try files()
        var writer = try files.begin(limit: 100)
        try writer.write(bytes(10))
        let other = reference(bytes(11))
        #expect(throws: AssetError.missing) { try files.keep(&writer, time: Self.time, as: other) }
        #expect(try files.open(other) == nil)
        #expect(try files.open(reference(bytes(10))) == nil)
    }

    @Test("a file that was asked for since a time stays; the time outlives the process")
    func renewal() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let asset = try keep(bytes(10), in: files())
        #expect(try files().renew(asset, time: Self.time + 500, interval: 1_000))
        #expect(try files().status(of: asset.sha256)?.modified == Self.time)
        #expect(try files().renew(asset, time: Self.time + 5_000, interval: 1_000))
        #expect(try files().status(of: asset.sha256)?.modified == Self.time + 5_000)
        #expect(try !files().remove(asset.sha256, unlessRenewedSince: Self.time + 5_000))
        #expect(try files().open(asset) != nil)
        #expect(try files().remove(asset.sha256, unlessRenewedSince: Self.time + 5_001))
        #expect(try files().open(asset) == nil)
        #expect(try !files().renew(asset, time: Self.time, interval: 0))
    }

    @Test("a file that the disk cannot read any more is damage, and as good as none", arguments: [false, true])
    func unreadable(opens: Bool) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let disk = WornDisk()
        let files = try files(disk)
        let asset = try keep(bytes(10), in: files)
        let found = try #require(try files.open(asset))
        let digits = Hex.encode(asset.sha256)
        let path = "\(folder)/\(digits.prefix(2))/\(digits.dropFirst(2))"
        try disk.wear(path, opens: opens)
        #expect(try files.open(asset) == nil)
        #expect(try !files.renew(asset, time: Self.time, interval: 0))
        #expect(throws: AssetError.missing) { try found.bytes(0..<10) }
        // Another copy takes its place.
        #expect(try keep(bytes(10), in: files) == asset)
        #expect(try files.open(asset)?.bytes(0..<10) == bytes(10))
        try disk.wear(path, opens: opens)
        #expect(try files.setAside(asset.sha256, found: nil))
        #expect(try listFolder(at: folder + "/damaged") == [digits])
    }

    @Test("a damaged file is moved aside, and no other that came in its place")
    func aside() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = try files()
        let asset = try keep(bytes(10), in: files)
        #expect(try files.hashes(beginningWith: asset.sha256[0]) == [asset.sha256])
        let found = try files.open(asset)
        _ = try keep(bytes(10), in: files)
        #expect(try !files.setAside(asset.sha256, found: found))
        #expect(try !files.setAside(asset.sha256, found: nil))
        #expect(try files.open(asset) != nil)
        #expect(try files.setAside(asset.sha256, found: files.open(asset)))
        #expect(try files.open(asset) == nil)
        #expect(try listFolder(at: folder + "/damaged") == [Hex.encode(asset.sha256)])
        #expect(try !files.setAside(asset.sha256, found: found))
        // One that does not even open.
        _ = try keep(bytes(10), in: files)
        try flip(asset, at: 0)
        #expect(try files.setAside(asset.sha256, found: nil))
        #expect(try files.open(asset) == nil)
    }
}
