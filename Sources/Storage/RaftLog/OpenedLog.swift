import Glibc

/// A log that is locked, read back and ready to be written to.
struct OpenedLog {
    let folder: String
    let lock: FolderLock
    let logID: UInt64
    let shared: LogShared
    let supply: SegmentSupply
    let tail: LogTail

    /// - Throws: as `RaftLog.open`.
    init(folder: String, options: RaftLogOptions) throws(RaftLogError) {
        self.folder = folder
        let (lock, names) = try Self.lock(folder)
        self.lock = lock
        logID = try Self.identity(folder, names, options)
        var recovery = LogRecovery(folder: folder, options: options, logID: logID)
        var (table, tail) = try recovery.run(names)
        for name in names where name.hasSuffix(".tmp") { try? options.disk.remove("\(folder)/\(name)") }
        supply = SegmentSupply(
            folder: folder, options: options, spares: names.filter { $0.hasPrefix("spare-") && $0.hasSuffix(".free") },
            hasReserve: names.contains("reserve.free"))
        if tail == nil {
            let first = try Self.begin(logID, supply, options.disk)
            table.add(first.segment)
            tail = first
        }
        guard let tail else { preconditionFailure("set above") }
        self.tail = tail
        shared = LogShared(table, logID: logID)
    }

    private static func lock(_ folder: String) throws(RaftLogError) -> (FolderLock, [String]) {
        let lock: FolderLock?
        let names: [String]
        do throws(DiskError) {
            try makeFolder(at: folder)
            lock = try FolderLock(path: "\(folder)/lock")
            names = try listFolder(at: folder)
        } catch {
            throw RaftLogError(error)
        }
        guard let lock else { throw .locked(path: folder) }
        return (lock, names)
    }

    /// The log's random number, which every checksum depends on. It is made before the first segment.
    private static func identity(
        _ folder: String, _ names: [String], _ options: RaftLogOptions
    ) throws(RaftLogError) -> UInt64 {
        let path = "\(folder)/identity"
        guard names.contains("identity") || names.contains(where: { $0.hasSuffix(".seg") }) else {
            let logID = options.random()
            do throws(DiskError) { try replaceFile(at: path, with: identityBytes(logID)) } catch {
                throw RaftLogError(error)
            }
            return logID
        }
        let bytes: [UInt8]
        do throws(DiskError) { bytes = try readWholeFile(at: path) } catch {
            guard error.code == ENOENT else { throw RaftLogError(reading: error, of: "identity", at: 0) }
            throw .corrupt(segment: "identity", position: 0, detail: "missing, and there are segments")
        }
        guard bytes.count == 16, bytes == identityBytes(bytes.load(at: 0)) else {
            throw .corrupt(segment: "identity", position: 0, detail: "damaged")
        }
        return bytes.load(at: 0)
    }

    /// The number, its checksum, and four zeros.
    private static func identityBytes(_ logID: UInt64) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        bytes.store(logID, at: 0)
        bytes.store(RecordHeader.seed(logID: logID), at: 8)
        return bytes
    }

    /// Makes the first segment with a durable header, so that damage to it never passes for a torn write.
    private static func begin(
        _ logID: UInt64, _ supply: SegmentSupply, _ disk: any LogDisk
    ) throws(RaftLogError) -> LogTail {
        do throws(DiskError) {
            let segment = try supply.take(1, mayUseReserve: true)
            let header = SegmentHeader(logID: logID, number: 1, watermark: .start).encoded()
            try disk.writeAll(header.bytes, to: segment.file, at: 0)
            try disk.sync(segment.file)
            return LogTail(
                segment: segment, offset: SegmentHeader.sizeBytes, previous: header.checksum,
                watermark: LogAddress(segment: 1, offset: SegmentHeader.sizeBytes))
        } catch {
            throw RaftLogError(error)
        }
    }
}
