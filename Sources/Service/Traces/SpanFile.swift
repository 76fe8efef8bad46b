import Glibc
import Storage

/// The file that spans are written to, and the one before it: together they have so many bytes at most. What is in them
/// need not survive a crash, so nothing is synced.
struct SpanFile {
    /// Lines are added to `traces.jsonl`; when that is half of what there may be, it becomes `traces.1.jsonl`.
    static let name = "traces.jsonl"
    static let formerName = "traces.1.jsonl"

    let folder: String
    /// Of both files.
    let bytesMax: Int
    private var open: (file: DiskFile, size: Int)?

    init(folder: String, bytesMax: Int) {
        self.folder = folder
        self.bytesMax = bytesMax
    }

    /// Adds a line. A line that is longer than a file may be is an error.
    /// - Throws: `DiskError`; a part of the line may be there then, and the next one begins on a line of its own.
    mutating func append(_ line: [UInt8]) throws(DiskError) {
        let path = "\(folder)/\(Self.name)"
        guard line.count <= bytesMax / 2 else { throw DiskError(operation: "write", path: path, code: EFBIG) }
        if open == nil { open = try Self.opened(folder, path) }
        if let present = open, present.size + line.count > bytesMax / 2 {
            open = nil
            try renameFile(at: path, to: "\(folder)/\(Self.formerName)")
            open = try Self.opened(folder, path)
        }
        guard let (file, size) = open else { return }
        do throws(DiskError) {
            try file.writeAll(line, at: size)
        } catch {
            // The file is opened again for the next line, which begins behind an end of line.
            open = nil
            throw error
        }
        open = (file, size + line.count)
    }

    private static func opened(_ folder: String, _ path: String) throws(DiskError) -> (file: DiskFile, size: Int) {
        try makeFolder(at: folder)
        let file = try DiskFile(path: path, flags: O_RDWR | O_CREAT)
        var size = try file.size()
        // A process that was killed, or a full disk, may have left a part of a line.
        if size > 0, try file.bytes(at: size - 1, count: 1) != [UInt8(ascii: "\n")] {
            try file.writeAll([UInt8(ascii: "\n")], at: size)
            size += 1
        }
        return (file, size)
    }
}
