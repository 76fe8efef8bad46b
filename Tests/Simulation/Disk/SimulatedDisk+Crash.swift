import Glibc
import RaftCore
import Storage

extension SimulatedDisk {
    /// How a machine goes down.
    enum Crash: Sendable {
        /// The process ends; the system goes on and writes what it has.
        case process
        /// The power fails: what was not synced is there, or not, or in part.
        case power
    }

    /// Writes what the folder, and the folders in it, hold after a crash at this moment to a new folder. The disk
    /// itself goes on.
    func writeImage(of folder: String, to image: String, after crash: Crash) throws(DiskError) {
        try makeFolder(at: image)
        let present = try Self.files(in: folder, copiedTo: image)
        let known = try writeKnown(of: folder, to: image, after: crash) { $0.hasPrefix(folder + "/") }
        for name in present {
            let path = "\(folder)/\(name)"
            // What is not changed through this disk is small and written with care of its own.
            guard !known.contains(path) else { continue }
            try write(try readWholeFile(at: path), to: "\(image)/\(name)", stamped: Self.time(of: path))
        }
    }

    /// Writes what such files hold after a crash that were changed through this disk.
    /// - Returns: those files, whether they are there afterwards or not.
    @discardableResult
    func writeKnown(
        of folder: String, to image: String, after crash: Crash, where isWanted: (String) -> Bool
    ) throws(DiskError) -> Set<String> {
        let (durable, changed) = crash == .power ? survivingNames() : (names, [])
        for path in durable.keys.sorted() where isWanted(path) {
            // A whole folder may have been moved aside, which is not this disk's doing.
            guard let file = durable[path], file.removedContent != nil || isThere(file) else { continue }
            let content = try self.content(of: file, after: crash)
            let time = file.removedContent == nil ? Self.time(of: self.path(of: file) ?? path) : file.removedTime
            try write(content, to: image + path.dropFirst(folder.count), stamped: time)
        }
        return Set(durable.keys).union(names.keys).union(changed)
    }

    /// What the next life finds in the system's memory, after a crash of the process whose image is in a new folder.
    func unsynced(of folder: String, movedTo newFolder: String) -> Unsynced {
        var copies: [ObjectIdentifier: File] = [:]
        func copy(_ file: File) -> File {
            if let copy = copies[ObjectIdentifier(file)] { return copy }
            let copy = File()
            (copy.unsynced, copy.lost) = (file.unsynced, file.lost)
            copy.mayWait = file.mayWait
            (copy.removedContent, copy.removedTime) = (file.removedContent, file.removedTime)
            copies[ObjectIdentifier(file)] = copy
            return copy
        }
        func moved(_ path: String) -> String {
            path.hasPrefix(folder) ? newFolder + path.dropFirst(folder.count) : path
        }
        var unsynced = Unsynced()
        for (path, file) in names { unsynced.names[moved(path)] = copy(file) }
        unsynced.nameChanges = nameChanges.map { change in
            switch change {
            case .created(let path, let file): .created(moved(path), copy(file))
            case .renamed(let path, let newPath, let file, let replaced):
                .renamed(moved(path), to: moved(newPath), copy(file), replaced: replaced.map(copy))
            case .removed(let path, let file): .removed(moved(path), copy(file))
            }
        }
        unsynced.folders = Set(unsyncedFolders.map(moved))
        return unsynced
    }

    /// The files in a folder and in the folders in it, which are made elsewhere, too.
    private static func files(in folder: String, copiedTo image: String) throws(DiskError) -> [String] {
        var files: [String] = []
        for name in try listFolder(at: folder) {
            guard isSpecialFile(at: "\(folder)/\(name)") else {
                files.append(name)
                continue
            }
            try makeFolder(at: "\(image)/\(name)")
            files += try listFolder(at: "\(folder)/\(name)").map { "\(name)/\($0)" }
        }
        return files
    }

    private static func time(of path: String) -> Int64 {
        (try? DiskFile(path: path, flags: O_RDONLY).modified()) ?? 0
    }

    private func path(of file: File) -> String? { names.first { $0.value === file }?.key }

