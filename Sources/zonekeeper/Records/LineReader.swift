import Foundation
import Glibc

/// Reads a file line by line, however large it is.
struct LineReader: ~Copyable {
    /// The longest line: a record cannot be larger than the server's limit, in whatever form.
    static let lineBytesMax = 4 << 20

    private let file: UnsafeMutablePointer<FILE>
    private let path: String
    /// Of the file, in bytes; nil for standard input.
    let totalBytes: Int?
    /// Read so far, in bytes.
    private(set) var readBytes = 0
    /// The number of the last line read, from 1.
    private(set) var line = 0

    /// - Parameter path: `-` is standard input.
    init(path: String) throws(CommandFailure) {
        self.path = path
        guard let file = path == "-" ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "r") else {
            throw CommandFailure("\(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        self.file = file
        totalBytes = path == "-" ? nil : try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
    }

    deinit { fclose(file) }

    /// The next line without its line feed; nil at the end.
    mutating func next() throws(CommandFailure) -> [UInt8]? {
        var pointer: UnsafeMutablePointer<CChar>?
        var capacity = 0
        let count = getline(&pointer, &capacity, file)
        defer { free(pointer) }
        guard count > 0, let pointer else {
            if ferror(file) != 0 { throw CommandFailure("\(path) cannot be read: \(String(cString: strerror(errno)))") }
            return nil
        }
        line += 1
        readBytes += count
        guard count <= Self.lineBytesMax else {
            throw CommandFailure("\(path), line \(line): \(count) bytes, at most \(Self.lineBytesMax) in a line")
        }
        var bytes = UnsafeBufferPointer(start: pointer, count: count).map { UInt8(bitPattern: $0) }
        while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { bytes.removeLast() }
        return bytes
    }
}