    /// The names after a power failure: of the changes that are not synced, some from the beginning were made.
    private func survivingNames() -> (names: [String: File], changed: [String]) {
        let kept = Int.random(in: 0...nameChanges.count, using: &generator)
        if kept < nameChanges.count { met(.lostName) }
        var names = names
        var changed: [String] = []
        for change in nameChanges[kept...].reversed() {
            switch change {
            case .created(let path, _):
                names[path] = nil
                changed.append(path)
            case .renamed(let path, let newPath, let file, let replaced):
                names[newPath] = replaced
                names[path] = file
                changed += [path, newPath]
            case .removed(let path, let file):
                names[path] = file
                changed.append(path)
            }
        }
        for folder in unsyncedFolders.sorted() where Bool.random(using: &generator) {
            for path in names.keys.sorted() where Self.folder(of: path) == folder {
                names[path] = nil
                changed.append(path)
                met(.lostName)
            }
        }
        return (names, changed)
    }

    private func isThere(_ file: File) -> Bool {
        path(of: file).map { access($0, F_OK) == 0 } ?? false
    }

    private func content(of file: File, after crash: Crash) throws(DiskError) -> [UInt8] {
        var content: [UInt8]
        if let removed = file.removedContent {
            content = removed
        } else if let path = path(of: file) {
            content = try readWholeFile(at: path)
        } else {
            preconditionFailure("a file without a name or content")
        }
        guard crash == .power else { return content }
        takeBack(file.unsynced, from: &content)
        if !file.lost.isEmpty { met(.lostSync) }
        for (place, byte) in file.lost where place < content.count { content[place] = byte }
        return content
    }

    /// Any of the writes may have reached the disk, in any order, whole or in part.
    private func takeBack(_ writes: [Write], from content: inout [UInt8]) {
        if writes.isEmpty { return }
        for write in writes.reversed() {
            // A file may have been cut meanwhile, which is not this disk's doing.
            let end = min(content.count, write.offset + write.before.count)
            guard write.offset <= end else { continue }
            content.replaceSubrange(write.offset..<end, with: write.before.prefix(end - write.offset))
            content.removeSubrange(min(content.count, max(write.sizeBefore, end))...)
        }
        let mood = Int.random(in: 0..<4, using: &generator)
        for write in writes {
            switch mood == 3 ? Int.random(in: 0..<3, using: &generator) : mood {
            case 0: break
            case 1: put(write.bytes, into: &content, at: write.offset)
            default:
                met(.tornWrite)
                tear(write, into: &content)
            }
        }
    }

    /// Some sectors of a write arrived; where one was being written it may hold anything.
    private func tear(_ write: Write, into content: inout [UInt8]) {
        let sector = 512
        let isPrefix = Bool.random(using: &generator)
        let end = Int.random(in: 0...write.bytes.count, using: &generator)
        var start = 0
        while start < write.bytes.count {
            let next = min(write.bytes.count, (write.offset + start + sector) / sector * sector - write.offset)
            var bytes = Array(write.bytes[start..<next])
            let arrives = isPrefix ? next <= end : Bool.random(using: &generator)
            if arrives {
                put(bytes, into: &content, at: write.offset + start)
            } else if isPrefix, start < end {
                bytes.removeSubrange((end - start)...)
                if Int.random(in: 0..<4, using: &generator) == 0, let last = bytes.indices.last {
                    bytes[last] ^= UInt8.random(in: 1...255, using: &generator)
                }
                put(bytes, into: &content, at: write.offset + start)
            }
            start = next
        }
    }

    private func put(_ bytes: [UInt8], into content: inout [UInt8], at offset: Int) {
        let end = offset + bytes.count
        if content.count < end { content += [UInt8](repeating: 0, count: end - content.count) }
        content.replaceSubrange(offset..<end, with: bytes)
    }

    private func write(_ content: [UInt8], to path: String, stamped time: Int64) throws(DiskError) {
        let file = try DiskFile(path: path, flags: O_WRONLY | O_CREAT | O_TRUNC)
        try writeWhole(content, to: file)
        try file.stamp(time)
    }
}

/// Writes all of an array to a new file.
func writeWhole(_ content: [UInt8], to file: DiskFile) throws(DiskError) {
    var done = 0
    while done < content.count {
        let (bytes, offset) = (content, done)
        let result = bytes.withUnsafeBytes { raw -> Result<Int, DiskError> in
            do throws(DiskError) {
                return .success(try file.write(UnsafeRawBufferPointer(rebasing: raw[offset...]), at: offset))
            } catch { return .failure(error) }
        }
        done += try result.get()
    }
}

/// Copies a small file.
func copyFile(_ path: String, to newPath: String) throws(DiskError) {
    let file = try DiskFile(path: newPath, flags: O_WRONLY | O_CREAT | O_TRUNC)
    try writeWhole(try readWholeFile(at: path), to: file)
}
